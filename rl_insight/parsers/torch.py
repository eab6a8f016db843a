"""The parser for PyTorch profiler (kineto) traces. It reads JSON; it does not import PyTorch."""

from collections.abc import Iterator, Mapping

from rl_insight.data.tree import Tree
from rl_insight.parsers.base import Found, Parsed, Source
from rl_insight.parsers.options import RANGE_DEPTH
from rl_insight.parsers.torch_discovery import claims
from rl_insight.table_names import TIMELINE_TABLES


class TorchParser:
    """One trace file is one source and one lane."""

    name = "torch"
    preset = "timeline"
    cache_version = 5
    tables = TIMELINE_TABLES
    options = (RANGE_DEPTH,)

    def discover(self, tree: Tree) -> Iterator[Found]:
        """Every trace in `tree`, and what might be taken for one, with the reason to skip it."""
        return claims(tree)

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        """Read one trace; memory does not grow with its size.

        Raises ReadError when the file cannot be read or is no JSON.
        """
        from rl_insight.parsers import torch_reading  # whoever only looks need not wait for it

        return torch_reading.read(source, options)


PARSER = TorchParser()
