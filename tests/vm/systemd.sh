#!/usr/bin/env bash
# The limits under a systemd user session, in a virtual machine with Debian's systemd as its first process.
# `systemd.sh BIN_DIR`. The system is put together from packages once and kept under target/vm.
set -euo pipefail
# shellcheck source=tests/vm/machine.sh
source "$(dirname "$0")/machine.sh" systemd 420
programs="${1:?usage: systemd.sh BIN_DIR}"

packages=(systemd dbus dbus-user-session libpam-systemd login uidmap util-linux)
# They come along as dependencies of scripts that are not run.
unneeded='^(perl|libperl|dpkg|debconf|usrmerge|adduser|gcc-|lib.*-perl)'
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# Downloads the packages and all that they need, as if nothing were installed, from the sources that apt has;
# where its lists are missing or too old, with new ones.
download() {
  local options=(-qq -y -o "Dir::State::status=$work/status" -o "Dir::Cache::archives=$work/packages"
    -o Debug::NoLocking=1 -o APT::Sandbox::User=root)
  local install=(--no-install-recommends --download-only install "${packages[@]}")
  mkdir -p "$work/packages/partial" "$work/lists/partial"
  : >"$work/status"
  apt-get "${options[@]}" "${install[@]}" >"$work/apt.log" 2>&1 && return
  options+=(-o "Dir::State::lists=$work/lists")
  { apt-get "${options[@]}" update && apt-get "${options[@]}" "${install[@]}"; } >"$work/apt.log" 2>&1 ||
    { cat "$work/apt.log" >&2 && fail "cannot download the packages of the machine"; }
}

# Unpacks them into one tree, without running their scripts: what those would set up follows in `configure`.
unpack() {
  local package
  merged_tree "$1"
  for package in "$work"/packages/*.deb; do
    [[ "$(basename "$package")" =~ $unneeded ]] && continue
    dpkg-deb --fsys-tarfile "$package" | tar -x -p -C "$1" --no-same-owner --keep-directory-symlink \
      --exclude=./usr/share/{doc,man,locale,bash-completion,zsh,common-licenses}
  done
}

configure() {
  add_busybox "$1"
  add_users "$1" messagebus:101 systemd-journal:102
  echo 0123456789abcdef0123456789abcdef >"$1/etc/machine-id"
  echo machine >"$1/etc/hostname"
  # A session of pam_systemd, and no password asked.
  local kind
  rm "$1"/etc/pam.d/*
  for kind in common-account common-session common-session-noninteractive login other; do
    printf '%s\n' "account required pam_permit.so" "session optional pam_systemd.so" >"$1/etc/pam.d/$kind"
  done
  mkdir -p "$1/var/lib/systemd/linger"
  touch "$1"/var/lib/systemd/linger/{sub,plain}
  # Nothing of this matters to the limits, and it takes time.
  local unit
  for unit in systemd-{binfmt,update-utmp,update-utmp-runlevel,hwdb-update,journal-flush,random-seed}.service \
    systemd-{ask-password-console,ask-password-wall}.path {dev-hugepages,dev-mqueue,sys-kernel-debug}.mount \
    {getty,timers}.target; do
    ln -sf /dev/null "$1/etc/systemd/system/$unit"
  done
  install -m 644 "$here/guest/checks.service" "$1/etc/systemd/system/"
}

# The system changes only when this script does or what it includes.
base="$output/systemd-$(cat "$0" "$here"/{machine.sh,guest/init,guest/checks.service} | sha256sum | cut -c 1-16).cpio"
if [ ! -e "$base" ]; then
  rm -f "$output"/systemd-*.cpio
  download
  unpack "$work/base"
  configure "$work/base"
  pack "$work/base" "$base.new"
  mv "$base.new" "$base"
fi

# The kernel unpacks one archive after the other.
add_test "$programs" "$work/test" systemd.sh
pack "$work/test" "$work/test.cpio"
cat "$base" "$work/test.cpio" >"$work/system.cpio"
boot "start=/usr/lib/systemd/systemd systemd.unit=checks.service systemd.show_status=0" \
  -initrd "$work/system.cpio" || echo "note: qemu ended with $?" >&2
judge
