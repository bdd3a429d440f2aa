#!/usr/bin/env bash
# Fuzzes each target for so many seconds, or those that are named: `run.sh SECONDS [TARGET…]`. What it learns is kept in
# target/fuzz, so that the next run goes on from there; `run.sh --anew …` starts from the seeds alone.
set -euo pipefail
cd "$(dirname "$0")/.."
anew=
if [ "${1:-}" = --anew ]; then anew=yes; shift; fi
seconds="${1:?how many seconds for each target}"
shift
if ! command -v c++ >/dev/null; then
  echo "skipped: FUZZING, as there is no compiler of C++ to build the fuzzer with (Debian: g++)" >&2
  exit 77
fi

# Counters at each edge, and the operands of comparisons; what libFuzzer needs, and all of it is in the stable compiler.
# With a target that is named, what runs while building has none of it.
triple="$(rustc -vV | sed -n 's/^host: //p')"
flags="-Cpasses=sancov-module"
for argument in level=4 inline-8bit-counters pc-table trace-compares; do
  flags+=" -Cllvm-args=-sanitizer-coverage-$argument"
done
RUSTFLAGS="$flags" cargo build --quiet --locked --profile fuzz --target "$triple" --target-dir target/fuzz \
  -p agentbox-fuzz --features libfuzzer
fuzzer="target/fuzz/$triple/fuzz/agentbox-fuzz"

[ $# -gt 0 ] || set -- $(ls fuzz/corpus)
for target in "$@"; do
  if [ ! -d "fuzz/corpus/$target" ]; then
    printf "error: '%s' is no fuzz target\nhint: there are %s\n" "$target" "$(ls fuzz/corpus | paste -sd' ')" >&2
    exit 2
  fi
  learned="target/fuzz/corpus/$target" found="target/fuzz/found/$target"
  if [ -n "$anew" ]; then
    learned="$(mktemp -d)"
    trap 'rm -rf "$learned"' EXIT
  fi
  mkdir -p "$learned" "$found"
  options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$found/" -print_final_stats=1)
  if [ -f "fuzz/dictionaries/$target.txt" ]; then options+=(-dict="fuzz/dictionaries/$target.txt"); fi
  if ! FUZZ_TARGET="$target" "$fuzzer" "${options[@]}" "$learned" "fuzz/corpus/$target" >"$found/log" 2>&1; then
    tail -n 60 "$found/log" >&2
    input="$(sed -n 's/.*Test unit written to //p' "$found/log" | tail -1)"
    printf 'error: the fuzz target %s fails\nhint: run that input again by\n  FUZZ_TARGET=%s %s %s\n' \
      "$target" "$target" "$fuzzer" "${input:-INPUT}" >&2
    exit 1
  fi
  runs="$(sed -n 's/^stat::number_of_executed_units: *//p' "$found/log")"
  reached="$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$found/log" | tail -1)"
  printf '%-10s %9s inputs, %5s places reached\n' "$target" "$runs" "$reached" >&2
  if [ -n "$anew" ]; then rm -rf "$learned"; fi
done
