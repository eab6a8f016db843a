"""One event of a trace, damaged in the ways that producers and disks damage it.

The event is the text of a JSON object named `middle` that holds the number 65536 and a duration of
300.
"""

CULPRIT = 'lib = Library("ns", "IMPL")\n(1): <module>'


def changed(event: str, old: str, new: str | bytes) -> bytes:
    """The event with other text in place of `old`."""
    assert event.count(old) == 1
    return event.encode().replace(old.encode(), new if isinstance(new, bytes) else new.encode())


def repairable(event: str) -> dict[str, tuple[bytes, str]]:
    """Damage that costs nothing, with the name that the event has then."""
    return {
        "quotes and a line break": (changed(event, "middle", CULPRIT), CULPRIT),
        "a bare backslash": (changed(event, "middle", "C:\\parts"), "C:\\parts"),
        "a control character": (changed(event, "middle", b"mid\x01dle"), "mid\x01dle"),
        "a zero byte": (changed(event, "middle", b"mid\x00dle"), "mid\x00dle"),
        "bytes of no encoding": (
            changed(event, "middle", b"mid\xff\xfe\x9fdle"),
            "mid\ufffd\ufffd\ufffddle",
        ),
        "Latin-1": (changed(event, "middle", "mïddle".encode("latin-1")), "m\ufffdddle"),
        "GBK": (changed(event, "middle", "训练".encode("gbk")), "ѵ\ufffd\ufffd"),
        "bare inf": (changed(event, "65536", "inf"), "middle"),
        "bare -inf": (changed(event, "65536", "-inf"), "middle"),
        "bare nan": (changed(event, "65536", "nan"), "middle"),
        "NaN": (changed(event, "65536", "NaN"), "middle"),
        "a quote lost": (changed(event, ' "tid"', ' tid"'), "middle"),
        "a comma inside": (changed(event, "65536", "65536,"), "middle"),
    }


def beyond_repair(event: str) -> dict[str, bytes]:
    """Damage that costs the event."""
    return {
        "a quote in a number": changed(event, '"dur": 300', '"dur": 3"00'),
        "a brace lost": event[:-1].encode(),
        "cut inside a name": event[: event.index("middle") + 3].encode(),
        "cut inside a key": event[: event.index('"pid"') + 3].encode(),
        "cut inside a number": event[: event.index("300") + 1].encode(),
        "garbage": event[:40].encode() + bytes(range(200, 256)) + event[80:].encode(),
        "a hole of zeros": event[:40].encode() + bytes(64) + event[80:].encode(),
        "nesting without end": changed(event, "65536", "[" * 200_000 + "]" * 200_000),
    }
