#!/bin/bash
# All of the clock's measurements on one GPU, in less than 10 minutes: bash benchmarks/clock/run.sh DIR
#
# DIR gets the constants (h200.json and the like), durations.json, ptx.json.xz, cubins.json.xz and log.txt.
cd "$(dirname "$0")/../.." || exit 1
out=${1:?a folder for the results}
export PYTHONUNBUFFERED=1
{
    date
    python3 benchmarks/clock/microbenchmarks.py --out "$out" --seconds "${MICRO_SECONDS:-90}"
    date
    python3 benchmarks/clock/measure.py --out "$out" --seconds "${SECONDS_OF_MEASURING:-240}" --compile-seconds 100 \
        --profile-seconds "${PROFILE_SECONDS:-60}"
    date
} 2>&1 | tee "$out/log.txt" | tail -n 150
