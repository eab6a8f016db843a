"""The parser for what SGLang's expert distribution recorder saves: an engine's load of each expert.

Mode `stat` (and `stat_approx`) leaves `expert_distribution_recorder_<time>.pt`, written by rank 0:
`logical_count` of [steps, layers, logical experts], summed over all ranks; steps of its buffer that
did not happen are zero. The modes `per_pass` and `per_token` leave one file of each rank,
`expert_distribution_recorder_<time>_<rank>.pt`: `records`, one for each forward pass, with
`global_physical_count` of [layers, physical experts], and `last_physical_to_logical_map` of the
same shape. Passes are those of the engine: they tell nothing about training steps.

Source: sglang, python/sglang/srt/eplb/expert_distribution.py.
"""

from collections.abc import Iterator, Mapping

from rl_insight.data import identity, packings
from rl_insight.data.names import facts, root_label
from rl_insight.data.tree import Tree
from rl_insight.errors import ReadError
from rl_insight.parsers.base import Found, Parsed, Source

_PREFIX = "expert_distribution_recorder_"
_SUFFIX = ".pt"
# Its buffer of 1,000 passes has 61 MB with 60 layers of 256 experts.
_LIMIT_BYTES = 256 << 20
# Who runs SGLang in a training job, where no folder says so.
_ROLE = "agent_loop_rollout"


class SglangParser:
    """One file of the recorder is one source."""

    name = "sglang"
    preset = "heatmap"
    cache_version = 2
    tables = ("expert_load",)
    options = ()

    def discover(self, tree: Tree) -> Iterator[Found]:
        """Every file that is named as the recorder names its files, also one that was packed."""
        named = [file for file in tree.files if file.name.startswith(_PREFIX)]
        listed = {file.path for file in named if file.size_bytes}
        for file in named:
            bare, packing = packings.split(file.name)
            if packing and facts(bare).grammar == "sglang" and not bare.endswith(_SUFFIX):
                bare += _SUFFIX  # an archiver replaced it
            if bare.endswith(_SUFFIX):
                twin = packing and f"{file.folder}/{bare}".lstrip("/") in listed
                yield Found(file.path, (file.path,), packings.there_too(bare) if twin else None)

    def parse(self, source: Source, options: Mapping[str, object]) -> Parsed:
        """Read one file. Raises ReadError when it cannot be read, or holds something else."""
        if packings.split(source.path)[1]:
            raise ReadError(packings.why_not_read(source.path))
        # Whoever only looks need not wait for numpy.
        from rl_insight.parsers.sglang_counts import ExpertCounts
        from rl_insight.readers.torch_file import read

        content = read(source.absolute, _LIMIT_BYTES).value
        if not isinstance(content, dict):
            raise ReadError(f"{source.path}: {_OTHER}")
        known = identity.path_role(source.path, root_label(source.root))
        parsed = Parsed("ok")
        counts = ExpertCounts(source.source_id, _ROLE if known is None else None, parsed)
        if "logical_count" in content:
            parsed.parts = {"expert_load": counts.of_buffer(content)}
        elif "records" in content:
            parsed.parts = {"expert_load": counts.of_records(content)}
        else:
            raise ReadError(f"{source.path}: {_OTHER}")
        return parsed


_OTHER = "it has neither the counts nor the records of SGLang's expert distribution recorder"

PARSER = SglangParser()
