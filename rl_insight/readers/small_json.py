"""Small JSON files that accompany a capture, and may hold secrets."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from rl_insight.errors import ReadError
from rl_insight.problems import Problems
from rl_insight.readers.bytestream import ByteStream

_LARGEST_JSON = 16 << 20
_STEP = 64 << 10


def json_object(path: Path) -> Mapping[str, object]:
    """The object in a small JSON file, of which at most 16 MiB are read.

    Raises ReadError, which quotes nothing of what stands there, when it is no JSON object.
    """
    text, piece = bytearray(), memoryview(bytearray(_STEP))
    with ByteStream(path, Problems()) as stream:
        while len(text) <= _LARGEST_JSON and (got := stream.readinto(piece)):
            text += piece[:got]
    if len(text) > _LARGEST_JSON:
        raise ReadError(f"it has more than {_LARGEST_JSON >> 20} MiB")
    try:
        content = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        raise ReadError("it is no JSON: damaged, or never written to its end") from None
    if not isinstance(content, dict):
        raise ReadError("it holds no JSON object")
    return content
