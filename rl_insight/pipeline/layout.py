"""Where things lie below `output.path`: names that other tools read, and the cache.

All paths here are relative to the output folder, which is the workflow's working directory.
"""

import re
from pathlib import Path

MANIFEST = Path("manifest.json")
RUN_CONFIG = Path("config.yaml")
TABLES = Path("tables")
PARSED = Path("parsed")
LOGS = Path("logs")
BENCHMARKS = Path("benchmarks")

# Held by the run that is at work.
LOCK = Path(".lock")

# What Snakemake and matplotlib would keep in the home folder.
CACHES = Path(".snakemake", "rl-insight")

# What programs would keep in /tmp while they run.
TEMPORARY = CACHES / "tmp"

# Pages that were drawn for `rl-insight watch` ask here whether there are newer ones.
LIVE = Path("live.js")

# A link to the input folder. The jobs reach their files through it, so no absolute path stands in
# a unit file and a folder that was copied or moved is not parsed again.
INPUT_LINK = PARSED / ".input"

# Sources that discovery already decided about; an input of the merge.
SKIPPED = PARSED / "skipped.json"

# The sources that were still being written; an input of the merge.
GROWING = PARSED / "growing.json"

# The number of the attempt, and a file that is there from the start of a run until it ends well.
ATTEMPT = PARSED / "attempt.txt"
UNFINISHED = PARSED / "unfinished"

# The expert loads of all units as they were dumped; the structure step makes a table of them.
LOADS = PARSED / "expert_load.parquet"

# Stands in a unit's cache folder when its parse job was killed and the rest was drawn without it.
TOMBSTONE = "tombstone"

# Stands in a unit's cache folder when the system would not let its job read what was there to be
# read: a share that was gone for a moment.
UNREAD = "unread"

# What a parser and a unit may be called: both become folders, and wildcards of the parse rule.
NAME = "[A-Za-z0-9_-]+"


def is_name(text: str) -> bool:
    """Whether a parser or a unit may be called so."""
    return re.fullmatch(NAME, text) is not None


def unit_file(parser: str, unit: str) -> Path:
    """The small file that triggers the parse job of a unit."""
    return PARSED / parser / f"{unit}.json"


def unit_folder(parser: str, unit: str) -> Path:
    """The cache of one unit: one Parquet file per table."""
    return PARSED / parser / unit


def table(folder: Path, name: str) -> Path:
    """The Parquet file of table `name` in `folder`."""
    return folder / f"{name}.parquet"
