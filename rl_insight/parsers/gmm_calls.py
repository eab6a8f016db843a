"""A small number for each of very many recorded calls."""

from rl_insight.parsers.gmm_names import Call

# Calls are numbered from 0; larger numbers than msprobe ever gives must cost no memory.
_NEAR = 1 << 22
_MOST_BYTES = 32 << 20


class CallNumbers:
    """Maps calls to numbers from 1 to 255 in about a byte for each; 0 where none was put."""

    def __init__(self) -> None:
        self._near: dict[tuple[str, bool], bytearray] = {}
        self._far: dict[Call, int] = {}
        self._bytes = 0

    def put(self, call: Call, value: int) -> None:
        """Note `value` for `call`, in place of any before."""
        numbers = self._near.get((call.api, call.backward), bytearray())
        missing = max(call.number + 1 - len(numbers), 0)
        if call.number >= _NEAR or self._bytes + missing > _MOST_BYTES:
            self._far[call] = value
            return
        if missing:
            self._near[call.api, call.backward] = numbers
            numbers.extend(bytes(missing))
            self._bytes += missing
        numbers[call.number] = value

    def get(self, call: Call) -> int:
        """What was put for `call`, or 0."""
        numbers = self._near.get((call.api, call.backward), b"")
        if call.number < len(numbers) and numbers[call.number]:
            return numbers[call.number]
        return self._far.get(call, 0) if self._far else 0
