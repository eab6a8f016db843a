"""Installed as users install it: from a wheel without a checkout, and editable from a checkout."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.workflow.conftest import CHECKOUT, DEMO

pytestmark = [pytest.mark.workflow, pytest.mark.install]


def _environment(folder: Path) -> Path:
    """A fresh virtual environment; gives its folder of programs."""
    venv.create(folder, with_pip=True)
    return folder / "bin"


def _pip(bin_folder: Path) -> list[str | Path]:
    # What is never imported need not be compiled: that is half of the time.
    return [bin_folder / "pip", "install", "--quiet", "--no-compile"]


def _run(words: list[str | Path], folder: Path) -> str:
    # Nothing of the caller's environment or checkout may help.
    clean = {key: os.environ[key] for key in os.environ if not key.startswith("PYTHON")}
    done = subprocess.run(
        words, cwd=folder, env=clean, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_wheel_works_in_an_empty_folder_without_a_checkout(tmp_path: Path) -> None:
    wheels, empty = tmp_path / "wheels", tmp_path / "empty"
    empty.mkdir()
    _run([sys.executable, "-m", "build", "--wheel", "--outdir", wheels, CHECKOUT], tmp_path)
    (wheel,) = wheels.glob("*.whl")
    bin_folder = _environment(tmp_path / "env")
    _run([*_pip(bin_folder), wheel], empty)
    shutil.copytree(DEMO, tmp_path / "profiles")

    said = _run(
        [
            *(bin_folder / "rl-insight", "--input-path", tmp_path / "profiles"),
            *("--profiler-type", "torch", "--rank-list", "0"),
        ],
        empty,
    )

    assert (empty / "output" / "rl_timeline.html").is_file(), said
    assert sorted(path.name for path in empty.iterdir()) == ["output"]


def test_a_checkout_installs_editable_as_documented(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(".venv", ".git", "output", ".snakemake", ".*_cache", "dist")
    shutil.copytree(CHECKOUT, checkout, ignore=ignored)
    bin_folder = _environment(tmp_path / "env")
    _run([*_pip(bin_folder), "-r", "requirements.txt"], checkout)
    _run([*_pip(bin_folder), "-e", "."], checkout)

    said = _run(
        [
            *(bin_folder / "python", "-m", "rl_insight.main"),
            *("input.path=examples/demo/data", "timeline.parser.type=torch"),
            *("timeline.visualizer.type=png", "timeline.parser.step=2"),
        ],
        checkout,
    )

    assert (checkout / "output" / "rl_timeline.png").is_file(), said
