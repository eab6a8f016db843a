"""What `torch.save` and `numpy.save` write, read without torch and without executing anything.

Files of torch 1.6 and newer are zip archives: a pickle that says what there is, and the numbers
beside it. They are read here, with the kinds of numbers and of containers that dumps of expert
load use. Older files, and what only torch knows, go to torch itself where it is installed, and only
in its mode for files that are not trusted.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from rl_insight.errors import ReadError
from rl_insight.readers import torch_fallback
from rl_insight.readers.npy import MAGIC as NPY_MAGIC
from rl_insight.readers.npy import npy_array
from rl_insight.readers.plain_values import BYTES_PER_VALUE, plain
from rl_insight.readers.torch_pickle import Machine, NotKnownError
from rl_insight.readers.torch_recipes import RecordedObjects, keep_recipe, tensor_recipe
from rl_insight.readers.torch_tensors import EXACT_INTEGERS, Budget
from rl_insight.readers.torch_zip import MAGIC as ZIP_MAGIC
from rl_insight.readers.torch_zip import Archive

LIMIT_BYTES = 64 << 20
"""What the file, its unpacked entries, and the arrays made of them may each take."""

# The zip directory, the pickle and the gaps around the numbers.
_HEADERS = 1 << 20
_ORDERS = {b"little": "<", b"big": ">"}


@dataclass(frozen=True, slots=True)
class TensorFile:
    """The value in a file, and the kinds of numbers its tensors have, by torch's names.

    Tensors are numpy arrays of their own, contiguous and in this machine's byte order; bfloat16 and
    float16 come as float32. The rest is None, bool, int, float, str, bytes, list, tuple and dict.
    """

    value: object
    kinds: frozenset[str]

    @property
    def exact_to(self) -> int | None:
        """Up to where the file could hold each whole number (256 for bfloat16); None: all."""
        return min(
            (EXACT_INTEGERS[kind] for kind in self.kinds if kind in EXACT_INTEGERS), default=None
        )


def load(path: Path | str, limit_bytes: int = LIMIT_BYTES) -> object:
    """The value in the file at `path`, as `read` gives it, without the kinds of its numbers."""
    return read(path, limit_bytes).value


def read(path: Path | str, limit_bytes: int = LIMIT_BYTES) -> TensorFile:
    """The value in the file at `path`, which the first bytes tell from an `.npy` file.

    Raises ReadError, in one sentence that names the file, when it is missing, damaged or larger
    than `limit_bytes`, when it asks for code to be run, and for contents of other kinds.
    """
    try:
        raw = _bytes(path, limit_bytes)
        if raw.startswith(NPY_MAGIC):
            array, kind = npy_array(raw, Budget(limit_bytes))
            return TensorFile(array, frozenset({kind}))
        if not raw.startswith(ZIP_MAGIC):
            return TensorFile(*torch_fallback.other_format(path, raw, limit_bytes))
        try:
            return _zipped(raw, limit_bytes)
        except NotKnownError as error:
            return TensorFile(*torch_fallback.by_torch(path, str(error), limit_bytes))
    except ReadError as error:
        raise ReadError(f"{path} cannot be read: {error}") from error
    except MemoryError as error:
        raise ReadError(f"{path} cannot be read: there is no memory for it") from error


def _bytes(path: Path | str, limit: int) -> bytes:
    try:
        # What is no file must not make us wait for its other end.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                raise ReadError("it is no file")
            if status.st_size > limit + _HEADERS:
                raise ReadError(f"it has {status.st_size} bytes, and {limit} is the limit")
            raw = os.read(number, status.st_size + 1)
            while len(raw) < status.st_size and (more := os.read(number, status.st_size)):
                raw += more
            return raw
        finally:
            os.close(number)
    except OSError as error:
        raise ReadError(error.strerror or str(error)) from error


def _zipped(raw: bytes, limit: int) -> TensorFile:
    archive = Archive(raw)
    pickle = next((name for name in archive.names() if name.endswith(b"/data.pkl")), None)
    if pickle is None:
        raise ReadError("this zip archive was not written by torch.save: it has no data.pkl")
    folder = pickle.removesuffix(b"data.pkl")
    if folder + b"constants.pkl" in archive:
        raise ReadError("it holds a TorchScript program, not tensors")
    unpacked = Budget(limit)

    def entry(name: bytes) -> memoryview:
        data = archive.read(folder + name, unpacked.left)
        unpacked.take(len(data))
        return data

    order = "<"
    if folder + b"byteorder" in archive:
        written = bytes(entry(b"byteorder"))
        if written not in _ORDERS:
            raise ReadError("its byte order is neither little nor big: it is damaged")
        order = _ORDERS[written]
    raw_pickle = bytes(entry(b"data.pkl"))
    objects = RecordedObjects(lambda key: entry(b"data/" + key.encode()), order, limit)
    known = tensor_recipe(raw_pickle)
    if known is not None:
        return TensorFile(known.tensor(objects), frozenset(objects.kinds))
    most = limit // BYTES_PER_VALUE
    value = Machine(raw_pickle, objects).run(most)
    keep_recipe(raw_pickle, objects, value)
    return TensorFile(plain(value, most), frozenset(objects.kinds))
