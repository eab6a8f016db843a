"""Which captures of the Ascend profiler the parser claims: all of them, analysed or not."""

from collections.abc import Iterator

from rl_insight.data import packings
from rl_insight.data.ascend_captures import captures, is_draft
from rl_insight.data.ascend_packed import packed_apart
from rl_insight.data.tree import Tree
from rl_insight.parsers.base import Found
from rl_insight.parsers.mstx_metadata import peek_rank

_DRAFT = "left by a killed analysis or copier: a result has its own name when it is complete"


def claims(tree: Tree) -> Iterator[Found]:
    """Every capture in `tree`, analysed or not, and every result that lies outside of one.

    What is packed is claimed too, since it is lost: its row says how to get it back. Drafts of
    results are passed over, with a word, and so is what is packed and can be read beside that.
    """
    found, strays = captures(tree)
    inputs = [Found(one.path, one.files, peek=peek_rank(tree, one.metadata)) for one in found]
    inputs += [Found(path, (path,)) for path in strays]
    for path, instead in packed_apart(tree, found):
        skip = None if instead is None else packings.there_too(instead.rpartition("/")[2])
        inputs.append(Found(path, (path,), skip))
    folders = tuple(f"{one.folder}/" if one.folder else "" for one in found)
    inputs += [
        Found(file.path, (file.path,), skip=_DRAFT)
        for file in tree.files
        if is_draft(file.name) and not file.path.startswith(folders)
    ]
    return iter(sorted(inputs, key=lambda one: one.path))
