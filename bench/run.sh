#!/usr/bin/env bash
# `make bench`: measures agentbox beside its peers, prints a table and writes target/bench/result.json.
# Nothing else should run on the machine. `bench/run.sh BIN_DIR [quick|whole|long [PART…]]`, where a part is one of
# cycles, exec, copy, throughput, together, idle, many, kernel, leaks, turnover, gateway, review, images and gvisor.
set -euo pipefail
cd "$(dirname "$0")/.."
bin="${1:?directory of agentbox and agentbox-init}"
[ "$#" -gt 1 ] || set -- "$bin" whole
[ "$(id -u)" = 0 ] || { echo "error: make bench runs as root, and measures as ordinary users too" >&2; exit 125; }
tests/setup.sh
case " ${*:3} " in "  " | *" gateway "*) bench/peers.sh ;; esac
cargo build --quiet --release --locked -p agentbox-bench
mkdir -p target/bench
# The users who measure must be able to reach the programs, wherever the checkout lies. Files that are copied lie beside
# them, on disk and not in memory.
stage=$(mktemp -d /var/tmp/agentbox-bench.XXXXXX)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
install -m 755 "$bin/agentbox" "$bin/agentbox-init" "${CARGO_TARGET_DIR:-target}/release/agentbox-bench" "$stage/"
[ ! -x target/bench/peers/bin/mitmdump ] || ln -s "$PWD/target/bench/peers/bin/mitmdump" "$stage/"
# crun refuses machines with some controllers on v1 and hugetlb on v2. In a mount namespace of its own the whole
# measurement runs with hugetlb on v1, too; the machine's mounts stay as they are.
unified=/sys/fs/cgroup/unified
if [ -e "$unified/cgroup.controllers" ]; then
  if grep -qw hugetlb "$unified/cgroup.subtree_control"; then
    echo -hugetlb > "$unified/cgroup.subtree_control"
    # It goes back once the hierarchy on v1 is gone.
    trap 'rm -rf "$stage"; echo +hugetlb > "$unified/cgroup.subtree_control" || true' EXIT
  fi
  mkdir "$stage/hugetlb"
fi
# Root's sandboxes have one place below /run; there, too, the measurement sees only its own. The users' runtime
# directories are in memory as well, as in every login session.
install -d -m 700 /run/agentbox /run/agentbox/sandboxes
install -d -m 755 "$stage/run"
unshare --mount --propagation private sh -ec '
  mount -t tmpfs -o mode=700 sandboxes /run/agentbox/sandboxes
  mount -t tmpfs -o mode=755 run "$1/run"
  [ ! -d "$1/hugetlb" ] || mount -t cgroup -o hugetlb hugetlb "$1/hugetlb" || echo "note: hugetlb stays on v2" >&2
  shift; exec "$@"' sh "$stage" "$stage/agentbox-bench" "${@:2}" > target/bench/result.json
