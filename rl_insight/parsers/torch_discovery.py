"""Which files of an input folder the parser of torch traces claims, and which it passes over."""

from collections.abc import Iterator
from functools import partial

from rl_insight.data.torch_traces import candidates, why_not
from rl_insight.data.tree import Tree
from rl_insight.parsers.base import Found
from rl_insight.parsers.torch_head import told_rank


def claims(tree: Tree) -> Iterator[Found]:
    """Every torch trace in `tree`; with `skip` what might be taken for one."""
    for file in candidates(tree):
        yield Found(file.path, (file.path,), why_not(tree, file), partial(told_rank, tree, file))
