#!/usr/bin/env bash
# Timeline of a VeRL run that was profiled with torch.profiler.
#
#   examples/torch_profiler_exec.sh PROFILES [OUTPUT]
#
# PROFILES is the run's global_profiler.save_path; OUTPUT is where the page goes (default: output).
set -euo pipefail

profiles=${1:?"usage: $0 PROFILES [OUTPUT]"}
output=${2:-output}

python -m rl_insight.main \
    --input-path "$profiles" \
    --profiler-type torch \
    --vis-type html,png \
    --output-path "$output"
