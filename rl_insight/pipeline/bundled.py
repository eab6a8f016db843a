"""Where the workflow lies: beside the package in a checkout, inside it when installed."""

from pathlib import Path

from rl_insight.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent.parent


def workflow_root() -> Path:
    """The folder that holds `workflow/`, `scripts/` and `config/`.

    Raises UsageError when neither place has them (a broken installation).
    """
    for root in (_PACKAGE.parent, _PACKAGE / "_bundled"):
        if (root / "workflow" / "Snakefile").is_file():
            return root
    raise UsageError(
        f"the workflow is missing beside and inside {str(_PACKAGE)!r}: install rl-insight again"
    )


def snakefile() -> Path:
    """The Snakefile that every run uses."""
    return workflow_root() / "workflow" / "Snakefile"


def profile(name: str) -> Path | None:
    """The folder of a profile that RL-Insight ships (`default`, `slurm`), or None."""
    folder = workflow_root() / "workflow" / "profiles" / name
    return folder if "/" not in name and (folder / "profile.yaml").is_file() else None
