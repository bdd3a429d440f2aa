# shellcheck shell=bash
# A virtual machine for tests that need a kernel of their own: pure cgroup v2, whatever the host has. It is
# emulated, so it needs neither root nor KVM. Sourced by run.sh and systemd.sh.

# The test's name, and for how many seconds its machine may run.
machine="$1"
time_limit="$2"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
output="$(cd "$here/../.." && pwd)/target/vm"
console="$output/$machine.log"
results="$output/$machine.tap"
mkdir -p "$output"

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# The newest of Debian's cloud kernels: small, and with NVMe, ext4 and the serial port built in.
find_kernel() {
  local kernel
  kernel="$(find /boot -name 'vmlinuz-*-cloud-amd64' | sort -V | tail -n 1)"
  [ -n "$kernel" ] || fail "no kernel in /boot: install linux-image-cloud-amd64"
  printf '%s\n' "$kernel"
}

# Both programs of ours, from the directory given to the script.
install_programs() {
  local program
  mkdir -p "$2/usr/local/bin"
  for program in agentbox agentbox-init; do
    [ -x "$1/$program" ] || fail "'$1/$program' is not there: build it first"
    install -m 755 "$1/$program" "$2/usr/local/bin/$program"
  done
}

# A directory as an archive that the kernel unpacks; everything in it is root's.
pack() {
  (cd "$1" && find . -mindepth 1 -print0 | sort -z | cpio --quiet --null -o -H newc -R 0:0) >"$2"
}

# Boots: the first argument is appended to the kernel's command line, the others are qemu's. The first serial
# port is the console; the second carries nothing but results, so that no message of the kernel's splits a line.
boot() {
  local command_line="console=ttyS0 quiet panic=-1 mitigations=off cgroup_no_v1=all $1"
  shift
  rm -f "$console" "$results"
  timeout --kill-after=5 "$time_limit" qemu-system-x86_64 \
    -machine q35,accel=tcg -cpu max -smp 2 -m 1024 -nodefaults -no-reboot -display none \
    -serial "file:$console" -serial "file:$results" \
    -kernel "$(find_kernel)" -append "$command_line" "$@" </dev/null
}

# One line for each check; success only if the guest reached its closing line and nothing failed.
judge() {
  local lines
  lines="$(tr -d '\r' <"$results")"
  grep -E '^(ok|not ok|#) ' <<<"$lines" || true
  if ! grep -qx "1..$(grep -cE '^(ok|not ok) ' <<<"$lines")" <<<"$lines"; then
    tail -n 25 "$console" >&2
    fail "the machine ended before its last check: see $console"
  fi
  ! grep -q '^not ok ' <<<"$lines" || fail "checks failed in the machine: see $console"
}
