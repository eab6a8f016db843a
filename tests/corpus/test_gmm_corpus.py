"""Real group lists, against torch and against the documented way of reading their paths."""

import re
from pathlib import Path

import pytest

from rl_insight.data.identity import compile_rules, resolve
from tests.gmm_dumps import read_all

GMM = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "gmm"

pytestmark = pytest.mark.skipif(not GMM.is_dir(), reason="the corpus of real files is not here")


def test_the_documented_samples_give_the_numbers_that_torch_reads() -> None:
    torch = pytest.importorskip("torch")
    wanted = {}
    for path in GMM.rglob("*group_list.pt"):
        (step,) = re.findall(r"/step_(\d+)/", str(path))
        (role,) = re.findall(r"/step_\d+/([^/]+)/", str(path))
        (rank,) = re.findall(r"/rank(\d+)/", str(path))
        (call,) = re.findall(r"\.(\d+)\.forward\.", path.name)
        load = torch.load(path, weights_only=True).tolist()
        wanted[int(step), role, int(rank), int(call)] = load
    found = {}
    for dump in read_all(GMM):
        who = resolve(dump.path, {}, compile_rules([]), "gmm")
        assert dump.said == ("ok", None)
        for row in dump.rows:
            found[who.step, who.role, who.rank_id, row["op_index"]] = row["load"]
    assert len(wanted) > 2
    assert found == wanted
