#!/usr/bin/env bash
# Timeline of a VeRL run that was profiled on Ascend NPUs (global_profiler.tool=npu).
#
#   examples/mstx_exec.sh PROFILES [OUTPUT [ARGUMENT...]]
#
# PROFILES is the run's global_profiler.save_path; OUTPUT is where the page goes (default:
# output); each ARGUMENT, such as timeline.parser.step=1-3, is passed on.
# Databases and trace_view.json are read as they are. Captures that were never analysed
# (`analysis: False`, or rollout engines) are named; on a machine with torch_npu
#
#   python -m rl_insight.main preprocess PROFILES
#
# analyses them.
set -euo pipefail

profiles=${1:?"usage: $0 PROFILES [OUTPUT [ARGUMENT...]]"}
output=${2:-output}

python -m rl_insight.main \
    --input-path "$profiles" \
    --profiler-type mstx \
    --vis-type html,png \
    --output-path "$output" \
    "${@:3}"
