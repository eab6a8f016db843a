#!/usr/bin/env bash
# Timeline of a VeRL run that was profiled with Nsight Systems (global_profiler.tool=nsys).
#
#   examples/nvtx_exec.sh PROFILES [OUTPUT [ARGUMENT...]]
#
# PROFILES is where the reports lie: global_profiler.save_path, or on the nodes Ray's
# /tmp/ray/session_latest/logs/nsight; OUTPUT is where the page goes (default:
# output); each ARGUMENT, such as timeline.parser.step=1-3, is passed on.
# Exports are read as JSON lines, SQLite, parquetdir and arrowdir. Where nsys is at hand, reports
# that have none are exported first, which is the same as, for each of them,
#
#   nsys export --type sqlite --force-overwrite=true -o NAME.sqlite NAME.nsys-rep
set -euo pipefail

profiles=${1:?"usage: $0 PROFILES [OUTPUT [ARGUMENT...]]"}
output=${2:-output}

if command -v nsys >/dev/null && [[ -n $(find "$profiles" -name '*.nsys-rep' -print -quit) ]]; then
    # One report that cannot be exported is no reason to leave out the others.
    python -m rl_insight.main preprocess "$profiles" || true
fi

python -m rl_insight.main \
    --input-path "$profiles" \
    --profiler-type nvtx \
    --vis-type html,png \
    --output-path "$output" \
    "${@:3}"
