"""The words of `rl-insight watch`, and what it does where drawing is not possible."""

import signal
from pathlib import Path

import pytest

from rl_insight.errors import CacheError, ConfigError, InputError
from rl_insight.main import main
from rl_insight.pipeline.watch_command import path_and_words, tell_pages, watch


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["in"], ["--input-path", "in"]),
        (["in", "--cores", "2"], ["--input-path", "in", "--cores", "2"]),
        (["--input-path", "in"], ["--input-path", "in"]),
        (["input.path=in", "preset=all"], ["input.path=in", "preset=all"]),
        ([], []),
    ],
)
def test_the_folder_may_stand_alone(words: list[str], meant: list[str]) -> None:
    assert path_and_words(words) == meant


def test_a_folder_whose_name_looks_like_a_setting_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lr=0.1").mkdir()
    assert path_and_words(["lr=0.1"]) == ["--input-path", "lr=0.1"]


def test_help_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: rl-insight watch FOLDER")


@pytest.mark.parametrize(
    "words", [[], ["in", "--dry-run"], ["in", "--unlock"], ["in", "--no-such-flag"], ["in", "x=1"]]
)
def test_mistakes_end_it_before_it_begins(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", *words]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_what_is_wrong_with_the_input_is_waited_out_and_what_is_asked_wrongly_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, output = tmp_path / "in", tmp_path / "out"
    root.mkdir()
    errors = iter([InputError("holds no profile"), CacheError("incomplete"), ConfigError("no")])
    count = 0

    def draw() -> int:
        nonlocal count
        count += 1
        # The next look finds something new.
        (root / f"rank{count}").write_text("x")
        raise next(errors)

    (root / "rank0").write_text("x")
    with pytest.raises(ConfigError):
        watch(root, output, 0, draw)
    said = capsys.readouterr().err
    assert "Nothing to draw yet: holds no profile" in said
    assert "error: incomplete" in said
    assert count == 3


def test_what_fails_after_something_was_drawn_is_tried_again_though_nothing_new_comes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl_insight.pipeline.watch._FIRST_RETRY_S", 0.5)
    root = tmp_path / "in"
    root.mkdir()
    (root / "rank0").write_text("x")
    rounds = 0

    def draw() -> int:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            (root / "rank1").write_text("x")
            return 0
        if rounds == 2:
            raise ConfigError("cannot write: No space left on device")
        if rounds == 3:
            return 1
        raise KeyboardInterrupt

    assert watch(root, tmp_path / "out", 0, draw) == 0
    assert rounds == 4
    said = capsys.readouterr().err
    assert "error: cannot write: No space left on device\nTrying again in 0.5 s" in said
    assert "once more." in said
    assert "Trying again in 1.0 s" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_ends_it_ends_it_well(
    number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rank0").write_text("x")

    def draw() -> int:
        signal.raise_signal(number)
        raise AssertionError("it went on")

    assert watch(tmp_path, tmp_path / "out", 0, draw) == 0
    assert "No longer watching" in capsys.readouterr().err


def test_pages_are_told_what_they_are_now(tmp_path: Path) -> None:
    tell_pages(tmp_path / "missing", watching=True)
    (tmp_path / "rl_timeline.html").write_text("page")
    tell_pages(tmp_path, watching=True)
    first = (tmp_path / "live.js").read_text()
    assert first.startswith('rlInsightLive({"rl_timeline.html": "')
    (tmp_path / "rl_timeline.html").write_text("a newer page")
    tell_pages(tmp_path, watching=True)
    assert (tmp_path / "live.js").read_text() != first
    tell_pages(tmp_path, watching=False)
    assert (tmp_path / "live.js").read_text() == "rlInsightLive(null);\n"
