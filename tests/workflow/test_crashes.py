"""A run that is killed or finds the disk full leaves nothing half made, and the next finishes."""

import json
import resource
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from rl_insight import tables
from rl_insight.parsers import PARSERS
from tests.group_lists import write_dump
from tests.workflow.conftest import DEMO, run
from tests.workflow.stopping import killed_at, site_that_stops

pytestmark = pytest.mark.workflow

# A script of the run, before which file or folder gets its final name it is killed, and what
# Snakemake is asked for, so that one step follows the other.
MOMENTS = (
    ("parse.py", "rank1", ()),
    ("merge.py", "spans.parquet", ()),
    ("timeline.py", "rl_timeline.html", ("--", "rl_timeline.html")),
    ("structure.py", "expert_balance.parquet", ("--", "tables/expert_balance.parquet")),
    ("heatmap.py", "gmm_heatmap.png", ("--", "gmm_heatmap.png")),
)


def recorded(root: Path, ranks: int) -> Path:
    """A capture and a small dump of each rank."""
    root.mkdir(exist_ok=True)
    for rank in range(ranks):
        (capture,) = DEMO.glob(f"*actor-update_step1_rank{rank}-*")
        shutil.copy2(capture, root / f"rank{rank}.json.gz")
        calls = [[rank + 8, 1, 1, 2]] * 3
        write_dump(root / "dump", 1, "actor_compute_log_prob", rank, calls, group_list_type=1)
    return root


def whole(output: Path) -> dict[str, pa.Table]:
    """The merged tables, once everything under a final name was read to its end."""
    for path in (output / "manifest.json", *output.glob("parsed/*.json"), *units(output)):
        json.loads(path.read_text())
    yaml.safe_load((output / "config.yaml").read_text())
    for page in output.glob("[!.]*.html"):
        assert page.read_text("utf-8").rstrip().endswith("</html>"), page
    for picture in output.glob("[!.]*.png"):
        check_png(picture.read_bytes())
    for parser in output.glob("parsed/[!.]*/"):
        for cache in parser.glob("[!.]*/"):
            for name in ("sources", *PARSERS.get(parser.name).tables):
                tables.read(cache / f"{name}.parquet")
    found = (*output.glob("tables/[!.]*.parquet"), *output.glob("parsed/[!.]*.parquet"))
    return {str(path.relative_to(output)): tables.read(path) for path in found}


def units(output: Path) -> list[Path]:
    """The files that say what each parse job reads."""
    return list(output.glob("parsed/[!.]*/*.json"))


def check_png(content: bytes) -> None:
    """Read the chunks up to the end (PNG 1.2, section 3.2: length, type, data, CRC)."""
    at, kind = 8, b""
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", content, at)
        (check,) = struct.unpack_from(">I", content, at + 8 + length)
        assert zlib.crc32(content[at + 4 : at + 8 + length]) == check
        at += 12 + length
    assert at == len(content)


def hidden(output: Path) -> list[Path]:
    """What carries a temporary name."""
    return [path for path in output.rglob(".*.tmp*") if ".snakemake" not in path.parts]


def test_a_run_killed_at_any_moment_leaves_nothing_half_made(tmp_path: Path) -> None:
    # GIVEN a finished run, and input that has grown since
    output, source = tmp_path / "out", recorded(tmp_path / "in", 1)
    words = ("timeline.parser.type=torch", "preset=all", f"input.path={source}")
    first = run(output, *words)
    assert first.code == 0, first.text
    before = whole(output)
    recorded(source, 2)

    # WHEN the next ones are killed, each a little later
    for script, name, wanted in MOMENTS:
        killed_at(site_that_stops(tmp_path / script, script, name), output, *words, *wanted)
        # THEN whatever has its final name is whole; the pictures are those of before, or new
        after = whole(output)
        assert {name for name in before if name.startswith("tables")} <= set(after), script
        assert hidden(output), script
        assert (output / "rl_timeline.html").is_file() and (output / "gmm_heatmap.png").is_file()

    # AND the run that is left alone finishes as if nothing had happened
    healed = run(output, *words)
    assert healed.code == 0, healed.text
    # What was parsed stays; a run after one that ended badly merges again.
    assert healed.jobs["parse"] == 0
    assert healed.jobs["timeline_html"] == healed.jobs["heatmap_gmm_heatmap"] == 1
    assert not hidden(output)
    undisturbed = run(tmp_path / "undisturbed", *words)
    assert undisturbed.code == 0, undisturbed.text
    expected, found = whole(tmp_path / "undisturbed"), whole(output)
    assert set(found) == set(expected)
    assert [name for name in expected if not found[name].equals(expected[name])] == []
    assert found["tables/lanes.parquet"].num_rows == 2


def test_a_limit_on_the_size_of_files_costs_only_the_page_that_is_too_large(tmp_path: Path) -> None:
    # GIVEN a page of an earlier run
    output, source = tmp_path / "out", recorded(tmp_path / "in", 1)
    words = ("timeline.parser.type=torch", f"input.path={source}")
    assert run(output, *words).code == 0
    page = (output / "rl_timeline.html").read_bytes()
    recorded(source, 2)
    # WHEN no file may have more than a megabyte: the page has plotly.js inside
    ended = run(output, *words, before=lambda: _no_file_above(1_000_000))
    # THEN it stays as it was, and the tables are those of the new input
    assert ended.code == 1, ended.text
    assert "File too large" in ended.text and "Traceback" not in ended.text
    assert (output / "rl_timeline.html").read_bytes() == page
    assert whole(output)["tables/lanes.parquet"].num_rows == 2
    assert not hidden(output)


def test_a_run_on_a_full_disk_is_followed_by_one_that_finishes(tmp_path: Path) -> None:
    source = recorded(tmp_path / "in", 2)
    words = ("timeline.parser.type=torch", "timeline.visualizer.type=png", f"input.path={source}")
    with _small_disk(tmp_path / "disk", "200k") as disk:
        output = disk / "out"
        ended = run(output, *words)
        assert ended.code == 1, ended.text
        assert "the disk is full: make room" in ended.text
        assert "Traceback" not in ended.text
        whole(output)

        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        healed = run(output, *words)
        assert healed.code == 0, healed.text
        undisturbed = run(tmp_path / "undisturbed", *words)
        assert undisturbed.code == 0, undisturbed.text
        expected, found = whole(tmp_path / "undisturbed"), whole(output)
        assert set(found) == set(expected)
        assert [name for name in expected if not found[name].equals(expected[name])] == []
        assert not hidden(output)


def _no_file_above(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@contextmanager
def _small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own in memory; only root may have one, and not everywhere."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
