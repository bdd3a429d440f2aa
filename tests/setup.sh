#!/usr/bin/env bash
# Installs what the tests need: Debian packages and two ordinary users, one with a range of subordinate ids and
# one without. Without root it only says what is missing.
set -euo pipefail

# What must be there, and the package that brings it.
needs=(
  bwrap:bubblewrap runc:runc crun:crun newuidmap:uidmap qemu-system-x86_64:qemu-system-x86 busybox:busybox-static
  cpio:cpio less:less nano:nano mc:mc strace:strace gdb:gdb tmux:tmux vim:vim-tiny htop:htop git:git gcc:gcc c++:g++ node:nodejs
  /usr/bin/python3:python3 java:default-jdk-headless ip:iproute2 setpriv:util-linux ps:procps
  skopeo:skopeo buildah:buildah umoci:umoci podman:podman docker-registry:docker-registry mmdebstrap:mmdebstrap zstd:zstd
  musl-gcc:musl-tools nft:nftables curl:curl openssl:openssl ssh:openssh-client /usr/sbin/sshd:openssh-server
  sudo:sudo
)

missing=()
for need in "${needs[@]}"; do
  command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
done
ls /boot/vmlinuz-*-cloud-* >/dev/null 2>&1 || missing+=(linux-image-cloud-amd64)
command -v go >/dev/null || [ -x /usr/local/go/bin/go ] || missing+=(golang-go)
if [ "$(id -u)" != 0 ]; then
  [ ${#missing[@]} = 0 ] || echo "note: not installed (no root): ${missing[*]}" >&2
  exit 0
fi
if [ ${#missing[@]} != 0 ] && command -v apt-get >/dev/null; then
  echo "installing: ${missing[*]}" >&2
  # Tests start an sshd of their own; the package must not start one on this machine, now or later.
  [ -e /usr/sbin/sshd ] || { mkdir -p /etc/ssh && touch /etc/ssh/sshd_not_to_be_run; }
  # Nor a registry, of which tests start their own.
  [ -e /usr/bin/docker-registry ] || { [ -d /run/systemd/system ] && systemctl mask --now docker-registry 2>/dev/null || true; }
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

for user in agentbox-sub agentbox-plain; do
  id "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$user"
done
grep -q '^agentbox-sub:' /etc/subuid || usermod --add-subuids 200000-265535 --add-subgids 200000-265535 agentbox-sub
sed -i '/^agentbox-plain:/d' /etc/subuid /etc/subgid

# Current runtimes of other backends, built from their Go modules where every user can execute them. What is there stays:
# a distribution's own may be years behind.
tools=/usr/local/libexec/agentbox-tests
build() { # NAME PACKAGE VERSION CGO
  [ -x "$tools/$1" ] && return 0
  echo "building: $1" >&2
  local module
  module="$(mktemp -d)"
  (
    cd "$module"
    export PATH="$PATH:/usr/local/go/bin" CGO_ENABLED="$4" GOFLAGS=-buildvcs=false
    go mod init agentbox.invalid/tools && go get "$2@$3" && go build -o runtime "$2"
  ) >"$module/log" 2>&1 || { tail -n 5 "$module/log" >&2; echo "note: $1 was not built" >&2; return 0; }
  install -D -m 755 "$module/runtime" "$tools/$1"
  rm -rf "$module"
}
build runsc gvisor.dev/gvisor/runsc v0.0.0-20260905035102-160fafc42237 0
build runc github.com/opencontainers/runc v1.5.2 1
