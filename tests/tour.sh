#!/usr/bin/env bash
# `make run` without arguments: a sandbox starts, shows what it can and cannot do, and ends. `tour.sh AGENTBOX`.
set -euo pipefail
agentbox="${1:?the agentbox program}"

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# Runs a script inside. What is missing on this machine was said in the first step, and is not repeated.
inside() {
  printf "$ agentbox run -- sh -c '%s'\n" "$1"
  "$agentbox" run -- sh -c "exec 2>&1; $1" 2>/dev/null || printf '(exit code %s)\n' "$?"
}

[ -t 1 ] || step() { printf '\n%s\n' "$*"; }

step "1. Which walls does this machine give?"
"$agentbox" run --report -- true

step "2. Inside, you are nobody special, and alone."
inside 'id; ls -d /proc/[0-9]* | wc -l; cut -d: -f1 /proc/net/dev'

step "3. Your files are not there; your programs are."
canary="$HOME/.agentbox-tour-canary"
echo "a secret of yours" > "$canary"
trap 'rm -f "$canary"' EXIT
inside "cat $canary; ls /home; ls -l /bin/sh"

step "4. Some directories can be written, and end with the sandbox."
inside 'echo work > /workspace/result; cat /workspace/result; touch /usr/bin/evil; touch /etc/passwd'
inside 'ls -A /workspace | wc -l'

step "5. The kernel's dangerous corners are closed."
inside 'unshare -Ur true; mount -t tmpfs none /tmp; ls /dev | tr "\n" " "; echo'

step "6. Limits hold: here a command that runs out of time."
printf '$ agentbox run --timeout 300ms -- sleep 60\n'
"$agentbox" run --timeout 300ms -- sleep 60 2>/dev/null || printf '(exit code %s)\n' "$?"

step "7. Input and output go through, the exit code is the command's."
printf '$ echo hello | agentbox run -- tr a-z A-Z\n'
echo hello | "$agentbox" run -- tr a-z A-Z 2>/dev/null
inside 'exit 7'

step "That was it: nothing runs any more, and nothing is left. Next: agentbox run -- bash; agentbox doctor"
