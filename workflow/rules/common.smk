import os
from pathlib import Path

from rl_insight.errors import RLInsightError
from rl_insight.pipeline import attempts
from rl_insight.pipeline.layout import ATTEMPT, GROWING, NAME, SKIPPED
from rl_insight.pipeline.workflow import Run
from snakemake.exceptions import WorkflowError

# numpy's OpenBLAS starts a thread for each core when it is loaded: a tenth of a second of every job,
# and none of them multiplies matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def prepared_run():
    """The run that the configuration describes; its mistakes are shown as one sentence."""
    try:
        return Run.prepare(config, main_process=workflow.is_main_process)
    except RLInsightError as error:
        raise WorkflowError(str(error)) from error


RUN = prepared_run()


onerror:
    attempts.begin(Path(RUN.output))


def rank_files(wildcards):
    """The input files of a unit, so that the DAG shows them; what is stale its unit file says."""
    return [ancient(path) for path in RUN.rank_files(wildcards.parser, wildcards.unit)]


def parse_options(wildcards):
    return RUN.parse_options(wildcards.parser)


def parse_memory(wildcards, input, attempt):
    """In MB; it hardly grows with the file, and a job that was killed gets more on its next try.

    A parse job takes 80 to 150 MB itself (docs/performance.md). On a cluster there is Snakemake
    beside it, 115 MB each: once with a script of the scheduler's, twice with Slurm. That is 375 MB.
    """
    return int((600 + 0.02 * input.size_mb) * attempt)


def unchanged(text):
    """A parameter as it is: in plain text Snakemake takes {braces} for wildcards."""

    def parameter(wildcards):
        return text

    return parameter


def report_labels(path):
    """What tells the outputs of one category apart in a report."""
    return {"form": "page, opens offline" if path.endswith(".html") else "picture"}
