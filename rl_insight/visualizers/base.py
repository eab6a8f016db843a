"""What a visualizer is: tables in, one file that people look at out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

# The key of pages that follow `rl-insight watch`.
LIVE = "output.live"


class Visualizer(Protocol):
    """One kind of picture or page."""

    name: str
    """As in `timeline.visualizer.type`."""

    preset: str
    """`timeline` or `heatmap`: the key under which its options stand."""

    output: str
    """The file's name below `output.path`, a contract: other tools read it."""

    tables: tuple[str, ...]
    """The tables that it reads."""

    options: tuple[str, ...]
    """The dotted configuration keys that it depends on; changing one draws anew."""

    def render(self, tables: Path, output: Path, options: Mapping[str, object]) -> None:
        """Draw `output` from the Parquet files in the folder `tables`.

        Always writes the file, if only to say what is wrong: an empty table is no error.
        """
        ...
