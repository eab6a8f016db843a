"""Small dumps of expert load made up for tests: rows that follow the schema, written as Parquet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rl_insight import notes, presets, schema, tables
from rl_insight.problems import Problems

Row = Mapping[str, object]


@dataclass
class Tables:
    """Rows of the tables of a heatmap; `write` turns them into a folder."""

    sources: list[Row] = field(default_factory=list)
    expert_load: list[Row] = field(default_factory=list)
    expert_balance: list[Row] = field(default_factory=list)
    notes: Problems = field(default_factory=Problems)
    presets: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("sources", "expert_load", "expert_balance"):
            content = tables.from_rows(schema.SCHEMAS[name], getattr(self, name))
            if name == "expert_load":
                content = notes.attach(content, self.notes)
            if name == "sources" and self.presets:
                content = presets.attach(content, self.presets)
            tables.write(folder / f"{name}.parquet", content)
        return folder

    def source(self, source_id: str, path: str, **more: object) -> None:
        row = {"source_id": source_id, "path": path, "parser": "gmm", "status": "ok"}
        self.sources.append({**row, **more})

    def call(self, load: Sequence[int] | None, **more: object) -> None:
        """One recorded grouped matmul: counts of the forward phase, first micro-batch."""
        row: dict[str, object] = {
            "source_id": f"{more.get('role')}-{more.get('rank_id')}-{more.get('step')}",
            "step": 1,
            "role": "actor_update",
            "rank_id": 0,
            "op_index": len(self.expert_load),
            "api": "NPU.npu_grouped_matmul",
            "pass_index": 0,
            "micro_batch": 0,
            "phase": "forward",
            "load_kind": "counts",
            "load_kind_from": "dump.json",
            "load": load,
        }
        self.expert_load.append({**row, **more})

    def layer(self, load: Sequence[int] | None, calls: int = 3, **more: object) -> None:
        """The grouped matmuls of one layer, which all get the same tokens."""
        for _ in range(calls):
            self.call(load, **more)


class Noise:
    """Numbers from 0 to 1 that are the same in every run."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def __call__(self) -> float:
        self._state = (self._state * 1_103_515_245 + 12_345) % 2**31
        return self._state / 2**31


def spread(experts: int, tokens: int, skew: float, noise: Noise) -> list[int]:
    """`tokens` over `experts`: shares fall off by the power `skew`, in an arbitrary order."""
    shares = [(0.4 + noise()) / (1 + at) ** skew for at in range(experts)]
    places = sorted(range(experts), key=lambda _: noise())
    whole = sum(shares)
    return [int(tokens * shares[place] / whole) for place in places]


def training(
    ranks: int = 2,
    steps: int = 1,
    layers: int = 4,
    experts: int = 16,
    roles: Sequence[str] = ("actor_update",),
    calls: int = 3,
    skew: float = 0.3,
    seed: int = 1,
) -> Tables:
    """A run whose every rank holds all experts: one forward pass per step, role and rank.

    The layers of one step differ, its ranks nearly agree, and expert 0 of the last layer is dead.
    """
    made = Tables()
    noise = Noise(seed)
    for step in range(1, steps + 1):
        for role in roles:
            usual = [spread(experts, 4096 * 8, skew, noise) for _ in range(layers)]
            sums = [[0] * experts for _ in range(layers)]
            for rank in range(ranks):
                source = f"{role}-{rank}-{step}"
                made.source(source, f"step_{step}/{role}/rank{rank}", role=role, rank_id=rank)
                where: dict[str, object] = {"step": step, "role": role, "rank_id": rank}
                for layer in range(layers):
                    load = [int(count * (0.85 + 0.3 * noise())) for count in usual[layer]]
                    if layer == layers - 1 and experts > 1:
                        load[0] = 0
                    for call in range(calls):
                        made.call(
                            load,
                            layer=layer,
                            op_index=layer * calls + call,
                            source_id=source,
                            **where,
                        )
                    sums[layer] = [a + b for a, b in zip(sums[layer], load, strict=True)]
                    made.expert_balance.append(
                        balance(load, micro_batch=0, layer=layer, ranks=1, **where)
                    )
            for layer in range(layers):
                made.expert_balance.append(
                    balance(sums[layer], step=step, role=role, layer=layer, ranks=ranks)
                )
    return made


def balance(load: Sequence[int], **where: object) -> Row:
    """A row of `expert_balance`, as far as pictures need it."""
    mean = sum(load) / len(load)
    fullest = max(load)
    return {
        **where,
        "experts": len(load),
        "total": sum(load),
        "mean": mean,
        "max": fullest,
        "argmax": load.index(fullest),
        "max_over_mean": fullest / mean if mean else None,
        "max_vio": fullest / mean - 1 if mean else None,
    }
