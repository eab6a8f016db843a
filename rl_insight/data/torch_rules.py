"""Rules for traces of the PyTorch profiler (kineto), in all layouts that VeRL ever wrote."""

from collections.abc import Iterator

from rl_insight.data.data_kinds import DataEnum
from rl_insight.data.findings import Finding
from rl_insight.data.identity import UserRules, resolve
from rl_insight.data.name_facts import INT32, whole
from rl_insight.data.names import TORCH_GRAMMARS, facts, root_label
from rl_insight.data.torch_traces import candidates, why_not
from rl_insight.data.trace_check import TraceCheck, check_trace
from rl_insight.data.tree import File, Tree
from rl_insight.data.validation_rule import TreeRule
from rl_insight.errors import ReadError

_TORCH = (DataEnum.MULTI_JSON_TORCH,)
_NO_TRACE = "there is no torch trace (*.json.gz, *.json) in this folder"
_INFO = "distributedInfo"
_INFO_KEYS = ("world_size", "backend")


class TorchJsonFileExistsRule(TreeRule):
    """There is a trace, at any depth, and no folder of a role is empty."""

    kinds = _TORCH

    def look(self, tree: Tree) -> Iterator[Finding]:
        """An error where there is none; what might be taken for a trace is told."""
        found = False
        for file in candidates(tree):
            why = why_not(tree, file)
            found = found or why is None
            if why is not None:
                yield self.found("info", why, file.path)
        if not found:
            yield self.found("error", _NO_TRACE)
        for folder in tree.empty_folders:
            yield self.found("warning", "the folder is empty: nothing was recorded here", folder)


class TorchJsonFieldValidRule(TreeRule):
    """Every trace can be read to its end, its events have their fields, and its rank is known.

    Each is read once, in bounded memory.
    """

    kinds = _TORCH

    def look(self, tree: Tree) -> Iterator[Finding]:
        """What there is to say about each trace."""
        traces = [file for file in candidates(tree) if why_not(tree, file) is None]
        if not traces:
            yield self.found("error", _NO_TRACE)
        for file in traces:
            yield from self._trace(tree, file)

    def _trace(self, tree: Tree, file: File) -> Iterator[Finding]:
        try:
            trace = check_trace(tree.absolute(file.path), (_INFO,))
        except ReadError as error:
            yield self.unreadable(tree, file.path, error)
            return
        if not trace.is_trace:
            # Of a file that is called like any other it is no fault to be something else.
            named = facts(file.path).grammar in TORCH_GRAMMARS or bool(len(trace.problems))
            text = "JSON of another kind: it holds no trace events"
            yield self.found("error" if named else "info", text, file.path)
            return
        for severity, text in trace.complaints():
            yield self.found(severity, text, file.path)
        yield from self._rank(tree, file, trace)

    def _rank(self, tree: Tree, file: File, trace: TraceCheck) -> Iterator[Finding]:
        info = trace.metadata.get(_INFO)
        told = info if isinstance(info, dict) else {}
        rank = whole(told.get("rank"), INT32)
        if rank is None:
            # Unless torch.distributed runs when the capture begins, kineto writes none.
            by_name = resolve(file.path, {}, UserRules(), root_label(tree.root)).rank_id
            if by_name is None:
                text = f"neither {_INFO} nor its name tells the rank"
                yield self.found("warning", text, file.path)
            else:
                text = f"{_INFO} tells no rank; its path says {by_name}"
                yield self.found("info", text, file.path)
        missing = [key for key in _INFO_KEYS if key not in told]
        if told and missing:
            yield self.found("info", f"{_INFO} does not have {', '.join(missing)}", file.path)
