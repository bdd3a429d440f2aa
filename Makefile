# agentbox: build, try, test, measure, install.
#
#   make run ARGS="run -- bash"   build and run; without ARGS a one-minute tour
#   make test                     everything that has to hold, in under 20 minutes once built
#   make test-full                the long forms too
#   make fuzz TIME=60             what reads hostile bytes, each target for so many seconds; TARGET=dns for one
#   make bench                    numbers, beside bubblewrap, runc, crun and nsenter; BENCH_LONG=1 for the long form
#   make install PREFIX=/usr/local
#   make release                  static binaries in a tarball

ARCH    := $(shell uname -m)
MUSL    := $(ARCH)-unknown-linux-musl
GNU     := $(ARCH)-unknown-linux-gnu
# Both programs are static: against musl where its target and its C compiler are installed, as a library that ciphers is
# partly in C, else against glibc. There a library that makes random numbers would look for the kernel's call at run
# time, which nothing static can, and then for a device.
HAS_MUSL := $(and $(wildcard $(shell rustc --print target-libdir --target $(MUSL) 2>/dev/null)),$(shell command -v musl-gcc))
TRIPLE  := $(if $(HAS_MUSL),$(MUSL),$(GNU))
STATIC  := -C target-feature=+crt-static --cfg getrandom_backend="linux_getrandom"
CARGO   := $(if $(filter $(GNU),$(TRIPLE)),RUSTFLAGS='$(STATIC)' )cargo
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
PREFIX  ?= /usr/local
TIME    ?= 60
RELEASE := target/$(TRIPLE)/release
export AGENTBOX_TRIPLE := $(TRIPLE)
export AGENTBOX_STATIC := $(STATIC)

.PHONY: build run test test-full fuzz bench measure install release lint tools clean

build:
	@$(CARGO) build --quiet --release --locked -p agentbox-cli --target $(TRIPLE)

run: build
ifeq ($(strip $(ARGS)),)
	@tests/tour.sh $(RELEASE)/agentbox
else
	@$(RELEASE)/agentbox $(ARGS)
endif

test:
	@tests/run.sh short

test-full:
	@tests/run.sh full

fuzz:
	@fuzz/run.sh $(TIME) $(TARGET)

# What ships is measured: against musl, where its target can be had.
bench:
	@rustup target add $(MUSL) >/dev/null 2>&1 || true
	@tests/setup.sh
	@$(MAKE) --no-print-directory measure

measure: build
	@bench/run.sh $(RELEASE) $(if $(BENCH_LONG),long,whole)

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

install: build
	install -D -m 755 $(RELEASE)/agentbox $(DESTDIR)$(PREFIX)/bin/agentbox
	install -D -m 755 $(RELEASE)/agentbox-init $(DESTDIR)$(PREFIX)/libexec/agentbox/agentbox-init
	$(RELEASE)/agentbox man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(RELEASE)/agentbox completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/agentbox
	$(RELEASE)/agentbox completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_agentbox
	$(RELEASE)/agentbox completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/agentbox.fish

release: build
	@rm -rf target/release-tree && $(MAKE) --no-print-directory install DESTDIR=target/release-tree/ PREFIX=agentbox-$(VERSION)
	@cp LICENSE README.md SECURITY.md CHANGELOG.md target/release-tree/agentbox-$(VERSION)/
	@tar -C target/release-tree -czf target/agentbox-$(VERSION)-$(ARCH)-linux.tar.gz agentbox-$(VERSION)
	@echo target/agentbox-$(VERSION)-$(ARCH)-linux.tar.gz

clean:
	cargo clean
