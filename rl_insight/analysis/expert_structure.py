"""Micro-batch, phase and layer of every recorded call, from the order of the calls."""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rl_insight.analysis.expert_order import (
    MOST_PER_LAYER,
    Extent,
    Finding,
    expected_of,
    find_order,
    layers_by_tokens,
    same_tokens,
)
from rl_insight.analysis.expert_passes import Calls, Order, calls
from rl_insight.analysis.load_rows import UNKNOWN, Array, LoadRows, Vectors, parts
from rl_insight.plain_text import count
from rl_insight.problems import Problems

# More calls missing per recorded one than this, and the numbers are no numbers of calls.
_SPARSEST = 64

_REMEDY = "heatmap.visualizer.gmm_per_layer"


@dataclass(frozen=True, slots=True)
class Structure:
    """Per row; UNKNOWN where the order of the calls does not tell. `phase` is a place in PHASES."""

    sweep: Array
    micro_batch: Array
    phase: Array
    layer: Array


@dataclass(slots=True)
class _Sequence:
    """The rows of one source and API."""

    members: Array
    calls: Calls
    finding: Finding
    model: str
    doubt: str | None = None

    @property
    def certain(self) -> bool:
        return self.finding.certain and self.finding.extent == "whole"


def tell_structure(
    rows: LoadRows, counts: Vectors, per_layer: int | Literal["auto"], notes: Problems
) -> Structure:
    """What each call belonged to.

    `counts` are the vectors of `rows` as tokens per expert. Rows that came with a layer keep all
    that they came with (the sweep excepted, which is not in `rows`). What stack.json says about
    phases stays where the order of the calls tells nothing.
    """
    blank = np.full(len(rows), UNKNOWN)
    structure = Structure(blank, blank.copy(), rows.phase.copy(), rows.layer.copy())
    total = counts.sums()
    sequences = []
    for every in parts(rows.sequence):
        members = every[rows.layer[every] == UNKNOWN]
        sequence = _sequence(rows, counts, total, members, per_layer, notes)
        if sequence:
            sequences.append(sequence)
    _settle_by_other_ranks(rows, sequences)
    _settle_forward(rows, sequences)
    for sequence in sequences:
        _label(structure, sequence)
        _note(rows, sequence, per_layer, notes)
    return structure


def _sequence(
    rows: LoadRows,
    counts: Vectors,
    total: Array,
    members: Array,
    per_layer: int | Literal["auto"],
    notes: Problems,
) -> _Sequence | None:
    if not len(members):
        return None
    members = members[np.argsort(rows.op[members], kind="stable")]
    at = rows.op[members]
    trouble = None
    if at[0] == UNKNOWN:
        trouble = "the files do not tell the numbers of the calls"
    elif (np.diff(at) == 0).any():
        trouble = f"call {at[np.flatnonzero(np.diff(at) == 0)[0]]} was recorded more than once"
    elif at[-1] >= _SPARSEST * (len(at) + _SPARSEST):
        trouble = f"the highest of {len(at)} calls is said to be number {at[-1]}"
    if trouble:
        example = f"{rows.whose(members[0])}: {trouble}; shown by call"
        notes.add("structure_unknown", "warning", example=example)
        return None
    role = rows.role.name(int(rows.role.code[members[0]]))
    found = calls(at, _identities(counts, members), rows.phase[members], total[members])
    finding = find_order(found, per_layer, expected_of(role))
    return _Sequence(members, found, finding, _model(role))


def _identities(vectors: Vectors, members: Array) -> Array:
    """A number per row, the same where the vectors are."""
    known: dict[bytes, int] = {}
    return np.array([known.setdefault(vectors.of(row).tobytes(), len(known)) for row in members])


def _model(role: str | None) -> str:
    """Which model of a run a role works on; actor and reference have the same layers."""
    if role is None:
        return ""
    if role.startswith("critic") or "values" in role:
        return "critic"
    return "reward" if "reward" in role or "rm_score" in role else "actor"


def _settle_by_other_ranks(rows: LoadRows, sequences: list[_Sequence]) -> None:
    """Where several orders are possible on one rank, the one that others are certain of."""
    certain: dict[tuple[int, int], set[Order]] = defaultdict(set)
    for sequence in sequences:
        if sequence.certain:
            certain[_role_and_api(rows, sequence)].add(_plain(sequence.finding.possible[0]))
    for sequence in sequences:
        known = certain.get(_role_and_api(rows, sequence), set())
        taken = sequence.finding.order
        if sequence.certain or len(known) != 1 or not taken or sequence.finding.extent == "forward":
            continue
        (order,) = known
        found = sequence.calls.from_call(taken.first)
        if found.explained_by(order) and found.agree(order):
            same = (replace(order, first=taken.first),)
            extent: Extent = "whole" if order.period <= found.span else "begun"
            sequence.finding = Finding(same, extent, sequence.finding.fits)


def _role_and_api(rows: LoadRows, sequence: _Sequence) -> tuple[int, int]:
    row = sequence.members[0]
    return int(rows.role.code[row]), int(rows.api.code[row])


def _plain(order: Order) -> Order:
    return replace(order, first=0)


def _settle_forward(rows: LoadRows, sequences: list[_Sequence]) -> None:
    """How many layers forward passes alone went through: as in the training of the same model on
    the same rank, else by the tokens of each call, else all calls are one pass."""
    of_rank: dict[tuple[str, int], set[int]] = defaultdict(set)
    of_model: dict[str, set[int]] = defaultdict(set)
    for sequence in sequences:
        if sequence.certain:
            layers = sequence.finding.possible[0].layers
            of_rank[sequence.model, int(rows.rank[sequence.members[0]])].add(layers)
            of_model[sequence.model].add(layers)
    for sequence in sequences:
        order = sequence.finding.order
        if order is None or sequence.finding.extent != "forward":
            continue
        rank = int(rows.rank[sequence.members[0]])
        trained = of_rank.get((sequence.model, rank), set()) if rank >= 0 else set()
        trained = trained or of_model.get(sequence.model, set())
        told = next(iter(trained)) if len(trained) == 1 else None
        layers, sequence.doubt = _forward_layers(sequence.calls, order, told)
        sequence.finding = replace(sequence.finding, possible=(replace(order, layers=layers),))


def _forward_layers(found: Calls, order: Order, trained: int | None) -> tuple[int, str | None]:
    """The number of layers, and what is in doubt about it; `trained` is that of the training."""
    slots = order.layers
    by_tokens = layers_by_tokens(found, order)
    if trained:
        steady = same_tokens(found, order, trained)
        if steady or (by_tokens is None and slots % trained == 0):
            return trained, None
    if by_tokens:
        doubt = f"layers: {trained} in training, {by_tokens} by its tokens, which were taken"
        return by_tokens, doubt if trained else None
    if trained:
        return trained, f"layers: {slots} are no multiple of the {trained} in training"
    return slots, f"layers: {slots} are taken for one micro-batch, nothing tells several apart"


def _label(structure: Structure, sequence: _Sequence) -> None:
    order = sequence.finding.order
    if order is None:
        return
    labels = order.labels(sequence.calls.at)
    rows = sequence.members
    structure.sweep[rows] = labels.sweep
    structure.micro_batch[rows] = labels.micro_batch
    structure.phase[rows] = labels.phase
    structure.layer[rows] = labels.layer


def _note(
    rows: LoadRows, sequence: _Sequence, per_layer: int | Literal["auto"], notes: Problems
) -> None:
    finding, found, order = sequence.finding, sequence.calls, sequence.finding.order
    whose = rows.whose(sequence.members[0])
    missing = found.span - len(found.at) - (order.first if order else 0)
    if missing:
        lost = f"{missing:,} of {count(found.span, 'grouped matmul')} not recorded or not read"
        notes.add("calls_missing", "info", example=f"{whose}: {lost}")
    if order is None:
        if finding.fits:
            why = f"not in the order of {per_layer} grouped matmuls a layer; {_REMEDY}="
            why += f"{finding.fits} fits"
        elif per_layer == "auto":
            why = f"no order with 1 to {MOST_PER_LAYER} grouped matmuls a layer fits"
        else:
            why = f"no order fits, neither with {per_layer} grouped matmuls a layer nor with "
            why += f"another number ({_REMEDY}=auto)"
        example = f"{whose}: {count(len(found.at), 'call')}, {why}; shown by call"
        notes.add("structure_unknown", "warning", example=example)
        return
    if finding.fits:
        example = f"{whose}: all layers come in groups with equal loads; is it {_REMEDY}="
        notes.add("gmm_per_layer_doubtful", "warning", example=f"{example}{finding.fits}?")
    doubt = sequence.doubt
    if len(finding.possible) > 1:
        numbers = sorted({other.layers for other in finding.possible})
        doubt = f"layers: {order.layers} are taken, " + _among(numbers)
    elif finding.thin:
        doubt = f"layers: {order.layers} of {order.per_layer} grouped matmuls each are taken, "
        doubt += "but too few loads differ to be sure"
    elif finding.extent == "begun":
        doubt = f"layers: {order.layers} are taken, though not one micro-batch is complete"
    if doubt:
        notes.add("structure_ambiguous", "info", example=f"{whose}: {doubt}")
    wrong = found.contradictions(order)
    if wrong:
        example = f"{whose}: stack.json tells other phases than the order of the calls, which was "
        example += "taken"
        notes.add("phase_disagrees", "warning", wrong, example=example)
    if (found.span - order.first) % order.period:
        example = f"{whose}: the last micro-batch is not complete"
        notes.add("micro_batch_cut", "info", example=example)


def _among(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return "but their way back can be another"
    shown = ", ".join(str(number) for number in numbers[:6])
    return f"the loads allow {shown}{' …' if len(numbers) > 6 else ''}"
