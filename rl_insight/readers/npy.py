"""Arrays that `numpy.save` wrote, from bytes that nobody checked."""

import io
import warnings

import numpy as np

from rl_insight.errors import ReadError
from rl_insight.readers.torch_tensors import KINDS, Array, Budget, array

MAGIC = np.lib.format.MAGIC_PREFIX

_VERSIONS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def npy_array(raw: bytes, budget: Budget) -> tuple[Array, str]:
    """The array in the `.npy` file of the bytes `raw`, and the kind of its numbers.

    numpy reads the header; the size is looked at before any memory is taken. Raises ReadError for
    damage, for arrays of Python objects and for all that are not of plain numbers.
    """
    file = io.BytesIO(raw)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shape, fortran, dtype = _VERSIONS[np.lib.format.read_magic(file)](file)
    except Exception as error:  # numpy evaluates the header as a literal: any error may come out
        raise ReadError("its npy header is damaged, or of a version that is not read") from error
    kind = KINDS.get(dtype.name)
    if kind is None or dtype.names or dtype.subdtype:
        raise ReadError(f"it holds an array of {dtype.name}, and only plain numbers are read")
    order = ">" if dtype.str.startswith(">") else "<"
    data = raw[file.tell() :]
    if not fortran:
        return array(data, kind, budget, shape, order=order), kind.name
    return array(data, kind, budget, shape[::-1], order=order).T.copy(), kind.name
