"""One run as the Snakefile sees it: what its rules take, make and depend on.

The Snakefile holds the rules, this module what they need to know. Discovery happens in the main
process only; a job on another node reads the manifest that the main process wrote.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_insight import config as configuration
from rl_insight.config import Config
from rl_insight.data import identity
from rl_insight.data.tree import scan
from rl_insight.errors import ConfigError
from rl_insight.parsers import PARSERS
from rl_insight.pipeline import attempts, layout, manifest, pictures
from rl_insight.pipeline.discovery import Wanted, discover_all, parser_names
from rl_insight.pipeline.growing import settled
from rl_insight.pipeline.manifest import Manifest
from rl_insight.pipeline.merge_options import filters_of
from rl_insight.pipeline.occupied import occupy
from rl_insight.pipeline.places import check_places
from rl_insight.pipeline.unit_file import read_unit
from rl_insight.table_names import HEATMAP_TABLES, TIMELINE_TABLES
from rl_insight.visualizers import Visualizer

# More than a few inputs per job only slow Snakemake down; what is stale the unit file says anyway.
_SHOWN_FILES = 4
_LONGEST_SHOWN = 1_000

# Snakemake gives other characters in a path a meaning of their own.
_PLAIN_PATH = re.compile(r"[\w./=+@:,-]+", re.ASCII)

_MERGE_KEYS = ("input.identity", "input.rank_list")
_FILTER_KEYS = ("parser.step", "parser.role")
_STRUCTURE_KEYS = (
    "heatmap.parser.group_list_type",
    "heatmap.parser.ep_size",
    "heatmap.visualizer.gmm_per_layer",
)

# How many inputs one job reads unless the user says otherwise: traces may be large or small, the
# group lists of a rank are small.
_PER_JOB = {"timeline": None, "heatmap": 64}


@dataclass(frozen=True, slots=True)
class Run:
    """A run whose input was looked at: its configuration, its output folder and its units."""

    config: Config
    output: str
    manifest: Manifest

    @classmethod
    def prepare(cls, values: Mapping[str, Any], main_process: bool) -> "Run":
        """Check the configuration and bring the manifest up to date with the input folder.

        Raises ConfigError, PluginError or InputError, each with what to do about it.
        """
        config = configuration.from_mapping(values)
        output = configuration.output_folder(config).absolute()
        if not main_process:
            # A job elsewhere starts in the output folder, where a relative path means another.
            here = Path.cwd() if (Path.cwd() / layout.MANIFEST).is_file() else output
            return cls(config, str(here), manifest.load(here))
        known = manifest.load(output)
        if known.prepared_by_parent():
            return cls(config, str(output), known)
        return cls(config, str(output), look(config, output)[0])

    def pictures(self) -> list[str]:
        """What the run is for, relative to the output folder."""
        return [
            self.output_of(visualizer)
            for preset in configuration.presets(self.config)
            for visualizer in self.visualizers(preset)
        ]

    def visualizers(self, preset: str) -> list[Visualizer]:
        """The visualizers that the configuration asks for, of a preset that has any input.

        Raises PluginError for a name that is not registered.
        """
        return pictures.visualizers(self.config, preset) if preset in self.manifest.presets else []

    def output_of(self, visualizer: Visualizer) -> str:
        """The file that a visualizer draws, relative to the output folder."""
        return pictures.output_of(self.config, visualizer)

    def unit_folders(self) -> list[str]:
        """The cache folders of this run's units."""
        return [str(layout.unit_folder(unit.parser, unit.name)) for unit in self.manifest.units]

    def rank_files(self, parser: str, unit: str) -> list[str]:
        """The input files of a unit where they are few, as the jobs reach them."""
        _, sources = read_unit(Path(layout.unit_file(parser, unit)))
        files = [file for source in sources for file in source.files]
        shown = [layout.INPUT_LINK / file for file in files]
        # One that is gone by now, or that we may not read, becomes a row of `sources`; for
        # Snakemake, which looks into small inputs, it would end the run.
        if len(files) > _SHOWN_FILES or not all(map(_showable, files, shown)):
            return []
        return [str(path) for path in shown]

    def parse_options(self, parser: str) -> str:
        """The slice of the configuration that a parser depends on, with its cache version."""
        chosen = PARSERS.get(parser)
        options = {key: configuration.get(self.config, key) for key in sorted(chosen.options)}
        return json.dumps({"cache_version": chosen.cache_version, "options": options})

    def merge_options(self) -> str:
        """The slice of the configuration that the merge depends on."""
        presets = self.manifest.presets
        keys = [*_MERGE_KEYS, *(f"{preset}.{key}" for preset in presets for key in _FILTER_KEYS)]
        values = {key: configuration.get(self.config, key) for key in keys}
        values.update(presets=presets, root_name=self.manifest.root_name)
        return json.dumps(values, sort_keys=True)

    def merged_tables(self) -> list[str]:
        """The Parquet files that the merge writes."""
        timeline = TIMELINE_TABLES if "timeline" in self.manifest.presets else ()
        return [_table(name) for name in ("sources", *timeline)]

    def loads(self) -> list[str]:
        """The expert loads as the merge hands them to the structure step, where there are any."""
        return [str(layout.LOADS)] if "heatmap" in self.manifest.presets else []

    def load_tables(self) -> list[str]:
        """The Parquet files that the structure step writes."""
        return [_table(name) for name in HEATMAP_TABLES] if self.loads() else []

    def structure_options(self) -> str:
        """The slice of the configuration that the structure step depends on."""
        return configuration.slice_json(self.config, _STRUCTURE_KEYS)

    def tables_of(self, visualizer: Visualizer) -> list[str]:
        """The Parquet files that a visualizer reads."""
        return [_table(name) for name in visualizer.tables]

    def visualizer_options(self, visualizer: Visualizer) -> str:
        """The slice of the configuration that a visualizer depends on."""
        return configuration.slice_json(self.config, visualizer.options)


def look(config: Config, output: Path) -> tuple[Manifest, bool]:
    """Look at the input folder and bring the manifest and the unit files in `output` up to it.

    Also gives whether a dead run left Snakemake's lock there.
    Raises UsageError when a run is at work in `output`, InputError when there is nothing to read,
    ConfigError or PluginError for what is asked, or what stands in the way in `output`.
    """
    values = {key: configuration.get(config, key) for key in configuration.KEYS}
    wanted = {
        preset: Wanted(
            parser_names(values[f"{preset}.parser.type"], preset), filters_of(values, preset)
        )
        for preset in configuration.presets(config)
    }
    rules = identity.compile_rules(config.input.identity)
    with _writing(output):
        if output.exists() and not output.is_dir():
            raise ConfigError(f"output.path: {str(output)!r} is a file, not a folder")
        check_places(output, pictures.pictures(config))
    root = _input_path(config, output)
    _check_inside(root, output)
    tree, growing = settled(lambda: scan(root, exclude=output), config.input.settle)
    found = discover_all(tree, wanted, rules)
    chosen = config.parse.ranks_per_job
    per_job = {
        name: chosen if isinstance(chosen, int) else _PER_JOB[preset]
        for preset, one in wanted.items()
        for name in one.names
    }
    with _writing(output):
        output.mkdir(parents=True, exist_ok=True)
        # Only now: a mistake leaves no folder, and nothing was written yet.
        left_locked = occupy(output)
        known = manifest.update(output, tree, found, per_job, growing)
        attempts.count(output)
        return known, left_locked


@contextlib.contextmanager
def _writing(output: Path) -> Iterator[None]:
    """Raises ConfigError where the system does not let us write to `output`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"output.path: cannot write to {str(output)!r}: {reason}") from error


def _check_inside(root: Path, output: Path) -> None:
    """Raises ConfigError when the output is a folder of the input that holds something else.

    The output is passed over by the listing: captures in it would be lost without a word.
    """
    if not output.resolve().is_relative_to(root.resolve()) or not output.is_dir():
        return
    if (output / layout.MANIFEST).is_file() or not any(output.iterdir()):
        return
    raise ConfigError(
        f"output.path: {str(output)!r} lies in the input and holds files of its own; "
        "choose a new or an empty folder"
    )


def _input_path(config: Config, output: Path) -> Path:
    if config.input.path is None:
        raise ConfigError("input.path is required: name the folder that the profilers left behind")
    path = Path(config.input.path)
    with contextlib.suppress(OSError):
        if path.is_dir() and path.samefile(output):
            raise ConfigError(
                f"output.path: {str(output)!r} is the input folder itself; "
                f"choose another one, such as {str(output / 'output')!r}"
            )
    return path


def _showable(file: str, path: Path) -> bool:
    if len(file) > _LONGEST_SHOWN or _PLAIN_PATH.fullmatch(file) is None:
        return False
    return os.access(path, os.R_OK) and not _dated_ahead(path)


def _dated_ahead(path: Path) -> bool:
    """Whether a file is dated later than now, as by a node whose clock is ahead.

    Snakemake takes a job whose input is newer than its output for failed, also an `ancient` one.
    """
    try:
        newest = max(path.stat().st_mtime, path.lstat().st_mtime)
    except OSError:
        return False
    return newest > time.time()


def _table(name: str) -> str:
    return str(layout.table(layout.TABLES, name))
