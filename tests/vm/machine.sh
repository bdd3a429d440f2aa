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

if [ "$(uname -m)" != x86_64 ]; then
  echo "note: the virtual machine is for x86_64 programs: skipped" >&2
  exit 0
fi

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# The newest of Debian's cloud kernels, which need no module for a serial port and an initial root.
find_kernel() {
  local kernel
  kernel="$(find /boot -name 'vmlinuz-*-cloud-amd64' | sort -V | tail -n 1)"
  [ -n "$kernel" ] || fail "no kernel in /boot: install linux-image-cloud-amd64"
  printf '%s\n' "$kernel"
}

# An empty system.
merged_tree() {
  local name
  mkdir -p "$1"/{dev,etc,home,proc,run,sys,tmp,var}
  for name in bin sbin lib lib64; do
    mkdir -p "$1/usr/$name"
    ln -s "usr/$name" "$1/$name"
  done
}

# Busybox under each of its names that nothing else has.
add_busybox() {
  local applet
  install "$(command -v busybox)" "$1/usr/bin/busybox"
  for applet in $(busybox --list); do
    [ -e "$1/usr/bin/$applet" ] || [ -e "$1/usr/sbin/$applet" ] || ln -s busybox "$1/usr/bin/$applet"
  done
  install "$here/guest/init" "$1/init"
}

# Root, `sub` with subordinate ids, `plain` without, and others as NAME:ID.
add_users() {
  local tree="$1" user
  shift
  for user in root:0 sub:1000 plain:1001 "$@"; do
    echo "${user%:*}:x:${user#*:}:${user#*:}::/home/${user%:*}:/bin/sh" >>"$tree/etc/passwd"
    echo "${user%:*}:x:${user#*:}:" >>"$tree/etc/group"
  done
  echo sub:200000:65536 | tee "$tree/etc/subuid" >"$tree/etc/subgid"
}

# The programs under test, from the directory given to the script, and the checks.
add_test() {
  local program
  mkdir -p "$2/usr/local/bin" "$2/checks"
  for program in agentbox agentbox-init; do
    [ -x "$1/$program" ] || fail "'$1/$program' is not there: build it first"
    install -m 755 "$1/$program" "$2/usr/local/bin/$program"
  done
  install "$here"/guest/{check,limits}.sh "$here/guest/$3" "$2/checks"
}

# A directory as an archive that the kernel unpacks; everything in it is root's.
pack() {
  (cd "$1" && find . -mindepth 1 -print0 | sort -z | cpio --quiet --null -o -H newc -R 0:0) >"$2"
}

# Boots: the first argument is appended to the kernel's command line, the others are qemu's. The first serial
# port is the console; the second carries nothing but results, so that no message of the kernel's splits a line.
boot() {
  local command_line="console=ttyS0 quiet panic=-1 mitigations=off cgroup_no_v1=all rdinit=/init $1"
  shift
  rm -f "$console" "$results"
  timeout --foreground --kill-after=5 "$time_limit" qemu-system-x86_64 \
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
