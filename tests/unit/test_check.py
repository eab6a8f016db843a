"""`rl-insight check`: the census of a folder by the ends of its files."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from rl_insight.help import help_text
from rl_insight.main import main
from rl_insight.pipeline.check_command import HELP
from tests.nvtx_exports import (
    details,
    session,
    system_fact,
    text_range,
    variable,
    write_database,
    write_folder,
    write_lines,
)

TIME = "20260814122731089"


def trace(rank=None, world=None, behind=False, events=1):
    events = [
        {"ph": "X", "name": f"k{n}", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 5.0 + n, "dur": 2.0}
        for n in range(events)
    ]
    info = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world}}
    parts = [{"traceEvents": events}, info] if behind else [info, {"traceEvents": events}]
    content = {"schemaVersion": 1, **parts[0], **parts[1]}
    return gzip.compress(json.dumps(content).encode())


def place(root, path, content=b""):
    path = root / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


END_OF_ZIP = b"PK\x05\x06" + bytes(18)


def name_of(stage, step, rank, world=4):
    return f"actor_{stage}_step{step}_rank{rank}-of-{world}_pid1{rank}_{TIME}.json.gz"


@pytest.fixture
def run(tmp_path):
    """Two stages of three steps on four ranks."""
    root = tmp_path / "profile"
    for stage in ("actor-update", "ref-compute-log-prob"):
        for step in (1, 2, 3):
            for rank in range(4):
                place(root, name_of(stage, step, rank), trace(rank, 4))
    return root


def told(capsys, *words):
    # What a test has written is complete: nobody waits for it to settle.
    code = main(["check", "--settle=0", *map(str, words)])
    return code, capsys.readouterr().out


def as_json(capsys, *words):
    code, out = told(capsys, *words, "--json")
    content = json.loads(out)
    assert content["exit_code"] == code
    return content


def test_a_whole_run_is_said_to_be_whole(run, capsys):
    code, out = told(capsys, run)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith(f"{run}: 24 files, ")
    grid = [re.split("  +", line.strip()) for line in lines if "_" in line and "/4" in line]
    assert grid == [["actor_update", "0-3", "4/4"], ["ref_compute_log_prob", "0-3", "4/4"]]
    assert "  role                  ranks  steps 1-3" in lines
    assert lines[-1] == "Nothing is missing, and no file is damaged at its ends."
    assert any("what lies between may still be damaged" in line for line in lines)


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (8, 0), (30, 1)])
def test_of_a_small_arrow_stream_its_rows_count_and_not_its_last_bytes(
    tmp_path, capsys, lost, code
):
    # The last 8 bytes say that it ends, which a writer may leave out; before them stands its row.
    rows = [details(), session(), text_range(1, 5, "update_actor", 111)]
    folder = write_folder(tmp_path / "worker_process_111.1", rows, "stream")
    path = folder / "NVTX_EVENTS.arrow"
    path.write_bytes(path.read_bytes()[: path.stat().st_size - lost])
    assert told(capsys, tmp_path)[0] == code


@pytest.mark.parametrize("size", [300, 200_000])
@pytest.mark.parametrize(
    ("suffix", "magic"),
    [
        (".zst", b"\x28\xb5\x2f\xfd"),
        (".zip", b"PK\x03\x04"),
        (".lz4", b"\x04\x22\x4d\x18"),
        (".br", b"\x8b"),
        (".tar", b"a.json".ljust(257, b"\0") + b"ustar\0"),
    ],
)
def test_a_rank_that_is_packed_otherwise_gives_nothing_and_is_to_be_unpacked(
    run, capsys, suffix, magic, size
):
    packed = run / name_of("actor-update", 2, 1)
    packed.unlink()
    place(run, f"{packed.name}{suffix}", magic + bytes([7, 200, 131]) * size + END_OF_ZIP)
    code, out = told(capsys, run)
    assert code == 3
    assert "actor_update step 2: 3 of 4 ranks, rank 1 gave nothing" in out
    assert "unpack 1 input, or pack them with gzip, which is read" in out
    content = as_json(capsys, run)
    (damaged,) = [one for one in content["inputs"] if one["state"] == "damaged"]
    assert "packed_otherwise" in [one["code"] for one in damaged["problems"]]


def test_gaps_and_damage_are_told(run, capsys):
    (run / name_of("actor-update", 2, 1)).unlink()
    cut = run / name_of("actor-update", 3, 2)
    cut.write_bytes(trace(2, 4, events=50)[:-20])
    (run / name_of("actor-update", 3, 3)).write_bytes(b"")
    code, out = told(capsys, run)
    assert code == 3
    lines = [line.strip() for line in out.splitlines()]
    assert "actor_update step 2: 3 of 4 ranks, rank 1 missing" in lines
    assert "actor_update step 3: 3 of 4 ranks, rank 3 gave nothing" in lines
    row = next(line for line in lines if line.startswith("actor_update  "))
    assert row.split() == ["actor_update", "0-3", "4/4", "3/4"]
    assert any(cut.name in line and "the gzip has no end" in line for line in lines)
    found = as_json(capsys, run)
    states = {one["path"]: one["state"] for one in found["inputs"] if one["state"] != "whole"}
    assert states == {cut.name: "damaged", name_of("actor-update", 3, 3): "empty"}
    assert found["coverage"]["timeline"]["missing"] == [
        {
            "role": "actor_update",
            "replica": None,
            "step": step,
            "capture": None,
            "expected": 4,
            "missing": missing,
            "lost": lost,
        }
        for step, missing, lost in ((2, [1], []), (3, [], [3]))
    ]


def test_ranks_stand_in_the_file_before_or_behind_its_events(tmp_path, capsys):
    place(tmp_path, "actor_update/a.pt.trace.json.gz", trace(5, 8))
    place(tmp_path, "actor_update/b.pt.trace.json.gz", trace(6, 8, behind=True))
    found = as_json(capsys, tmp_path)
    assert [(one["rank_id"], one["world_size"]) for one in found["inputs"]] == [(5, 8), (6, 8)]


def test_one_file_is_looked_at_without_its_neighbours(run, capsys):
    one = run / name_of("actor-update", 1, 0)
    code, out = told(capsys, one)
    assert code == 0  # its name tells of four ranks, but who looks at rank 0 alone means that
    assert f"rl-insight --input-path {one} timeline" in out


def test_only_chosen_ranks_are_expected(run, capsys):
    (run / name_of("actor-update", 2, 1)).unlink()
    assert told(capsys, run, "--rank-list", "0,2-3")[0] == 0
    assert told(capsys, run, "--rank-list=1")[0] == 3


def test_expressions_of_the_user_tell_whose_captures_are(tmp_path, capsys):
    for rank in (0, 1, 3):
        place(tmp_path, f"update/s3/card{rank}.json.gz", trace())
    words = ["--identity", r"card(?P<rank>\d+)", r"--identity=/s(?P<step>\d+)/", "--identity"]
    found = as_json(capsys, tmp_path, *words, "^(?P<role>[a-z]+)/")
    whose = [(one["role"], one["step"], one["rank_id"]) for one in found["inputs"]]
    assert whose == [("update", 3, 0), ("update", 3, 1), ("update", 3, 3)]


def test_what_has_to_be_exported_first(tmp_path, capsys):
    place(tmp_path, "actor_update/a_1_20260814_ascend_pt/FRAMEWORK/torch.op_range", b"x")
    place(tmp_path, "actor_update/b_1_20260814_ascend_pt/profiler_info_1.json", b'{"rank_id": 1}')
    place(tmp_path, "worker_process_7.1.nsys-rep", b"x")
    code, out = told(capsys, tmp_path)
    assert code == 3
    assert f"export 2 raw captures: rl-insight preprocess {tmp_path}" in out
    found = as_json(capsys, tmp_path)
    assert [(one["parser"], one["state"]) for one in found["inputs"]] == [
        ("mstx", "raw"),
        ("mstx", "hopeless"),
        ("nvtx", "raw"),
    ]
    assert found["inputs"][1]["rank_id"] == 1


def test_dumps_of_statistics_empty_roles_and_leftovers(tmp_path, capsys):
    dump = "step_1/actor_update/step0/rank0"
    place(tmp_path, f"{dump}/dump.json", b"{}")
    place(tmp_path, f"{dump}/stack.json", b"{}")
    (tmp_path / "critic_update").mkdir()
    place(tmp_path, "ref_compute_log_prob/prof_rank-0.json.gz", trace(0, 1))
    place(tmp_path, "ref_compute_log_prob/prof_rank-1.json.gz.tmp", b"{")
    place(tmp_path, "notes.txt", b"hello")
    code, out = told(capsys, tmp_path)
    assert code == 3
    assert "dump again with msprobe's task «tensor»: 1 dump" in out
    assert "critic_update: the folder is empty: nothing was recorded" in out
    assert "prof_rank-1.json.gz.tmp: left by a killed writer" in out
    found = as_json(capsys, tmp_path)
    assert found["unclaimed"] == 1
    dumps = [one for one in found["inputs"] if one["parser"] == "gmm"]
    assert [(one["state"], one["problems"][0]["code"]) for one in dumps] == [
        ("hopeless", "statistics_only")
    ]


def test_nothing_to_draw(tmp_path, capsys):
    code, out = told(capsys, tmp_path)
    assert code == 1
    assert "is empty: there is nothing to read" in out
    place(tmp_path, "notes.txt", b"hello")
    assert as_json(capsys, tmp_path)["inputs"] == []


def test_a_preset_or_a_profiler_restricts_what_is_looked_for(run, capsys):
    assert told(capsys, run, "--preset", "heatmap")[0] == 1
    assert told(capsys, run, "--profiler-type", "mstx")[0] == 1
    assert told(capsys, run, "--profiler-type=torch")[0] == 0


def test_names_that_a_terminal_would_obey_do_not_reach_it(tmp_path, capsys):
    root = tmp_path / "a\x1b[2Jb\nc"
    place(root, "evil\x1b]0;x\x07\n\u202erole/prof_rank-0.json.gz", trace(0, 3))
    place(root, "evil\x1b]0;x\x07\n\u202erole/prof_rank-1.json.gz", b"")
    place(root, os.fsdecode(b"caf\xe9/prof_rank-0.json.gz"), trace(0, 1))
    _, out = told(capsys, root)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", out)
    # A line break in a name makes no line of its own.
    assert not any(line.startswith(("c:", "role")) for line in out.splitlines())
    found = as_json(capsys, root)
    assert sorted(os.fsencode(one["path"])[:3] for one in found["inputs"]) == [
        b"caf",
        b"evi",
        b"evi",
    ]


def test_pipes_loops_and_what_may_not_be_read(run, capsys):
    os.mkfifo(run / "prof_rank-9.json")
    (run / "loop").symlink_to(run)
    (run / "outside").symlink_to("/")
    os.mkfifo(run / "pipe")
    (run / "broken.json").symlink_to(run / "nowhere")
    code, out = told(capsys, run)
    assert code == 3  # a link that leads nowhere cannot be read
    assert "broken.json: cannot be read" in out
    assert as_json(capsys, run)["files"] == 24


def test_what_may_not_be_read_is_named(ordinary_folder, capsys):
    for rank in (0, 1):
        place(ordinary_folder, f"actor_update/prof_rank-{rank}.json.gz", trace(rank, 2))
    (ordinary_folder / "actor_update" / "prof_rank-1.json.gz").chmod(0)
    (ordinary_folder / "critic_update").mkdir(mode=0o000)
    code, out = told(capsys, ordinary_folder)
    assert code == 3
    assert "critic_update: cannot be read: Permission denied" in out
    assert "prof_rank-1.json.gz: cannot be read: Permission denied" in out
    assert "actor_update: 1 of 2 ranks, rank 1 gave nothing" in out


def listing(root):
    return {
        path: (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in sorted(Path(root).rglob("*"))
    }


def test_nothing_is_written(run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = listing(tmp_path)
    told(capsys, run)
    told(capsys, run, "--json")
    assert listing(tmp_path) == before


def test_only_the_ends_of_a_file_are_read(tmp_path, capsys):
    path = place(tmp_path, "actor_update/prof_rank-0.json", b'{"traceEvents": [')
    with path.open("r+b") as file:
        file.seek(1 << 40)  # a terabyte of nothing, which takes no room
        file.write(b'{"ph": "X", "ts": 1, "dur": 1}]}')
    assert told(capsys, tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "check needs one folder"),
        (["a", "b"], "check needs one folder"),
        (["--jsn", "a"], "there is no flag --jsn of check"),
        (["a", "--preset", "film"], "--preset: 'film' is none of all, heatmap, timeline"),
        (["a", "--profiler-type", "gmm"], "--profiler-type: 'gmm' is none of auto, mstx, nvtx"),
        (["a", "--rank-list", "x"], "--rank-list: 'x' is neither a number nor a range"),
        (["a", "--preset"], "--preset needs a value"),
        (["a", "--identity", "(?P<rank>"], "input.identity: "),
        (["/nonexistent/folder"], "there is no folder '/nonexistent/folder'"),
    ],
)
def test_mistaken_words(words, said, capsys):
    assert main(["check", *words]) == 2
    assert said in capsys.readouterr().err


def test_the_help_names_it_and_has_its_own(capsys):
    assert "  check FOLDER\n" in help_text()
    assert main(["check", "--help"]) == 0
    assert capsys.readouterr().out == HELP


def test_every_key_of_the_json_is_documented(run, capsys):
    (run / name_of("actor-update", 2, 1)).unlink()
    (run / name_of("actor-update", 2, 2)).write_bytes(b"")
    place(run, "prof_rank-1.json.gz.tmp")

    def keys(value):
        if isinstance(value, list):
            return {key for one in value for key in keys(one)}
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set()

    text = (Path(__file__).parents[2] / "docs" / "check.md").read_text("utf-8")
    found = keys(as_json(capsys, run))
    assert {"lost", "code", "reason"} <= found
    assert {key for key in found if f"`{key}`" not in text} == set()


def test_a_thousand_ranks_fit_on_a_screen(tmp_path, capsys):
    for rank in range(1024):
        if rank not in (7, 8, 600):
            place(tmp_path, name_of("actor-update", 1, rank, 1024), trace())
    code, out = told(capsys, tmp_path)
    assert code == 3
    assert "actor_update step 1: 1,021 of 1,024 ranks, ranks 7-8, 600 missing" in out
    assert len(out.splitlines()) < 30


def export(root, pid, number, rank=None, world=4, form="sqlite"):
    rows = [details(), session(), text_range(5, 900, "update_actor", pid=pid)]
    rows += [system_fact("Hostname", f"gpu{pid}"), variable("HF_TOKEN", "secretsecret")]
    if rank is not None:
        rows += [variable("RANK", str(rank)), variable("WORLD_SIZE", str(world))]
    name = f"worker_process_{pid}.{number}"
    if form == "sqlite":
        return write_database(root / f"{name}.sqlite", rows)
    if form == "jsonl":
        return write_lines(root / f"{name}.jsonl", rows)
    return write_folder(root / name, rows, form)


@pytest.mark.parametrize("form", ["sqlite", "jsonl", "parquet", "arrow", "stream"])
def test_the_rank_of_a_capture_of_nsys_is_told_by_its_environment(form, tmp_path, capsys):
    root = tmp_path / "in"
    root.mkdir()
    for rank in range(4):
        for number in (1, 2):
            export(root, 70_000 + rank, number, rank, form=form)
    code, out = told(capsys, root)
    assert code == 0
    assert re.search(r"worker_process +0-3 +4/4\n", out)
    assert "The stages and steps in captures of nsys are known once they are read." in out
    assert "secret" not in out
    found = as_json(capsys, root)
    whose = [(one["rank_id"], one["world_size"], one["host"]) for one in found["inputs"]]
    assert whose == [(rank, 4, f"gpu{70_000 + rank}") for rank in (0, 0, 1, 1, 2, 2, 3, 3)]
    lost = sorted(root.glob("worker_process_70002.2*"))[0]
    lost.rename(tmp_path / "elsewhere")
    code, out = told(capsys, root)
    assert code == 3
    assert "worker_process capture 2: 3 of 4 ranks, rank 2 missing" in out


def test_a_rank_that_only_the_world_size_tells_of_is_missing(tmp_path, capsys):
    for rank in (0, 1, 3):
        export(tmp_path, 70_000 + rank, 1, rank)
    assert "worker_process: 3 of 4 ranks, rank 2 missing" in told(capsys, tmp_path)[1]


def test_where_no_rank_can_be_told_it_does_not_say_that_none_is_missing(tmp_path, capsys):
    export(tmp_path, 70_000, 1)
    write_database(tmp_path / "report1.sqlite", [details(), text_range(5, 900, "train", pid=7)])
    code, out = told(capsys, tmp_path)
    assert code == 0
    assert "of 2 inputs the role or the rank is known only once read" in out
    assert "Nothing is missing" not in out
    assert out.splitlines()[-1] == "No file is damaged at its ends."
    assert as_json(capsys, tmp_path)["unplaced"] == 2


def test_a_cell_of_which_only_a_leftover_is_there(run, capsys):
    lost = name_of("actor-update", 2, 1)
    (run / lost).rename(run / lost.replace(".json.gz", ".json.tmp"))
    # Beside a complete trace it is no news.
    place(run, name_of("actor-update", 3, 1).replace(".json.gz", ".json.tmp"), b"{")
    _, out = told(capsys, run)
    assert "actor_update step 2: 3 of 4 ranks, rank 1 missing" in out
    assert out.count("only an unfinished .tmp is there") == 1
    (said,) = as_json(capsys, run)["unfinished"]
    assert said.startswith("actor_update step 2 rank 1: only an unfinished .tmp is there: actor_")


@pytest.mark.parametrize("number", [1, 5, 6])
def test_of_up_to_five_damaged_files_each_is_named(tmp_path, capsys, number):
    for rank in range(6):
        content = trace(rank, 6) if rank >= number else trace(rank, 6, events=50)[:-20]
        place(tmp_path, f"actor_update/prof_rank-{rank}.json.gz", content)
    out = told(capsys, tmp_path)[1]
    section = out.partition("Damaged, empty, or not to be read as it is:\n")[2].partition("\n\n")[0]
    named = [rank for rank in range(6) if f"actor_update/prof_rank-{rank}.json.gz" in section]
    assert named == (list(range(number)) if number <= 5 else [0])
    assert ("6 times, such as actor_update/prof_rank-0" in section) == (number == 6)
    assert ("--json names each of them" in section) == (number == 6)
    # However it is told, it is one sentence.
    assert section.count("the gzip has no end") == 1


def test_files_of_others_are_not_called_unknown(run, capsys):
    export(run, 70_000, 1, 0)
    place(run, "notes.txt", b"hello")
    _, out = told(capsys, run, "--profiler-type", "torch")
    assert "  1 file of nvtx, which was not asked for" in out.splitlines()
    assert "  1 file of no profiler that is known" in out.splitlines()
    found = as_json(capsys, run, "--profiler-type", "torch")
    assert (found["others"], found["unclaimed"]) == ({"nvtx": 1}, 1)


def test_one_file_that_is_no_profile_is_called_by_its_own_name(tmp_path, capsys):
    notes = place(tmp_path, "notes.txt", b"hello")
    code, out = told(capsys, notes)
    assert code == 1
    assert f"Nothing to draw: {str(notes)!r} is no " in out
    assert "among its" not in out
