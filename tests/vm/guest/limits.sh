# shellcheck shell=dash
# What limits hold on cgroup v2, seen from outside the sandbox. Each machine says in `launch` how a command is
# started as one of its callers, and in `sandbox_cgroup` where that caller's sandbox is to be found.

top=/sys/fs/cgroup
hog="dd if=/dev/zero of=/dev/null bs=40M count=1"
hoard="dd if=/dev/zero of=/tmp/hoard bs=1M count=40"
# A sandbox that ended too early is a failed check, not the end of the checks.
trap : PIPE
# Somebody else on the machine, who must not suffer.
sleep 1000 &
bystander=$!
# Writes down who moves from one cgroup to another.
trace=/sys/kernel/tracing
grep -q " $trace " /proc/mounts || mount -t tracefs tracefs "$trace"
echo 1 >"$trace/events/cgroup/cgroup_attach_task/enable"

# A sandbox with small limits.
agentbox_run() { launch agentbox run --memory 24M --pids 32 "$@"; }

# A sandbox that stays open for checks: a shell in it takes commands from descriptor 3 and answers on 4.
open() {
  rm -f /tmp/ask /tmp/answer
  mkfifo /tmp/ask /tmp/answer
  agentbox_run --cpus 0.5 --report -- sh </tmp/ask >/tmp/answer 2>/tmp/report &
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

# Nothing of what it says after its report is expected, so all of it is told where it does not end well.
close() {
  exec 3>&- 4<&-
  local code=0
  wait "$command_line" || code=$?
  same "exit code" 0 "$code" || { cat /tmp/report && false; }
}

refused() { ! inside "$1"; }
holds_at_least() { [ "$(sed -n "s/^$2 //p" "$1")" -ge "$3" ]; }

# reported STATE WALL: a line of the report of the open sandbox.
reported() { grep -E "^$1 +$2 " /tmp/report || { cat /tmp/report && false; }; }
all_are_given() { reported given memory-limit && reported given cpu-limit && reported given pids-limit; }

limits_are_set() {
  same memory.max 25165824 "$(cat "$cgroup/memory.max")" &&
    same memory.swap.max 0 "$(cat "$cgroup/memory.swap.max" 2>/dev/null || echo 0)" &&
    same cpu.max "50000 100000" "$(cat "$cgroup/cpu.max")" &&
    same pids.max 32 "$(cat "$cgroup/pids.max")"
}

# Its init stands in its cgroup and none of ours does; the kernel has seen nobody move there.
was_cloned_into_it() {
  local name="${cgroup#"$top"}" pid
  grep -q "cgroup_attach_task:" "$trace/trace" || { echo "nothing is traced" && return 1; }
  pid="$(ps -o pid,args | sed -n 's#^ *\([0-9]*\) /[.]agentbox/init .*#\1#p')"
  same "cgroup of init" "0::$name" "$(cat "/proc/$pid/cgroup")" || return 1
  for pid in $(pidof agentbox); do
    ! grep ":$name$" "/proc/$pid/cgroup" || return 1
  done
  ! grep "dst_path=$name " "$trace/trace"
}

shows_its_own_cgroup() {
  same "its place" 0::/ "$(inside 'cat /proc/self/cgroup')" &&
    same "its limit" 25165824 "$(inside 'cat /sys/fs/cgroup/memory.max')" &&
    same "cgroups below it" "" "$(inside 'find /sys/fs/cgroup -mindepth 1 -type d')" &&
    refused 'echo max >/sys/fs/cgroup/memory.max' && refused 'mkdir /sys/fs/cgroup/more' &&
    same memory.max 25165824 "$(cat "$cgroup/memory.max")"
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

# runs_out_of_memory COMMAND…: is killed, with a message, while the others on the machine live on.
runs_out_of_memory() {
  local code=0
  agentbox_run -- "$@" || code=$?
  same "exit code" 137 "$code" && grep "ran out of memory" /tmp/said && kill -0 "$bystander" &&
    dmesg | grep "Memory cgroup out of memory" >/dev/null && ! dmesg | grep "Out of memory:"
}

# Nothing of a sandbox is there: no process, no cgroup, no directory.
nothing_is_left() {
  poll no_process && poll no_cgroup &&
    same directories "" "$(find /run/agentbox /run/user/*/agentbox /tmp/agentbox-* -mindepth 2 2>/dev/null)"
}
# shellcheck disable=SC2009
no_process() { ! ps -o args | grep -E "^/[.]agentbox/init|agentbox (run|keeper|supervisor)"; }
no_cgroup() { same cgroups "" "$(find "$top" -name 'agentbox-*' -o -name 'run-*.scope')"; }

# kill -9 of the keeper ends the sandbox.
ends_with_its_keeper() {
  open || return 1
  kill -9 "$(ps -o pid,args | sed -n 's/^ *\([0-9]*\) .*agentbox keeper$/\1/p')"
  close
  poll no_process
}

strict_starts() { agentbox_run --isolation strict -- true; }
# strict_is_refused WALL: and its name is said.
strict_is_refused() {
  local code=0
  agentbox_run --isolation strict -- true || code=$?
  same "exit code" 125 "$code" && grep "error: .*$1" /tmp/said
}

# One sandbox's limits are not another's, and they do not get into each other's way.
several_hold_at_once() {
  local pids="" number
  for number in 1 2 3; do
    agentbox_run --report -- cat /sys/fs/cgroup/memory.max >"/tmp/several-$number" 2>&1 &
    pids="$pids $!"
  done
  for number in $pids; do
    wait "$number"
  done
  for number in 1 2 3; do
    cat "/tmp/several-$number"
    grep -q "^given *memory-limit" "/tmp/several-$number" && grep -qx 25165824 "/tmp/several-$number" || return 1
  done
}

# Everything inside stands still and goes on, and is given other limits, by a command of the caller's.
stands_still() {
  local id
  id="$(launch agentbox ls --quiet)"
  launch agentbox pause "$id" && same frozen 1 "$(sed -n 's/^frozen //p' "$cgroup/cgroup.events")" &&
    launch agentbox resume "$id" && same frozen 0 "$(sed -n 's/^frozen //p' "$cgroup/cgroup.events")" && inside true
}
takes_other_limits() {
  local id
  id="$(launch agentbox ls --quiet)"
  launch agentbox update "$id" --memory 32M --cpus 0.25 --pids 40 &&
    same memory.max 33554432 "$(cat "$cgroup/memory.max")" &&
    same cpu.max "25000 100000" "$(cat "$cgroup/cpu.max")" &&
    same pids.max 40 "$(cat "$cgroup/pids.max")"
}

# limits_hold WHO: in short.
limits_hold() {
  check "$1: a sandbox starts" open
  cgroup="$(sandbox_cgroup)"
  check "$1: the limits are reported as given" all_are_given
  check "$1: the limits are set" limits_are_set
  check "$1: it was cloned into its cgroup" was_cloned_into_it
  check "$1: it ends" close
  check "$1: nothing is left" nothing_is_left
  # shellcheck disable=SC2086
  check "$1: a memory hog is killed" runs_out_of_memory $hog
}

# all_limits_hold WHO
all_limits_hold() {
  limits_hold "$1"
  check "$1: a sandbox for the limits" open
  cgroup="$(sandbox_cgroup)"
  check "$1: it sees its own cgroup, read-only" shows_its_own_cgroup
  check "$1: its processor time is limited" is_throttled
  check "$1: its forks are bounded" forks_are_bounded
  check "$1: it stands still and goes on" stands_still
  check "$1: it takes other limits" takes_other_limits
  check "$1: it ends with its processes" close
  # shellcheck disable=SC2086
  check "$1: a hoarder of files is killed" runs_out_of_memory $hoard
  check "$1: several hold at once" several_hold_at_once
  check "$1: nothing is left of them" nothing_is_left
}

# no_limit_is_claimed WHO WHY: and the hog that the limit would have killed is not.
no_limit_is_claimed() {
  check "$1: a sandbox starts" open
  check "$1: the memory limit is reported missing" reported missing "memory-limit +$2"
  check "$1: the processor limit is reported missing" reported missing "cpu-limit +$2"
  check "$1: the process limit is reported weaker" reported weaker pids-limit
  check "$1: it sees no cgroup of the host" refused 'cat /sys/fs/cgroup/cgroup.procs'
  check "$1: it ends" close
  # shellcheck disable=SC2086
  check "$1: a memory hog is not killed" agentbox_run -- $hog
  check "$1: strict isolation is refused" strict_is_refused memory-limit
  check "$1: nothing is left" nothing_is_left
}
