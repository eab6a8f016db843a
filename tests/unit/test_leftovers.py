"""What a killed run left half made goes away; everybody else's files stay."""

from pathlib import Path

from rl_insight.pipeline.leftovers import sweep


def made(output: Path, *paths: str) -> None:
    for path in paths:
        (output / path).parent.mkdir(parents=True, exist_ok=True)
        (output / path).write_text("half")


def test_files_and_folders_with_temporary_names_are_removed(tmp_path: Path) -> None:
    kept = (
        "rl_timeline.html",
        "tables/spans.parquet",
        "parsed/torch/rank0-1/lanes.parquet",
        "parsed/torch/rank0-1.json",
        ".notes.txt.7.tmp",
        ".cache.tmp/theirs",
    )
    made(tmp_path, *kept)
    made(
        tmp_path,
        ".rl_timeline.html.4711.tmp",
        ".my.picture.png.4711.tmp",
        ".manifest.json.4711.tmp",
        "tables/.spans.parquet.4711.tmp",
        "parsed/.expert_load.parquet.4711.tmp",
        "parsed/torch/.rank0-1.json.4711.tmp",
        "parsed/torch/.rank0-1.tmp/lanes.parquet",
        "parsed/torch/.rank0-1.old.tmp/lanes.parquet",
        ".snakemake/rl-insight/tmp/snakemake1234/report.html",
    )
    sweep(tmp_path)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(
        tmp_path / path for path in kept
    )
    assert not list(tmp_path.glob("parsed/torch/.*"))


def test_the_input_behind_its_link_is_left_alone(tmp_path: Path) -> None:
    output, source = tmp_path / "out", tmp_path / "in"
    made(source, ".rank0.json.4711.tmp", ".rank1.tmp/part")
    (output / "parsed").mkdir(parents=True)
    (output / "parsed" / ".input").symlink_to(source)
    sweep(output)
    assert len([path for path in source.rglob("*") if path.is_file()]) == 2


def test_a_folder_that_was_never_used_is_no_error(tmp_path: Path) -> None:
    sweep(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
