"""Start Snakemake for one run, and finish it when a parse job was killed."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import yaml

from rl_insight import config as configuration
from rl_insight.config import Config
from rl_insight.errors import ConfigError
from rl_insight.pipeline import attempts, bundled, layout, leftovers, tombstone
from rl_insight.pipeline.child import wait_for
from rl_insight.pipeline.manifest import write_if_changed
from rl_insight.pipeline.occupied import inherited
from rl_insight.pipeline.report import part
from rl_insight.pipeline.workflow import Run, look

_CONFIG_HEAD = "# What this run of RL-Insight used; each run writes it anew.\n"
_DEFAULT_PROFILE = Path("workflow", "profiles", "default", "profile.yaml")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the command line asks for; `cores` None means all of the machine."""

    config: Config
    cores: int | None = None
    profile: str | None = None
    dry_run: bool = False
    unlock: bool = False
    snakemake_args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: Snakemake's exit code, where its files are, how long it took, what it drew.

    `presets` are those of which the input holds anything. `pages` has the report too, where one was
    asked for, and `report_code` is Snakemake's exit code for it: 0 also where none was.
    """

    exit_code: int
    output: Path
    seconds: float
    pages: tuple[Path, ...]
    presets: tuple[str, ...] = ("timeline",)
    report_code: int = 0


def run(request: RunRequest) -> Outcome:
    """Look at the input, write the run's configuration and start Snakemake on it.

    Raises UsageError before any work starts when the request cannot be carried out.
    """
    started = time.monotonic()
    parted = part(request.snakemake_args)
    request = replace(request, snakemake_args=parted.run)
    config = _absolute(request.config)
    output = configuration.output_folder(config)
    new = _not_there(output)
    _check_config(output)
    manifest, left_locked = look(config, output)
    pages = tuple(output / name for name in Run(config, str(output), manifest).pictures())
    text = yaml.safe_dump(configuration.to_mapping(config), sort_keys=False)
    write_if_changed(output / layout.RUN_CONFIG, _CONFIG_HEAD + text)
    only_looking = request.dry_run or request.unlock
    if not only_looking:
        leftovers.sweep(output)
        tombstone.clear(output, manifest.units)
        attempts.begin(output)
    begun = _now(output)
    if left_locked and not only_looking:
        _snakemake(replace(request, unlock=True, snakemake_args=()), output)
    code = _snakemake(request, output)
    if code and not only_looking and tombstone.lay(output, manifest.units, begun):
        code = _snakemake(request, output)
    if not code and not only_looking:
        attempts.end(output)
    if not code and request.dry_run:
        # Snakemake plans in the output folder; who only asks gets none.
        _take_away(new)
    report_code = 0
    if parted.file is not None and parted.report is not None and not code and not only_looking:
        report_code = _snakemake(replace(request, snakemake_args=parted.report), output)
        pages += () if report_code else (output / parted.file,)
    seconds = time.monotonic() - started
    return Outcome(code, output, seconds, pages, manifest.presets, report_code)


def _not_there(folder: Path) -> list[Path]:
    """Of `folder` and the folders above those that are not there yet, the innermost first."""
    return [one for one in (folder, *folder.parents) if not os.path.lexists(one)]


def _take_away(new: Sequence[Path]) -> None:
    """Remove the folders that `_not_there` gave, of those above the first only what is empty."""
    for folder in new[:1]:
        shutil.rmtree(folder, ignore_errors=True)
    # Another run may have made its own output beside ours meanwhile.
    with contextlib.suppress(OSError):
        for folder in new[1:]:
            folder.rmdir()


def _snakemake(request: RunRequest, output: Path) -> int:
    (output / layout.TEMPORARY).mkdir(parents=True, exist_ok=True)
    return wait_for(command(request, output), keep=inherited(), env=_environment(output))


def _environment(output: Path) -> dict[str, str]:
    """Ours, but for two things: nothing is written elsewhere, and nothing is run from elsewhere.

    Snakemake and matplotlib keep caches, and Snakemake makes temporary folders that stay when it is
    killed. Python would look for modules where the user stands, which is often the input: a
    `profile.py` or `yaml.py` there would be run.
    """
    caches = output / layout.CACHES
    ours = {"XDG_CACHE_HOME": str(caches), "MPLCONFIGDIR": str(caches / "matplotlib")}
    ours |= {"TMPDIR": str(output / layout.TEMPORARY), "PYTHONSAFEPATH": "1"}
    # An empty entry stands for the current folder.
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    root = Path(__file__).parents[2]
    if Path.cwd() == root:
        # A checkout that is not installed is found where the user stands.
        paths.insert(0, str(root))
    if paths or "PYTHONPATH" in os.environ:
        ours["PYTHONPATH"] = os.pathsep.join(paths)
    return {**os.environ, **ours}


def _check_config(output: Path) -> None:
    """Raises ConfigError when a file of somebody else stands where the run's own would be."""
    path = output / layout.RUN_CONFIG
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            ours = file.read(len(_CONFIG_HEAD)) == _CONFIG_HEAD
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"output.path: cannot read {str(path)!r}: {error.strerror}") from error
    if not ours:
        raise ConfigError(
            f"output.path: {str(path)!r} was not written by a run, and would be overwritten; "
            "choose another folder"
        )


def command(request: RunRequest, output: Path) -> list[str]:
    """The Snakemake command line of a run, as an argument list."""
    cores = "all" if request.cores is None else str(request.cores)
    words = [sys.executable, "-m", "snakemake"]
    words += ["--snakefile", str(bundled.snakefile())]
    words += ["--configfile", str(output / layout.RUN_CONFIG), "--replace-workflow-config"]
    words += _profile(request.profile)
    # The last flag before the caller's own words takes one value: a target is not swallowed.
    words += ["--logger", "rl-insight", "--directory", str(output), "--cores", cores]
    if request.dry_run:
        words.append("--dry-run")
    if request.unlock:
        words.append("--unlock")
    return [*words, *request.snakemake_args]


def _profile(name: str | None) -> list[str]:
    """A folder or one of our profiles replaces the default one; other names are the user's own.

    The default's settings are given as flags, since Snakemake announces each profile that it reads.
    """
    if name is None:
        return ["--workflow-profile", "none", *_flags(bundled.workflow_root() / _DEFAULT_PROFILE)]
    ours = bundled.profile(name)
    if ours is not None:
        return ["--workflow-profile", str(ours)]
    if Path(name).is_dir():
        return ["--workflow-profile", str(Path(name).absolute())]
    return ["--profile", name]


def _flags(profile: Path) -> list[str]:
    """The flags that a flat Snakemake profile stands for."""
    words: list[str] = []
    for key, value in yaml.safe_load(profile.read_text("utf-8")).items():
        words.append(f"--{key}")
        if value is not True:
            words += [str(one) for one in (value if isinstance(value, list) else [value])]
    return words


def _now(output: Path) -> int:
    """The time in ns by the clock of the file system, which dates the logs of jobs elsewhere."""
    path = output / layout.MANIFEST
    path.touch()
    return path.stat().st_mtime_ns


def _absolute(config: Config) -> Config:
    """The same configuration with paths that mean the same from any working directory."""
    if config.input.path is None:
        return config
    given = Path(config.input.path).absolute()
    output = Path(config.output.path).absolute()
    return msgspec.structs.replace(
        config,
        input=msgspec.structs.replace(config.input, path=str(given)),
        output=msgspec.structs.replace(config.output, path=str(output)),
    )
