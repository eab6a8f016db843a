"""Real group lists, against a plain reading of their bytes by the standard library."""

import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rl_insight.readers.torch_file import read

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
FILES = sorted((CORPUS / "gmm").rglob("*group_list.pt"))

pytestmark = pytest.mark.skipif(not FILES, reason="the corpus of real files is not here")


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_real_group_list_holds_the_numbers_of_its_storage(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/data/0"))
        raw = archive.read(name)
        assert b"LongStorage" in archive.read(name.replace("/data/0", "/data.pkl"))
    found = read(path)
    assert np.asarray(found.value).tolist() == list(struct.unpack(f"<{len(raw) // 8}q", raw))
    assert found.kinds == {"int64"}
