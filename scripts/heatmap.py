"""Draw one heatmap of expert load from the tables; see `rl_insight.visualizers`."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)  # noqa: F821, SIM115 - before other imports, so that theirs is logged

import json  # noqa: E402
from pathlib import Path  # noqa: E402

from rl_insight.pipeline.job import work  # noqa: E402 - first: it keeps pandas out
from rl_insight.pipeline.layout import TABLES  # noqa: E402
from rl_insight.visualizers import VISUALIZERS  # noqa: E402

work(
    VISUALIZERS.get(snakemake.params.visualizer).render,  # noqa: F821
    TABLES,
    Path(snakemake.output.page),  # noqa: F821
    json.loads(snakemake.params.options),  # noqa: F821
)
