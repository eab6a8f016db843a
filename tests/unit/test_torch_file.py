"""Files of torch and numpy, against torch itself."""

from pathlib import Path

import numpy as np
import pytest

from rl_insight.readers.torch_file import load, read

torch = pytest.importorskip("torch")


def test_a_vector_of_counts_is_read_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "NPU.npu_grouped_matmul.0.forward.kwargs.group_list.pt"
    torch.save(torch.tensor([45, 72, 18]), path)
    value = load(path)
    assert isinstance(value, np.ndarray)
    assert value.dtype == np.int64
    assert value.tolist() == [45, 72, 18]
    assert read(path).kinds == {"int64"}
