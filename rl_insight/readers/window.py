"""A sliding part of a byte stream, in one buffer that is decoded in place."""

from rl_insight.readers.bytestream import ByteStream


class Window:
    """The bytes `buffer[start:end]` of a stream; whoever uses them moves `start` forward.

    One byte before `start` may always be overwritten: that is where the opening bracket of a
    block goes, so that no block is ever copied.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.buffer = bytearray(1)
        self.start = self.end = 1
        self.at_end = False
        self._origin = stream.origin - 1

    def offset(self, position: int) -> int:
        """The byte offset in the stream of a position in the buffer."""
        return self._origin + position

    @property
    def unread(self) -> int:
        """How many bytes are at hand."""
        return self.end - self.start

    def fill(self, wanted: int) -> bool:
        """Read on until `wanted` bytes are at hand or the stream ends; False if none came.

        Positions taken before the call are void after it.
        """
        unread = self.unread
        if self.at_end or unread >= wanted:
            return False
        here = self.buffer
        if len(here) < 1 + wanted:
            # A new one: the old one cannot grow while decoded values (msgspec.Raw) point into it.
            self.buffer = bytearray(max(1 + wanted, 2 * len(here)))
        self.buffer[1 : 1 + unread] = memoryview(here)[self.start : self.end]
        self._origin += self.start - 1
        self.start, self.end = 1, 1 + unread
        with memoryview(self.buffer) as view, view[self.end : 1 + wanted] as room:
            got = self._stream.readinto(room)
            self.at_end = got < len(room)
        self.end += got
        return got > 0
