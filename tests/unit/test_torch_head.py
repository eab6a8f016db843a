"""What the beginning of a trace tells about its rank."""

import gzip
from pathlib import Path

import pytest

from rl_insight.data.tree import scan
from rl_insight.parsers.torch_head import told_rank


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '{"distributedInfo": {"backend": "nccl", "rank": 12, "world_size": 16}, ',
            {"rank_id": 12},
        ),
        ('{"distributedInfo": {"pg_config": [{"ranks": [0, 1]}], "rank": "3"}, ', {"rank_id": 3}),
        ('{"distributedInfo": {"backend": "nccl"}, ', {}),
        ('{"rank": 5, ', {}),
        ("{", {}),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_a_rank_before_the_events_is_told(
    text: str, told: dict[str, int], packed: bool, tmp_path: Path
) -> None:
    # A rank among the events is somebody else's.
    whole = (text + '"traceEvents": [{"args": {"distributedInfo": {"rank": 9}}}]}').encode()
    (tmp_path / "trace.json").write_bytes(gzip.compress(whole) if packed else whole)
    tree = scan(tmp_path)
    assert told_rank(tree, tree.files[0]) == told


def test_a_head_that_is_cut_or_no_gzip_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(b"\x1f\x8b\x08 not gzip")
    (tmp_path / "b.json.gz").write_bytes(b"")
    tree = scan(tmp_path)
    assert [told_rank(tree, file) for file in tree.files] == [{}, {}]
