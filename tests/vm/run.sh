#!/usr/bin/env bash
# The limits on pure cgroup v2, as root and as ordinary users with and without a delegated cgroup, in a small
# virtual machine whose whole system is busybox and the programs under test. `run.sh BIN_DIR`.
set -euo pipefail
# shellcheck source=tests/vm/machine.sh
source "$(dirname "$0")/machine.sh" small 240
programs="${1:?usage: run.sh BIN_DIR}"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
tree="$work/tree"

# A program of the host's with the libraries that it needs, each where it looks for it.
bring() {
  local file
  rm -f "$tree/usr/bin/$(basename "$1")"
  install -D "$1" "$tree/usr/bin/$(basename "$1")"
  for file in $(ldd "$1" | grep -o '/[^ ]*'); do
    install -D "$file" "$tree$file"
  done
}

merged_tree "$tree"
add_busybox "$tree"
for program in setpriv newuidmap newgidmap; do
  bring "$(command -v "$program")"
done
chmod 4755 "$tree"/usr/bin/new?idmap
add_users "$tree"
add_test "$programs" "$tree" small.sh
pack "$tree" "$work/system.cpio"
boot start=/checks/small.sh -initrd "$work/system.cpio" || echo "note: qemu ended with $?" >&2
judge
