"""The parser for captures of the Ascend profiler (torch_npu), as text or as a database."""

from collections.abc import Iterator, Mapping

from rl_insight.data.tree import Tree
from rl_insight.parsers.base import Found, Parsed, Source
from rl_insight.parsers.mstx_discovery import claims
from rl_insight.parsers.options import RANGE_DEPTH
from rl_insight.table_names import TIMELINE_TABLES


class MstxParser:
    """One capture folder is one source, and each device in it a lane."""

    name = "mstx"
    preset = "timeline"
    cache_version = 6
    tables = TIMELINE_TABLES
    options = (RANGE_DEPTH,)

    def discover(self, tree: Tree) -> Iterator[Found]:
        """Every capture in `tree`, also one that was never analysed: its row says what to do."""
        return claims(tree)

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        """Read one capture; memory does not grow with its size.

        Raises ReadError when it was never analysed, or cannot be read.
        """
        from rl_insight.parsers import mstx_reading  # whoever only looks need not wait for it

        return mstx_reading.read(source, options)


PARSER = MstxParser()
