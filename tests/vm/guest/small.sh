#!/bin/sh
# shellcheck shell=dash
# The small machine: three callers (root; `sub`, who has a range of subordinate ids; `plain`, who has none) in four
# places: where root is, in a child of a delegated cgroup, in a delegated cgroup itself, and where nothing is
# delegated or others stand in the way.
export PATH=/usr/local/bin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for user in root sub plain; do
  mkdir -p "/home/$user" && chown "$user:$user" "/home/$user"
done
# shellcheck source=tests/vm/guest/check.sh
. /checks/check.sh
# shellcheck source=tests/vm/guest/limits.sh
. /checks/limits.sh

# As the caller, standing in the place, with nothing of the environment.
launch() {
  # shellcheck disable=SC2016
  sh -c '
    user="$1" && echo 0 >"$2/cgroup.procs" && shift 2 &&
    exec /usr/bin/setpriv --reuid "$user" --regid "$user" --init-groups env -i HOME="/home/$user" PATH="$PATH" "$@"' \
    launch "$caller" "$place" "$@"
}

# Below the caller's parent directory, beside the keeper's.
sandbox_cgroup() { find "$parent" -mindepth 1 -maxdepth 1 -name 'agentbox-*' ! -name '*-keeper'; }

# What a killed keeper left goes with the caller's next command, wherever that is given.
leaves_nothing_when_killed() {
  ends_with_its_keeper || return 1
  local place="$top"
  launch agentbox run -- true && nothing_is_left
}

# stand CALLER PLACE [PARENT]: who starts sandboxes from now on, where, and below what.
stand() {
  caller="$1" place="$2" parent="$3"
  echo >"$trace/trace"
}

# delegate PLACE: hands a cgroup over to the user, as the kernel's documentation says.
delegate() {
  mkdir -p "$1"
  chown "$user:$user" "$1" "$1/cgroup.procs" "$1/cgroup.threads" "$1/cgroup.subtree_control"
}

echo "+memory +cpu +pids" >"$top/cgroup.subtree_control"
mkdir "$top/other"
stand root "$top/other" "$top/agentbox"
all_limits_hold root
check "root: a killed keeper leaves nothing" leaves_nothing_when_killed
check "root: strict isolation starts" strict_starts

for user in sub plain; do
  delegated="$top/delegated-$user"
  delegate "$delegated"
  delegate "$delegated/shell"
  stand "$user" "$delegated/shell" "$delegated"
  launch sleep 1000 &
  all_limits_hold "$user beside the sandbox"
  check "$user beside the sandbox: a killed keeper leaves nothing" leaves_nothing_when_killed
  if [ "$user" = sub ]; then
    check "$user: strict isolation starts" strict_starts
  else
    check "$user: strict isolation is refused" strict_is_refused id-range
  fi

  delegate "$delegated-itself"
  stand "$user" "$delegated-itself" "$delegated-itself"
  limits_hold "$user above the sandbox"
  check "$user above the sandbox: a killed keeper leaves nothing" leaves_nothing_when_killed

  delegate "$top/crowded-$user"
  stand "$user" "$top/crowded-$user"
  launch sleep 1000 &
  poll grep -q . "$top/crowded-$user/cgroup.procs"
  no_limit_is_claimed "$user in a crowd" ".*other processes"

  mkdir "$top/foreign-$user"
  stand "$user" "$top/foreign-$user"
  no_limit_is_claimed "$user without a cgroup" "no cgroup is delegated"
done
finish
poweroff -f
