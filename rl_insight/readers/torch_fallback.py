"""Files that only torch reads, where it is installed; and words for what is no file of torch.

torch is imported for such files only. Its loader is used in no other mode than the one for files
that are not trusted, and not before version 2.6: until then, that mode could be made to run code
(CVE-2025-32434).
"""

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np

from rl_insight.errors import ReadError
from rl_insight.readers.plain_values import BYTES_PER_VALUE, plain
from rl_insight.readers.torch_tensors import KINDS, Budget

_BEFORE_ZIP = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_TAR_MAGIC = slice(257, 262)
_FIRST_SAFE = (2, 6)
_REMEDY = "pip install torch"

_MAGICS = (
    (b"\x1f\x8b", "it is compressed by gzip: unpack it first"),
    (b"version https://git-lfs", "it is a Git LFS pointer; the file itself was never downloaded"),
    (b"PK\x05\x06", "it is an empty zip archive"),
    (b"\x89HDF", "it is an HDF5 file"),
    (b"\x80", "it is a plain pickle, not written by torch.save"),
)


def other_format(path: Path | str, raw: bytes, limit: int) -> tuple[object, frozenset[str]]:
    """Value and kinds of numbers of a file that starts like no zip archive.

    Raises ReadError unless it has the format that torch had before version 1.6, and torch reads it.
    """
    if raw.startswith(_BEFORE_ZIP) or raw[_TAR_MAGIC] == b"ustar":
        return by_torch(path, "it has the format that torch wrote before version 1.6", limit)
    if not raw:
        raise ReadError("it is empty (0 bytes): its writer was killed")
    for magic, what in _MAGICS:
        if raw.startswith(magic):
            raise ReadError(what)
    text = raw[:200].strip()
    if not text.strip(b"\0"):
        raise ReadError("it holds only zero bytes: the data never reached the disk")
    if text.startswith(b"<"):
        raise ReadError("it holds HTML or XML")
    raise ReadError(f"it was not written by torch.save; it starts with {ascii(text[:40])[1:]}")


def by_torch(path: Path | str, reason: str, limit: int) -> tuple[object, frozenset[str]]:
    """Value and kinds of numbers of the file at `path`, read by torch in its safe mode.

    Raises ReadError that starts with `reason` where torch is missing, too old or refuses it.
    """
    torch = _torch(reason)
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of a damaged file, torch raises what comes along
        raise ReadError(f"{reason}, and torch refuses it: {_words(error)}") from error
    kinds: set[str] = set()
    budget = Budget(limit)

    def numbers(tensor: Any) -> object:
        kind = KINDS.get(str(tensor.dtype).removeprefix("torch."))
        if kind is None or tensor.layout is not torch.strided or tensor.is_quantized:
            raise ReadError(
                f"it holds a tensor of {tensor.dtype}, {tensor.layout}, which is not read"
            )
        kinds.add(kind.name)
        budget.take(tensor.numel() * kind.result.itemsize)
        try:
            tensor = tensor.detach().resolve_neg().contiguous()
            return (tensor.float() if kind.result == np.float32 else tensor).numpy().copy()
        except Exception as error:  # a tensor without numbers, for one
            raise ReadError(f"it holds a tensor that is not read: {_words(error)}") from error

    def convert(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return numbers(value)
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, torch.dtype | torch.device | torch.layout):
            return str(value).removeprefix("torch.")
        return value

    return plain(value, limit // BYTES_PER_VALUE, convert), frozenset(kinds)


def _words(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _torch(reason: str) -> Any:
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise ReadError(f"{reason}, and torch is needed for that: {_REMEDY}") from error
    except Exception as error:  # libraries and extensions of devices are loaded along with it
        raise ReadError(f"{reason}, and torch cannot be imported: {_words(error)}") from error
    version = str(torch.__version__)
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _FIRST_SAFE:
        raise ReadError(
            f"{reason}, and torch {version} can be made to run code by such files: "
            f"pip install 'torch>=2.6'"
        )
    return torch
