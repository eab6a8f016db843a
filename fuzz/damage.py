"""Damage as disks, networks and killed writers do it to a file, from a seed."""

import random
from collections.abc import Callable

Kind = Callable[[bytes, random.Random], bytes]


def cut(raw: bytes, chance: random.Random) -> bytes:
    """The file breaks off anywhere."""
    return raw[: chance.randrange(len(raw))]


def flip_bits(raw: bytes, chance: random.Random) -> bytes:
    """Some bits are others."""
    changed = bytearray(raw)
    for _ in range(chance.choice((1, 1, 4, 40))):
        changed[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def swap_blocks(raw: bytes, chance: random.Random) -> bytes:
    """Two blocks of one size stand in each other's place."""
    size = min(chance.choice((1, 16, 512, 4096)), len(raw) // 2)
    first = chance.randrange(len(raw) - 2 * size + 1)
    second = chance.randrange(first + size, len(raw) - size + 1)
    middle = raw[first + size : second]
    return (raw[:first] + raw[second : second + size] + middle + raw[first : first + size]) + raw[
        second + size :
    ]


def drop_bytes(raw: bytes, chance: random.Random) -> bytes:
    """Bytes are missing, or zero: a hole that never reached the disk."""
    size = min(chance.choice((1, 16, 512, 4096)), len(raw))
    start = chance.randrange(len(raw) - size + 1)
    hole = bytes(size) if chance.random() < 0.5 else b""
    return raw[:start] + hole + raw[start + size :]


KINDS: tuple[Kind, ...] = (cut, flip_bits, swap_blocks, drop_bytes)


def damaged(raw: bytes, chance: random.Random) -> bytes:
    """`raw`, which must not be empty, with damage of one kind; it may happen to be the same."""
    return chance.choice(KINDS)(raw, chance)


def first_difference(good: bytes, bad: bytes) -> int:
    """The offset of the first damaged byte."""
    pairs = enumerate(zip(good, bad, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(good), len(bad)))


_WORDS = (
    *(b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\n", b"\0", b"inf", b"NaN", b"null"),
    *(b'"ph"', b'"X"', b"}]", b"},{", b"1e999", b"-1", b"18446744073709551616", b"\xff\xfe"),
    *(b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x00", b"'", b"&a", b"*a", b"- "),
)


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """`raw` with up to eight changes: damage, words of the formats, pieces of it once more."""
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        if not raw or chance.random() < 0.35:
            at = chance.randrange(len(raw) + 1)
            raw = raw[:at] + chance.choice(_WORDS) + raw[at + chance.choice((0, 0, 1, 4)) :]
        elif chance.random() < 0.25:
            start = chance.randrange(len(raw))
            piece = raw[start : start + chance.choice((1, 8, 64, 512))]
            raw = raw[:start] + piece * chance.choice((1, 2, 30)) + raw[start:]
        else:
            raw = damaged(raw, chance)
    return raw
