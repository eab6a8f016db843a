"""Find the order of calls that explains one recording.

Every hypothesis is checked against all calls by exact equality of their group lists. Loads that are
alike by chance never make two layers one; where they leave several orders possible, all are given.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rl_insight.analysis.expert_passes import (
    Calls,
    Order,
    begun_orders,
    forward_only,
    mostly_one_layer_each,
    whole_orders,
)
from rl_insight.analysis.load_rows import UNKNOWN

Expected = Literal["training", "forward"] | None
"""What the role of a recording lets expect."""

Extent = Literal["whole", "begun", "forward"]
"""Training with a complete micro-batch; cut on its first way back; forward passes alone."""

MOST_PER_LAYER = 6
_FORWARD = ("compute", "log_prob", "reward", "rollout")
_DEFAULT = 3
# Fewer different group lists in a row than this do not tell how often each is used.
_FEWEST_RUNS = 3
_FEWEST_RUNS_WITH_GAPS = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """The order of one recording: the simplest of `possible`, none where nothing explains it.

    `extent` is which kind it is, `fits` another number of calls per layer that explains the
    recording (better, where there is an order), `thin` whether too few group lists differ to be
    sure.
    """

    possible: tuple[Order, ...] = ()
    extent: Extent = "whole"
    fits: int | None = None
    thin: bool = False

    @property
    def order(self) -> Order | None:
        """The order taken."""
        return self.possible[0] if self.possible else None

    @property
    def certain(self) -> bool:
        """Whether nothing else is possible."""
        return len(self.possible) == 1 and not self.thin


def expected_of(role: str | None) -> Expected:
    """What a role does, by its name: updates train, what is computed runs forward only."""
    if role is None:
        return None
    if "update" in role or role.endswith("_train"):
        return "training"
    return "forward" if any(word in role for word in _FORWARD) else None


def find_order(found: Calls, per_layer: int | Literal["auto"], expected: Expected) -> Finding:
    """The orders that explain `found`, for calls per layer as given or, with `auto`, the largest
    number up to 6 that does: every smaller divisor explains the same calls as more layers."""
    if per_layer == "auto":
        return _search(found, expected)
    finding = _at(found, per_layer, expected)
    if finding.extent != "forward":
        finding = replace(finding, thin=_thin(found, finding))
    if finding.order is None:
        other = _search(found, expected)
        return replace(finding, fits=other.order.per_layer if other.order else None)
    if found.runs >= _FEWEST_RUNS:
        for times in range(MOST_PER_LAYER // per_layer, 1, -1):
            coarser = _at(found, times * per_layer, expected)
            if coarser.order and coarser.extent == finding.extent:
                return replace(finding, fits=times * per_layer)
    return finding


def _search(found: Calls, expected: Expected) -> Finding:
    numbers = list(range(MOST_PER_LAYER, 0, -1))
    if found.runs == 1:
        numbers = [
            number
            for number in sorted(numbers, key=lambda n: (abs(n - _DEFAULT), n))
            if found.span % number == 0
        ]
    for number in numbers:
        finding = _at(found, number, expected, sought=True)
        if finding.order:
            return replace(finding, thin=_thin(found, finding))
    return Finding()


def _thin(found: Calls, finding: Finding) -> bool:
    """Whether too few group lists differ from the one before to be sure; more must where calls are
    missing or gradients are. What stack.json says is enough."""
    less_to_see = found.span > len(found.at) or any(
        not order.gradients for order in finding.possible if finding.extent != "forward"
    )
    fewest = _FEWEST_RUNS_WITH_GAPS if less_to_see else _FEWEST_RUNS
    return found.runs < fewest and not (found.phase != UNKNOWN).any()


def _at(found: Calls, per_layer: int, expected: Expected, sought: bool = False) -> Finding:
    finding = _from_first(found, per_layer, expected, sought)
    if finding.order or found.at[0] == 0:
        return finding
    # The counter may not have started at 0.
    first = int(found.at[0])
    finding = _from_first(found.from_call(first), per_layer, expected, sought)
    moved = tuple(replace(order, first=first) for order in finding.possible)
    return replace(finding, possible=moved)


def _from_first(found: Calls, per_layer: int, expected: Expected, sought: bool) -> Finding:
    whole = whole_orders(found, per_layer)
    if expected is None or sought:
        # One layer in training looks like three or four with fewer calls in a forward pass.
        whole = [order for order in whole if order.layers > 1]
    # What repeats by chance early in a recording that was cut looks like complete micro-batches.
    solid = found.runs >= _FEWEST_RUNS_WITH_GAPS and any(
        found.span % order.period == 0 for order in whole
    )
    begun = [] if solid or len(whole) > 1 else begun_orders(found, per_layer)
    forward = []
    if forward_only(found, per_layer) and (
        (expected == "forward" and (per_layer > 1 or not sought))
        or mostly_one_layer_each(found, per_layer)
    ):
        layers = -(-found.span // per_layer)
        forward = [Order(layers, per_layer, gradients=0)]

    by_extent: dict[Extent, list[Order]] = {
        "whole": whole and whole + begun,
        "begun": begun,
        "forward": forward,
    }
    preferred: dict[Expected, tuple[Extent, ...]] = {
        "training": ("whole", "begun", "forward"),
        "forward": ("forward", "whole", "begun"),
        None: ("whole", "forward", "begun"),
    }
    first: Finding | None = None
    for extent in preferred[expected]:
        orders = by_extent[extent]
        agreed = tuple(order for order in orders if found.agree(order))
        if agreed:
            return Finding(agreed, extent)
        if orders and first is None:
            first = Finding(tuple(orders), extent)
    return first or Finding()


def layers_by_tokens(found: Calls, order: Order) -> int | None:
    """Number of layers of forward passes, by the tokens of each: without expert parallelism they
    are the same in all layers of a micro-batch, and mostly others in the next.

    None where the tokens do not tell.
    """
    slot, total = _tokens_by_slot(found, order)
    change = np.flatnonzero((np.diff(total) != 0) & (np.diff(slot) == 1)) + 1
    layers = math.gcd(*(int(at) for at in slot[change])) if len(change) else 0
    return layers if layers > 1 and same_tokens(found, order, layers) else None


def same_tokens(found: Calls, order: Order, layers: int) -> bool:
    """Whether forward passes through `layers` layers have the same tokens in each."""
    slot, total = _tokens_by_slot(found, order)
    micro_batch = slot // layers
    return bool((np.diff(total) == 0)[np.diff(micro_batch) == 0].all())


def _tokens_by_slot(found: Calls, order: Order) -> tuple[np.ndarray, np.ndarray]:
    slot, first = np.unique((found.at - order.first) // order.per_layer, return_index=True)
    return slot, found.total[first]
