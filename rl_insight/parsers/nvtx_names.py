"""Names of NVTX ranges and domains: what torch and other libraries give to their own calls."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

UNNAMED = "(unnamed)"

# torch/csrc/profiler/util.cpp, getNvtxStr: what follows the operator's name.
_OPERATOR = re.compile(r", (?:seq|op_id|sizes|input_op_ids) = ")
_SIGN = ", op_id = "
OPERATOR_SIGN = _SIGN.encode()
_OTHER_SIGN = ", seq = "
_TOGETHER = 128

# Domains of libraries that annotate each of their calls (NVIDIA/nccl#1477, rapidsai/quent#472).
_LIBRARIES = re.compile(
    r"nccl|nvshmem|cccl|cub|thrust|cublas|cublaslt|cudnn|cusparse|cusolver|cufft|curand|cutensor"
    r"|cudf|libcudf|librmm|libkvikio|kvikio|raft|torch|pytorch|transformerengine|transformer_engine"
    r"|tensorrt|tensorrt_llm|ucx|ucp|uct|mpi|python gil",
    re.IGNORECASE,
)


def operator_name(name: str) -> str | None:
    """The operator that torch's `emit_nvtx` means by `name`; None for any other name.

    `aten::mm, seq = 5, op_id = 12, sizes = [[2, 3], [3, 4]]` is `aten::mm`.
    """
    found = _OPERATOR.search(name)
    return name[: found.start()] if found and found.start() else None


def are_operators(texts: Sequence[object]) -> npt.NDArray[np.bool_]:
    """Which of many names, as text or as its UTF-8, are those of torch's operators."""
    found = np.ones(len(texts), dtype=bool)
    for at in range(0, len(texts), _TOGETHER):
        several = texts[at : at + _TOGETHER]
        if not _all_are(several):
            found[at : at + _TOGETHER] = [_is_operator(text) for text in several]
    return found


def _all_are(several: Sequence[Any]) -> bool:
    """Whether all are, as is usual: one look at all of them is several times as fast."""
    try:
        if isinstance(several[0], bytes):
            return b"\n".join(several).count(OPERATOR_SIGN) == len(several)
        return "\n".join(several).count(_SIGN) == len(several)
    except TypeError:  # one has no name of its own
        return False


def _is_operator(text: object) -> bool:
    if isinstance(text, bytes):
        return OPERATOR_SIGN in text or _OTHER_SIGN.encode() in text
    return isinstance(text, str) and (_SIGN in text or _OTHER_SIGN in text)


def is_library(domain: str) -> bool:
    """Whether a domain is that of a library which annotates its own calls."""
    return _LIBRARIES.fullmatch(domain) is not None
