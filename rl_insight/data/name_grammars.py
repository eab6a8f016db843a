"""The grammars of the names that profilers give to their captures, and where each comes from.

Anything may stand in a name. So every grammar is matched from a fixed end or a literal, in linear
time, and what does not fit is unknown (None).

* verl-A/B  `<role>/[prefix_]prof_rank-<rank>[_<pid>][_<time>].json.gz` (verl v0.7.1, v0.8)
* verl-C/D  `[<prefix>_][<scope>_][step<S>_]rank<r>[-of-<w>][_tp<i>-pp<i>-dp<i>[-cp<i>]]_pid<pid>_
  <time>[_cycle<N>|_mb<i>[-<j>]|_part<N>].json.gz` (verl v0.9: below `<role>/`; main since August
  2026: flat, with the step; verl/utils/profiler/torch_profile.py, build_trace_basename)
* relocated `rollout-replica<n>[-globalrank<g>]_<engine's own name>` (verl, relocate_rollout_traces)
* vllm      `[prefix_]dp<i>_pp<i>_tp<i>_dcp<i>_ep<i>_rank<r>.<ns>.pt.trace.json.gz` (vLLM,
  get_worker_rank_suffix), before January 2026 `<instance>-rank-<r>.<ns>…`, and the front end's
  `<host>_<pid>.async_llm.<ns>…`
* sglang    `[prefix-]<time>-TP-<k>[-DP-<k>][-PP-<k>][-EP-<k>][suffix].trace.json.gz` (SGLang,
  scheduler_profiler_mixin.py); `expert_distribution_recorder_<time>[_<rank>].pt`
* npu       `<worker or host>_<pid>_<time>_ascend_pt/` (torch_npu, _profiler_path_creator.py)
* nsys      `[<prefix>_][<host>_]worker_process_<pid>[.<range>].<anything>` (Ray; verl moves and
  prefixes them, nvtx_profile.py)
* tensorboard `<host>_<pid>.<ns>.pt.trace.json.gz` (torch.profiler.tensorboard_trace_handler)
* generic   anything else with a part like `rank-3`, `worker0` or `step_12` in it
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from rl_insight.data import packings, roles
from rl_insight.data.name_facts import INT32, NOTHING, NameFacts, digits, number, unix_time

TORCH_GRAMMARS = frozenset({"verl-A/B", "verl-C/D", "vllm", "sglang", "tensorboard"})
"""Those that only a writer of torch traces follows."""

_RELOCATED = re.compile(r"(rollout-replica([0-9]++))(?:-globalrank([0-9]++))?_")
_KINDS = (".pt.trace.json", ".trace.json", ".json", ".jsonl", ".pt", ".pickle", ".db")

_AB = re.compile(r"(?:^|_)prof_rank-([0-9]++)(?:_([0-9]++))?(?:_([0-9]++))?\Z")
_RANK_OF = re.compile(r"rank([0-9]++)(?:-of-([0-9]++))?")
_STEP_LABEL = re.compile(r"step(?:([0-9]++)|[0-9][0-9A-Za-z.=+-]*+|-?unknown|None)")
_TOPOLOGY = re.compile(r"(tp|pp|dp|cp)([0-9]++)")
_WINDOW = re.compile(r"cycle[0-9]++|mb[0-9]++(?:-[0-9]++)?|part[0-9]++")
_PID = re.compile(r"pid([0-9]++)")

_VLLM = re.compile(
    r"(?:^|_)dp([0-9]++)_pp([0-9]++)_tp([0-9]++)(?:_dcp[0-9]++)?_ep([0-9]++)(?:_rank([0-9]++))?"
    r"(?=_|\Z)"
)
_VLLM_OLD = re.compile(r"-rank-([0-9]++)\Z")
_SGLANG = re.compile(r"(?:^|-)TP-([0-9]++)((?:-(?:DP|PP|EP)-[0-9]++)*+)(?=[-._]|\Z)")
_EXPERTS = re.compile(r"expert_distribution_recorder_([0-9]++(?:\.[0-9]++)?)(?:_([0-9]++))?")
_NSYS = re.compile(r"(?:^|_)worker_process_([0-9]++)(?:\.([0-9]++))?(?=[._]|\Z)")

# A qualified rank (`tp_rank_1`, `local_rank0`) counts something else.
_ANY_RANK = re.compile(
    r"(?:^|[_.-])(?:(global)[_-]?|(local|node|tp|pp|dp|ep|cp|dcp)[_-]?)?rank[_-]?([0-9]++)"
    r"(?:-of-([0-9]++))?(?![0-9A-Za-z])",
    re.IGNORECASE,
)
_ANY_STEP = re.compile(r"(?:^|[_.-])step[_-]?([0-9]++)(?![0-9A-Za-z])", re.IGNORECASE)
_ANY_PID = re.compile(r"[_.-]pid[_-]?([0-9]++)(?![0-9A-Za-z])", re.IGNORECASE)
_WORKER = re.compile(r"worker[_-]?([0-9]++)(?![0-9A-Za-z])")
# The longest first: `actor_rollout_ref` begins like `actor`.
_PREFIXES = sorted(
    {spelt for worker in roles.WORKERS for spelt in (worker, worker.replace("_", "-"))},
    key=lambda prefix: (-len(prefix), prefix),
)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_MONTH_TIME = re.compile(
    r"\.([A-Z][a-z]{2})_([0-9]{2})_([0-9]{2})_([0-9]{2})_([0-9]{2})(?=[._]|\Z)"
)


# Discovery, several parsers and the census ask about the same name.
@lru_cache(maxsize=32_768)
def read(name: str) -> NameFacts:
    """What one file or folder name says by the first grammar that it fits."""
    match = _RELOCATED.match(name)
    if match is None:
        return _engine_or_trainer(name)
    # What the engine itself calls prefix or scope says less than the replica.
    return replace(
        _engine_or_trainer(name[match.end() :]),
        prefix=match[1],
        role=match[1],
        replica=number(match[2], INT32),
        global_rank=number(match[3], INT32),
        rank_is_local=True,
    )


def _engine_or_trainer(name: str) -> NameFacts:
    # A packer that is not read hides nothing of what the name tells.
    stem = packings.split(name)[0].removesuffix(".gz")
    kind = next((kind for kind in _KINDS if stem.endswith(kind)), "")
    stem = stem.removesuffix(kind)
    matches = (grammar(stem, kind) for grammar in _GRAMMARS)
    return next((found for found in matches if found is not None), NOTHING)


def _npu(stem: str, kind: str) -> NameFacts | None:
    if not stem.endswith("_ascend_pt"):
        return None
    worker, pid, time = stem.removesuffix("_ascend_pt"), None, None
    # The time is 17 digits; synthetic names have a date and a time of day, or nothing at all.
    head, _, last = worker.rpartition("_")
    if head and digits(last) and len(last) == 17:
        worker, time = head, number(last)
        head, _, last = worker.rpartition("_")
        if head and digits(last):
            worker, pid = head, number(last)
    elif digits(head) and digits(last):
        return NameFacts("npu", time=number(head + last))
    found = _worker(worker)
    if found is None:
        found = NameFacts(host=worker) if time is not None else _generic(worker, "") or NOTHING
    return replace(found, grammar="npu", pid=pid, time=time)


def _nsys(stem: str, kind: str) -> NameFacts | None:
    match = _NSYS.search(stem)
    if match is None:
        return None
    prefix, host = _prefix_and_host(stem[: match.start()])
    window = f"range{match[2]}" if match[2] else None
    return NameFacts("nsys", prefix, host=host, pid=number(match[1]), window=window)


def _experts(stem: str, kind: str) -> NameFacts | None:
    match = _EXPERTS.fullmatch(stem)
    if match is None:
        return None
    rank = number(match[2], INT32)
    return NameFacts("sglang", rank=rank, rank_is_local=True, time=unix_time(match[1]))


def _sglang(stem: str, kind: str) -> NameFacts | None:
    match = _SGLANG.search(stem) if kind in (".trace.json", ".json") else None
    if match is None:
        return None
    prefix, _, moment = stem[: match.start()].rpartition("-")
    time = unix_time(moment)
    others = dict(re.findall("(DP|PP|EP)-([0-9]+)", match[2]))
    tp = number(match[1], INT32)
    return NameFacts(
        "sglang",
        prefix=(prefix if time is not None else stem[: match.start()]) or None,
        # Expert parallel ranks divide the TP group, so TP still counts the engine's ranks. With DP
        # or PP the count depends on the layout, and verl does not guess it either.
        rank=None if "DP" in others or "PP" in others else tp,
        rank_is_local=True,
        tp=tp,
        pp=number(others.get("PP"), INT32),
        dp=number(others.get("DP"), INT32),
        ep=number(others.get("EP"), INT32),
        time=time,
    )


def _verl_ab(stem: str, kind: str) -> NameFacts | None:
    match = _AB.search(stem)
    if match is None:
        return None
    # Of two numbers the first is the pid and the second the time. One alone is a pid in some
    # releases and a time of day in the documented samples: as a sort key it serves both.
    pid, time = (match[2], match[3]) if match[3] else (None, match[2])
    prefix = stem[: match.start()] or None
    return NameFacts(
        "verl-A/B", prefix, rank=number(match[1], INT32), pid=number(pid), time=number(time)
    )


def _verl_cd(stem: str, kind: str) -> NameFacts | None:
    # Labels hold no underscore, so the name is read from its end, part by part.
    parts = stem.split("_")
    window = parts.pop() if len(parts) > 3 and _WINDOW.fullmatch(parts[-1]) else None
    if len(parts) < 3 or not (digits(parts[-1]) and len(parts[-1]) == 17):
        return None
    time, pid = parts.pop(), _PID.fullmatch(parts.pop())
    topology = _topology(parts[-1])
    if topology:
        parts.pop()
    rank = _RANK_OF.fullmatch(parts.pop()) if parts else None
    if pid is None or rank is None:
        return None
    step = _STEP_LABEL.fullmatch(parts[-1]) if parts else None
    if step:
        parts.pop()
    prefix, role = _prefix_and_scope(parts)
    return NameFacts(
        "verl-C/D",
        prefix,
        role,
        rank=number(rank[1], INT32),
        world_size=number(rank[2], INT32),
        tp=topology.get("tp"),
        pp=topology.get("pp"),
        dp=topology.get("dp"),
        cp=topology.get("cp"),
        step=number(step[1]) if step else None,
        pid=number(pid[1]),
        time=number(time),
        window=window,
    )


def _trace(stem: str, kind: str) -> NameFacts | None:
    """`<worker>.<time>.pt.trace.json`, the name that torch's TensorBoard handler gives."""
    if kind != ".pt.trace.json":
        return None
    worker, _, moment = stem.rpartition(".")
    time = number(moment) if digits(moment) and len(moment) >= 13 else None
    if time is None:
        return None
    front_end = worker.endswith(".async_llm")
    if front_end:
        worker = worker.removesuffix(".async_llm")
    found = _worker(worker) or _generic(worker, kind)
    if found is None or found.grammar == "generic":
        host, _, pid = worker.rpartition("_")
        grammar = "vllm" if front_end else "tensorboard"
        if host and digits(pid) and not host.endswith(("step", "rank")):
            found = replace(found or NOTHING, grammar=grammar, host=host, pid=number(pid))
    return replace(found, time=time) if found else NameFacts("tensorboard", time=time)


def _worker(worker: str) -> NameFacts | None:
    """vLLM's worker names, which also begin the folders of vllm-ascend."""
    match = _VLLM.search(worker)
    if match is not None:
        dp, pp, tp, ep, rank = (number(text, INT32) for text in match.groups())
        prefix = worker[: match.start()] or None
        return NameFacts("vllm", prefix, rank=rank, rank_is_local=True, tp=tp, pp=pp, dp=dp, ep=ep)
    match = _VLLM_OLD.search(worker)
    if match is None:
        return None
    rank = number(match[1], INT32)
    return NameFacts("vllm", worker[: match.start()] or None, rank=rank, rank_is_local=True)


def _generic(stem: str, kind: str) -> NameFacts | None:
    rank = world_size = global_rank = time = None
    for match in _ANY_RANK.finditer(stem):
        if match[1] and global_rank is None:
            global_rank = number(match[3], INT32)
        elif not match[1] and not match[2] and rank is None:
            rank, world_size = number(match[3], INT32), number(match[4], INT32)
    worker = _WORKER.match(stem)
    if rank is None and worker:
        rank = number(worker[1], INT32)
    step, pid, month = _ANY_STEP.search(stem), _ANY_PID.search(stem), _MONTH_TIME.search(stem)
    if month and month[1] in _MONTHS:
        time = int(f"{_MONTHS.index(month[1]) + 1}{''.join(month.groups()[1:])}")
    found = NameFacts(
        "generic",
        rank=rank,
        global_rank=global_rank,
        world_size=world_size,
        step=number(step[1]) if step else None,
        pid=number(pid[1]) if pid else None,
        time=time,
    )
    return None if found == NameFacts("generic") else found


_GRAMMARS: tuple[Callable[[str, str], NameFacts | None], ...] = (
    _npu,
    _nsys,
    _experts,
    _verl_ab,
    _verl_cd,
    _sglang,
    _trace,
    _generic,
)


def _prefix_and_scope(labels: list[str]) -> tuple[str | None, str | None]:
    """The worker and the stage among the labels of a C/D name; verl writes none, one or both."""
    if roles.canonical("_".join(labels)) in roles.WORKERS:
        return "_".join(labels), None
    # verl's own labels hold no underscore, so the last is the scope: `actor_train` is the worker
    # `actor` over a whole step. A hand-made name may spell a stage in several parts.
    for size in (1, 4, 3, 2):
        scope = "_".join(labels[-size:])
        if size <= len(labels) and (roles.is_stage(scope) or scope in roles.WHOLE_STEP):
            return "_".join(labels[:-size]) or None, scope
    return "_".join(labels[:-1]) or None, labels[-1] if labels else None


def _prefix_and_host(head: str) -> tuple[str | None, str | None]:
    """verl writes `[<worker>_]<host>_`; a host may hold underscores too, so workers are known."""
    for prefix in _PREFIXES:
        if head == prefix or head.startswith(f"{prefix}_"):
            return prefix, head[len(prefix) + 1 :] or None
    return None, head or None


def _topology(part: str) -> dict[str, int | None]:
    """`tp0-pp1-dp2-cp0` as ranks by dimension; empty when `part` is something else."""
    found = [match for item in part.split("-") if (match := _TOPOLOGY.fullmatch(item))]
    if len(found) != part.count("-") + 1:
        return {}
    return {match[1]: number(match[2], INT32) for match in found}
