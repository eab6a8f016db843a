"""The order in which training calls its grouped matmuls, and which orders a recording can be.

A layer calls the operator `per_layer` times in its forward pass, with the same group list each
time: up, gate and down, or a fused gate-up and down. Per micro-batch of training all layers run
forward, then, from the last to the first, each repeats its forward calls (when activations are
recomputed) and calls twice as many for its backward pass: two per matmul, for the gradient of the
input and that of the weight. So the group lists of a micro-batch mirror each other, and that is how
the order is recognised (verl, models/transformers/npu_patch.py; torch.utils.checkpoint).
MindSpeed's backward pass is another operator (mindspeed/ops/gmm.py), so that of its `npu_gmm` only
the recomputation mirrors the forward calls.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rl_insight.analysis.load_rows import UNKNOWN, Array
from rl_insight.schema import PHASES

FORWARD, RECOMPUTE, BACKWARD = range(len(PHASES))

# Recomputation, and calls for gradients per matmul.
_WAYS_BACK = ((False, 2), (True, 2), (True, 0))
# As long as others, so that only stack.json can tell them: one of the two gradients comes from
# another operator.
_TOLD_WAYS_BACK = (*_WAYS_BACK, (False, 1), (True, 1))

# Hypotheses of recordings that were cut are checked one by one; this many, where loads that are
# all alike let thousands of them look possible.
_MOST_CHECKS = 200


@dataclass(frozen=True, slots=True)
class Order:
    """One order of calls: `layers` layers, each called `per_layer` times forward and `back` times
    on the way back (0: there is none), from call `first` on.

    `gradients` is how many calls of the way back each matmul has besides its recomputation.
    """

    layers: int
    per_layer: int
    recompute: bool = False
    gradients: int = 2
    first: int = 0

    @property
    def back(self) -> int:
        """Calls of one layer on the way back."""
        return (self.recompute + self.gradients) * self.per_layer

    @property
    def period(self) -> int:
        """Calls of one micro-batch."""
        return self.layers * (self.per_layer + self.back)

    def labels(self, at: Array) -> "CallLabels":
        """What the calls with the numbers `at` belong to."""
        micro_batch, inside = np.divmod(at - self.first, self.period)
        forward = self.layers * self.per_layer
        is_back = inside >= forward
        layer = np.minimum(inside, forward - 1) // self.per_layer
        phase = np.full(len(at), FORWARD)
        sweep = micro_batch
        if self.back:
            from_last, within = np.divmod(inside - forward, self.back)
            layer = np.where(is_back, self.layers - 1 - from_last, layer)
            again = RECOMPUTE if self.recompute else BACKWARD
            phase[is_back] = np.where(within < self.per_layer, again, BACKWARD)[is_back]
            sweep = 2 * micro_batch + is_back
        return CallLabels(micro_batch, layer, phase, sweep)


@dataclass(frozen=True, slots=True)
class CallLabels:
    """Per call: its micro-batch, layer, phase (a place in PHASES) and sweep through the layers."""

    micro_batch: Array
    layer: Array
    phase: Array
    sweep: Array


@dataclass(frozen=True, slots=True)
class Calls:
    """The recorded calls of one sequence.

    `at` are their numbers in ascending order, with gaps where files are missing; `vector` is equal
    where the group lists are, `run` counts its changes; `phase` is a place in PHASES as stack.json
    tells, or UNKNOWN; `total` is tokens.
    """

    at: Array
    vector: Array
    phase: Array
    total: Array
    run: Array

    @property
    def span(self) -> int:
        """How many calls there were, as far as the last one recorded."""
        return int(self.at[-1]) + 1

    @property
    def runs(self) -> int:
        """How many times the group list is another one than that before, plus one."""
        return int(self.run[-1]) + 1

    def from_call(self, first: int) -> "Calls":
        """The same with the numbers counted from `first`."""
        return Calls(self.at - first, self.vector, self.phase, self.total, self.run)

    def alike(self, low: Array, high: Array) -> Array:
        """Whether all recorded calls within each [low, high) have one group list."""
        first = np.minimum(np.searchsorted(self.at, low), len(self.at) - 1)
        last = np.searchsorted(self.at, high) - 1
        return np.asarray((last <= first) | (self.run[first] == self.run[last]))

    def agree(self, order: Order) -> bool:
        """Whether stack.json contradicts none of the phases of `order`."""
        said = self.phase != UNKNOWN
        return bool((order.labels(self.at[said]).phase == self.phase[said]).all())

    def contradictions(self, order: Order) -> int:
        """How many phases that stack.json tells are others in `order`."""
        said = self.phase != UNKNOWN
        return int((order.labels(self.at[said]).phase != self.phase[said]).sum())

    def explained_by(self, order: Order) -> bool:
        """Whether every micro-batch and layer of `order` has one group list."""
        labels = order.labels(self.at)
        key = labels.micro_batch * order.layers + labels.layer
        seen = np.empty(int(key.max()) + 1, dtype=np.int64)
        seen[key] = self.vector
        return bool((seen[key] == self.vector).all())


def calls(at: Array, vector: Array, phase: Array, total: Array) -> Calls:
    """The recorded calls, at least one; `at` ascends."""
    changes = np.diff(vector, prepend=vector[:1]) != 0
    return Calls(at, vector, phase, total, np.cumsum(changes))


def whole_orders(found: Calls, per_layer: int) -> list[Order]:
    """The orders of training that the calls can be, with at least one micro-batch complete; the
    simplest first: nothing cut, both gradients, few micro-batches, no recomputation."""
    candidates = [order for order in _turning(found, per_layer) if order.period <= found.span]
    uncut = [order for order in candidates if found.span % order.period == 0]
    cut = [order for order in candidates if found.span % order.period]
    fitting = [order for order in uncut if found.explained_by(order)]
    if len(fitting) < 2:
        fitting += [order for order in cut[:_MOST_CHECKS] if found.explained_by(order)]
    return sorted(
        fitting,
        key=lambda order: (
            found.span % order.period > 0,
            -order.gradients,
            -order.layers,
            order.recompute,
        ),
    )


def begun_orders(found: Calls, per_layer: int) -> list[Order]:
    """The orders of training that the calls can be the beginning of, cut on the first way back; the
    one that got farthest first."""
    candidates = [order for order in _turning(found, per_layer) if order.period > found.span]
    candidates.sort(key=lambda order: order.layers)
    return [
        order
        for order in candidates[:_MOST_CHECKS]
        if found.explained_by(order)
        and mostly_one_layer_each(found, per_layer, order.layers * per_layer)
    ]


def forward_only(found: Calls, per_layer: int) -> bool:
    """Whether the calls can be forward passes alone: equal group lists, `per_layer` at a time.

    A last layer that was cut short counts when others show the number.
    """
    slot = found.at // per_layer
    complete = found.span // per_layer
    cut = found.span % per_layer > 0
    if complete == 0 or (cut and (complete < 2 or found.runs < 2)):
        return False
    same_slot = slot[1:] == slot[:-1]
    return bool((found.vector[1:] == found.vector[:-1])[same_slot].all())


def mostly_one_layer_each(found: Calls, per_layer: int, end: int | None = None) -> bool:
    """Whether most group lists that differ from their neighbours are those of one layer's forward
    calls, up to the call `end`: the way back, where it is in the recording, has longer runs."""
    kept = slice(None) if end is None else slice(int(np.searchsorted(found.at, end)))
    at, run = found.at[kept], found.run[kept]
    starts = np.diff(run, prepend=-1) != 0
    ends = np.diff(run, append=-1) != 0
    short = at[starts] // per_layer == at[ends] // per_layer
    return bool(3 * short.sum() > 2 * len(short))


def _turning(found: Calls, per_layer: int) -> Iterator[Order]:
    """Orders whose last layer turns round and whose first layer ends where the calls allow it."""
    told = bool((found.phase != UNKNOWN).any())
    layers = np.arange(1, (found.span - 1) // per_layer + 1)
    forward = layers * per_layer
    for recompute, gradients in _TOLD_WAYS_BACK if told else _WAYS_BACK:
        back = (recompute + gradients) * per_layer
        good = found.alike(forward - per_layer, forward + back)
        period = layers * (per_layer + back)
        start = np.minimum(np.searchsorted(found.at, period - back), len(found.at) - 1)
        at_home = (found.at[start] >= period - back) & (found.at[start] < period)
        if found.at[0] < per_layer:
            good &= ~at_home | (found.vector[start] == found.vector[0])
        if not gradients:
            good[:1] = False  # one layer, recomputed, is two layers with equal loads
        for number in layers[good]:
            yield Order(int(number), per_layer, recompute, gradients)
