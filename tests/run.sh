#!/usr/bin/env bash
# Every test: installs what the tests need, builds the program as it ships and once more with walls that can be
# taken away, and runs the suites as root and as two ordinary users. `run.sh short` or `run.sh full`.
set -euo pipefail
cd "$(dirname "$0")/.."
export AGENTBOX_TEST_FORM="${1:-short}"
triple="${AGENTBOX_TRIPLE:?run this by make test}"

say() { printf '\n== %s, at %s\n' "$*" "$(date +%T)" >&2; }

# What keeps one processor busy runs beside what mostly waits. What it says is shown whole by `finish`, where a failure of
# it is one of ours; whatever still runs when this ends, ends.
said="$(mktemp -d)"
declare -A running=()
trap 'for job in "${running[@]}"; do kill -- "-$job" 2>/dev/null || true; done; rm -rf "$said"' EXIT
beside() { # NAME COMMAND...
  set -m # so that it has a process group of its own
  ("${@:2}") </dev/null >"$said/$1" 2>&1 &
  running[$1]=$!
  set +m
}
finish() { # NAME
  local code=0
  wait "${running[$1]}" || code=$?
  unset "running[$1]"
  say "$1"
  cat "$said/$1" >&2
  return "$code"
}
cargo_static() {
  case "$triple" in
    *-gnu) RUSTFLAGS="${AGENTBOX_STATIC:?run this by make test}" cargo "$@" ;;
    *) cargo "$@" ;;
  esac
}

say "what the tests need"
tests/setup.sh

say "lints"
cargo fmt --all --check
cargo clippy --quiet --workspace --all-targets --locked -- -D warnings

say "build: as it ships, weakened, and the probe"
cargo_static build --locked --profile fast --target "$triple" -p agentbox-cli
cargo_static build --locked --profile fast --target "$triple" -p agentbox-cli --features weaken --target-dir target/weak
cargo_static build --locked --profile fast --target "$triple" -p agentbox-tests --bin probe
export AGENTBOX_TEST_BIN="$PWD/target/$triple/fast"
export AGENTBOX_TEST_WEAK_BIN="$PWD/target/weak/$triple/fast"

fuzzing() {
  case "$AGENTBOX_TEST_FORM" in full) moment=20 ;; *) moment=2 ;; esac
  # 77 says that it was skipped, and why has been said.
  fuzz/run.sh --anew "$moment" || [ $? = 77 ]
}
machines() {
  if command -v qemu-system-x86_64 >/dev/null && ls /boot/vmlinuz-*-cloud-* >/dev/null 2>&1; then
    tests/vm/run.sh "$AGENTBOX_TEST_BIN"
    tests/vm/systemd.sh "$AGENTBOX_TEST_BIN"
  else
    echo "skipped: no qemu-system-x86_64 or no cloud kernel (tests/setup.sh installs them as root)"
  fi
}
beside "fuzzing: each target for a moment, from its seeds" fuzzing
say "unit and property tests"
cargo test --quiet --locked --workspace --exclude agentbox-tests
finish "fuzzing: each target for a moment, from its seeds"

beside "in virtual machines: pure cgroup v2, and a systemd user session" machines
say "end to end"
# A job in the background ignores Ctrl-C, and what it starts inherits that; tests press it.
# Most of what they do is to wait.
RUST_TEST_THREADS="${RUST_TEST_THREADS:-8}" env --default-signal=INT,QUIT cargo test --locked -p agentbox-tests

# On other backends: every wall, and of all else that a sandbox promises one test of each kind, by name; the long form runs all.
kinds=(
  environment::every mounts::a_repository mounts::new_files exits::out_of_memory exits::ended_by streams::binary_both streams::opened_again terminal::control_c
  endings::everything_ends endings::a_killed_process options::limits
  cycle::made_used cycle::nothing_is_left files::a_tree_goes passing:: pause::what_is_paused pause::limits_of ports::traffic::much
  record::everything record::whoever ends::limits terminals::a_run_is_left usage::what_ usage::one_that
  direct_walls::nothing_of_any_git_is_changed layer::what_is_written layer::git_tells together:: walls::nothing_leaves policies:: led::no_server
  roots::an_image_without roots::an_image_says roots::everybody roots::another_user roots::what_is_written_over
  roots::what_was_written committed::what_nobody
  exhaustion_52_processes exhaustion_53_memory exhaustion_55_a_reader life_62_killed life_65_many_at runtimes::python::
)
suites=(functional stay review network exhaustion life positive chaos images)
skipped="$said/left-out"
: >"$skipped"
on_backend() { # BACKEND WORDS...: the tests of other words, and what they leave out noted.
  AGENTBOX_TEST_BACKEND="$1" RUST_TEST_THREADS="${RUST_TEST_THREADS:-8}" env --default-signal=INT,QUIT \
    cargo test --locked -p agentbox-tests "${@:2}" 2>&1 | tee >(grep -o 'left out on .*' | sort -u >>"$skipped")
}
for backend in gvisor crun runc; do
  program="$(case "$backend" in gvisor) echo runsc ;; *) echo "$backend" ;; esac)"
  if PATH="/usr/local/libexec/agentbox-tests:$PATH" command -v "$program" >/dev/null; then
    say "end to end, on $backend"
    on_backend "$backend" --test isolation
    case "$AGENTBOX_TEST_FORM" in
      full) on_backend "$backend" --no-fail-fast $(printf -- '--test %s ' "${suites[@]}") ;;
      *) on_backend "$backend" $(printf -- '--test %s ' "${suites[@]}") -- "${kinds[@]}" ;;
    esac
  else
    echo "skipped: there is no $program (tests/setup.sh builds or installs it as root)" >&2
  fi
done
say "what of these is about nothing on a backend, and why"
sort -u "$skipped" >&2

finish "in virtual machines: pure cgroup v2, and a systemd user session"
