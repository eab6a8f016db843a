"""The configuration that parsing depends on, as a parse job gets it: values by their dotted key."""

from collections.abc import Mapping
from typing import Final

RANGE_DEPTH: Final = "timeline.parser.range_depth"

# That of `config_model`, which a parse job does not import.
_DEFAULT_RANGE_DEPTH: Final = 2


def range_depth(options: Mapping[str, object]) -> int:
    """How many levels of annotations are kept below a stage; the default where nothing is told."""
    depth = options.get(RANGE_DEPTH)
    return depth if isinstance(depth, int) else _DEFAULT_RANGE_DEPTH
