"""Rules for msprobe's dumps of grouped matmuls: `rank<r>/dump_tensor_data/*group_list.pt`.

Sources: msprobe, core/dump (the layout); torch_npu.npu_grouped_matmul (what a group list is).
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from rl_insight.data.data_kinds import DataEnum
from rl_insight.data.findings import Finding
from rl_insight.data.names import DUMP_FOLDER, folder_facts, root_label
from rl_insight.data.tree import File, Tree
from rl_insight.data.validation_rule import TreeRule
from rl_insight.errors import ReadError
from rl_insight.readers import torch_file

_GMM = (DataEnum.GMM_DATA,)
_GROUP_LIST: Final = ("group_list.pt", "group_list.npy")


class GmmDataRule(TreeRule):
    """There is a group list, and the folder around it tells the rank."""

    kinds = _GMM

    def look(self, tree: Tree) -> Iterator[Finding]:
        """An error where there is none; one finding for each folder that is not as msprobe's."""
        folders = {_folder(file): file for file in _group_lists(tree)}
        if not folders:
            text = f"there is no group list (*group_list.pt below {DUMP_FOLDER}) in this folder"
            yield self.found("error", text)
        root = root_label(tree.root)
        for folder in sorted(folders):
            if DUMP_FOLDER not in [*root.split("/"), *folder.split("/")]:
                text = f"group lists outside of {DUMP_FOLDER} are read all the same"
                yield self.found("info", text, folder)
            if folder_facts(folder or ".", root).rank is None:
                yield self.found("warning", "no folder around it tells the rank", folder)


class GroupListRule(TreeRule):
    """Every group list can be read and is a vector of tokens, or pairs of expert and tokens.

    Nothing in the files is executed; each is read once, and none of more than 64 MiB.
    """

    kinds = _GMM

    def look(self, tree: Tree) -> Iterator[Finding]:
        """Errors for files that are damaged or hold something else."""
        for file in _group_lists(tree):
            try:
                value = torch_file.load(tree.absolute(file.path))
            except ReadError as error:
                yield self.unreadable(tree, file.path, error)
                continue
            if value is None:
                text = "it holds None: the call was given no group list"
                yield self.found("info", text, file.path)
                continue
            why = _why_no_load(value)
            if why is not None:
                yield self.found("error", why, file.path)


def _group_lists(tree: Tree) -> Iterator[File]:
    return (file for file in tree.files if file.name.endswith(_GROUP_LIST))


def _folder(file: File) -> str:
    """The folder of a file, which may be called by a whole path of Windows."""
    return file.path.replace("\\", "/").rpartition("/")[0]


def _why_no_load(value: object) -> str | None:
    """Why a value is no group list; None when it is one, of shape [E] or [E, 2]."""
    if not isinstance(value, np.ndarray | list | tuple):
        return "it holds neither a tensor nor a list of numbers"
    try:
        array = np.asarray(value)
    except ValueError:
        return "its list is no vector"
    if array.dtype.kind not in "iuf":
        return "it holds something else than numbers"
    if array.ndim != 1 and (array.ndim != 2 or array.shape[1] != 2):
        shape = " x ".join(map(str, array.shape)) or "no dimension"
        return f"its shape ({shape}) is neither [experts] nor [experts, 2]"
    if not array.size:
        return "its vector is empty"
    if not bool((np.isfinite(array) & (array >= 0) & (array == np.floor(array))).all()):
        return "it holds what cannot be a number of tokens"
    return None
