#!/usr/bin/env bash
# `make bench`: measures agentbox beside its peers, prints a table and writes target/bench/result.json.
# Nothing else should run on the machine. `bench/run.sh BIN_DIR [quick|whole [PART…]]`, where a part is one of cycles,
# exec, throughput, together, idle, migration and leaks.
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
"$stage/agentbox-bench" "${@:2}" > target/bench/result.json
