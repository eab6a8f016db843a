"""How evenly the tokens of a layer were spread over its experts.

Worked out per layer from whole vectors, never from averages of them: an average over layers or
micro-batches levels what it is to show. The formulas stand in docs/expert-load.md.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rl_insight.analysis.load_rows import UNKNOWN, Array, Vectors
from rl_insight.schema import EXPERT_BALANCE

# Values per block: bounds the memory of what is worked out on the way.
_BLOCK = 1 << 20

RATIOS = ("max_over_mean", "max_vio", "cv", "gini", "dead_share", "entropy")


@dataclass(frozen=True, slots=True)
class Measures:
    """Per vector. `most` and `where` are UNKNOWN, the ratios NaN, where they have no meaning."""

    experts: Array
    total: Array
    mean: Array
    most: Array
    where: Array
    ratios: dict[str, Array]


def measure(vectors: Vectors, offset: Array) -> Measures:
    """The measures of each vector; `offset` is added to the expert with the most tokens."""
    count = len(vectors)
    total, most, where = (np.full(count, UNKNOWN) for _ in range(3))
    mean = np.full(count, np.nan)
    ratios = {name: np.full(count, np.nan) for name in RATIOS}
    total[:] = 0
    for length in np.unique(vectors.length[vectors.length > 0]):
        rows = np.flatnonzero(vectors.length == length)
        each = max(1, _BLOCK // int(length))
        for begin in range(0, len(rows), each):
            part = rows[begin : begin + each]
            block = vectors.block(part, int(length))
            total[part] = block.sum(axis=1)
            mean[part] = total[part] / length
            most[part] = block.max(axis=1)
            where[part] = block.argmax(axis=1) + np.maximum(offset[part], 0)
            where[part[total[part] == 0]] = UNKNOWN
            for name, values in _ratios(block).items():
                ratios[name][part] = values
    return Measures(vectors.length.astype(np.int64), total, mean, most, where, ratios)


def _ratios(block: Array) -> dict[str, Array]:
    experts = block.shape[1]
    total = block.sum(axis=1)
    dead = (block == 0).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(total > 0, total, np.nan) / experts
        share = block / np.where(total > 0, total, np.nan)[:, None]
        highest = block.max(axis=1)
        spread = np.sqrt(((block - mean[:, None]) ** 2).mean(axis=1)) / mean
        place = 2 * np.arange(1, experts + 1) - experts - 1
        gini = (np.sort(share, axis=1) * place).sum(axis=1) / experts
        bits = np.where(share > 0, share * np.log(share), 0 * share).sum(axis=1)
        entropy = -bits / np.log(experts) if experts > 1 else np.full(len(block), np.nan)
    return {
        "max_over_mean": highest / mean,
        "max_vio": (highest - mean) / mean,
        "cv": spread,
        "gini": np.maximum(gini, 0.0),
        "dead_share": dead,
        # Rounding must not give -0.0 or more than all.
        "entropy": np.clip(entropy, 0.0, 1.0) + 0.0,
    }


def balance_table(keys: dict[str, pa.Array], measures: Measures) -> pa.Table:
    """A table of EXPERT_BALANCE of `measures`, with `keys` naming what each is about."""
    columns = {
        **keys,
        "experts": pa.array(measures.experts),
        "total": pa.array(measures.total),
        "mean": _ratio(measures.mean),
        "max": _whole(measures.most),
        "argmax": _whole(measures.where),
        **{name: _ratio(values) for name, values in measures.ratios.items()},
    }
    return pa.table(
        [columns[field.name].cast(field.type) for field in EXPERT_BALANCE], schema=EXPERT_BALANCE
    )


def _whole(values: Array) -> pa.Array:
    return pa.array(values, mask=values == UNKNOWN)


def _ratio(values: Array) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))
