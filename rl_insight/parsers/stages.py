"""From the annotations of a capture to its stages, and to the ranges below them.

Neutral to profilers. A capture of one stage gives one span, a capture of a whole step one for each
call of each stage inside.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rl_insight.data import roles
from rl_insight.parsers.annotations import Annotation, Annotations, batch_of
from rl_insight.problems import Problems

MOST_SPANS = 20_000
"""Spans per capture: a picture of more shows nothing more."""

# More than a year; then as few are left as there are names on threads.
_LONGEST_GAP_NS = 2**55


@dataclass(frozen=True, slots=True)
class Capture:
    """What is known of a capture besides its annotations.

    `first_ns` and `last_ns` are its first and last real event, `end_ns` is when the profiler
    stopped, where it says so. `role` is the role that the path tells. `cut_short` is True when the
    file ends before the capture did, `in_part` when anything else of what ran in it is lost.
    `stages` maps names that are stages in this capture, besides the known ones, to their roles.
    """

    first_ns: int
    last_ns: int
    end_ns: int | None = None
    role: str | None = None
    cut_short: bool = False
    in_part: bool = False
    stages: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Span:
    """One row of `spans`, before it has an id; `parent` is an index into the list of spans."""

    kind: str
    depth: int
    start_ns: int
    end_ns: int
    name: str | None = None
    raw_name: str | None = None
    role: str | None = None
    parent: int | None = None
    mini_batch: int | None = None
    micro_batch: int | None = None
    tid: str | None = None
    domain: str = "default"
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class _Open:
    """An annotation that later ones may lie in; `span` and `depth` are of its nearest kept span."""

    end_ns: int
    name: str
    nesting: int
    span: int
    depth: int


def find_spans(
    annotations: Annotations, capture: Capture, range_depth: int, problems: Problems
) -> list[Span]:
    """The stage spans of `capture`, in order of start, then the range spans below them.

    A stage is an annotation that names a known stage, the role of the path, or one of the capture's
    own stages, and lies in no other such. Without one the whole capture, first to last event, is
    one stage without a name. Ranges are kept `range_depth` levels deep; mini- and micro-batches at
    any depth, unless it is 0. What exceeds MOST_SPANS is left out, deepest and shortest first, and
    counted in `problems`.
    """
    stages = _outermost(annotations, capture)
    for stage in stages.values():
        # Where it ends is known, but not all that it did.
        stage.truncated |= capture.cut_short or capture.in_part
    spans, numbers = _joined(stages, problems)
    root = None
    if not spans:
        damaged = capture.cut_short or capture.in_part
        spans = [Span("stage", 0, capture.first_ns, capture.last_ns, truncated=damaged)]
        root = _Open(capture.last_ns, "", 0, 0, 0)
    if range_depth > 0:
        _add_ranges(spans, annotations, numbers, root, range_depth, capture)
    problems.add(
        "stages_left_out",
        "warning",
        annotations.wanted_left_out,
        example="the capture names more stages and batches than are held: the shortest are lost",
    )
    return _limited(spans, problems)


def _outermost(annotations: Annotations, capture: Capture) -> dict[int, Span]:
    """The stages, by the number of their annotation in its order."""
    named: dict[str, str | None] = {}
    found: dict[int, Span] = {}
    reach: dict[object, int] = {}
    for order, one in enumerate(annotations):
        if one.name not in named:
            named[one.name] = _stage_name(one.name, capture)
        role = named[one.name]
        # Inside another stage of its thread, or inside the same stage of another thread.
        inside = max(reach.get(one.tid, one.start_ns), reach.get((role,), one.start_ns))
        if role is None or one.end_ns <= inside:
            continue
        found[order] = _stage(one, role, capture)
        for key in (one.tid, (role,)):
            reach[key] = max(reach.get(key, one.end_ns), one.end_ns)
    return found


def _joined(stages: Mapping[int, Span], problems: Problems) -> tuple[list[Span], dict[int, int]]:
    """The stages, at most MOST_SPANS, and the index of each by the number of its annotation.

    When there are more, each is joined with those of its name and thread that end shortly before it
    begins; the gap that counts as shortly grows until they fit. So the time of a lane stays drawn.
    """
    joined: list[Span] = list(stages.values())
    of_each = list(range(len(joined)))
    gap_ns = 0
    while len(joined) > MOST_SPANS:
        gap_ns = max(1_000, 4 * gap_ns)
        joined, places = _join(joined, gap_ns)
        of_each = [places[at] for at in of_each]
        if gap_ns > _LONGEST_GAP_NS:
            break
    if gap_ns:
        problems.add(
            "stages_joined",
            "warning",
            len(stages) - len(joined),
            example=f"{len(stages):,} stages are too many: those of one name with gaps of up to "
            f"{gap_ns:,} ns are drawn and counted as one",
        )
    return joined, dict(zip(stages, of_each, strict=True))


def _join(stages: list[Span], gap_ns: int) -> tuple[list[Span], list[int]]:
    """`stages`, joined over gaps of up to `gap_ns`, and the place of each among the joined."""
    result: list[Span] = []
    places: list[int] = []
    open_at: dict[tuple[str | None, str | None, str], int] = {}
    for stage in stages:
        key = (stage.name, stage.tid, stage.domain)
        at = open_at.get(key)
        if at is not None and stage.start_ns - result[at].end_ns <= gap_ns:
            known = result[at]
            known.end_ns = max(known.end_ns, stage.end_ns)
            known.truncated = known.truncated or stage.truncated
        else:
            at = open_at[key] = len(result)
            result.append(stage)
        places.append(at)
    return result, places


def _stage_name(name: str, capture: Capture) -> str | None:
    role = roles.canonical(name)
    if role in roles.STAGES:
        return role
    own = capture.role is not None and role == roles.bare(capture.role)
    if own and role not in roles.WHOLE_STEP:
        return role
    return capture.stages.get(name)


def _stage(one: Annotation, role: str, capture: Capture) -> Span:
    return Span(
        kind="stage",
        depth=0,
        start_ns=one.start_ns,
        end_ns=one.end_ns,
        name=role,
        raw_name=one.name,
        role=role,
        tid=one.tid,
        domain=one.domain,
        truncated=_is_cut(one, capture),
    )


def _is_cut(one: Annotation, capture: Capture) -> bool:
    return capture.end_ns is not None and one.end_ns >= capture.end_ns


def _add_ranges(
    spans: list[Span],
    annotations: Annotations,
    stages: Mapping[int, int],
    root: _Open | None,
    range_depth: int,
    capture: Capture,
) -> None:
    """Append the ranges that lie in a stage, or in `root`; nesting is by thread.

    `stages` gives the index in `spans` by the number of the annotation in its order.
    """
    threads: dict[str, list[_Open]] = {}
    # Worked out once for each name: a capture repeats the same few thousands of times.
    read: dict[str, tuple[str, int | None, int | None]] = {}
    for order, one in enumerate(annotations):
        around = threads.setdefault(one.tid, [])
        while around and one.end_ns > around[-1].end_ns:
            around.pop()
        stage = stages.get(order)
        if stage is not None:
            around.append(_Open(one.end_ns, spans[stage].name or "", 0, stage, 0))
            continue
        parent = around[-1] if around else root
        # A range inside one of the same name is that range again.
        if one.name not in read:
            read[one.name] = (roles.canonical(one.name), *batch_of(one.name))
        name, mini, micro = read[one.name]
        if parent is None or parent.name == name:
            continue
        nesting = parent.nesting + 1
        if nesting > range_depth and (mini, micro) == (None, None):
            around.append(_Open(one.end_ns, name, nesting, parent.span, parent.depth))
            continue
        above = spans[parent.span]
        spans.append(
            Span(
                kind="range",
                depth=parent.depth + 1,
                start_ns=one.start_ns,
                end_ns=one.end_ns,
                name=name,
                raw_name=one.name,
                role=above.role,
                parent=parent.span,
                mini_batch=above.mini_batch if mini is None else mini,
                micro_batch=above.micro_batch if micro is None else micro,
                tid=one.tid,
                domain=one.domain,
                truncated=_is_cut(one, capture),
            )
        )
        around.append(_Open(one.end_ns, name, nesting, len(spans) - 1, parent.depth + 1))


def _limited(spans: list[Span], problems: Problems) -> list[Span]:
    """At most MOST_SPANS: the outer ones, and of those equally deep the longest."""
    surplus = len(spans) - MOST_SPANS
    if surplus <= 0:
        return spans
    # A parent is less deep than its children, so none loses its own.
    ranked = sorted(
        range(len(spans)),
        key=lambda at: (spans[at].depth, spans[at].start_ns - spans[at].end_ns),
    )
    kept = sorted(ranked[:MOST_SPANS])
    moved = {old: new for new, old in enumerate(kept)}
    lost = sum(span.kind == "stage" for span in spans) - MOST_SPANS
    problems.add(
        "stages_left_out",
        "warning",
        max(0, lost),
        example=f"only the longest {MOST_SPANS:,} stages are kept: the others are lost",
    )
    problems.add(
        "ranges_left_out",
        "info",
        surplus - max(0, lost),
        example=f"only the outer {MOST_SPANS} annotations are kept",
    )
    result = [spans[at] for at in kept]
    for span in result:
        span.parent = None if span.parent is None else moved[span.parent]
    return result
