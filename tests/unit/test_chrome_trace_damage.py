"""Damaged traces: what a killed or faulty producer left is read as far as it can be.

Every test builds its input, and asserts the events and the problems.
"""

import gzip
import json
import lzma
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rl_insight.errors import ReadError
from rl_insight.problems import Problem
from rl_insight.readers.chrome_trace import ChromeTraceReader
from rl_insight.readers.timestamps import NOT_A_TIME, exact_ns

BLOCKS = [64, 700, 4 << 20]


class Args(msgspec.Struct, gc=False):
    stream: int | None = None


class Event(msgspec.Struct, gc=False):
    """Tighter than it should be, so that odd values meet a type."""

    ph: str = ""
    name: str = ""
    pid: int | str = -1
    ts: str | float | None = None
    dur: float = 0.0
    args: Args | None = None


class NeedsName(msgspec.Struct, gc=False):
    name: str
    ph: str = ""


def event(number: int, **more: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": f"e{number}",
        "pid": 7,
        "ts": 1000.5 + number,
        "dur": 2.25,
        "args": {"stream": number, "grid": [1, 2, 3]},
        **more,
    }


def text_of(number: int) -> str:
    return json.dumps(event(number))


def read(
    tmp_path: Path, content: str | bytes, event_type: type[Any] = Event, **options: Any
) -> tuple[list[Any], ChromeTraceReader[Any]]:
    path = tmp_path / "trace.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    reader = ChromeTraceReader(path, event_type, **options)
    return [event for events in reader for event in events], reader


def names(events: list[Any]) -> list[str]:
    return [event.name for event in events]


def codes(reader: ChromeTraceReader[Any]) -> dict[str, int]:
    return {problem.code: problem.count for problem in reader.problems}


def the_problem(reader: ChromeTraceReader[Any], code: str) -> Problem:
    (problem,) = [problem for problem in reader.problems if problem.code == code]
    return problem


BEFORE = [text_of(number) for number in range(5)]
AFTER = [text_of(number) for number in range(6, 11)]
SOUND = [f"e{number}" for number in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10)]

BAD = text_of(5)


def changed(old: str, new: str | bytes) -> bytes:
    assert BAD.count(old) == 1
    new = new if isinstance(new, bytes) else new.encode()
    return BAD.encode().replace(old.encode(), new)


REPAIRED = {
    "a control character": (changed("e5", b"e\x015"), "e\x015"),
    "a raw newline": (changed("e5", "e\n5"), "e\n5"),
    "bytes that are no UTF-8": (changed("e5", b"e\xff\xfe\x9f5"), "e\ufffd\ufffd\ufffd5"),
    "half a surrogate pair": (changed("e5", "e\\ud8005"), "e\ufffd5"),
    "a bare backslash": (changed("e5", "C:\\parts\\e5"), "C:\\parts\\e5"),
    "bare inf": (changed("[1, 2, 3]", "inf"), "e5"),
    "bare -Infinity": (changed("[1, 2, 3]", "-Infinity"), "e5"),
    "bare nan": (changed("[1, 2, 3]", "-nan"), "e5"),
    "a trailing comma in a list": (changed("[1, 2, 3]", "[1, 2, 3, ]"), "e5"),
    "a trailing comma in an object": (changed("[1, 2, 3]", "3,"), "e5"),
    "a comma too many": (changed("[1, 2, 3]", "[1,, 3]"), "e5"),
    "quotes not escaped": (
        changed("e5", 'lib = Library("ns", "IMPL")\n(1): <module>'),
        'lib = Library("ns", "IMPL")\n(1): <module>',
    ),
    "an odd quote": (changed("e5", 'e"5'), 'e"5'),
    "a quote lost": (changed('"pid"', 'pid"'), "e5"),
}


def damaged_file(bad: bytes, in_object: bool) -> bytes:
    body = b",\n  ".join([*map(str.encode, BEFORE), bad, *map(str.encode, AFTER)])
    if in_object:
        return b'{"rank": 3, "traceEvents": [' + body + b'], "late": 4}'
    return b"[" + body + b"]"


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("in_object", [False, True])
@pytest.mark.parametrize("kind", REPAIRED)
def test_an_event_is_repaired(tmp_path: Path, kind: str, in_object: bool, block_bytes: int) -> None:
    bad, name = REPAIRED[kind]
    content = damaged_file(bad, in_object)

    events, reader = read(tmp_path, content, block_bytes=block_bytes, wanted=["rank", "late"])

    assert names(events) == [*SOUND[:5], name, *SOUND[5:]]
    assert (events[5].ts, events[5].dur, events[5].pid) == (1005.5, 2.25, 7)
    assert codes(reader) == {"event_repaired": 1}
    problem = the_problem(reader, "event_repaired")
    assert problem.severity == "info"
    assert problem.offset == content.index(bad)
    assert reader.fallback_blocks == 1
    assert reader.metadata == ({"rank": 3, "late": 4} if in_object else {})


LOST = {
    "a number cut in two": changed("2.25", "2.2.5"),
    "a key without its value": changed(' "pid": 7,', ' "pid":,'),
    "a brace lost": BAD[:-1].encode(),
    "an inner brace lost": changed("3]}", "3]"),
    "a bracket lost": changed("[1, 2, 3]", "[1, 2, 3"),
    "a brace too many": changed("2.25", "2.25}}"),
    "an opening brace too many": changed("2.25", "{2.25"),
    "the beginning lost": BAD[30:].encode(),
    "the end lost": BAD[:60].encode(),
    "a hole of zeros": BAD[:30].encode() + bytes(100) + BAD[60:].encode(),
    "garbage": BAD[:30].encode() + random.Random(3).randbytes(200) + BAD[60:].encode(),
    "text": b"5 or nothing",
    "a string": b'"},{"',
}


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("in_object", [False, True])
@pytest.mark.parametrize("kind", LOST)
def test_an_event_that_cannot_be_repaired_costs_no_other(
    tmp_path: Path, kind: str, in_object: bool, block_bytes: int
) -> None:
    content = damaged_file(LOST[kind], in_object)

    events, reader = read(tmp_path, content, block_bytes=block_bytes, wanted=["rank", "late"])

    assert [name for name in names(events) if name != "e5"] == SOUND
    assert codes(reader) == {"event_undecodable": 1}
    problem = the_problem(reader, "event_undecodable")
    assert problem.severity == "warning"
    assert problem.offset is not None
    start = content.index(LOST[kind])
    assert start <= problem.offset <= start + len(LOST[kind])
    assert reader.metadata == ({"rank": 3, "late": 4} if in_object else {})


FIELDS = {
    "null name": (changed('"e5"', "null"), {"name": ""}, {"field_dropped": 1}),
    "a number for a name": (changed('"e5"', "17"), {"name": ""}, {"field_dropped": 1}),
    "a whole float for a pid": (changed("7", "7.0"), {"pid": 7}, {}),
    "a float for a pid": (changed("7", "7.5"), {"pid": -1}, {"field_dropped": 1}),
    "a string for args": (
        changed('{"stream": 5, "grid": [1, 2, 3]}', '"none"'),
        {"args": None},
        {"field_dropped": 1},
    ),
    "a list for args": (
        changed('{"stream": 5, "grid": [1, 2, 3]}', "[1]"),
        {"args": None},
        {"field_dropped": 1},
    ),
    "a string inside args": (changed(": 5", ': "five"'), {"args": Args()}, {"field_dropped": 1}),
    "a number in a string": (changed(": 5", ': "5"'), {"args": Args(5)}, {}),
    "a list for ts": (changed("1005.5", "[1]"), {"ts": None}, {"bad_timestamp": 1}),
    "text for dur": (changed("2.25", '"long"'), {"dur": 0.0}, {"bad_timestamp": 1}),
    "inf for dur": (
        changed("2.25", "inf"),
        {"dur": 0.0},
        {"event_repaired": 1, "bad_timestamp": 1},
    ),
    "two odd fields": (
        changed('"e5", "pid": 7', 'null, "pid": []'),
        {"name": "", "pid": -1},
        {"field_dropped": 2},
    ),
    "an integer beyond 64 bits": (
        changed(": 5", ": 18446744073709551616"),
        {"args": Args(18446744073709551616)},
        {},
    ),
    "a float beyond doubles": (
        changed("2.25", "1e999"),
        {"dur": 0.0},
        {"event_repaired": 1, "bad_timestamp": 1},
    ),
}


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("kind", FIELDS)
def test_a_field_of_an_odd_type_costs_the_field_and_not_the_event(
    tmp_path: Path, kind: str, block_bytes: int
) -> None:
    bad, fields, problems = FIELDS[kind]
    events, reader = read(tmp_path, damaged_file(bad, False), block_bytes=block_bytes)
    assert events[:5] + events[6:] == [
        msgspec.convert(event(number), Event) for number in (0, 1, 2, 3, 4, 6, 7, 8, 9, 10)
    ]
    expected = msgspec.convert(event(5), Event)
    for name, value in fields.items():
        setattr(expected, name, value)
    assert events[5] == expected
    assert codes(reader) == problems


def test_a_field_without_a_default_costs_the_event(tmp_path: Path) -> None:
    content = damaged_file(changed('"e5"', "null"), False)
    events, reader = read(tmp_path, content, NeedsName)
    assert names(events) == SOUND
    assert codes(reader) == {"event_undecodable": 1}


def test_a_time_that_is_text_is_left_to_the_conversion(tmp_path: Path) -> None:
    events, reader = read(tmp_path, damaged_file(changed("1005.5", '"soon"'), False))
    assert exact_ns([event.ts for event in events[4:7]]).tolist() == [
        1004500,
        NOT_A_TIME,
        1006500,
    ]
    assert codes(reader) == {}


def test_an_event_nested_too_deep_is_lost_alone(tmp_path: Path) -> None:
    deep = changed("[1, 2, 3]", "[" * 100_000 + "]" * 100_000)
    events, reader = read(tmp_path, damaged_file(deep, True))
    assert names(events) == SOUND
    assert codes(reader) == {"event_undecodable": 1}


def test_damage_is_counted_once_and_shown_by_its_first_place(tmp_path: Path) -> None:
    bad = [changed("2.25", f"{number}.2.5") for number in range(3)]
    content = b"[" + b",".join(x for one in bad for x in (BEFORE[0].encode(), one)) + b"]"
    events, reader = read(tmp_path, content)
    assert names(events) == ["e0"] * 3
    problem = the_problem(reader, "event_undecodable")
    assert (problem.count, problem.offset) == (3, content.index(bad[0]))
    assert problem.example is not None
    assert '"dur": 0.2.5' in problem.example


GOOD = ", ".join(BEFORE)
BETWEEN: dict[str, tuple[str, dict[str, int]]] = {
    "a trailing comma": (f"[{GOOD},]", {"trailing_comma": 1}),
    "a trailing comma and space": (f"[{GOOD} , \n]\n", {"trailing_comma": 1}),
    "no comma": ("[" + "\n".join(BEFORE) + "]", {"missing_comma": 4}),
    "an empty element": (f"[{GOOD},, {AFTER[0]}]", {"empty_element": 1}),
    "a null element": (f"[{GOOD}, null, {AFTER[0]}]", {"empty_element": 1}),
    "a list inside, never closed": (f"[{GOOD},[{AFTER[0]}]", {"nested_list": 1, "truncated": 1}),
    "a list inside": (f"[{GOOD},[{AFTER[0]}],{AFTER[1]}]", {"nested_list": 1}),
    "no bracket at the end": (f"[{GOOD}", {"truncated": 1}),
    "no bracket but a comma": (f"[{GOOD},\n", {"truncated": 1}),
    "a second list": (f"[{GOOD}][{AFTER[0]}]", {"concatenated": 1}),
    "a second list behind a comma": (f"[{GOOD}],[{AFTER[0]}]", {"concatenated": 1}),
    "more events behind the list": (f"[{GOOD}],{AFTER[0]},{AFTER[1]}]", {"concatenated": 1}),
    "text behind the list": (f"[{GOOD}]\nEnd of job 5\n", {"trailing_data": 1}),
    "zeros behind the list": (f"[{GOOD}]" + "\0" * 600, {"trailing_data": 1}),
    "a bracket too many": (f"[{GOOD}]]", {"trailing_data": 1}),
    "an object, not closed": (f'{{"traceEvents": [{GOOD}]', {"truncated": 1}),
    "an object without the bracket": (
        f'{{"traceEvents": [{GOOD}, "late": 4}}',
        {"missing_bracket": 1},
    ),
    "an object without the bracket at its end": (
        f'{{"traceEvents": [{GOOD}}}',
        {"missing_bracket": 1},
    ),
    "an object cut in a late key": (f'{{"traceEvents": [{GOOD}], "la', {"truncated": 1}),
    "an object cut in a late value": (
        f'{{"traceEvents": [{GOOD}], "late": [1, {{',
        {"truncated": 1},
    ),
    "text behind the object": (
        f'{{"traceEvents": [{GOOD}]}}\nEnd of job 5\n',
        {"trailing_data": 1},
    ),
    "a second object": (
        f'{{"traceEvents": [{GOOD}]}}{{"traceEvents": [{AFTER[0]}]}}',
        {"concatenated": 1, "repeated_events": 1},
    ),
    "the key of the events twice": (
        f'{{"traceEvents": [{GOOD}], "traceEvents": [{AFTER[0]}]}}',
        {"repeated_events": 1},
    ),
    "a bracket too early": (
        f'{{"traceEvents": [{GOOD}], {AFTER[0]}, {AFTER[1]}], "late": 4}}',
        {"metadata_damaged": 1},
    ),
    "no comma between keys": (f'{{"rank": 3 "traceEvents": [{GOOD}] "late": 4}}', {}),
    "text before the events": (
        f'{{"rank": 3, oops, "traceEvents": [{GOOD}], "late": 4}}',
        {"metadata_damaged": 1},
    ),
    "text as the first key": (
        f'{{oops "rank": 3, "traceEvents": [{GOOD}], "late": 4}}',
        {"metadata_damaged": 1},
    ),
    "a quote too many before the events": (
        f'{{"host": "a"b", "traceEvents": [{GOOD}], "late": 4}}',
        {"metadata_damaged": 1},
    ),
    "a bracket that never closes before the events": (
        f'{{"devices": [{{"id": 0}}, "traceEvents": [{GOOD}], "late": 4}}',
        {"metadata_damaged": 1},
    ),
}


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("kind", BETWEEN)
def test_odd_text_around_events_costs_none_of_them(
    tmp_path: Path, kind: str, block_bytes: int
) -> None:
    text, problems = BETWEEN[kind]
    events, reader = read(tmp_path, text, block_bytes=block_bytes, wanted=["late"])
    assert names(events) == [name for name in [*SOUND[:5], "e6", "e7"] if f'"{name}"' in text]
    assert codes(reader) == problems
    if '"late": 4' in text:
        assert reader.metadata == {"late": 4}


def test_events_that_are_no_list_are_told(tmp_path: Path) -> None:
    events, reader = read(tmp_path, '{"traceEvents": null, "late": 4}', wanted=["late"])
    assert events == []
    assert reader.has_events_key
    assert codes(reader) == {"events_not_a_list": 1}
    assert reader.metadata == {"late": 4}


def test_a_wanted_key_is_repaired_or_told(tmp_path: Path) -> None:
    text = '{"a": {"x": NaN,}, "b": {"x": 1.2.3}, "traceEvents": [], "c": 18446744073709551616}'
    _, reader = read(tmp_path, text, wanted=["a", "b", "c"])
    assert reader.metadata == {"a": {"x": None}, "c": 18446744073709551616}
    assert codes(reader) == {"metadata_undecodable": 1}


@given(st.integers(0, 3000), st.sampled_from(BLOCKS), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_file_cut_anywhere_gives_its_complete_events(
    tmp_path_factory: pytest.TempPathFactory, cut: int, block_bytes: int, in_object: bool
) -> None:
    texts = [json.dumps(event(number, notes=[{"a": 1}, {"b": "},{"}])) for number in range(12)]
    head = '{"rank": 3, "traceEvents": [' if in_object else "["
    whole = head + ", ".join(texts) + ("]}" if in_object else "]")
    cut = len(head) + cut % (len(whole) - len(head))
    complete = sum(len(head) + len(", ".join(texts[: number + 1])) <= cut for number in range(12))

    events, reader = read(
        tmp_path_factory.getbasetemp(), whole[:cut], block_bytes=block_bytes, wanted=["rank"]
    )

    assert names(events) == [f"e{number}" for number in range(complete)]
    if "truncated" in codes(reader):
        assert the_problem(reader, "truncated").offset == cut
    else:
        # Cut behind an inner list it looks like an event that lost its last brace.
        assert whole[:cut].endswith(("}]", "}]}"))
        assert codes(reader) == {"event_undecodable": 1}
    assert reader.metadata == ({"rank": 3} if in_object else {})


def test_a_cut_gzip_gives_its_complete_events(tmp_path: Path) -> None:
    texts = [text_of(number) for number in range(2000)]
    packed = gzip.compress(("[" + ", ".join(texts) + "]").encode())
    events, reader = read(tmp_path, packed[:-200])
    assert names(events) == [f"e{number}" for number in range(len(events))]
    assert len(events) > 1500
    assert codes(reader) == {"gzip_truncated": 1, "truncated": 1}


def test_a_corrupt_gzip_gives_the_events_before_the_damage(tmp_path: Path) -> None:
    texts = [text_of(number) for number in range(2000)]
    packed = bytearray(gzip.compress(("[" + ", ".join(texts) + "]").encode()))
    middle = len(packed) // 2
    packed[middle : middle + 300] = random.Random(1).randbytes(300)
    events, reader = read(tmp_path, bytes(packed))
    assert names(events[:800]) == [f"e{number}" for number in range(800)]
    assert "gzip_corrupt" in codes(reader)


JUNK = ['"', "{", "}", "[", "]", ",", ":", "\\", "\n", "\0", "inf", "5", '"ph"', "}]", "},{", " "]
LAYOUTS: list[dict[str, Any]] = [{}, {"indent": 2}, {"separators": (",", ":")}]


@pytest.mark.parametrize("block_bytes", BLOCKS)
def test_an_event_that_swallowed_others_is_given_up_for_them(
    tmp_path: Path, block_bytes: int
) -> None:
    # The end of e5 is gone, and the brackets close at the end of a later list.
    swallowing = '{"ph": "X", "name": "e5", "notes": [{"a": 1}, {"b": 2,}'
    text = f'{{"traceEvents": [{swallowing}, {", ".join(AFTER)}], "late": [{{"b": 1}}]}}'
    events, reader = read(tmp_path, text, block_bytes=block_bytes)
    assert names(events) == SOUND[5:]
    assert the_problem(reader, "event_undecodable").offset == text.index(swallowing)


def swallows(text: str, start: int, length: int) -> bool:
    """Whether the damage made one valid object of the event and what follows it."""
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except json.JSONDecodeError:
        return False
    return end > start + length


@given(st.data())
@settings(max_examples=500, deadline=None)
def test_random_damage_to_one_event_costs_no_other(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    layout = data.draw(st.sampled_from(LAYOUTS))
    odd: list[dict[str, Any]] = [{}, {"notes": [{"a": 1}, {"b": 2}]}, {"notes": 'x},{y "q" \\'}]
    texts = [
        json.dumps(event(number, **data.draw(st.sampled_from(odd))), **layout).encode()
        for number in range(data.draw(st.integers(2, 9)))
    ]
    victim = data.draw(st.integers(0, len(texts) - 1))
    text = texts[victim]
    start = data.draw(st.integers(1, len(text) - 1))
    end = min(len(text) - 1, start + data.draw(st.sampled_from([0, 1, 2, 5, 20, 100])))
    junk = "".join(data.draw(st.lists(st.sampled_from(JUNK), max_size=4))).encode()
    texts[victim] = text[:start] + junk + text[end:]
    body = data.draw(st.sampled_from([b",", b", ", b",\n  "])).join(texts)
    in_object = data.draw(st.booleans())
    content = (
        b'{"a":1,"traceEvents":[' + body + b'],"z":[{"b":1}]}' if in_object else b"[%s]" % body
    )

    assume(not swallows(content.decode(), content.index(texts[victim]), len(texts[victim])))

    events, reader = read(
        tmp_path_factory.getbasetemp(), content, block_bytes=data.draw(st.sampled_from(BLOCKS))
    )

    others = [f"e{number}" for number in range(len(texts)) if number != victim]
    assert [name for name in names(events) if name in others] == others
    if len(events) < len(texts):
        assert codes(reader)


@given(st.data())
@settings(max_examples=300, deadline=10_000)
def test_nothing_makes_the_reader_fail_or_hang(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    events = [event(number, notes='x},{y "q" \\') for number in range(6)]
    document = data.draw(st.sampled_from([events, {"a": [{}], "traceEvents": events, "z": 1}]))
    content = json.dumps(document, **data.draw(st.sampled_from(LAYOUTS))).encode()
    for _ in range(data.draw(st.integers(1, 8))):
        start = data.draw(st.integers(0, len(content)))
        length = data.draw(st.sampled_from([0, 1, 3, 30, 200]))
        new = data.draw(st.one_of(st.sampled_from(JUNK).map(str.encode), st.binary(max_size=4)))
        content = content[:start] + new + content[start + length :]
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]

    try:
        events, reader = read(
            tmp_path_factory.getbasetemp(),
            content,
            block_bytes=data.draw(st.sampled_from(BLOCKS)),
            max_event_bytes=data.draw(st.sampled_from([100, 300, 1 << 20])),
            wanted=["a"],
        )
    except ReadError:
        return
    assert reader.events_seen == len(events)


def test_an_event_too_large_passes_by(tmp_path: Path) -> None:
    giant = json.dumps(event(5, name="},{" * 50_000, notes=[{"a": 1}] * 1000))
    text = f'{{"traceEvents": [{", ".join([*BEFORE, giant, *AFTER])}], "late": 4}}'
    for block_bytes in BLOCKS:
        events, reader = read(
            tmp_path, text, block_bytes=block_bytes, max_event_bytes=20_000, wanted=["late"]
        )
        # A block larger than the limit holds the event anyway.
        if block_bytes < len(giant):
            assert names(events) == SOUND
            assert codes(reader) == {"event_too_large": 1}
            assert the_problem(reader, "event_too_large").offset == text.index(giant)
        assert reader.metadata == {"late": 4}


def test_an_event_too_large_that_never_ends_costs_no_clean_event_behind_it(tmp_path: Path) -> None:
    endless = '{"ph": "X", "name": "' + "x" * 50_000
    many = ", ".join(text_of(number) for number in range(200))
    events, reader = read(
        tmp_path, f"[{many}, {endless}, {many}]", block_bytes=1000, max_event_bytes=20_000
    )
    assert names(events) == [f"e{number}" for number in range(200)] * 2
    assert codes(reader) == {"event_too_large": 1}


@pytest.mark.parametrize("content", [b"", b" \n\t", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_told(tmp_path: Path, content: bytes) -> None:
    events, reader = read(tmp_path, content)
    assert events == []
    assert reader.shape is None
    assert codes(reader) == {"empty_file": 1}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"<!DOCTYPE html><html>", "it holds HTML or XML"),
        (b"Traceback (most recent call last):", "it starts with 'Traceback (most recent"),
        (b"PK\x03\x04rest", "it holds a zip archive"),
        (b"SQLite format 3\0", "it holds an SQLite database"),
        (b"\x04\x22\x4d\x18....", "it holds lz4-compressed data; unpack it with lz4 -d"),
        (lzma.compress(b"[]", lzma.FORMAT_ALONE), "it holds lzma-compressed data"),
        (b"7z\xbc\xaf\x27\x1c....", "it holds a 7z archive; unpack it with 7z x"),
        (b"\x1f\x9d\x90.....", "it holds data packed by compress; unpack it with uncompress"),
        (b"(\xb5/\xfd....", "it holds zstandard-compressed data; unpack it with zstd -d"),
        (
            gzip.compress(gzip.compress(b"[]", mtime=0), mtime=0),
            "gzip packed twice; unpack it once",
        ),
        (b"a.json".ljust(257, b"\0") + b"ustar\0" + b'{"traceEvents": [', "a tar archive"),
        (b"<html><script>x = [{" + b'"ph": 1}]', "it holds HTML or XML"),
        (bytes(5000), "it holds only zero bytes: the data never reached the disk"),
        (b"[2026-02-22 03:18:47] INFO started", "a list of something else than events, or text"),
        (b"[1, 2, 3]", "a list of something else than events"),
        (b"{'traceEvents': []}", "it starts with"),
        (b"{what is this", "it starts with"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_is_no_trace_is_named(
    tmp_path: Path, content: bytes, says: str, pack: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(ReadError) as caught:
        read(tmp_path, pack(content))
    assert says in str(caught.value)
    assert str(tmp_path / "trace.json") in str(caught.value)


@pytest.mark.parametrize(
    "before",
    [
        b"WARNING: the profiler is slow\n",
        b"[2026-02-22 03:18:47] INFO started\n",
        b"// written by hand\n",
        bytes(5000),
    ],
)
@pytest.mark.parametrize("form", ["[%s]", '{"schemaVersion": 1, "rank": 5, "traceEvents": [%s]}'])
def test_a_trace_behind_other_text_is_read_whole(tmp_path: Path, before: bytes, form: str) -> None:
    events, reader = read(tmp_path, before + (form % GOOD).encode())
    assert names(events) == SOUND[:5]
    assert codes(reader) == {"leading_data": 1}
    assert [one.offset for one in reader.problems] == [0]


def test_one_event_per_line_is_a_list_without_its_brackets(tmp_path: Path) -> None:
    for between in ("\n", ",\n", "\r\n"):
        lines = between.join(text_of(number) for number in range(300))
        events, reader = read(tmp_path, lines.encode())
        assert names(events) == [f"e{number}" for number in range(300)]
        assert reader.has_events_key
        # Nothing tells a file that was written to its end from one that lacks a last line.
        assert set(codes(reader)) <= {"missing_bracket", "missing_comma", "truncated"}


def test_a_byte_order_mark_and_utf16_are_tolerated(tmp_path: Path) -> None:
    for encoding in ("utf-8-sig", "utf-16", "utf-16-le"):
        events, reader = read(tmp_path, f"[{GOOD}]".encode(encoding))
        assert names(events) == SOUND[:5]
        assert set(codes(reader)) <= {"utf16"}


def test_the_limit_on_unpacked_bytes_keeps_what_came_before(tmp_path: Path) -> None:
    many = "[" + ", ".join(text_of(number) for number in range(5000)) + "]"
    events, reader = read(tmp_path, gzip.compress(many.encode()), max_bytes=len(many) // 2)
    assert names(events) == [f"e{number}" for number in range(len(events))]
    assert 2400 < len(events) < 2600
    assert codes(reader) == {"too_large": 1, "truncated": 1}


EVERY_EVENT = {
    "bare inf": lambda text: text.replace("[1, 2, 3]", "inf"),
    "a quote lost": lambda text: text.replace('"pid"', '5pid"'),
    "a brace lost": lambda text: text[:-1],
    "a brace too many": lambda text: text + "}",
    "a bracket lost": lambda text: text.replace("3]", "3"),
    "junk behind": lambda text: text + " 5 ",
    "empty": lambda text: "{}",
    "no phase": lambda text: text.replace('"ph": "X", ', ""),
    "inner events": lambda text: text.replace("[1, 2, 3]", '[{"ph": "X"}, {"ph": "X"}]'),
    "open": lambda text: text[:40],
}


def work(reader: ChromeTraceReader[Any]) -> int:
    """How many calls reading takes: the same on every machine, unlike seconds."""
    calls = 0

    def count(frame: Any, kind: str, argument: Any) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        for _ in reader:
            pass
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("kind", EVERY_EVENT)
def test_damage_in_every_event_costs_work_in_proportion(tmp_path: Path, kind: str) -> None:
    costs = []
    for count in (500, 2000):
        path = tmp_path / f"{count}.json"
        path.write_text(
            "[" + ", ".join(EVERY_EVENT[kind](text_of(number)) for number in range(count)) + "]"
        )
        costs.append(work(ChromeTraceReader(path, Event)))
    assert costs[1] < 6 * costs[0]


@pytest.mark.parametrize(
    ("value", "lost"),
    [
        ('"str"', 1),
        ('"]}, {"', 1),
        ('"a \\" b"', 1),
        ("3.5", 1),
        ("-1e-7", 1),
        ("NaN", 1),
        ("true", 1),
        ("1, 2", 2),
        ("[1, 2]", 1),
        ("[[1], 2 ]", 2),
    ],
)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "shape", ["[%s]", '{"traceEvents": [%s]}', '{"traceEvents": [%s], "a": 1}']
)
@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_a_sound_value_that_is_no_event_costs_itself_wherever_it_stands(
    tmp_path: Path, value: str, lost: int, last: bool, shape: str, block_bytes: int
) -> None:
    after = [] if last else AFTER
    text = shape % ", ".join([*BEFORE, value, *after])
    json.loads(text)  # the file itself is closed
    events, reader = read(tmp_path, text, block_bytes=block_bytes)
    assert len(events) == len(BEFORE) + len(after)
    assert codes(reader)["event_undecodable"] == lost
    assert set(codes(reader)) <= {"event_undecodable", "nested_list"}
    assert the_problem(reader, "event_undecodable").offset == (
        text.index(BEFORE[-1]) + len(BEFORE[-1]) + 2 + len(value) - len(value.lstrip("["))
    )


@pytest.mark.parametrize("value", ['"str', "3.5", "[1, 2]", "tru"])
def test_a_file_that_breaks_off_in_such_a_value_is_still_said_to_do_so(
    tmp_path: Path, value: str
) -> None:
    text = '{"traceEvents": [' + ", ".join([*BEFORE, value])
    events, reader = read(tmp_path, text)
    assert len(events) == len(BEFORE)
    assert codes(reader)["truncated"] == 1


def test_as_many_such_values_as_a_block_holds_take_no_longer_way(tmp_path: Path) -> None:
    text = f"[{', '.join([*BEFORE, *('1' for _ in range(100_000)), *AFTER])}]"
    events, reader = read(tmp_path, text, block_bytes=4_096)
    assert len(events) == len(BEFORE) + len(AFTER)
    assert codes(reader) == {"event_undecodable": 100_000}


# What becomes of the last event, and what follows it in a whole file.
AT_THE_END = {
    "a quote lost": '{"name": "a, "ts": 1}',
    "its brace lost": '{"ph": "X", "name": "a", "ts": 1, "args": {"grid": [1, 2, 3]}',
    "both braces lost": '{"ph": "X", "name": "a", "ts": 1, "args": {"grid": [1, 2, 3]',
    "no JSON at all": "Segmentation fault",
}
ENDS = {"list": ("[", "]"), "object": ('{"traceEvents": [', "\n]}")}
ENDS["key"] = (ENDS["object"][0], '\n], "displayTimeUnit": "ms"}')


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", AT_THE_END)
def test_a_damaged_last_event_of_a_whole_file_is_no_place_where_it_breaks_off(
    tmp_path: Path, kind: str, end: str, block_bytes: int
) -> None:
    before, behind = ENDS[end]
    before = f"{before}{', '.join(BEFORE)}, "
    content = f"{before}{AT_THE_END[kind]}{behind}"
    events, reader = read(tmp_path, content, block_bytes=block_bytes)
    assert names(events) == SOUND[:5]
    assert codes(reader) == {"event_undecodable": 1}
    assert the_problem(reader, "event_undecodable").offset == len(before)


def test_zeros_behind_a_damaged_last_event_are_told_as_behind_a_sound_one(tmp_path: Path) -> None:
    content = f'{{"traceEvents": [{BEFORE[0]}, {AT_THE_END["a quote lost"]}]}}'
    _, reader = read(tmp_path, content + "\0" * 600)
    assert codes(reader) == {"event_undecodable": 1, "trailing_data": 1}
    assert the_problem(reader, "trailing_data").offset == len(content)


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("kind", ["its brace lost", "both braces lost", "no JSON at all"])
def test_a_file_that_breaks_off_behind_damage_is_still_said_to_do_so(
    tmp_path: Path, kind: str, block_bytes: int
) -> None:
    # Cut behind a bracket that closes a list inside the event.
    content = f'{{"traceEvents": [{BEFORE[0]}, {AT_THE_END[kind]}, {BAD[: BAD.index("]") + 1]}'
    _, reader = read(tmp_path, content, block_bytes=block_bytes)
    assert the_problem(reader, "truncated").offset == len(content)
