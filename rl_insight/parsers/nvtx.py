"""The parser for NVTX ranges as NVIDIA Nsight Systems (`nsys export`) writes them.

It reads the export in any of its forms: JSON lines, SQLite, a folder of Parquet or Arrow files.
"""

from collections.abc import Iterator, Mapping

from rl_insight.data.tree import Tree
from rl_insight.parsers.base import Found, Parsed, Source
from rl_insight.parsers.options import RANGE_DEPTH
from rl_insight.table_names import TIMELINE_TABLES


class NvtxParser:
    """One export is one source, and has a lane for each of its processes."""

    name = "nvtx"
    preset = "timeline"
    cache_version = 5
    tables = TIMELINE_TABLES
    options = (RANGE_DEPTH,)

    def discover(self, tree: Tree) -> Iterator[Found]:
        """Every capture in `tree`, in the form that is read, and its other forms to be skipped."""
        # Not needed by a parse job, of which there are thousands.
        from rl_insight.parsers.nvtx_discovery import claims

        return claims(tree)

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        """Read one export; memory does not grow with its size.

        Raises ReadError when it cannot be read, or is none.
        """
        from rl_insight.parsers import nvtx_reading  # whoever only looks need not wait for it

        return nvtx_reading.read(source, options)


PARSER = NvtxParser()
