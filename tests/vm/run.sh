#!/usr/bin/env bash
# The limits on pure cgroup v2, as root and as ordinary users with and without a delegated cgroup, in a small
# virtual machine whose whole system is busybox and the programs under test. `run.sh BIN_DIR`.
set -euo pipefail
# shellcheck source=tests/vm/machine.sh
source "$(dirname "$0")/machine.sh" small 240
programs="${1:?usage: run.sh BIN_DIR}"

tree="$(mktemp -d)"
trap 'rm -rf "$tree"' EXIT

# A program of the host's with the libraries that it needs, each where it looks for it.
bring() {
  local file
  install -D "$1" "$tree/usr/bin/$(basename "$1")"
  for file in $(ldd "$1" | grep -o '/[^ ]*'); do
    install -D "$file" "$tree$file"
  done
}

mkdir -p "$tree"/usr/{bin,sbin,lib,lib64} "$tree"/{dev,etc,home,proc,run,sys,tmp,var,checks}
for name in bin sbin lib lib64; do
  ln -s "usr/$name" "$tree/$name"
done
install "$(command -v busybox)" "$tree/usr/bin/busybox"
for applet in $(busybox --list); do
  ln -s busybox "$tree/usr/bin/$applet" 2>/dev/null || true
done
for program in setpriv newuidmap newgidmap; do
  rm -f "$tree/usr/bin/$program"
  bring "$(command -v "$program")"
done
chmod 4755 "$tree"/usr/bin/new?idmap
install_programs "$programs" "$tree"

cat >"$tree/etc/passwd" <<'END'
root:x:0:0::/home/root:/bin/sh
sub:x:1000:1000::/home/sub:/bin/sh
plain:x:1001:1001::/home/plain:/bin/sh
END
printf '%s\n' root:x:0: sub:x:1000: plain:x:1001: >"$tree/etc/group"
echo sub:200000:65536 | tee "$tree/etc/subuid" >"$tree/etc/subgid"
install "$here/guest/init" "$tree/init"
install "$here/guest/check.sh" "$here/guest/small.sh" "$tree/checks"

pack "$tree" "$tree.cpio"
trap 'rm -rf "$tree" "$tree.cpio"' EXIT
boot "rdinit=/init" -initrd "$tree.cpio" || echo "note: qemu ended with $?" >&2
judge
