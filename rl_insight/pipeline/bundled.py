"""Where the workflow lies: beside the package in a checkout, inside it when installed."""

import os
import sys
from pathlib import Path

from rl_insight.config_values import nearest
from rl_insight.errors import UsageError
from rl_insight.plain_text import shown

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


def profiles() -> list[str]:
    """The names of the profiles that RL-Insight ships."""
    found = (workflow_root() / "workflow" / "profiles").glob("*/profile.yaml")
    return sorted(file.parent.name for file in found)


def profile(name: str) -> Path | None:
    """The folder of a profile that RL-Insight ships (`default`, `slurm`), or None."""
    return workflow_root() / "workflow" / "profiles" / name if name in profiles() else None


def check_profile(name: str) -> None:
    """Check that Snakemake will find a profile of this name.

    Raises UsageError, naming ours, when it is neither one of them, nor a path that exists, nor a
    profile of the user or of the machine.
    """
    ours = profiles()
    folders = [f"{folder}/snakemake" for folder in _settings()]
    # Not by pathlib: it raises where a name is too long for a file.
    known = any(map(os.path.exists, [name, *(f"{folder}/{name}" for folder in folders)]))
    if name in ours or (known and name.strip()):
        return
    near = nearest(name, ours)
    hint = f"; did you mean {near}?" if near else ""
    raise UsageError(
        f"--profile: there is no profile {shown(name)}{hint} (RL-Insight's own are "
        f"{', '.join(ours)}; others are a folder, or stand in {' or '.join(folders)})"
    )


def _settings() -> list[str]:
    """Where programs keep their settings: the user's folder, and that of the machine."""
    home = os.path.expanduser("~")  # noqa: PTH111 - pathlib raises where there is none
    if sys.platform == "darwin":
        return [f"{home}/Library/Application Support", "/Library/Application Support"]
    machine = os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")[0]
    return [os.environ.get("XDG_CONFIG_HOME", f"{home}/.config"), machine]
