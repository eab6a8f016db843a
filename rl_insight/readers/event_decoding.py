"""Events of one type from JSON text: whole blocks at once, or one that needs patience."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from rl_insight.problems import Problems
from rl_insight.readers.json_text import Buffer
from rl_insight.readers.repair import repairs

Event = TypeVar("Event")

# msgspec ends a ValidationError with " - at `$.args.stream`".
_PATH = re.compile(r" - at `\$\.(.*)`$", re.DOTALL)

# A guess at where a quote belongs was wrong when it swallowed one of these keys.
_PROOF = ("ph", "name", "ts")

# After so many failures in a row it is no damage but another format, and not worth 100 µs each.
_PATIENCE = 1000

# After so many blocks that do not fit the quick type, hardly any will.
_MOST_UNFIT = 64

_EXAMPLE_BYTES = 160


class EventDecoder(Generic[Event]):
    """Decodes JSON objects to `event_type`, a msgspec.Struct; fields it does not name are skipped.

    With `numbers_as_text`, a number with a point in a field typed `Any` comes as its text. It is
    the cheapest exact way: on 280 MB, 0.1 s more than floats, where Decimal fields take 0.5 s.

    `quick_type` may be another type, or union of types, that whole blocks are tried with first.
    """

    def __init__(
        self,
        event_type: type[Event],
        *,
        numbers_as_text: bool = False,
        quick_type: Any = None,
    ) -> None:
        self.event_type = event_type
        hook: Callable[[str], Any] | None = str if numbers_as_text else None
        self._quick = (
            None if quick_type is None else msgspec.json.Decoder(list[quick_type], float_hook=hook)
        )
        self._unfit = 0
        self._block = msgspec.json.Decoder(list[event_type], float_hook=hook)  # type: ignore[valid-type]
        self._one = msgspec.json.Decoder(event_type, float_hook=hook)
        self._failures = 0
        self._anything = msgspec.json.Decoder(float_hook=hook)

    def block(self, buffer: bytearray, start: int, end: int) -> list[Event] | None:
        """The events of `buffer[start:end]`, which are separated by commas, or None.

        Decodes in place: the bytes before and behind are brackets for a while.
        """
        before, behind = buffer[start - 1], buffer[end]
        buffer[start - 1], buffer[end] = b"[]"
        try:
            text = memoryview(buffer)[start - 1 : end + 1]
            events: list[Event] = self._quickly(text) or self._block.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            return None
        finally:
            buffer[start - 1], buffer[end] = before, behind
        return events

    def _quickly(self, text: memoryview) -> list[Event] | None:
        """The events of a block that fits `quick_type`; else None."""
        if self._quick is None:
            return None
        try:
            events: list[Event] = self._quick.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            self._unfit += 1
            if self._unfit > _MOST_UNFIT:
                self._quick = None
            return None
        return events

    def one(self, text: Buffer, start: int, end: int) -> Event | None:
        """The event of `text[start:end]`, or None when it is not exactly as it should be."""
        try:
            return self._one.decode(memoryview(text)[start:end])
        except (msgspec.MsgspecError, RecursionError):
            return None

    def patiently(self, text: bytes, offset: int, problems: Problems) -> Event | None:
        """The event of `text`, repaired where that is possible, or None.

        `problems` gets `event_repaired` when the text was not valid JSON, and `field_dropped` or
        `bad_timestamp` for every field that has another type than `event_type` says and goes back
        to its default.
        """
        if self._failures > _PATIENCE:
            return None
        event = self._convert(text, offset, problems)
        if event is not None:
            self._failures = 0
            return event
        for repaired, sure in repairs(text):
            event = self._convert(repaired, offset, problems, () if sure else _PROOF)
            if event is not None:
                problems.add("event_repaired", "info", 1, offset, example(text))
                self._failures = 0
                return event
        self._failures += 1
        return None

    def _convert(
        self, text: bytes, offset: int, problems: Problems, needed: Iterable[str] = ()
    ) -> Event | None:
        try:
            fields = self._anything.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            return None
        if not isinstance(fields, dict) or any(key not in fields for key in needed):
            return None
        found = Problems()
        while True:
            try:
                event = msgspec.convert(fields, self.event_type, strict=False)
            except msgspec.ValidationError as error:
                path = _PATH.search(str(error))
                # Without a path the object itself is wrong: a field without a default is missing.
                if path is None or not _drop(fields, path[1]):
                    return None
                code = "bad_timestamp" if path[1] in ("ts", "dur") else "field_dropped"
                found.add(code, "warning", 1, offset, str(error))
            except RecursionError:
                return None
            else:
                problems.extend(found)
                return event


def _drop(fields: dict[str, Any], path: str) -> bool:
    """Take away the value at `path`; False if there is none."""
    # Keys hold dots and spaces ("External id"), so the longest key that fits is the one.
    fitting = [key for key in fields if path == key or path.startswith((f"{key}.", f"{key}["))]
    if not fitting:
        return False
    key = max(fitting, key=len)
    value = fields[key]
    rest = path[len(key) + 1 :]
    if not (isinstance(value, dict) and rest and _drop(value, rest)):
        del fields[key]
    return True


def example(text: bytes) -> str:
    """The beginning of a text, for a person."""
    return " ".join(text[:_EXAMPLE_BYTES].decode("utf-8", "replace").split())
