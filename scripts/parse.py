"""Parse one unit of the input; see `rl_insight.pipeline.parse`."""

import sys

sys.stderr = open(snakemake.log[0], "w", buffering=1)  # noqa: F821, SIM115 - before other imports, so that theirs is logged

import json  # noqa: E402
from pathlib import Path  # noqa: E402

from rl_insight.pipeline import job, layout, parse  # noqa: E402

job.work(
    parse.parse_unit,
    Path(snakemake.input.unit),  # noqa: F821
    layout.INPUT_LINK,
    Path(snakemake.output.folder),  # noqa: F821
    json.loads(snakemake.params.options)["options"],  # noqa: F821
)
