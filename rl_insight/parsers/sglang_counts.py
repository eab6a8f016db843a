"""From the recorder's tensors to rows of expert load, one for each forward pass and layer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from rl_insight.data.name_facts import INT32, INT64, whole
from rl_insight.parsers.base import Parsed
from rl_insight.parsers.gmm_rows import LoadRows
from rl_insight.parsers.gmm_vector import MOST_EXPERTS, NotALoadError, vector
from rl_insight.plain_text import count

_FORWARD = "forward"
_ODD_RECORD = "odd_record"


@dataclass(slots=True)
class ExpertCounts:
    """Makes the rows of one file; what came of it stands in `parsed` when they are exhausted.

    `role` is that of the rows, None where the path tells it.
    """

    source_id: str
    role: str | None
    parsed: Parsed
    _rows: LoadRows = field(init=False)

    def __post_init__(self) -> None:
        self._rows = LoadRows(self.source_id)

    def of_buffer(self, content: Mapping[str, object]) -> Iterator[pa.Table]:
        """Rows of mode `stat`: pass, layer and experts of `logical_count`, without those of zero.

        Its sums are over all ranks, so that the rows have no rank.
        """
        counts = content["logical_count"]
        if not isinstance(counts, np.ndarray) or counts.ndim != 3 or not counts.size:
            self._fail(f"its logical_count is {_shape(counts)}, not of [passes, layers, experts]")
            return
        problems = self.parsed.problems
        problems.add("summed_over_ranks", "info", example="the counts of all ranks of the engine")
        unused = 0
        for number, layers in enumerate(counts):
            if not layers.any():
                unused += 1
                continue
            yield from self._pass(layers, number, None)
        problems.add("unused_passes", "info", unused, example="passes of its buffer without tokens")
        yield from self._rest("no forward pass with tokens was recorded")

    def of_records(self, content: Mapping[str, object]) -> Iterator[pa.Table]:
        """Rows of the modes `per_pass` and `per_token`, of the rank that recorded them.

        Replicas of an expert are added up where the map says which expert each is.
        """
        records = content["records"]
        if not isinstance(records, list):
            self._fail("its records are no list")
            return
        replicas = content.get("last_physical_to_logical_map")
        for number, record in enumerate(records):
            counts = record.get("global_physical_count") if isinstance(record, dict) else None
            if not isinstance(counts, np.ndarray) or counts.ndim != 2 or not counts.size:
                example = f"record {number}: its global_physical_count is {_shape(counts)}"
                self.parsed.problems.add(_ODD_RECORD, "warning", example=example)
                continue
            if not self._told(replicas, counts, number):
                continue
            place = whole(record.get("forward_pass_id"), INT64)
            rank = whole(record.get("rank"), INT32)
            yield from self._pass(counts, number if place is None else place, rank, replicas)
        yield from self._rest(f"no forward pass is among its {len(records)} records")

    def _pass(
        self, layers: np.ndarray, number: int, rank: int | None, replicas: object = None
    ) -> Iterator[pa.Table]:
        """Rows of one pass from its counts of [layers, experts]; `replicas` are such a map."""
        for layer, counts in enumerate(layers):
            try:
                # Before they are added up, which could hide what cannot be.
                load = vector(counts).numbers
            except NotALoadError as error:
                example = f"pass {number}, layer {layer}: {error}"
                self.parsed.problems.add(error.code, "warning", example=example)
                continue
            if isinstance(replicas, np.ndarray):
                physical = load
                load = np.zeros(int(replicas.max()) + 1, np.int64)
                np.add.at(load, replicas[layer].astype(np.int64), physical)
            self._rows.add(
                load,
                role=self.role,
                rank_id=rank,
                op_index=number,
                pass_index=number,
                phase=_FORWARD,
                layer=layer,
                expert_offset=0,
                load_kind="counts",
                load_kind_from="format",
            )
            self.parsed.events += 1
            if self._rows.full:
                yield self._rows.take()

    def _told(self, replicas: object, counts: np.ndarray, number: int) -> bool:
        """Whether the map tells, or need not tell, which experts `counts` are about."""
        problems = self.parsed.problems
        if replicas is None:
            example = "experts are counted as they lie on the ranks"
            problems.add("no_expert_map", "info", example=example)
            return True
        if not isinstance(replicas, np.ndarray) or not _is_map(replicas, counts.shape):
            example = f"record {number}: its map of experts is {_shape(replicas)}"
            problems.add(_ODD_RECORD, "warning", example=example)
            return False
        experts = int(replicas.max()) + 1
        if experts > MOST_EXPERTS:
            example = f"record {number}: its map has {experts} experts"
            problems.add(_ODD_RECORD, "warning", example=example)
            return False
        return True

    def _rest(self, nothing: str) -> Iterator[pa.Table]:
        """The last rows, and what came of the file."""
        if len(self._rows):
            yield self._rows.take()
        lost = [one for one in self.parsed.problems if one.severity != "info"]
        if not self.parsed.events:
            self.parsed.status = "failed" if lost else "empty"
            self.parsed.detail = f"{nothing}: {lost[0].example}" if lost else nothing
        elif lost:
            # Of all others a layer of a pass is lost, not the whole of it.
            records = self.parsed.problems.count(_ODD_RECORD)
            layers = sum(one.count for one in lost) - records
            what = [count(records, "record")] if records else []
            what += [count(layers, "layer of a pass", "layers of passes")] if layers else []
            self.parsed.status = "salvaged"
            self.parsed.detail = f"{' and '.join(what)} left out, the first {lost[0].example}"

    def _fail(self, why: str) -> None:
        self.parsed.status, self.parsed.detail = "failed", why


def _is_map(replicas: np.ndarray, shape: tuple[int, ...]) -> bool:
    return replicas.shape == shape and replicas.dtype.kind in "iu" and bool((replicas >= 0).all())


def _shape(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"a tensor of {' x '.join(map(str, value.shape)) or 'one number'}"
    return "missing" if value is None else f"a {type(value).__name__}"
