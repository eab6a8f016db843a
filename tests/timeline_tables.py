"""Small timelines made up for tests: rows that follow the schema, written as Parquet."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rl_insight import schema, selection, tables

Row = Mapping[str, object]

ORIGIN_NS = 1_786_710_451_089_000_000  # 2026-08-14 12:27:31.089 UTC
MS = 1_000_000
SECOND = 1_000 * MS


@dataclass
class Tables:
    """Rows of the four tables of a timeline; `write` turns them into a folder."""

    sources: list[Row] = field(default_factory=list)
    lanes: list[Row] = field(default_factory=list)
    spans: list[Row] = field(default_factory=list)
    breakdown: list[Row] = field(default_factory=list)
    ranks: Iterable[int] | None = None
    """Those that were asked for; None for all."""

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("sources", "lanes", "spans", "breakdown"):
            content = tables.from_rows(schema.SCHEMAS[name], getattr(self, name))
            if name == "lanes" and self.ranks is not None:
                content = selection.attach(content, set(self.ranks), None, None)
            tables.write(folder / f"{name}.parquet", content)
        return folder

    def source(self, source_id: str, path: str, **more: object) -> None:
        row = {"source_id": source_id, "path": path, "parser": "torch", "status": "ok"}
        self.sources.append({**row, **more})

    def lane(self, lane_id: str, **more: object) -> None:
        row = {"lane_id": lane_id, "source_id": f"file-{lane_id}", "clock": "utc"}
        self.lanes.append({**row, **more})
        if not any(row["source_id"] == f"file-{lane_id}" for row in self.sources[-3:]):
            self.source(f"file-{lane_id}", f"trace/{lane_id}.json.gz")

    def span(self, lane_id: str, start_ms: float, duration_ms: float, **more: object) -> str:
        """A span of `lane_id`; a stage called like its role unless `more` says otherwise."""
        row: dict[str, object] = {
            "span_id": f"span-{len(self.spans)}",
            "lane_id": lane_id,
            "source_id": f"file-{lane_id}",
            "kind": "stage",
            "depth": 0,
            "domain": "default",
            "start_ns": ORIGIN_NS + round(start_ms * MS),
            "duration_ns": round(duration_ms * MS),
            "truncated": False,
        }
        row.update(more)
        row.setdefault("name", row.get("role"))
        self.spans.append(row)
        return str(row["span_id"])


STAGES = (
    ("actor_compute_log_prob", 900.0),
    ("ref_compute_log_prob", 700.0),
    ("actor_update", 2400.0),
)


def training(
    ranks: int = 4, steps: int = 2, replicas: int = 2, micro_batches: int = 0, seed: int = 1
) -> Tables:
    """A run: rollout replicas of two ranks each, then three stages on every rank, per step."""
    made = Tables()
    state = seed
    begin = 0.0
    for step in range(1, steps + 1):

        def noise() -> float:
            nonlocal state
            state = (state * 1_103_515_245 + 12_345) % 2**31
            return state / 2**31

        longest = 0.0
        for replica in range(replicas):
            for rank in range(2):
                lane_id = f"rollout-{replica}-{rank}-{step}"
                made.lane(lane_id, step=step, step_index=step - 1)
                long = 2600 + 900 * noise() + (1500 if replica == replicas - 1 else 0)
                longest = max(longest, long)
                span = made.span(
                    lane_id,
                    begin + 20 * noise(),
                    long,
                    role="agent_loop_rollout",
                    replica=replica,
                    rank_id=rank,
                    step=step,
                    host="n0",
                )
                _break_down(made, span, long, 0.55 + 0.2 * noise())
        at = begin + longest + 150
        for role, usual in STAGES:
            last = 0.0
            for rank in range(ranks):
                lane_id = f"{role}-{rank}-{step}"
                made.lane(lane_id, step=step, step_index=step - 1)
                slow = 1.35 if rank == 2 and role == "actor_update" else 1.0
                long = usual * slow * (1 + 0.06 * noise())
                where = {
                    "role": role,
                    "rank_id": rank,
                    "step": step,
                    "host": f"n{rank // 8}",
                }
                start = at + 15 * noise()
                span = made.span(lane_id, start, long, **where)
                _break_down(made, span, long, 0.5 + 0.3 * noise())
                for batch in range(micro_batches):
                    slot = long * 0.96 / micro_batches
                    outer = made.span(
                        lane_id,
                        start + long * 0.02 + batch * slot,
                        slot * 0.97,
                        kind="range",
                        depth=1,
                        name="micro_batch",
                        micro_batch=batch,
                        parent_id=span,
                        **where,
                    )
                    if role == "actor_update":
                        for part, name in enumerate(("forward", "backward")):
                            made.span(
                                lane_id,
                                start + long * 0.02 + (batch + 0.48 * part) * slot,
                                slot * 0.46,
                                kind="range",
                                depth=2,
                                name=name,
                                micro_batch=batch,
                                parent_id=outer,
                                **where,
                            )
                last = max(last, long)
            at += last + 60
        begin = at + 200
    return made


def _break_down(made: Tables, span_id: str, long_ms: float, busy: float) -> None:
    window = round(long_ms * MS)
    computing, communication = round(window * busy), round(window * 0.2)
    overlapped, memory = round(window * 0.05), round(window * 0.02)
    span = next(row for row in reversed(made.spans) if row["span_id"] == span_id)
    made.breakdown.append(
        {
            **{key: span.get(key) for key in ("lane_id", "role", "rank_id", "replica", "step")},
            "span_id": span_id,
            "window_ns": window,
            "device_start_ns": span["start_ns"],
            "device_end_ns": span["start_ns"] + window,  # type: ignore[operator]
            "computing_ns": computing,
            "communication_ns": communication,
            "overlapped_ns": overlapped,
            "memory_ns": memory,
            "free_ns": window - computing - communication + overlapped - memory,
        }
    )


def many(spans: int, lanes: int) -> Tables:
    """`spans` stage spans, dense, spread evenly over `lanes` ranks of four roles."""
    made = Tables()
    roles = ("agent_loop_rollout", *(role for role, _ in STAGES))
    each = spans // lanes
    for number in range(lanes):
        lane_id = f"lane-{number}"
        made.lane(lane_id)
        role, rank = roles[number % 4], number // 4
        for turn in range(each):
            made.span(
                lane_id,
                turn * 1000 + 250 * (number % 4) + rank % 7,
                180 + (turn * rank) % 60,
                role=role,
                rank_id=rank,
                step=turn + 1,
                host=f"n{rank // 8}",
            )
    return made


def grid(ranks: int, steps: int, without: Iterable[tuple[int, int]] = ()) -> Tables:
    """`actor_update` of each rank and step, 100 ms long, steps a second apart and rank r r ms late.

    Those `without`, as (rank, step), are missing. Steps count from 1.
    """
    made = Tables()
    gone = set(without)
    for rank in range(ranks):
        for step in range(1, steps + 1):
            if (rank, step) not in gone:
                where = {"role": "actor_update", "rank_id": rank, "step": step}
                lane_id = f"r{rank}s{step}"
                made.lane(lane_id, step_index=step - 1, world_size=ranks, **where)
                made.span(lane_id, (step - 1) * 1000 + rank, 100, **where)
    return made


HOSTILE = (
    "<script>alert(1)</script>",
    "$math$ \\frac{1}{2}",
    "two\nlines\tand a tab",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "\u202egnp.live\u200b\u2066x",
    "long_" + "x" * 5000 + "_end",
    "角色_更新",
    "</script><img src=x onerror=alert(2)>",
    "&lt;b&gt; &amp; \u2028 <b>bold</b> <a href='javascript:alert(3)'>a</a>",
)


def hostile() -> Tables:
    """One lane per hostile role, with a range and a trouble of the same name."""
    made = Tables()
    for number, role in enumerate(HOSTILE):
        lane_id = f"h{number}"
        made.lane(lane_id)
        where = {"role": role, "rank_id": number, "step": 1, "host": role}
        span = made.span(lane_id, number * 300, 800, **where)
        made.span(
            lane_id,
            number * 300 + 100,
            400,
            kind="range",
            depth=1,
            name=role + " range",
            parent_id=span,
            **where,
        )
        made.source(f"bad{number}", role + ".json", status="failed", detail=f"broken: {role}")
    return made


def unknown_ranks() -> Tables:
    """Lanes without a rank: of two files, and of two processes of one file."""
    made = training(ranks=2, steps=1, replicas=1)
    for number, source in enumerate(("a", "b", "both", "both")):
        lane_id = f"u{number}"
        made.lanes.append(
            {"lane_id": lane_id, "source_id": source, "clock": "utc", "pid": 100 + number}
        )
        made.span(
            lane_id, 100 * number, 2000, role="actor_update", source_id=source, host=f"n{number}"
        )
    for source in ("a", "b", "both"):
        made.source(source, f"nsys/report_{source}.nsys-rep")
    return made


def failures(made: Tables, failed: int = 3) -> Tables:
    """`made` with files that failed, were salvaged and were empty."""
    for number in range(failed):
        made.source(
            f"failed{number}",
            f"actor_update/broken_{number}.json.gz",
            status="failed",
            detail="The gzip stream ends early, after 1.2 MB; nothing before it was a whole event.",
        )
    made.source(
        "cut",
        "actor_update/cut.json.gz",
        status="salvaged",
        detail="The file ends inside an event; 1,204 events before it were kept.",
    )
    made.source("none", "ref/none.json.gz", status="empty", detail="No timed events.")
    made.source("gone", "gmm/x.pt", status="failed", parser="gmm", detail="Not a group list.")
    return made


def nothing(made: Iterable[str] = (), statuses: Sequence[str] = ()) -> Tables:
    """No spans at all, and sources with these paths and statuses."""
    empty = Tables()
    for path, status in zip(made, statuses, strict=True):
        empty.source(path, path, status=status, detail=f"It was {status}.")
    return empty
