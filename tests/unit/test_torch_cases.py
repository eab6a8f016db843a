"""Torch traces as real life breaks them: each drawn as far as it can be, beside a sound one.

The numbers are rows of the case list. Every case is built from scratch and goes through discovery,
parsing and merge; what is checked is what a person sees: the spans, the status and the sentence,
and how often and where `problems` says that something was wrong.
"""

import gzip
import json
import resource
import subprocess
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.damaged_events import beyond_repair, changed, repairable
from tests.merged_runs import Tables, drawn, problems, states

# 2026-02-22, in µs as kineto writes it.
NOW_US = 1_771_730_327_316_353
BROKEN, SOUND = "actor_update/prof_rank-0_1.json", "actor_update/prof_rank-1_1.json"


def event(name: str, start: float, duration: float, cat: str = "user_annotation") -> str:
    """An event, as a rule a range that a program named, `start` µs after NOW_US."""
    own = {"ph": "X", "cat": cat, "name": name, "pid": 4711, "tid": 4711}
    args = {"External id": 3, "bytes": 65536}
    return json.dumps({**own, "ts": NOW_US + start, "dur": duration, "args": args})


# A stage with three ranges in it, of which the middle one is what will be damaged.
STAGE = event("actor_update", 0, 1_000)
FIRST, MIDDLE, LAST = event("first", 10, 100), event("middle", 200, 300), event("last", 600, 350)
WHOLE = [("actor_update", 0, 1_000), ("first", 10, 100), ("middle", 200, 300), ("last", 600, 350)]


def trace(*events: str | bytes, rank: int = 0) -> bytes:
    """A trace as kineto writes it, of events that may be any text."""
    texts = [one.encode() if isinstance(one, str) else one for one in events]
    head = b'{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": %d}, ' % rank
    return head + b'"traceEvents": [\n' + b",\n".join(texts) + b"\n]}"


class Seen(NamedTuple):
    """What a person sees of the broken rank."""

    spans: list[tuple[str | None, int, int]]
    state: tuple[str, str | None]
    problems: dict[str, tuple[int, int | None]]


def spans(tables: Tables, rank: int | None) -> list[tuple[str | None, int, int]]:
    """Name, start after NOW_US and duration (µs) of the spans of one rank."""
    own = [span for span in tables["spans"] if span["rank_id"] == rank]
    return [
        (one["name"], one["start_ns"] // 1_000 - NOW_US, one["duration_ns"] // 1_000)
        for one in sorted(own, key=lambda span: (span["start_ns"], span["depth"]))
    ]


def run(tmp_path: Path, broken: bytes, name: str = BROKEN, rank: int | None = 0) -> Seen:
    """Draw a broken rank beside a sound one, which must always be complete."""
    root = tmp_path / "run"
    sound = trace(STAGE, FIRST, MIDDLE, LAST, rank=1)
    for path, content in ((name, broken), (SOUND, sound)):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    tables = drawn(root, tmp_path / "out", "torch")
    assert spans(tables, 1) == WHOLE
    assert states(tables)[SOUND] == ("ok", None)
    assert problems(tables, SOUND) == {}
    return Seen(spans(tables, rank), states(tables)[name], dict(problems(tables, name)))


def lost_middle(kept: int = 3, offset: int | None = None) -> str:
    where = "" if offset is None else f", at byte {offset:,}"
    return f"damaged: an event cannot be read{where}; the {kept} events that could be read are kept"


REPAIRED = repairable(MIDDLE)


@pytest.mark.parametrize("case", REPAIRED)
def test_01_to_10_an_event_that_is_no_json_is_repaired(tmp_path: Path, case: str) -> None:
    middle, name = REPAIRED[case]
    broken = trace(STAGE, FIRST, middle, LAST)

    seen = run(tmp_path, broken)

    assert seen.spans == [(name if one == "middle" else one, *rest) for one, *rest in WHOLE]
    assert seen.state == ("ok", None)
    assert seen.problems == {"event_repaired": (1, broken.index(middle))}


LOST = beyond_repair(MIDDLE)


@pytest.mark.parametrize("case", LOST)
def test_01_an_event_beyond_repair_costs_only_itself(tmp_path: Path, case: str) -> None:
    broken = trace(STAGE, FIRST, LOST[case], LAST)
    offset = broken.index(LOST[case])

    seen = run(tmp_path, broken)

    assert seen.spans == [one for one in WHOLE if one[0] != "middle"]
    assert seen.state == ("salvaged", lost_middle(3, offset))
    assert seen.problems == {"event_undecodable": (1, offset)}


def test_01_writers_that_interleave_cost_the_event_that_was_cut_in_two(tmp_path: Path) -> None:
    # GIVEN a second process that wrote its event into the middle of another's
    broken = trace(STAGE, (FIRST[:50] + MIDDLE + "," + FIRST[50:]), LAST)
    offset = broken.index(FIRST[:50].encode())

    seen = run(tmp_path, broken)

    # THEN only its two pieces are lost, before and behind the event of the other
    assert seen.spans == [one for one in WHOLE if one[0] != "first"]
    sentence = (
        f"damaged: 2 events cannot be read, the first at byte {offset:,}; "
        "the 3 events that could be read are kept"
    )
    assert seen.state == ("salvaged", sentence)
    assert seen.problems == {"event_undecodable": (2, offset)}


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, 10**40])
def test_07_an_integer_beyond_64_bits_harms_nothing(tmp_path: Path, number: int) -> None:
    seen = run(tmp_path, trace(STAGE, FIRST, changed(MIDDLE, "65536", str(number)), LAST))

    assert seen == Seen(WHOLE, ("ok", None), {})


@pytest.mark.parametrize("number", [2**63, 2**64, 10**40])
def test_07_a_time_beyond_64_bits_costs_its_event(tmp_path: Path, number: int) -> None:
    broken = trace(STAGE, FIRST, changed(MIDDLE, '"dur": 300', f'"dur": {number}'), LAST)

    seen = run(tmp_path, broken)

    assert seen.spans == [one for one in WHOLE if one[0] != "middle"]
    assert seen.state == ("ok", None)
    assert seen.problems == {"no_time": (1, None)}


def test_11_a_bare_list_with_text_for_a_process_has_the_rank_of_its_name(tmp_path: Path) -> None:
    rows = [json.loads(one) | {"pid": "CPU functions"} for one in (STAGE, FIRST, MIDDLE, LAST)]

    seen = run(tmp_path, json.dumps(rows).encode())

    assert seen == Seen(WHOLE, ("ok", None), {})


def test_11_without_any_rank_it_is_drawn_in_a_lane_that_says_so(tmp_path: Path) -> None:
    rows = f"[{STAGE}, {FIRST}, {MIDDLE}, {LAST}]".encode()

    assert run(tmp_path, rows, "actor_update/mine.json", None) == Seen(WHOLE, ("ok", None), {})


def cut_sentence(broken: bytes, kept: int) -> str:
    return (
        f"the file breaks off after {len(broken):,} bytes of unpacked text; "
        f"the {kept} events that could be read are kept"
    )


@pytest.mark.parametrize("ending", [",\n", "", ", \n", ",\n{"])
@pytest.mark.parametrize("opening", ['{"traceEvents": [\n', "["])
def test_12_a_list_that_was_never_closed_keeps_all_its_events(
    tmp_path: Path, opening: str, ending: str
) -> None:
    broken = (opening + ",\n".join((STAGE, FIRST, MIDDLE, LAST)) + ending).encode()

    seen = run(tmp_path, broken)

    assert seen.spans == WHOLE
    assert seen.state == ("salvaged", cut_sentence(broken, 4))
    assert seen.problems == {"truncated": (1, len(broken))}


@pytest.mark.parametrize(
    ("between", "problem"),
    [
        (",\n]", {"trailing_comma": 1}),
        (",,{}]", {"empty_element": 1}),
        (",null]", {"empty_element": 1}),
        ("]\n]", {"trailing_data": 1}),
    ],
)
def test_12_commas_and_brackets_too_many_cost_nothing(
    tmp_path: Path, between: str, problem: dict[str, int]
) -> None:
    body = ",\n".join((STAGE, FIRST, MIDDLE, LAST))

    seen = run(tmp_path, f"[{body}{between}".encode())

    assert seen.spans == WHOLE
    assert {code: count for code, (count, _) in seen.problems.items()} == problem
    assert all(at is not None and at >= len(body) for _, at in seen.problems.values())


def test_14_a_file_cut_inside_a_string_says_where_and_leaves_its_draft_alone(
    tmp_path: Path,
) -> None:
    # GIVEN a file cut in the name of its last event, and beside it what the killed writer left
    whole = trace(STAGE, FIRST, MIDDLE, LAST)
    broken = whole[: whole.index(b'"last"') + 3]
    draft = tmp_path / "run" / f"{BROKEN}.tmp"
    draft.parent.mkdir(parents=True)
    draft.write_bytes(broken)

    seen = run(tmp_path, broken)

    assert seen.spans == [one for one in WHOLE if one[0] != "last"]
    assert seen.state == ("salvaged", cut_sentence(broken, 3))
    assert seen.problems == {"truncated": (1, len(broken))}


def test_14_a_draft_is_named_and_not_read(tmp_path: Path) -> None:
    seen = run(tmp_path, trace(STAGE)[:80], f"{BROKEN}.tmp")

    assert seen.spans == []
    sentence = "left by a killed writer: kineto gives a trace its name when it is complete"
    assert seen.state == ("skipped", sentence)


def many(count: int) -> bytes:
    """A trace whose text does not repeat, so that gzip cannot make it vanish."""
    rest = [
        event(f"op {n * n * 7919 % 100_003}", 20 + n / 8, 0.125, "cpu_op") for n in range(count)
    ]
    return trace(STAGE, FIRST, *rest, MIDDLE, LAST)


@pytest.mark.parametrize("cut", [200, 2_000, 8])
def test_15_a_cut_gzip_keeps_what_can_be_unpacked(tmp_path: Path, cut: int) -> None:
    whole = many(3_000)
    packed = gzip.compress(whole, mtime=0)[:-cut]
    # The plain way to unpack as much as there is; only the checksum is gone where 8 are cut.
    text = _unpacked(packed)
    count = text.count(b'"ph"') - (text.rfind(b'"ph"') > text.rfind(b"}}"))

    seen = run(tmp_path, packed, f"{BROKEN}.gz")

    assert [one for one in seen.spans if one[0] in ("actor_update", "first")] == WHOLE[:2]
    status, detail = seen.state
    assert status == "salvaged"
    assert detail == (
        f"the file breaks off after {len(text):,} bytes of unpacked text; "
        f"the {count:,} events that could be read are kept"
    )
    assert seen.problems["gzip_truncated"] == (1, len(text))
    assert ("truncated" in seen.problems) == (len(text) < len(whole))


def _unpacked(packed: bytes) -> bytes:
    return zlib.decompressobj(31).decompress(packed)


def test_15_a_damaged_gzip_keeps_what_stands_before(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(many(3_000), mtime=0))
    middle = len(packed) // 2
    sound = _unpacked(bytes(packed[:middle]))
    packed[middle : middle + 64] = bytes(64)

    seen = run(tmp_path, bytes(packed), f"{BROKEN}.gz")

    assert ("first", 10, 100) in seen.spans
    assert seen.state[0] == "salvaged"
    count, offset = seen.problems["gzip_corrupt"]
    assert count == 1
    assert offset is not None and offset >= len(sound) - 1
    assert f"breaks off after {offset:,} bytes of unpacked text" in str(seen.state[1])


@pytest.mark.parametrize("packed", [True, False])
def test_16_the_content_decides_and_not_the_suffix(tmp_path: Path, packed: bool) -> None:
    # GIVEN gzip under a plain name, and plain text under a name of gzip
    whole = trace(STAGE, FIRST, MIDDLE, LAST)
    content, name = (gzip.compress(whole), BROKEN) if packed else (whole, f"{BROKEN}.gz")

    assert run(tmp_path, content, name) == Seen(WHOLE, ("ok", None), {})


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-8-sig"]
)
def test_16_other_encodings_of_unicode_are_read(tmp_path: Path, encoding: str) -> None:
    seen = run(tmp_path, trace(STAGE, FIRST, MIDDLE, LAST).decode().encode(encoding))

    assert seen.spans == WHOLE
    assert seen.state == ("ok", None)
    told = {} if encoding == "utf-8-sig" else {encoding.replace("-", "")[:5]: (1, 0)}
    assert seen.problems == told


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        (b"", "empty", "the file is empty"),
        (bytes(5_000), "failed", "it holds only zero bytes: the data never reached the disk"),
        (b"<html>404</html>", "failed", "it holds HTML or XML"),
        (b"\x1f\x8b\x08", "failed", "the file breaks off after 0 bytes, before its events"),
    ],
)
def test_16_what_is_no_trace_is_named(
    tmp_path: Path, content: bytes, status: str, sentence: str
) -> None:
    seen = run(tmp_path, content)

    assert seen.spans == []
    assert seen.state[0] == status
    assert sentence in str(seen.state[1])


# Runs in a process of its own: its peak of memory is that of this one file.
_PARSE = """
import resource, sys
from pathlib import Path
from rl_insight.parsers import Source
from rl_insight.parsers.torch import PARSER
options = {"timeline.parser.range_depth": 2}
PARSER.parse(Source("s", "small.json", Path(sys.argv[1]), ("small.json",)), options)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
parsed = PARSER.parse(Source("s", sys.argv[2], Path(sys.argv[1]), (sys.argv[2],)), options)
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(parsed.status, parsed.events, parsed.tables["spans"].num_rows, more // 1024)
print(parsed.detail)
print({one.code: one.count for one in parsed.problems})
"""


def parse_apart(tmp_path: Path, name: str) -> tuple[str, int, int, str, str]:
    """Status, events and MB of memory beyond those for a small file; sentence and problems."""
    (tmp_path / "small.json").write_bytes(trace(STAGE, FIRST))
    done = subprocess.run(
        [sys.executable, "-c", _PARSE, str(tmp_path), name],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )
    told, detail, found = done.stdout.splitlines()
    status, events, _, more = told.split()
    return status, int(events), int(more), detail, found


def repeated(path: Path, before: bytes, part: bytes, times: int, after: bytes) -> None:
    """Pack `before`, many times `part`, and `after`, without holding that."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(before)
        for _ in range(times):
            file.write(part)
        file.write(after)


def test_19_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    # GIVEN 150 MB of events, packed
    rest = ",\n".join(event(f"op {n}", 20 + n / 8, 0.125, "cpu_op") for n in range(6_000)).encode()
    times = (150 << 20) // len(rest)
    head, _, tail = trace(STAGE, LAST).rpartition(b",\n")
    repeated(tmp_path / "big.json.gz", head + b",\n", rest + b",\n", times, tail)

    status, events, more, detail, found = parse_apart(tmp_path, "big.json.gz")

    assert (status, events, detail) == ("ok", 2 + 6_000 * times, "None")
    assert found == "{}"
    assert more < 120


def test_19_a_string_of_any_length_passes_by(tmp_path: Path) -> None:
    # GIVEN one name of 256 MB between sound events, four times what is held of one
    head = trace(STAGE, FIRST)[: -len(b"\n]}")] + b',\n{"ph": "X", "name": "'
    tail = f'", "ts": 1, "dur": 1}},\n{LAST}]}}'.encode()
    repeated(tmp_path / "big.json.gz", head, b"x" * (1 << 20), 256, tail)

    status, events, more, detail, found = parse_apart(tmp_path, "big.json.gz")

    assert (status, events) == ("salvaged", 3)
    offset = head.rindex(b"{")
    assert detail == (
        f"damaged: an event is too large to be read, at byte {offset:,}; "
        "the 3 events that could be read are kept"
    )
    assert found == "{'event_too_large': 1}"
    assert more < 350


def test_19_nesting_without_end_costs_only_its_event(tmp_path: Path) -> None:
    deep = changed(MIDDLE, "65536", "[" * 200_000 + "]" * 200_000)
    broken = trace(STAGE, FIRST, deep, LAST)

    seen = run(tmp_path, broken)

    assert seen.spans == [one for one in WHOLE if one[0] != "middle"]
    assert seen.state == ("salvaged", lost_middle(3, broken.index(deep)))
    assert seen.problems == {"event_undecodable": (1, broken.index(deep))}
