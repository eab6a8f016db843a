"""The test data is what msprobe and torch write."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.group_lists import name, save, write_dump


@pytest.mark.parametrize("kind", ["int64", "int32", "float32", "float16", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 2)])
def test_torch_loads_what_is_written_without_it(
    tmp_path: Path, kind: str, shape: tuple[int, ...]
) -> None:
    torch = pytest.importorskip("torch")
    values = np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
    loaded = torch.load(save(tmp_path / "x.pt", values), weights_only=True)
    assert str(loaded.dtype) == f"torch.{kind}"
    assert loaded.shape == shape
    assert loaded.tolist() == values.tolist()


def test_a_list_of_python_numbers_is_a_tensor_of_int64(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    loaded = torch.load(save(tmp_path / "x.pt", [4, 0, 5]), weights_only=True)
    assert loaded.dtype == torch.int64
    assert loaded.tolist() == [4, 0, 5]


def test_a_dump_lies_where_verl_and_msprobe_put_it(tmp_path: Path) -> None:
    data = write_dump(tmp_path, 7, "ref", 3, [[1, 2], [3, 4]], group_list_type=1, stacks={0: ["f"]})
    assert data == tmp_path / "step_7/ref/step0/rank3/dump_tensor_data"
    assert sorted(path.name for path in data.iterdir()) == [name(0), name(1)]
    told = json.loads((data.parent / "dump.json").read_text())["data"]
    assert list(told) == ["NPU.npu_grouped_matmul.0.forward", "NPU.npu_grouped_matmul.1.forward"]
    kwargs = told["NPU.npu_grouped_matmul.1.forward"]["input_kwargs"]
    assert kwargs["group_list_type"] == {"type": "int", "value": 1}
    assert kwargs["group_list"]["shape"] == [2]
    stack = json.loads((data.parent / "stack.json").read_text())
    assert stack == {"0": [["NPU.npu_grouped_matmul.0.forward"], ["f"]]}
