"""Healthy traces: every event, in whatever shape and order, wherever the blocks are cut."""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_insight.readers.chrome_trace import ChromeTraceReader
from rl_insight.readers.event_decoding import EventDecoder
from rl_insight.readers.timestamps import exact_ns

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
TRACES = sorted(
    path
    for pattern in ("torch/**/*.json", "torch/**/*.json.gz", "**/trace_view*.json")
    for path in CORPUS.glob(pattern)
)


class Event(msgspec.Struct, gc=False):
    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: str | float | None = None
    dur: str | float | None = None
    args: Any = None


class ExactEvent(Event, gc=False):
    ts: Any = None


FIELDS = Event.__struct_fields__


def read(path: Path, **options: Any) -> tuple[list[dict[str, Any]], ChromeTraceReader[Event]]:
    """The events as plain dicts, and the reader after them."""
    reader = ChromeTraceReader(path, Event, **options)
    events = [
        {name: getattr(event, name) for name in FIELDS} for events in reader for event in events
    ]
    return events, reader


def as_event(event: dict[str, Any]) -> dict[str, Any]:
    return {name: event.get(name) for name in FIELDS}


def codes(reader: ChromeTraceReader[Any]) -> dict[str, int]:
    return {problem.code: problem.count for problem in reader.problems}


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return path


@pytest.mark.skipif(not TRACES, reason="the corpus is not beside this checkout")
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
@pytest.mark.parametrize("block_bytes", [4 << 20, 3000])
def test_real_files_are_read_as_a_plain_parser_reads_them(path: Path, block_bytes: int) -> None:
    content = path.read_bytes()
    plain = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    in_object = isinstance(plain, dict)
    keys = [key for key in plain if key != "traceEvents"] if in_object else []

    events, reader = read(path, wanted=keys, block_bytes=block_bytes)

    assert events == [as_event(event) for event in (plain["traceEvents"] if in_object else plain)]
    assert reader.metadata == {key: plain[key] for key in keys}
    assert reader.shape == ("object" if in_object else "list")
    assert reader.has_events_key
    assert reader.events_seen == len(events)
    assert reader.fallback_blocks == 0
    assert codes(reader) == {}


# Names that look like the text around them.
NAMES = st.one_of(
    st.text(max_size=20),
    st.text(alphabet='{}[],:"\\ \n\tx\u2028é', max_size=20),
    st.sampled_from(
        [
            "},{",
            "}, {",
            '},{"ph":"X"},{',
            '"},{"name":"a","ph":"X"},{"b":"',
            "}]",
            "],",
            '"traceEvents": [',
            "\\",
            '\\"',
            "void f<{lambda()}, {}>",
            "null",
        ]
    ),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        NAMES,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=8,
)
# Lists of objects, the only place where "},{" occurs inside an event; with a phase they even look
# like events.
OBJECT_LISTS = st.lists(
    st.dictionaries(st.sampled_from(["ph", "name", "a", "b"]), NAMES, max_size=3), max_size=4
)
MICROSECONDS = st.one_of(
    st.integers(0, 2**43), st.integers(0, 2**43 * 1000).map(lambda ns: ns / 1000)
)
EVENTS = st.fixed_dictionaries(
    {"ph": st.sampled_from(["X", "M", "i", "s", "f", "C"])},
    optional={
        "cat": NAMES,
        "name": NAMES,
        "pid": st.one_of(st.integers(-1, 2**40), st.sampled_from(["", "Spans", "Traces"])),
        "tid": st.one_of(st.integers(-1, 2**40), NAMES),
        "ts": MICROSECONDS,
        "dur": MICROSECONDS,
        "args": st.one_of(VALUES, st.fixed_dictionaries({"stack": OBJECT_LISTS})),
        "id": VALUES,
        "steps": OBJECT_LISTS,
    },
)


@st.composite
def traces(draw: st.DrawFn) -> tuple[str, Any]:
    """The text of a trace, in some writer's layout, and what it holds."""
    events = []
    for event in draw(st.lists(EVENTS, max_size=12)):
        events.append({key: event[key] for key in draw(st.permutations(list(event)))})
    document: Any = events
    if draw(st.booleans()):
        others = draw(
            st.dictionaries(
                NAMES.filter(lambda key: key != "traceEvents"),
                st.one_of(VALUES, OBJECT_LISTS),
                max_size=5,
            )
        )
        items = draw(st.permutations([*others.items(), ("traceEvents", events)]))
        document = dict(items)
    layout = draw(
        st.sampled_from(
            [
                {},
                {"separators": (",", ":")},
                {"indent": 2},
                {"separators": (" ,\n ", " :\t")},
                {"indent": 0, "separators": (",\r\n", ": ")},
            ]
        )
    )
    ascii_only = draw(st.booleans())
    text = json.dumps(document, ensure_ascii=ascii_only, **layout)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair is no text
        text = json.dumps(document, ensure_ascii=True, **layout)
    return draw(st.sampled_from(["", "\n", " \r\n"])) + text + draw(st.sampled_from(["", "\n"])), (
        document
    )


def has_half_a_pair(text: str) -> bool:
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


@given(traces(), st.sampled_from([64, 65, 100, 333, 1 << 10, 1 << 16]), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_healthy_trace_is_read_whole_wherever_the_blocks_are_cut(
    tmp_path_factory: pytest.TempPathFactory,
    trace: tuple[str, Any],
    block_bytes: int,
    packed: bool,
) -> None:
    text, document = trace
    if has_half_a_pair(text):
        return  # no valid text; its own test is among the damages
    path = tmp_path_factory.getbasetemp() / "generated.json"
    path.write_bytes(gzip.compress(text.encode(), 1) if packed else text.encode())
    in_object = isinstance(document, dict)
    keys = [key for key in document if key != "traceEvents"] if in_object else []

    events, reader = read(path, wanted=keys, block_bytes=block_bytes)

    expected = document["traceEvents"] if in_object else document
    assert events == [as_event(event) for event in expected]
    assert reader.metadata == {key: document[key] for key in keys}
    assert codes(reader) == {}
    assert reader.fallback_blocks == 0


def many(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [
        {"ph": "X", "name": f"k{i}", "pid": 0, "tid": 7, "ts": i * 2.5, "dur": 1.25, **fields}
        for i in range(count)
    ]


def test_events_come_block_by_block(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps({"traceEvents": many(1000)}))
    reader = ChromeTraceReader(path, Event, block_bytes=8 << 10)
    sizes = [len(events) for events in reader]
    assert sum(sizes) == 1000
    assert max(sizes) < 150
    assert len(sizes) >= 8


def test_healthy_events_are_decoded_by_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one = []
    one = EventDecoder.one
    monkeypatch.setattr(EventDecoder, "one", lambda *args: one_by_one.append(args) or one(*args))
    path = write(tmp_path, json.dumps({"traceEvents": many(3000)}, indent=1))
    blocks = [len(events) for events in ChromeTraceReader(path, Event, block_bytes=32 << 10)]
    assert sum(blocks) == 3000
    assert len(blocks) > 10
    assert len(one_by_one) <= 2  # the last event, which no comma follows


@pytest.mark.parametrize("nested", ["commas", "objects", "events"])
def test_commas_between_braces_inside_events_are_no_cuts(tmp_path: Path, nested: str) -> None:
    inside: dict[str, Any] = {
        "commas": {"name": "},{" * 50},
        "objects": {"args": {"stack": [{"line": i} for i in range(50)]}},
        "events": {"args": {"stack": [{"ph": "X", "name": "inner"} for _ in range(50)]}},
    }[nested]
    path = write(tmp_path, json.dumps(many(300, **inside)))
    events, reader = read(path, block_bytes=4 << 10)
    assert events == [as_event(event) for event in many(300, **inside)]
    assert reader.fallback_blocks == 0
    assert codes(reader) == {}


def test_lists_of_events_behind_the_events_are_not_taken_for_them(tmp_path: Path) -> None:
    document = {"traceEvents": many(20), "otherEvents": many(500), "traceName": "x"}
    path = write(tmp_path, json.dumps(document))
    for block_bytes in (64, 5000, 1 << 20):
        events, reader = read(path, wanted=["traceName"], block_bytes=block_bytes)
        assert events == [as_event(event) for event in many(20)]
        assert reader.metadata == {"traceName": "x"}
        assert codes(reader) == {}


def test_only_wanted_keys_are_kept(tmp_path: Path) -> None:
    document = {"schemaVersion": 1, "traceEvents": [], "distributedInfo": {"rank": 3}}
    _, reader = read(write(tmp_path, json.dumps(document)), wanted=["distributedInfo"])
    assert reader.metadata == {"distributedInfo": {"rank": 3}}


def test_of_a_repeated_key_the_first_counts(tmp_path: Path) -> None:
    text = '{"distributedInfo":{"rank":1},"traceEvents":[],"distributedInfo":{"ranks":"[0,1]"}}'
    _, reader = read(write(tmp_path, text), wanted=["distributedInfo"])
    assert reader.metadata == {"distributedInfo": {"rank": 1}}


def test_a_value_too_large_to_keep_passes_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl_insight.readers.chrome_trace.MAX_METADATA_BYTES", 1000)
    document = {
        "small": "s" * 998,
        "long": "x" * 999,
        "list": list(range(10**6)),
        "traceEvents": many(3),
    }
    events, reader = read(write(tmp_path, json.dumps(document)), wanted=["small", "long", "list"])
    assert len(events) == 3
    assert reader.metadata == {"small": "s" * 998}
    (problem,) = reader.problems
    assert (problem.code, problem.count, problem.example) == ("metadata_too_large", 2, "long")


def test_a_value_too_large_is_not_kept_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl_insight.readers.chrome_trace.MAX_METADATA_BYTES", 300_000)
    document = {"traceEvents": [], "long": [12345] * 150_000}
    _, reader = read(write(tmp_path, json.dumps(document)), wanted=["long"], block_bytes=1000)
    assert reader.metadata == {}
    assert codes(reader) == {"metadata_too_large": 1}


def test_an_object_without_events_is_no_trace(tmp_path: Path) -> None:
    events, reader = read(write(tmp_path, '{"config": {"traceEvents": [{"ph": "X"}]}}'))
    assert events == []
    assert reader.shape == "object"
    assert not reader.has_events_key
    assert codes(reader) == {}


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}', " [ ] ", '{"traceEvents":[ ] }'])
def test_no_events_are_no_problem(tmp_path: Path, text: str) -> None:
    events, reader = read(write(tmp_path, text))
    assert events == []
    assert reader.has_events_key
    assert codes(reader) == {}


def test_a_reader_reads_once(tmp_path: Path) -> None:
    reader = ChromeTraceReader(write(tmp_path, "[]"), Event)
    assert list(reader) == []
    with pytest.raises(RuntimeError, match="once"):
        list(reader)


def times(path: Path, **options: Any) -> tuple[list[Any], list[type]]:
    reader = ChromeTraceReader(path, Event, exact_type=ExactEvent, **options)
    events = [event for events in reader for event in events]
    return [event.ts for event in events], [type(event) for event in events]


def test_absolute_times_with_decimals_come_digit_by_digit(tmp_path: Path) -> None:
    path = write(tmp_path, '[{"ph":"M","ts":0.0},{"ph":"X","ts":1712195495519689.047}]')
    texts, kinds = times(path)
    assert kinds == [ExactEvent, ExactEvent]
    assert exact_ns(texts).tolist() == [0, 1712195495519689047]


@pytest.mark.parametrize(
    ("ts", "ns"),
    [
        ("4541015316353.111", 4541015316353111),
        ("1712195495519689", 1712195495519689000),
        ('"1712195495519689.047"', 1712195495519689047),
        ("8699999999999.9", 8699999999999900),
    ],
)
def test_times_that_a_float_or_a_string_holds_keep_the_plain_type(
    tmp_path: Path, ts: str, ns: int
) -> None:
    path = write(tmp_path, f'[{{"ph":"X","ts":{ts},"dur":1712195495519689.047}}]')
    (value,), (kind,) = times(path)
    assert kind is Event
    assert exact_ns([value]).tolist() == [ns]


def test_the_bound_lies_below_the_point_where_floats_lose_digits(tmp_path: Path) -> None:
    path = write(tmp_path, f'[{{"ph":"X","ts":{2**43}.001}}]')
    (value,), (kind,) = times(path)
    assert kind is ExactEvent
    assert exact_ns([value])[0] == 2**43 * 1000 + 1


def test_absolute_times_behind_the_first_block_are_seen_too(tmp_path: Path) -> None:
    names = ",".join('{"ph":"M","name":"thread_name","ts":0}' for _ in range(100))
    rows = ",".join(f'{{"ph":"X","ts":{1712195495519689 + i}.047}}' for i in range(100))
    texts, kinds = times(write(tmp_path, f"[{names},{rows}]"), block_bytes=500)
    expected = [0] * 100 + [1712195495519689047 + i * 1000 for i in range(100)]
    assert exact_ns(texts).tolist() == expected
    assert set(kinds) == {Event, ExactEvent}


def run_alone(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def test_a_reader_starts_light() -> None:
    loaded = run_alone(
        "import sys, rl_insight.readers.chrome_trace, rl_insight.readers.timestamps;"
        "print(*{'pandas', 'pyarrow', 'torch', 'matplotlib'} & set(sys.modules))"
    )
    assert loaded.strip() == ""


def peak_megabytes(path: Path) -> int:
    # Not ru_maxrss: it begins with the memory of the process that forked this one.
    code = (
        "import msgspec, pathlib, re\n"
        "from rl_insight.readers.chrome_trace import ChromeTraceReader\n"
        "Event = msgspec.defstruct('Event', [('ph', str, ''), ('name', str, '')], gc=False)\n"
        f"for _ in ChromeTraceReader({str(path)!r}, Event, wanted=['late']): pass\n"
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print(int(re.search(r'VmHWM:\\s*(\\d+) kB', status)[1]) // 1024)\n"
    )
    return int(run_alone(code))


def repeated(text: str, megabytes: int) -> Iterable[bytes]:
    block = text.encode() * (1_000_000 // len(text))
    return (block for _ in range(megabytes))


def write_packed(path: Path, parts: Iterable[bytes]) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.writelines(parts)
    return path


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"
)


@needs_proc
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def trace(megabytes: int) -> Path:
        row = json.dumps(many(1, args={"stack": "x" * 100})[0]) + ",\n"
        parts = [b'{"traceEvents":[', *repeated(row, megabytes), b'{"ph":"M"}]}']
        return write_packed(tmp_path / f"{megabytes}.json.gz", parts)

    assert peak_megabytes(trace(200)) - peak_megabytes(trace(10)) < 15


@needs_proc
def test_a_giant_string_is_never_held(tmp_path: Path) -> None:
    parts = [
        b'{"early":"',
        *repeated("x", 150),
        b'","traceEvents":[{"ph":"X","name":"a"}],"late":"',
        *repeated("y", 150),
        b'"}',
    ]
    assert peak_megabytes(write_packed(tmp_path / "giant.json.gz", parts)) < 100


@needs_proc
@pytest.mark.parametrize("dense", ["{}", '{"ph":"X"}', '{"a":1}'])
def test_a_block_of_endless_tiny_events_takes_no_more_memory(tmp_path: Path, dense: str) -> None:
    row = f",{dense}" * 100_000
    parts = [b'{"traceEvents":[{"ph":"X"}', *(row.encode() for _ in range(40)), b"]}"]
    assert peak_megabytes(write_packed(tmp_path / "dense.json.gz", parts)) < 90


@pytest.mark.parametrize("dense", ["{}", '{"a":1}'])
def test_endless_objects_without_a_phase_are_decoded_by_the_block(
    tmp_path: Path, dense: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one = 0
    one = EventDecoder.one

    def counted(*args: Any) -> Any:
        nonlocal one_by_one
        one_by_one += 1
        return one(*args)

    monkeypatch.setattr(EventDecoder, "one", counted)
    path = tmp_path / "dense.json"
    path.write_text('{"traceEvents":[{"ph":"X"}' + f",{dense}" * 300_000 + "]}")
    reader = ChromeTraceReader(path, Event)
    blocks = [len(events) for events in reader]
    assert (sum(blocks), reader.events_seen) == (300_001, 300_001)
    assert max(blocks) <= 1 << 17
    assert one_by_one < 10
