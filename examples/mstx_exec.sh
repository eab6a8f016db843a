#!/usr/bin/env bash
# Timeline of a VeRL run that was profiled on Ascend NPUs (global_profiler.tool=npu).
#
#   examples/mstx_exec.sh PROFILES [OUTPUT]
#
# PROFILES is the run's global_profiler.save_path; OUTPUT is where the page goes (default: output).
# Databases and trace_view.json are read as they are. Captures that were never analysed
# (`analysis: False`, or rollout engines) are named; on a machine with torch_npu
#
#   python -m rl_insight.main preprocess PROFILES
#
# analyses them.
set -euo pipefail

profiles=${1:?"usage: $0 PROFILES [OUTPUT]"}
output=${2:-output}

python -m rl_insight.main \
    --input-path "$profiles" \
    --profiler-type mstx \
    --vis-type html,png \
    --output-path "$output"
