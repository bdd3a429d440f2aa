#!/usr/bin/env bash
# `make bench`: measures agentbox beside its peers, prints a table and writes target/bench/result.json.
# Nothing else should run on the machine. `bench/run.sh BIN_DIR [quick|whole [PART…]]`, where a part is one of cycles,
# exec, throughput, together, idle, kernel and leaks.
set -euo pipefail
cd "$(dirname "$0")/.."
bin="${1:?directory of agentbox and agentbox-init}"
[ "$#" -gt 1 ] || set -- "$bin" whole
[ "$(id -u)" = 0 ] || { echo "error: make bench runs as root, and measures as ordinary users too" >&2; exit 125; }
tests/setup.sh
cargo build --quiet --release --locked -p agentbox-bench
mkdir -p target/bench
# The users who measure must be able to reach the programs, wherever the checkout lies.
stage=$(mktemp -d /tmp/agentbox-bench.XXXXXX)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
install -m 755 "$bin/agentbox" "$bin/agentbox-init" target/release/agentbox-bench "$stage/"
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
  unshare --mount --propagation private sh -c '
    mount -t cgroup -o hugetlb hugetlb "$1/hugetlb" || echo "note: hugetlb stays on v2" >&2
    shift; exec "$@"' sh "$stage" "$stage/agentbox-bench" "${@:2}" > target/bench/result.json
else
  "$stage/agentbox-bench" "${@:2}" > target/bench/result.json
fi
