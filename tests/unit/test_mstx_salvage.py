"""Ascend traces (`trace_view.json`) as killed, interleaved and careless writers leave them.

Each is built from scratch and goes through discovery, parsing and merge beside a sound one; what is
checked is what a person sees: the spans, the status and the sentence, and how often and where
`problems` says that something was wrong. The database form has a file of its own.
"""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.ascend_captures import ANALYSIS, BASE_NS, drawn, info, mstx, overlap, write_text
from tests.damaged_events import beyond_repair, changed, repairable
from tests.merged_runs import Tables, problems, states

BROKEN, SOUND = "e2e/a_ascend_pt", "e2e/b_ascend_pt"

STAGE, FIRST, MIDDLE, LAST = (
    json.dumps(one)
    for one in (
        mstx("update_actor", 0, 1_000),
        mstx("first", 10, 100),
        mstx("middle", 200, 300, bytes=65536),
        mstx("last", 600, 350),
    )
)
# Four rows that say when the device worked: they are events, too.
DEVICE = [json.dumps(one) for one in (*ANALYSIS, overlap("Computing", 100, 30))]
WHOLE = [("actor_update", 0, 1_000), ("first", 10, 100), ("middle", 200, 300), ("last", 600, 350)]
WITHOUT_MIDDLE = [one for one in WHOLE if one[0] != "middle"]


def trace(*events: str | bytes) -> bytes:
    """A trace of a device and of `events`, which may be any text."""
    texts = [one.encode() if isinstance(one, str) else one for one in (*DEVICE, *events)]
    return b"[" + b",\n".join(texts) + b"]"


class Seen(NamedTuple):
    """What a person sees of the broken capture."""

    spans: list[tuple[str | None, int, int]]
    state: tuple[str, str | None]
    problems: dict[str, tuple[int, int | None]]


def spans(tables: Tables, rank: int) -> list[tuple[str | None, int, int]]:
    """Name, start after BASE_NS and duration (µs) of the spans of one rank."""
    own = [span for span in tables["spans"] if span["rank_id"] == rank]
    return [
        (one["name"], (one["start_ns"] - BASE_NS) // 1_000, one["duration_ns"] // 1_000)
        for one in sorted(own, key=lambda span: (span["start_ns"], span["depth"]))
    ]


def run(tmp_path: Path, broken: bytes, name: str = "trace_view.json") -> Seen:
    """Draw a broken capture beside a sound one, which must always be complete."""
    root = tmp_path / "run"
    results = root / BROKEN / "ASCEND_PROFILER_OUTPUT"
    results.mkdir(parents=True, exist_ok=True)
    (results / name).write_bytes(broken)
    (root / BROKEN / "profiler_info_0.json").write_text(json.dumps(info(0)))
    sound = trace(STAGE, FIRST, MIDDLE, LAST)
    write_text(root / SOUND, sound, told=info(1), told_as="profiler_info_1.json")
    tables = drawn(root, tmp_path / "out")
    assert spans(tables, 1) == WHOLE
    assert states(tables)[SOUND] == ("ok", None)
    assert problems(tables, SOUND) == {}
    return Seen(spans(tables, 0), states(tables)[BROKEN], dict(problems(tables, BROKEN)))


REPAIRED = repairable(MIDDLE)


@pytest.mark.parametrize("case", REPAIRED)
def test_an_event_that_is_no_json_is_repaired(tmp_path: Path, case: str) -> None:
    middle, name = REPAIRED[case]
    broken = trace(STAGE, FIRST, middle, LAST)

    seen = run(tmp_path, broken)

    assert seen.spans == [(name if one == "middle" else one, *rest) for one, *rest in WHOLE]
    assert seen.state == ("ok", None)
    assert seen.problems == {"event_repaired": (1, broken.index(middle))}


LOST = beyond_repair(MIDDLE)


@pytest.mark.parametrize("case", LOST)
def test_an_event_beyond_repair_costs_only_itself(tmp_path: Path, case: str) -> None:
    broken = trace(STAGE, FIRST, LOST[case], LAST)
    offset = broken.index(LOST[case])

    seen = run(tmp_path, broken)

    assert seen.spans == WITHOUT_MIDDLE
    sentence = (
        f"damaged: an event cannot be read, at byte {offset:,}; "
        "the 7 events that could be read are kept"
    )
    assert seen.state == ("salvaged", sentence)
    assert seen.problems == {"event_undecodable": (1, offset)}


def test_writers_that_interleave_cost_the_event_that_was_cut_in_two(tmp_path: Path) -> None:
    broken = trace(STAGE, FIRST[:50] + MIDDLE + "," + FIRST[50:], LAST)
    offset = broken.index(FIRST[:50].encode())

    seen = run(tmp_path, broken)

    assert seen.spans == [one for one in WHOLE if one[0] != "first"]
    sentence = (
        f"damaged: 2 events cannot be read, the first at byte {offset:,}; "
        "the 7 events that could be read are kept"
    )
    assert seen.state == ("salvaged", sentence)
    assert seen.problems == {"event_undecodable": (2, offset)}


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, 10**40])
@pytest.mark.parametrize("old", [" 65536", " 77,"], ids=["argument", "process"])
def test_an_integer_beyond_64_bits_harms_nothing(tmp_path: Path, old: str, number: int) -> None:
    middle = changed(MIDDLE, old, f" {number}{old.lstrip(' 0123456789')}")

    seen = run(tmp_path, trace(STAGE, FIRST, middle, LAST))

    assert seen == Seen(WHOLE, ("ok", None), {})


# -- The list or the file is damaged -------------------------------------------------------------


def cut_sentence(size: int, kept: int) -> str:
    return (
        f"the file breaks off after {size:,} bytes of unpacked text; "
        f"the {kept:,} events that could be read are kept"
    )


@pytest.mark.parametrize("opening", ['{"traceEvents": [\n', "["])
@pytest.mark.parametrize("ending", ["", ",\n", ", \n", ",\n{"])
def test_a_list_that_was_never_closed_keeps_all_its_events(
    tmp_path: Path, opening: str, ending: str
) -> None:
    broken = (opening + ",\n".join((*DEVICE, STAGE, FIRST, MIDDLE, LAST)) + ending).encode()

    seen = run(tmp_path, broken)

    assert seen.spans == WHOLE
    assert seen.state == ("salvaged", cut_sentence(len(broken), 8))
    assert seen.problems == {"truncated": (1, len(broken))}


@pytest.mark.parametrize("head", [b"", b'{"traceEvents": '], ids=["list", "object"])
def test_a_file_cut_inside_a_string_keeps_what_stands_before(tmp_path: Path, head: bytes) -> None:
    whole = head + trace(STAGE, FIRST, MIDDLE, LAST)
    broken = whole[: whole.index(b'"last"') + 3]

    seen = run(tmp_path, broken)

    assert seen.spans == WHOLE[:3]
    assert seen.state == ("salvaged", cut_sentence(len(broken), 7))
    assert seen.problems == {"truncated": (1, len(broken))}


def test_a_file_whose_end_was_never_written_breaks_off_where_the_zeros_begin(
    tmp_path: Path,
) -> None:
    whole = trace(STAGE, FIRST, MIDDLE, LAST)
    written = whole[: whole.index(b'"last"') + 3]

    seen = run(tmp_path, written + bytes(2 << 20))

    assert seen.spans == WHOLE[:3]
    assert seen.state == ("salvaged", cut_sentence(len(written), 7))
    assert seen.problems == {"truncated": (1, len(written))}


@pytest.mark.parametrize(
    ("between", "code"),
    [(b",\n]", "trailing_comma"), (b",,{}]", "empty_element"), (b",null]", "empty_element")],
)
def test_commas_and_empty_elements_cost_nothing(tmp_path: Path, between: bytes, code: str) -> None:
    body = trace(STAGE, FIRST, MIDDLE, LAST)[:-1]

    seen = run(tmp_path, body + between)

    assert seen.spans == WHOLE
    assert seen.state == ("ok", None)
    ((found, (count, offset)),) = seen.problems.items()
    assert (found, count) == (code, 1)
    assert offset is not None and len(body) <= offset < len(body + between)


@pytest.mark.parametrize(
    ("behind", "code", "words"),
    [
        (b"\n]", "trailing_data", "something follows the end of the trace"),
        (bytes(4_096), "trailing_data", "something follows the end of the trace"),
        (b"\n[" + LAST.encode() + b"]", "concatenated", "a second trace follows the first"),
    ],
    ids=["a bracket", "zeros", "a second trace"],
)
def test_what_follows_the_end_is_told(tmp_path: Path, behind: bytes, code: str, words: str) -> None:
    # GIVEN a last event that stands behind the end, too, in one of the cases
    events = (STAGE, FIRST, MIDDLE) if code == "concatenated" else (STAGE, FIRST, MIDDLE, LAST)
    body = trace(*events)
    offset = len(body) + behind.startswith(b"\n")

    seen = run(tmp_path, body + behind)

    assert seen.spans == WHOLE
    sentence = f"damaged: {words}, at byte {offset:,}; the 8 events that could be read are kept"
    assert seen.state == ("salvaged", sentence)
    assert seen.problems == {code: (1, offset)}


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-8-sig"]
)
def test_other_encodings_of_unicode_are_read(tmp_path: Path, encoding: str) -> None:
    seen = run(tmp_path, trace(STAGE, FIRST, MIDDLE, LAST).decode().encode(encoding))

    assert seen.spans == WHOLE
    assert seen.state == ("ok", None)
    told = {} if encoding == "utf-8-sig" else {encoding.replace("-", "")[:5]: (1, 0)}
    assert seen.problems == told


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        (b"", "empty", "the file is empty"),
        (b"[]", "empty", "the trace holds no events"),
        (b"[", "failed", "the file breaks off after 1 byte, before its events"),
        (bytes(5_000), "failed", "it holds only zero bytes: the data never reached the disk"),
        (b"<html>404</html>", "failed", "it holds HTML or XML"),
        (b"\x1f\x8b\x08", "failed", "the file breaks off after 0 bytes, before its events"),
        (b"SQLite format 3\x00", "failed", "it holds an SQLite database"),
    ],
)
def test_what_is_no_trace_is_named(
    tmp_path: Path, content: bytes, status: str, sentence: str
) -> None:
    seen = run(tmp_path, content)

    assert seen.spans == []
    assert seen.state[0] == status
    assert sentence in str(seen.state[1])


# -- gzip ----------------------------------------------------------------------------------------


def many(count: int) -> bytes:
    """A trace whose text does not repeat, so that gzip cannot make it vanish."""
    rest = [
        json.dumps(mstx(f"op {n * n * 7919 % 100_003}", 110 + n / 8, 0.125)) for n in range(count)
    ]
    return trace(STAGE, FIRST, *rest, LAST)


def unpacked(packed: bytes) -> bytes:
    """The plain way to unpack as much as there is."""
    return zlib.decompressobj(31).decompress(packed)


@pytest.mark.parametrize("cut", [8, 200, 2_000])
def test_a_cut_gzip_keeps_what_can_be_unpacked(tmp_path: Path, cut: int) -> None:
    whole = many(600)
    packed = gzip.compress(whole, mtime=0)[:-cut]
    text = unpacked(packed)
    # The last event that began counts only when it ended.
    count = text.count(b'"ph"') - (text.rfind(b'"ph"') > text.rfind(b"}}"))

    seen = run(tmp_path, packed, "trace_view.json.gz")

    assert seen.spans[:2] == WHOLE[:2]
    # The rows of the device are no spans.
    assert len(seen.spans) == count - len(DEVICE)
    assert seen.state == ("salvaged", cut_sentence(len(text), count))
    assert seen.problems["gzip_truncated"] == (1, len(text))
    assert ("truncated" in seen.problems) == (len(text) < len(whole))


def test_a_damaged_gzip_keeps_what_stands_before(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(many(600), mtime=0))
    middle = len(packed) // 2
    sound = unpacked(bytes(packed[:middle]))
    packed[middle : middle + 64] = bytes(64)

    seen = run(tmp_path, bytes(packed), "trace_view.json.gz")

    assert seen.spans[:2] == WHOLE[:2]
    assert len(seen.spans) >= sound.count(b'"ph": "X"') - 2
    count, offset = seen.problems["gzip_corrupt"]
    assert count == 1
    assert offset is not None and offset >= len(sound) - 1
    assert seen.state[0] == "salvaged"
    assert f"breaks off after {offset:,} bytes of unpacked text" in str(seen.state[1])


def test_what_follows_the_packed_data_is_told(tmp_path: Path) -> None:
    whole = trace(STAGE, FIRST, MIDDLE, LAST)

    seen = run(tmp_path, gzip.compress(whole) + b"garbage", "trace_view.json.gz")

    assert seen.spans == WHOLE
    sentence = (
        f"damaged: something else follows the packed data, at byte {len(whole):,}; "
        "the 8 events that could be read are kept"
    )
    assert seen.state == ("salvaged", sentence)
    assert seen.problems == {"gzip_trailing": (1, len(whole))}


@pytest.mark.parametrize("packed", [True, False])
def test_the_content_decides_and_not_the_suffix(tmp_path: Path, packed: bool) -> None:
    whole = trace(STAGE, FIRST, MIDDLE, LAST)
    content, name = (gzip.compress(whole), "") if packed else (whole, ".gz")

    assert run(tmp_path, content, f"trace_view.json{name}") == Seen(WHOLE, ("ok", None), {})


# -- Leftovers -----------------------------------------------------------------------------------

DRAFTS = ["trace_view.json.tmp", "trace_view_temp.json", "ascend_pytorch_profiler_0.db.tmp"]


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_draft_beside_a_result_is_left_alone(tmp_path: Path, draft: str) -> None:
    results = tmp_path / "run" / BROKEN / "ASCEND_PROFILER_OUTPUT"
    results.mkdir(parents=True)
    (results / draft).write_bytes(trace(STAGE)[:80])

    assert run(tmp_path, trace(STAGE, FIRST, MIDDLE, LAST)) == Seen(WHOLE, ("ok", None), {})


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_draft_without_a_result_is_named_and_not_read(tmp_path: Path, draft: str) -> None:
    seen = run(tmp_path, trace(STAGE, FIRST, MIDDLE, LAST), draft)

    assert seen.spans == []
    assert seen.state == (
        "failed",
        f"not analysed: its ASCEND_PROFILER_OUTPUT holds no result but {draft}, left by a killed "
        "analysis, and nothing is left to analyse: neither FRAMEWORK nor PROF_* is there",
    )


def test_a_draft_that_lies_alone_is_named_and_not_read(tmp_path: Path) -> None:
    alone = tmp_path / "run/copied/trace_view.json.tmp"
    alone.parent.mkdir(parents=True)
    alone.write_bytes(trace(STAGE))
    write_text(tmp_path / "run" / SOUND, trace(STAGE))

    tables = drawn(tmp_path / "run", tmp_path / "out")

    assert states(tables) == {
        SOUND: ("ok", None),
        "copied/trace_view.json.tmp": (
            "skipped",
            "left by a killed analysis or copier: a result has its own name when it is complete",
        ),
    }


# -- Times ---------------------------------------------------------------------------------------


def timed(**more: Any) -> str:
    """A range on a thread of its own, with other values."""
    return json.dumps(mstx("update_actor", 300, 5, tid=10) | more)


DAY_US = 24 * 3_600 * 1_000_000
IMPOSSIBLE = {
    "no time": (timed(ts=None), "no_time"),
    "a time that is text": (timed(ts="soon"), "no_time"),
    "a time beyond 64 bits": (timed(ts=10**40), "no_time"),
    "a duration beyond 64 bits": (timed(dur=2**64), "no_time"),
    "zero among absolute times": (timed(ts="0.000"), "zero_time"),
    "before 1970": (timed(ts="-5.000"), "negative_time"),
    "a duration of -1": (timed(dur=-1), "negative_duration"),
    "eight days": (timed(dur=8 * DAY_US), "impossible_duration"),
    "hours, in a capture of a millisecond": (timed(dur=DAY_US / 4), "impossible_duration"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_an_impossible_time_is_counted_and_stretches_nothing(tmp_path: Path, case: str) -> None:
    odd, code = IMPOSSIBLE[case]

    seen = run(tmp_path, trace(STAGE, odd, FIRST, MIDDLE, LAST))

    assert seen == Seen(WHOLE, ("ok", None), {code: (1, None)})


@pytest.mark.parametrize("days", [400, -400])
def test_a_stage_far_outside_the_capture_is_counted_and_not_drawn(
    tmp_path: Path, days: int
) -> None:
    far = json.dumps(mstx("update_actor", days * DAY_US, 5))

    seen = run(tmp_path, trace(STAGE, FIRST, far, MIDDLE, LAST))

    assert seen == Seen(WHOLE, ("ok", None), {"outside_capture": (1, None)})


def half(phase: str, start: float, name: str | None = None, tid: int = 9, **more: Any) -> str:
    """The beginning or the end of a range."""
    event = mstx(name or "", start, 0, tid) | {"ph": phase} | more
    return json.dumps({key: event[key] for key in event if key not in ("dur",)})


# A phase that is none sends its block another way.
@pytest.mark.parametrize("others", [[], ['{"ph": 7}']], ids=["quickly", "patiently"])
def test_pairs_of_a_beginning_and_an_end_are_one_event(tmp_path: Path, others: list[str]) -> None:
    # GIVEN pairs in each other and on two threads, of which one says more than msprof would
    call = {"cat": "python_function"}
    broken = trace(
        *others,
        half("B", 0, "update_actor"),
        half("B", 10, "first"),
        half("B", 20, "elsewhere", 10),
        half("B", 30, "model.py(7): forward", 11, **call),
        half("E", 110),
        half("B", 200, "middle"),
        half("E", 210, tid=11, **call),
        half("E", 220, "elsewhere", 10),
        half("E", 500, "middle"),
        half("B", 600, "last"),
        half("E", 950, "last"),
        half("E", 1_000, "update_actor"),
    )

    seen = run(tmp_path, broken)

    assert seen == Seen(WHOLE, ("ok", None), {})


def test_halves_of_a_pair_are_counted(tmp_path: Path) -> None:
    # GIVEN an end of nothing, and two beginnings that never end
    orphans = (half("E", 5), half("B", 700, "endless", 12), half("B", 800, "inside", 12))

    seen = run(tmp_path, trace(*orphans, STAGE, FIRST, MIDDLE, LAST))

    assert seen == Seen(WHOLE, ("ok", None), {"unpaired_event": (3, None)})


def test_a_pair_that_ends_before_it_begins_is_counted(tmp_path: Path) -> None:
    odd = (half("B", 400, "update_actor", 12), half("E", 300, "update_actor", 12))

    seen = run(tmp_path, trace(STAGE, FIRST, *odd, MIDDLE, LAST))

    assert seen == Seen(WHOLE, ("ok", None), {"negative_duration": (1, None)})
