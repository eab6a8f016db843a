"""A folder of everything that a file system can hold: what is sound in it is drawn, nothing else
is touched, and no name does anything anywhere."""

import ctypes
import gzip
import json
import os
import pickle
import socket
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.group_lists import write_dump
from tests.workflow.conftest import rows, run
from tests.workflow.test_crashes import whole

pytestmark = pytest.mark.workflow

# HTML that ends a script, JavaScript, a terminal's commands, a turned writing direction, two lines.
MARKUP = "</script><planted onload=alert(1)>\"'&`${1}"
COMMANDS = "\x1b[2J\x1b]0;owned\x07\u202egnp\n\r2"
HOSTILE = MARKUP + COMMANDS
# As HOSTILE, for a name of a folder.
FOLDER = HOSTILE.replace("/", "\u2044")

# prctl(2) and capabilities(7): without these root, too, may not read what its mode forbids.
_PR_CAPBSET_DROP = 24
_CAPABILITIES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def write_trace(path: Path, rank: int, start_us: int) -> None:
    """A capture of one stage of 1 s with a hostile name."""
    event = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": start_us}
    content = {
        "distributedInfo": {"rank": rank},
        "baseTimeNanoseconds": 1_790_000_000_000_000_000,
        "traceEvents": [
            {**event, "name": "update_actor", "dur": 1_000_000},
            {**event, "name": HOSTILE, "ts": start_us + 1_000, "dur": 500_000},
        ],
    }
    text = json.dumps(content).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)


class Planted:
    """What a pickle runs when it is opened without care."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.mark, "w")


class Tags(HTMLParser):
    """The names of all elements of a page, and its text outside scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.add(tag)


def listing(*roots: Path) -> dict[str, tuple[object, ...]]:
    """Everything below some folders: kind and rights, size, time of the last change."""
    found: dict[str, tuple[object, ...]] = {}
    for root in roots:
        for place, folders, files in os.walk(root):
            for name in (*folders, *files, ""):
                info = os.lstat(os.path.join(place, name))
                found[os.path.join(place, name)] = (info.st_mode, info.st_size, info.st_mtime_ns)
    return found


def place_all(source: Path, outside: Path, mark: Path) -> set[str]:
    """Fill `source`; gives the paths of the captures that can be drawn."""
    good = ["-x.json", "--help.json.gz", "case.json.gz", "Case.json.gz", f"{FOLDER}/a.json"]
    good += [f"{FOLDER}.json", os.fsdecode(b"\xff\xfe\x80.json")]
    for rank, path in enumerate(good):
        write_trace(source / path, rank, rank * 10_000)
    # A path of 4,000 characters in all: deeper ones have no name.
    deep = source
    while len(str(deep)) < 3_700:
        deep /= "d" * 200
    deep /= "e" * (4_000 - len(str(deep)) - len("//a.json"))
    write_trace(deep / "a.json", 20, 0)
    assert len(str(deep / "a.json")) == 4_000

    write_trace(outside / "theirs.json", 21, 0)
    (source / "linked.json").symlink_to(outside / "theirs.json")
    (source / "loop").symlink_to(source)
    (source / "circle").symlink_to("circle")
    (source / "above").symlink_to(source.parent)
    (source / "nowhere.json").symlink_to("gone.json")
    (source / "zero.json").symlink_to("/dev/zero")
    os.mkfifo(source / "pipe.json.gz")
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(source)  # the name of a socket may not be long
        server.bind("socket.json")

    write_trace(source / "closed" / "in.json", 22, 0)
    (source / "closed").chmod(0)
    write_trace(source / "secret.json", 23, 0)
    (source / "secret.json").chmod(0)

    dump = write_dump(source / "dump", 1, FOLDER, 0, [[8, 1, 1, 2]] * 3, group_list_type=1)
    (bait,) = dump.rglob("*.1.forward*group_list.pt")
    bait.write_bytes(pickle.dumps(Planted(mark)))
    return {*good, str(deep.relative_to(source) / "a.json"), "linked.json"}


def test_whatever_lies_in_the_folder_the_rest_is_drawn_and_nothing_else_is_touched(
    tmp_path: Path,
) -> None:
    # GIVEN such a folder, and folders where programs like to leave things
    here = Path.cwd()
    source, output, mark = tmp_path / "in", tmp_path / "out", tmp_path / "planted"
    try:
        good = place_all(source, tmp_path / "theirs", mark)
    finally:
        os.chdir(here)
    around = [tmp_path / name for name in ("home", "tmp", "cwd")]
    for folder in around:
        folder.mkdir()
    output.mkdir()
    home, temporary, cwd = around
    # Modules that only Snakemake would import, where the user stands.
    for name in ("snakemake.py", "pulp.py"):
        (cwd / name).write_text(f"open({str(mark)!r}, 'w').close()\n")
    env = {"HOME": str(home), "TMPDIR": str(temporary), "PYTHONPATH": str(here)}
    before = listing(*(p for p in tmp_path.iterdir() if p != output))

    # WHEN everything is drawn
    words = ("preset=all", "timeline.parser.type=torch", "timeline.visualizer.type=html,png")
    words += ("heatmap.visualizer.type=gmm_heatmap,gmm_heatmap_html",)
    ended = run(output, f"input.path={source}", *words, env=env, before=lambda: _enter(cwd))
    after = listing(*(p for p in tmp_path.iterdir() if p != output))
    (source / "closed").chmod(0o700)

    # THEN all that is sound is drawn, and everything else is told
    assert ended.code == 0, ended.text
    told = {str(row["path"]): row for row in rows(output, "sources")}
    drawn = {path for path, row in told.items() if row["status"] == "ok"}
    assert {_stored(path) for path in good} <= drawn
    lost = {path: row["status"] for path, row in told.items() if path not in drawn}
    dump = next(path for path in lost if path.startswith("dump/"))
    assert lost == {
        **dict.fromkeys(("pipe.json.gz", "socket.json", "zero.json"), "skipped"),
        **dict.fromkeys(("closed", "secret.json", "circle", "nowhere.json"), "failed"),
        dump: "salvaged",
    }
    assert all(told[path]["detail"] for path in lost)

    # AND nothing has changed around the output, and nothing was run
    assert not mark.exists()
    assert before == after

    # AND no name does anything: on the terminal, on a page, in a table or picture
    assert not [c for c in ended.text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")]
    for name in ("rl_timeline.html", "gmm_heatmap.html"):
        page = (output / name).read_text("utf-8")
        tags = Tags()
        tags.feed(page)
        assert "planted" not in tags.names and "script" in tags.names, name
        assert "planted" in page, name
        assert not {"\x1b", "\x07", "\u202e"} & set(page), name
    whole(output)
    assert HOSTILE in {row["raw_name"] for row in rows(output, "spans")}


def _stored(path: str) -> str:
    """A path as a table shows it: what is not UTF-8 has no place there."""
    return path.encode("utf-8", "replace").decode()


def _enter(folder: Path) -> None:
    """Begin in a folder, without root's right to read everything."""
    os.chdir(folder)
    if os.geteuid() == 0:
        for capability in _CAPABILITIES:
            ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
