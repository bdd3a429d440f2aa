# shellcheck shell=dash
# Checks inside a machine: one `ok N name` or `not ok N name` line each on the second serial port, and what a
# failed check said as `# ` lines. Sourced by the checks of each machine.

results=/dev/ttyS1
number=0
stty -F "$results" -opost 2>/dev/null

# check NAME COMMAND…: holds if the command does.
check() {
  local name="$1"
  shift
  number=$((number + 1))
  if "$@" >/tmp/said 2>&1; then
    echo "ok $number $name" >"$results"
  else
    echo "not ok $number $name" >"$results"
    sed 's/^/#   /' /tmp/said >"$results"
  fi
}

# The closing line: how many checks there were.
finish() {
  echo "1..$number" >"$results"
}

# poll COMMAND…: waits until the command holds, for 30 seconds at most.
poll() {
  local tries=300
  until "$@"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || return 1
    sleep 0.1
  done
}

# same WHAT WANTED FOUND: fails and tells the difference.
same() {
  [ "$2" = "$3" ] || {
    echo "$1: wanted '$2', found '$3'"
    return 1
  }
}
