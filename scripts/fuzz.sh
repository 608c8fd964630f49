#!/usr/bin/env bash
# Runs every fuzz target of a build folder in turn.
#
# usage: fuzz.sh BUILD SECONDS
#
# NAME_fuzz starts from the seeds in tests/fuzz/NAME, keeps new inputs in BUILD/corpus/NAME, and leaves a failing input in
# BUILD/findings.
set -euo pipefail

build=$1
seconds=$2
mkdir -p "$build/findings"
shopt -s nullglob
targets=("$build"/bin/*_fuzz)
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no targets in $build/bin" >&2; exit 1; }

for target in "${targets[@]}"; do
  name=$(basename "$target" _fuzz)
  corpus=("$build/corpus/$name")
  mkdir -p "${corpus[0]}"
  [ -d "tests/fuzz/$name" ] && corpus+=("tests/fuzz/$name")
  echo "fuzz: $name for $seconds s"
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$name-" "${corpus[@]}"
done
