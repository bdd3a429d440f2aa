# shellcheck shell=dash
# What limits hold on pure cgroup v2, seen from outside the sandbox. Three callers (root; `sub`, who has a range of
# subordinate ids; `plain`, who has none) in four places: where root is, in a child of a delegated cgroup, in a
# delegated cgroup itself, and where nothing is delegated.
# shellcheck source=tests/vm/guest/check.sh
. /checks/check.sh
# A sandbox that ended too early is a failed check, not the end of the checks.
trap : PIPE

top=/sys/fs/cgroup
trace=/sys/kernel/tracing
hog="dd if=/dev/zero of=/dev/null bs=96M count=1"
hoard="dd if=/dev/zero of=/tmp/hoard bs=1M count=96"

# run_as USER PLACE COMMAND…: as that user, standing in that cgroup, with nothing of the environment.
run_as() {
  # shellcheck disable=SC2016
  sh -c '
    user="$1" && echo 0 >"$2/cgroup.procs" && shift 2 &&
    exec /usr/bin/setpriv --reuid "$user" --regid "$user" --init-groups env -i HOME="/home/$user" PATH="$PATH" "$@"' \
    run_as "$@"
}

# agentbox_as USER PLACE ARGUMENT…: a sandbox with small limits.
agentbox_as() {
  local user="$1" place="$2"
  shift 2
  run_as "$user" "$place" agentbox run --memory 48M --pids 32 "$@"
}

# A sandbox that stays open for checks: a shell in it takes commands from descriptor 3 and answers on 4.
open() {
  rm -f /tmp/ask /tmp/answer
  mkfifo /tmp/ask /tmp/answer
  agentbox_as "$1" "$2" --cpus 0.5 --report -- sh </tmp/ask >/tmp/answer 2>/tmp/report &
  command_line=$!
  exec 3>/tmp/ask 4</tmp/answer
  inside true
}

# inside COMMAND: what a command in the open sandbox prints, and its status.
inside() {
  echo "( $1 ) 2>&1; echo \"END \$?\"" >&3
  local line
  # shellcheck disable=SC3045
  while read -r -t 30 line <&4; do
    case "$line" in
      "END 0") return 0 ;;
      "END "*) return 1 ;;
      *) echo "$line" ;;
    esac
  done
  echo "the sandbox does not answer"
  cat /tmp/report
  return 1
}

close() {
  exec 3>&- 4<&-
  wait "$command_line"
}

reported() { grep -E "^$1 +$2 " /tmp/report || { cat /tmp/report && false; }; }
all_are_given() { reported given memory-limit && reported given cpu-limit && reported given pids-limit; }
refused() { ! inside "$1"; }
holds_at_least() { [ "$(sed -n "s/^$2 //p" "$1")" -ge "$3" ]; }

limits_are_set() {
  same memory.max 50331648 "$(cat "$cgroup/memory.max")" &&
    same memory.swap.max 0 "$(cat "$cgroup/memory.swap.max" 2>/dev/null || echo 0)" &&
    same cpu.max "50000 100000" "$(cat "$cgroup/cpu.max")" &&
    same pids.max 32 "$(cat "$cgroup/pids.max")"
}

# Its init stands in its cgroup and none of ours does; the kernel has seen nobody move there.
was_cloned_into_it() {
  local name="${cgroup#"$top"}" pid
  pid="$(pidof init | tr ' ' '\n' | grep -vx 1)" && same "cgroup of init" "0::$name" "$(cat "/proc/$pid/cgroup")" || return 1
  for pid in $(pidof agentbox); do
    ! grep ":$name$" "/proc/$pid/cgroup" || return 1
  done
  ! grep "dst_path=$name " "$trace/trace"
}

shows_its_own_cgroup() {
  same "its place" 0::/ "$(inside 'cat /proc/self/cgroup')" &&
    same "its limit" 50331648 "$(inside 'cat /sys/fs/cgroup/memory.max')" &&
    same "what is above it" "" "$(inside 'ls -d /sys/fs/cgroup/agentbox* /sys/fs/cgroup/delegated*' | grep -v 'No such')" &&
    refused 'echo max >/sys/fs/cgroup/memory.max' && refused 'mkdir /sys/fs/cgroup/more' &&
    same memory.max 50331648 "$(cat "$cgroup/memory.max")"
}

# Busy for more than a second: longer than half a processor gives in one period.
is_throttled() {
  # shellcheck disable=SC2016
  inside 'end=$(($(date +%s) + 2)); while [ "$(date +%s)" -lt "$end" ]; do :; done' &&
    holds_at_least "$cgroup/cpu.stat" nr_throttled 1
}

forks_are_bounded() {
  inside 'while :; do sleep 1000 & done'
  holds_at_least "$cgroup/pids.events" max 1 &&
    [ "$(cat "$cgroup/pids.current")" -le 32 ] && [ "$(cat "$cgroup/pids.current")" -gt 16 ]
}

# runs_out_of_memory USER PLACE COMMAND…: is killed, with a message, while the others on the machine live on.
runs_out_of_memory() {
  local user="$1" place="$2" code=0
  shift 2
  agentbox_as "$user" "$place" -- "$@" || code=$?
  same "exit code" 137 "$code" && grep "ran out of memory" /tmp/said && kill -0 "$bystander" &&
    dmesg | grep "Memory cgroup out of memory" >/dev/null && ! dmesg | grep "Out of memory:"
}

# Nothing of a sandbox is there: no cgroup, no process, no directory.
nothing_is_left() {
  poll no_process &&
    same cgroups "" "$(find "$top" -name 'agentbox-*')" &&
    same directories "" "$(find /run/agentbox/sandboxes /tmp/agentbox-*/sandboxes -mindepth 1 2>/dev/null)"
}
# shellcheck disable=SC2009
no_process() { ! ps -o args | grep -E "^/[.]agentbox/init|agentbox (run|keeper|supervisor)"; }

# kill -9 of the keeper ends the sandbox; what it left goes with the next command.
survives_a_killed_keeper() {
  open "$1" "$2" || return 1
  kill -9 "$(pgrep_keeper)"
  close
  poll no_process || return 1
  run_as "$1" "$top" agentbox run -- true && nothing_is_left
}
pgrep_keeper() { ps -o pid,args | sed -n 's/^ *\([0-9]*\) .*agentbox keeper$/\1/p'; }

strict_starts() { agentbox_as "$1" "$2" --isolation strict -- true; }
strict_is_refused() {
  local code=0
  agentbox_as "$1" "$2" --isolation strict -- true || code=$?
  same "exit code" 125 "$code" && grep "error: .*$3" /tmp/said
}

# all_limits_hold USER PLACE PARENT: the sandbox's cgroup is to be below PARENT.
all_limits_hold() {
  local who="$1 in $2:"
  echo >"$trace/trace"
  check "$who a sandbox starts" open "$1" "$2"
  cgroup="$(find "$3" -mindepth 1 -maxdepth 1 -name 'agentbox-*' ! -name '*-keeper')"
  check "$who the limits are reported as given" all_are_given
  check "$who the limits are set" limits_are_set
  check "$who it was cloned into its cgroup" was_cloned_into_it
  check "$who it sees its own cgroup, read-only" shows_its_own_cgroup
  check "$who its processor time is limited" is_throttled
  check "$who its forks are bounded" forks_are_bounded
  check "$who it ends" close
  check "$who nothing is left" nothing_is_left
  # shellcheck disable=SC2086
  check "$who a memory hog is killed" runs_out_of_memory "$1" "$2" $hog
  # shellcheck disable=SC2086
  check "$who a hoarder of files is killed" runs_out_of_memory "$1" "$2" $hoard
  check "$who a killed keeper leaves nothing" survives_a_killed_keeper "$1" "$2"
}

# no_limit_is_claimed USER PLACE WHY: and the hog that the limit would have killed is not.
no_limit_is_claimed() {
  local who="$1 in $2:"
  check "$who a sandbox starts" open "$1" "$2"
  check "$who the memory limit is reported missing" reported missing "memory-limit +$3"
  check "$who the processor limit is reported missing" reported missing "cpu-limit +$3"
  check "$who the process limit is reported weaker" reported weaker pids-limit
  check "$who it sees no cgroup of the host" refused 'cat /sys/fs/cgroup/cgroup.procs'
  check "$who it ends" close
  # shellcheck disable=SC2086
  check "$who a memory hog is not killed" agentbox_as "$1" "$2" -- $hog
  check "$who strict isolation is refused" strict_is_refused "$1" "$2" memory-limit
  check "$who nothing is left" nothing_is_left
}

# delegate USER DIRECTORY: hands a cgroup over, as the kernel's documentation says.
delegate() {
  mkdir -p "$2"
  chown "$1:$1" "$2" "$2/cgroup.procs" "$2/cgroup.threads" "$2/cgroup.subtree_control"
}

echo "+memory +cpu +pids" >"$top/cgroup.subtree_control"
echo 1 >"$trace/events/cgroup/cgroup_attach_task/enable"
sleep 1000 &
bystander=$!

all_limits_hold root "$top" "$top/agentbox"
check "root: strict isolation starts" strict_starts root "$top"

for user in sub plain; do
  delegated="$top/delegated-$user"
  delegate "$user" "$delegated"
  delegate "$user" "$delegated/shell"
  run_as "$user" "$delegated/shell" sleep 1000 &
  bystander=$!
  all_limits_hold "$user" "$delegated/shell" "$delegated"

  delegate "$user" "$top/delegated-$user-itself"
  all_limits_hold "$user" "$top/delegated-$user-itself" "$top/delegated-$user-itself"
done
check "sub: strict isolation starts" strict_starts sub "$top/delegated-sub/shell"
check "plain: strict isolation is refused" strict_is_refused plain "$top/delegated-plain/shell" id-range

for user in sub plain; do
  crowded="$top/crowded-$user"
  delegate "$user" "$crowded"
  run_as "$user" "$crowded" sleep 1000 &
  poll grep -q . "$crowded/cgroup.procs"
  no_limit_is_claimed "$user" "$crowded" ".*other processes"

  mkdir "$top/foreign-$user"
  no_limit_is_claimed "$user" "$top/foreign-$user" "no cgroup is delegated"
done
finish
