#!/usr/bin/env bash
# Timeline of a VeRL run that was profiled with torch.profiler.
#
#   examples/torch_profiler_exec.sh PROFILES [OUTPUT [ARGUMENT...]]
#
# PROFILES is the run's global_profiler.save_path; OUTPUT is where the page goes (default:
# output); each ARGUMENT, such as timeline.parser.step=1-3, is passed on.
set -euo pipefail

profiles=${1:?"usage: $0 PROFILES [OUTPUT [ARGUMENT...]]"}
output=${2:-output}

python -m rl_insight.main \
    --input-path "$profiles" \
    --profiler-type torch \
    --vis-type html,png \
    --output-path "$output" \
    "${@:3}"
