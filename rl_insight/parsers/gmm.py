"""The parser for the group lists that msprobe records of grouped matmuls: the load of each expert.

torch is not needed, and nothing in a file is executed.
"""

from collections.abc import Iterator, Mapping

from rl_insight.data import packings
from rl_insight.data.tree import Tree
from rl_insight.errors import ReadError
from rl_insight.parsers.base import Found, Parsed, Source
from rl_insight.parsers.gmm_discovery import claims


class GmmParser:
    """The dump of one rank, in one stage of one step, is one source."""

    name = "gmm"
    preset = "heatmap"
    cache_version = 3
    tables = ("expert_load",)
    options = ()

    def discover(self, tree: Tree) -> Iterator[Found]:
        """Every dump in `tree` that has group lists, or a dump.json that may have some."""
        return claims(tree)

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        """Read one dump file by file; memory does not grow with their number.

        The rows come in parts. Files that cannot be read cost only themselves.
        Raises ReadError for a rank that is packed as a whole.
        """
        if source.files == (source.path,):  # all others are called by their folder
            raise ReadError(packings.why_not_read(source.path))
        from rl_insight.parsers.gmm_reading import DumpReader  # it needs numpy

        parsed = Parsed("ok")
        reader = DumpReader(source, parsed)
        parsed.parts = {"expert_load": reader.rows()}
        return parsed


PARSER = GmmParser()
