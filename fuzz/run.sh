#!/bin/sh
# Builds the targets as cargo-fuzz does, without it, and runs one of them: run.sh TARGET SECONDS
set -eu
cd "$(dirname "$0")"
target=$1
seconds=${2:-600}
triple=$(rustc -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS="$coverage --cfg fuzzing -Cdebug-assertions" cargo +nightly build --release \
    --target "$triple" --config profile.release.opt-level=1
mkdir -p "corpus/$target" "artifacts/$target"
exec "target/$triple/release/$target" "corpus/$target" "-max_total_time=$seconds" \
    -malloc_limit_mb=256 -rss_limit_mb=1500 -max_len=4096 "-artifact_prefix=artifacts/$target/"
