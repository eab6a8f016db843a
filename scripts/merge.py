"""Merge the parsed units into the run's tables; see `rl_insight.pipeline.merge`."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)  # noqa: F821, SIM115 - before other imports, so that theirs is logged

from pathlib import Path  # noqa: E402

from rl_insight.pipeline.job import work  # noqa: E402 - first: it keeps pandas out
from rl_insight.pipeline.merge import merge, merge_options  # noqa: E402

work(
    merge,
    [Path(folder) for folder in snakemake.input.folders],  # noqa: F821
    Path(snakemake.input.skipped),  # noqa: F821
    Path(snakemake.output.tables[0]).parent,  # noqa: F821
    merge_options(snakemake.params.options),  # noqa: F821
    *map(Path, (snakemake.input.growing, *snakemake.output.loads)),  # noqa: F821
)
