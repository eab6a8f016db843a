#!/usr/bin/env bash
# Heatmap of expert load of a VeRL run whose grouped matmuls were dumped by msprobe.
#
#   examples/gmm_exec.sh DUMP [OUTPUT [ARGUMENT...]]
#
# DUMP is the dump_path of the precision debugger, which holds step_<n>/<stage>/…/rank<r>/; OUTPUT
# is where the picture and the page go (default: output); each ARGUMENT, such as
# heatmap.parser.step=1-3, is passed on.
# Models whose gate and up projections are one matmul (Qwen3-VL, Qwen3.5) have two grouped matmuls
# in a layer: add heatmap.visualizer.gmm_per_layer=2, or let it be found with =auto.
set -euo pipefail

dump=${1:?"usage: $0 DUMP [OUTPUT [ARGUMENT...]]"}
output=${2:-output}

python -m rl_insight.main \
    preset=heatmap \
    input.path="$dump" \
    output.path="$output" \
    heatmap.visualizer.type=gmm_heatmap,gmm_heatmap_html \
    "${@:3}"
