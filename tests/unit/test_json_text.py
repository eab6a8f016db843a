"""Where a value ends: as a walk from byte to byte finds it, whatever its text and its pieces."""

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_insight.readers import event_text, json_text
from rl_insight.readers.json_text import Lexer

_PIECES = [b"{", b"}", b"[", b"]", b'"', b"\\", b",", b"a", b'""', b'"a[b"', b'"\\"}"', b'{"a":[]}']
TEXTS = st.tuples(
    st.sampled_from([b"{", b"[", b'"']), st.lists(st.sampled_from(_PIECES), max_size=80)
).map(lambda parts: parts[0] + b"".join(parts[1]))


def end_by_walking(text: bytes) -> int:
    """The end of the value at the start of `text`, or -1."""
    depth, in_string, at = 0, False, 0
    while at < len(text):
        byte = text[at : at + 1]
        if in_string and byte == b"\\":
            at += 1
        elif byte == b'"':
            in_string = not in_string
        elif not in_string and byte in b"{[":
            depth += 1
        elif not in_string and byte in b"}]":
            depth -= 1
        if depth <= 0 and not in_string and byte in b'"}]':
            return at + 1
        at += 1
    return -1


# Of few brackets each is looked at; of many whole pieces are counted, here from the second on.
@pytest.mark.parametrize(("many", "piece"), [(1_024, 65_536), (2, 7), (2, 64)])
def test_a_value_ends_where_a_walk_ends_it(many: int, piece: int) -> None:
    @given(TEXTS, st.integers(min_value=1))
    def check(text: bytes, cut: int) -> None:
        expected = end_by_walking(text)
        assert Lexer().run(text, 0, len(text)) == expected
        lexer = Lexer()
        found = lexer.run(text, 0, 1 + cut % len(text))
        if found < 0:
            found = lexer.run(text, lexer.position, len(text))
        assert found == expected

    with (
        mock.patch.object(json_text, "_MANY_BRACKETS", many),
        mock.patch.object(json_text, "_LEAP_BYTES", piece),
    ):
        check()


@pytest.mark.parametrize(
    ("dense", "left_open"),
    [(b"[", 1), (b"[]", 0), (b'["]"', 1), (b'{"a":[', 2), (b'[{}, "\\"]", {}]', 0)],
)
@pytest.mark.parametrize("closed", [True, False])
def test_brackets_by_the_million_take_no_step_each(
    monkeypatch: pytest.MonkeyPatch, dense: bytes, left_open: int, closed: bool
) -> None:
    many = dense * 300_000
    depth = 1 + 300_000 * left_open
    text = b"[" + many + (b"]" * depth if closed else b"")
    steps = 0
    end_of = json_text.end_of

    def counted(*arguments: object) -> int:
        nonlocal steps
        steps += 1
        return end_of(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(json_text, "end_of", counted)
    assert Lexer().run(text, 0, len(text)) == (len(text) if closed else -1)
    # The last piece, in which the value ends, is walked through.
    assert steps < 80_000


@pytest.mark.parametrize(("letters", "is_found"), [(200_000, True), (300_000, False)])
def test_a_bracket_without_a_partner_is_looked_for_in_no_very_long_text(
    letters: int, is_found: bool
) -> None:
    # Each of millions of brackets would take a step.
    text = b'{"name": ' + b"x" * letters + b"]"
    found = event_text.end_without_partner(text + b"}", 0, len(text) + 1)
    assert found == (len(text) if is_found else None)
