"""Which captures of the Ascend profiler the parser claims: all of them, analysed or not."""

from collections.abc import Iterator

from rl_insight.data.ascend_captures import captures
from rl_insight.data.tree import Tree
from rl_insight.parsers.base import Found
from rl_insight.parsers.mstx_metadata import peek_rank


def claims(tree: Tree) -> Iterator[Found]:
    """Every capture in `tree`, analysed or not, and every result that lies outside of one."""
    found, strays = captures(tree)
    inputs = [Found(one.path, one.files, peek=peek_rank(tree, one.metadata)) for one in found]
    inputs += [Found(path, (path,)) for path in strays]
    return iter(sorted(inputs, key=lambda one: one.path))
