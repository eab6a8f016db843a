"""Tell micro-batch, phase and layer of each expert load; see `rl_insight.pipeline.structure`."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)  # noqa: F821, SIM115 - before other imports, so that theirs is logged

from pathlib import Path  # noqa: E402

from rl_insight.pipeline.job import work  # noqa: E402 - first: it keeps pandas out
from rl_insight.pipeline.layout import TABLES  # noqa: E402
from rl_insight.pipeline.structure import structure, structure_options  # noqa: E402

work(
    structure,
    Path(snakemake.input.loads[0]),  # noqa: F821
    TABLES,
    structure_options(snakemake.params.options),  # noqa: F821
)
