"""Lines of one shape as columns: the same as decoding them, or refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_insight.readers.line_columns import Columns, LineShape, shape_of

NUMBERS = ("end", "start")
LINE = b'{"end":20,"kind":59,"start":10,"table":"T","text":"aten::mm, op_id = 5"}\n'


def shape(line: bytes = LINE) -> LineShape:
    found = shape_of(line, NUMBERS, "text")
    assert found is not None
    return found


def line(end: int, start: int, text: str) -> str:
    row = {"end": end, "kind": 59, "start": start, "table": "T", "text": text}
    return f"{json.dumps(row, separators=(',', ':'), ensure_ascii=False)}\n"


def columns(found: LineShape, block: bytes) -> Columns:
    """Somewhere in a buffer, as they are read."""
    return found.columns(bytearray(b'"5\\' + block + b"6"), 3, 3 + len(block))


def rows(found: Columns) -> list[tuple[int, int, str]]:
    numbers = (found.numbers["end"].tolist(), found.numbers["start"].tolist())
    return list(zip(*numbers, found.texts, strict=True))


def test_numbers_and_the_text_at_the_end_are_columns() -> None:
    block = (line(20, 10, "a") + line(1_234_567, 5, "") + line(9, 0, "émigré")).encode()
    found = columns(shape(line(654_321, 10, "x").encode()), block)
    assert len(found) == 3
    assert rows(found) == [(20, 10, "a"), (1_234_567, 5, ""), (9, 0, "émigré")]
    assert found.texts[1:] == ["", "émigré"]
    assert found.texts[2] == "émigré"


def test_numbers_may_grow_by_one_digit() -> None:
    assert rows(columns(shape(), (line(999, 5, "a") + line(1, 999, "b")).encode())) == [
        (999, 5, "a"),
        (1, 999, "b"),
    ]
    with pytest.raises(ValueError, match="too long"):
        columns(shape(), line(1_000, 5, "a").encode())


def test_the_last_line_needs_no_line_end() -> None:
    assert rows(columns(shape(), (line(2, 1, "a") + line(4, 3, "b")[:-1]).encode())) == [
        (2, 1, "a"),
        (4, 3, "b"),
    ]


def test_spaces_are_part_of_the_shape() -> None:
    spaced = b'{"end": 7, "start": 3, "text": "x"}\n'
    assert rows(columns(shape(spaced), spaced * 2)) == [(7, 3, "x"), (7, 3, "x")]
    with pytest.raises(ValueError, match="another shape"):
        columns(shape(spaced), spaced.replace(b'": 3', b'":3') + spaced)


@pytest.mark.parametrize(
    "other",
    [
        b'{"end":20,"kind":60,"start":10,"table":"T","text":"a"}\n',  # a fixed number differs
        b'{"end":20,"kind":59,"start":10,"table":"U","text":"a"}\n',
        b'{"end":20,"kind":59,"start":10,"table":"T","text":"a","textId":5}\n',  # goes on
        b'{"end":20,"kind":59,"start":10,"table":"T","text":"a","unit":"b"}\n',
        b'{"end":20,"kind":59,"start":10,"table":"T","text":"a\\"b"}\n',  # an escape
        b'{"end":20,"kind":59,"start":10,"table":"T","text":"a}\n',  # no end
        b'{"end":20,"kind":59,"start":10,"table":"T","textId":5}\n',
        b'{"end":20,"kind":59,"start":10,"table":"T","text":"a"}x\n',
        b'{"end":-20,"kind":59,"start":10,"table":"T","text":"a"}\n',
        b'{"end":2.5,"kind":59,"start":10,"table":"T","text":"a"}\n',
        b'{"end":null,"kind":59,"start":10,"table":"T","text":"a"}\n',
        b'{"end":,"kind":59,"start":10,"table":"T","text":"a"}\n',
        b'{"end":1234567890123456789,"kind":59,"start":10,"table":"T","text":"a"}\n',
        b'{"kind":59,"start":10,"table":"T","text":"a"}\n',
        b"\n",
        b"{}\n",
        b'{"end":20,"kind":59\n',
        LINE.replace(b"\n", b"\r\n"),
    ],
)
def test_a_line_that_differs_is_refused(other: bytes) -> None:
    for block in (LINE + other, other + LINE, LINE + other + LINE):
        with pytest.raises(ValueError, match=r"^(a|no) "):
            columns(shape(), block)


@pytest.mark.parametrize(
    "first",
    [
        b'{"end":20,"start":10}\n',  # no text
        b'{"end":20,"text":"a"}\n',  # no start
        b'{"text":"a","end":20,"start":10}\n',  # the text is not the last
        b'{"end":20,"start":10,"text":"a\\n"}\n',
        b'{"end":20,"start":10,"text":"a"},\n',
        b'{"end":20,"start":10,"more":{"a":1},"text":"a"}\n',
        b'{"end":20,"start":true,"text":"a"}\n',
        b'{"end":20,"start":"10","text":"a"}\n',
        b'["end"]\n',
        b"\n",
    ],
)
def test_a_line_without_such_a_shape_has_none(first: bytes) -> None:
    assert shape_of(first, NUMBERS, "text") is None


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12)
NUMBER = st.integers(0, 10**18 - 1)


@given(st.lists(st.tuples(NUMBER, NUMBER, TEXT), min_size=1, max_size=20))
def test_columns_are_what_decoding_each_line_gives_or_nothing(
    given_rows: list[tuple[int, int, str]],
) -> None:
    block = "".join(line(*row) for row in given_rows).encode()
    largest = [max(row[side] for row in given_rows) for side in (0, 1)]
    try:
        found = rows(columns(shape(line(*largest, "x").encode()), block))
    except ValueError:
        # An escape in a text is all that may be refused here.
        assert b"\\" in block
    else:
        decoded = [json.loads(one) for one in block.decode().split("\n")[:-1]]
        assert found == [(row["end"], row["start"], row["text"]) for row in decoded]


@given(
    st.lists(st.sampled_from([LINE, LINE[:-9] + b"\n", LINE.replace(b"59", b"6"), b"}\n", b'"']))
)
def test_damage_is_never_taken_for_a_row(parts: list[bytes]) -> None:
    block = b"".join(parts)
    try:
        found = columns(shape(), block)
    except ValueError:
        return
    assert [json.loads(one)["kind"] for one in block.splitlines()] == [59] * len(found)
