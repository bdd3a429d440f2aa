#!/usr/bin/env bash
# Installs what the tests need: Debian packages and two ordinary users, one with a range of subordinate ids and
# one without. Without root it only says what is missing.
set -euo pipefail

packages=(bubblewrap runc crun uidmap qemu-system-x86 busybox-static cpio strace gdb tmux vim htop git gcc libc6-dev
  nodejs python3 default-jdk-headless golang-go procps util-linux iproute2)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ "$(id -u)" != 0 ]; then
  [ ${#missing[@]} = 0 ] || echo "note: not installed (no root): ${missing[*]}" >&2
  exit 0
fi
if [ ${#missing[@]} != 0 ] && command -v apt-get >/dev/null; then
  echo "installing: ${missing[*]}" >&2
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

for user in agentbox-sub agentbox-plain; do
  id "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$user"
done
grep -q '^agentbox-sub:' /etc/subuid || usermod --add-subuids 200000-265535 --add-subgids 200000-265535 agentbox-sub
sed -i '/^agentbox-plain:/d' /etc/subuid /etc/subgid
