"""What runs again after each kind of change, through the command line and through Snakemake.

Each test is one output folder in which one thing after the other changes; it counts the jobs that a
real Snakemake started.
"""

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.group_lists import write_dump
from tests.workflow.conftest import CHECKOUT, Ended, rows, run

pytestmark = pytest.mark.workflow

Captures = Callable[[str], Path]
Driver = Callable[[Path, Mapping[str, object]], Ended]

NOTHING: Counter[str] = Counter()
_RULE = re.compile(r"^(?:local)?rule (\w+):", re.MULTILINE)


def command_line(output: Path, settings: Mapping[str, object]) -> Ended:
    """`rl-insight key=value …`."""
    return run(output, *(f"{key}={value}" for key, value in settings.items()))


def bare_snakemake(output: Path, settings: Mapping[str, object]) -> Ended:
    """`snakemake --cores 2` with a configuration file, as in a checkout."""
    nested: dict[str, object] = {}
    for key, value in {**settings, "output.path": str(output), "input.settle": 0}.items():
        *sections, last = key.split(".")
        place = nested
        for section in sections:
            inner = place.setdefault(section, {})
            assert isinstance(inner, dict)
            place = inner
        place[last] = value
    file = output.parent / "config.yaml"
    file.write_text(yaml.safe_dump(nested))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "snakemake", "--cores", "2"),
            *("--snakefile", str(CHECKOUT / "workflow" / "Snakefile")),
            *("--configfile", str(file), "--replace-workflow-config"),
        ],
        cwd=output.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    started = Counter(_RULE.findall(done.stderr))
    started.pop("all", None)
    return Ended(done.returncode, done.stdout + done.stderr, started)


@pytest.fixture(params=[command_line, bare_snakemake])
def driver(request: pytest.FixtureRequest) -> Driver:
    chosen: Driver = request.param
    return chosen


def timeline_jobs(parse: int = 0, **more: int) -> Counter[str]:
    return +Counter({"parse": parse, "merge": 1, "timeline_html": 1, "timeline_png": 1, **more})


def test_a_timeline_is_made_anew_where_it_is_stale_and_nowhere_else(
    driver: Driver, captures: Captures, tmp_path: Path
) -> None:
    source, output = captures("*actor-update_step1_*"), tmp_path / "out"
    settings = {
        "input.path": source,
        "timeline.parser.type": "torch",
        "timeline.visualizer.type": "html,png",
    }
    settings = {key: str(value) for key, value in settings.items()}

    def jobs(**changed: str) -> Counter[str]:
        done = driver(output, {**settings, **changed})
        assert done.code == 0, done.text
        return done.jobs

    assert jobs() == timeline_jobs(parse=4)
    assert jobs() == NOTHING, "nothing changed"

    for path in source.iterdir():
        path.touch()
    assert jobs() == NOTHING, "touched"

    copied = tmp_path / "copied" / "traces"
    shutil.copytree(source, copied, copy_function=shutil.copyfile)
    settings["input.path"] = str(copied)
    assert jobs() == NOTHING, "copied"

    moved = copied.rename(tmp_path / "moved")
    settings["input.path"] = str(moved)
    assert jobs() == NOTHING, "moved"

    captures("*actor-update_step2_*rank0*")
    new = next(source.glob("*actor-update_step2_*"))
    shutil.copy(new, moved)
    assert jobs() == timeline_jobs(parse=1), "a new step"
    assert {row["step"] for row in rows(output, "lanes")} == {1, 2}

    shutil.copy(new, moved / new.name.replace("rank0-of-4", "rank9-of-16"))
    assert jobs() == timeline_jobs(parse=1), "a new rank"

    shutil.copy(new, moved / new.name.replace("actor-update", "ref-log-prob"))
    assert jobs() == timeline_jobs(parse=1), "a new role"
    assert len({row["role"] for row in rows(output, "lanes")}) == 2

    shutil.rmtree(next(path for path in (output / "parsed" / "torch").iterdir() if path.is_dir()))
    assert jobs() == timeline_jobs(parse=1), "a lost cache"

    (moved / new.name).write_bytes(next(moved.glob("*step1_rank1*")).read_bytes())
    assert jobs() == timeline_jobs(parse=1), "a changed file"

    (moved / new.name).unlink()
    assert jobs() == timeline_jobs(), "a removed file"
    assert new.name not in {row["path"] for row in rows(output, "sources")}

    assert jobs(**{"timeline.visualizer.width": "1000"}) == Counter({"timeline_png": 1})
    settings["timeline.visualizer.width"] = "1000"

    assert jobs(**{"timeline.parser.step": "1"}) == timeline_jobs(), "a filter"
    settings["timeline.parser.step"] = "1"
    captures("*actor-update_step2_*rank1*")
    shutil.copy(next(source.glob("*actor-update_step2_*rank1*")), moved)
    assert jobs() == Counter({"merge": 1, "timeline_html": 1, "timeline_png": 1}), "filtered away"

    before = output
    output = tmp_path / "another"
    assert jobs() == timeline_jobs(parse=4), "another output folder"
    output = before
    assert jobs() == NOTHING, "which costs this one nothing"


def test_an_expert_load_is_made_anew_where_it_is_stale(tmp_path: Path) -> None:
    # Through Snakemake; the command line's turn is in test_heatmap.
    source, output = tmp_path / "dump", tmp_path / "out"
    settings = {"preset": "heatmap", "input.path": str(source)}
    every = Counter({"merge": 1, "structure": 1, "heatmap_gmm_heatmap": 1})

    def dump(step: int) -> None:
        # Two layers of three grouped matmuls each.
        calls = [[step + 4, 1, 2, 3]] * 3 + [[3, 2, 1, step + 4]] * 3
        write_dump(source, step, "actor_update", 0, calls, group_list_type=1)

    def jobs(**changed: str) -> Counter[str]:
        done = bare_snakemake(output, {**settings, **changed})
        assert done.code == 0, done.text
        return done.jobs

    dump(1)
    assert jobs() == Counter({"parse": 1}) + every
    dump(2)
    assert jobs() == Counter({"parse": 1}) + every, "a new step"
    assert jobs(**{"heatmap.visualizer.dpi": "90"}) == Counter({"heatmap_gmm_heatmap": 1})
    settings["heatmap.visualizer.dpi"] = "90"
    settings["heatmap.visualizer.gmm_per_layer"] = "6"
    assert jobs() == Counter({"structure": 1, "heatmap_gmm_heatmap": 1}), "how it is structured"
    assert jobs(**{"heatmap.parser.step": "2"}) == every, "a filter"


def test_a_new_cache_version_parses_again_and_a_reinstalled_package_does_not(
    captures: Captures, tmp_path: Path
) -> None:
    # GIVEN a run by a package that was installed somewhere
    source, output = captures("*actor-update_step1_*"), tmp_path / "out"
    package = tmp_path / "installed"
    env = {"PYTHONPATH": str(package)}

    def install() -> None:
        shutil.rmtree(package, ignore_errors=True)
        for part in ("rl_insight", "workflow", "scripts"):
            shutil.copytree(CHECKOUT / part, package / part, copy_function=shutil.copyfile)

    def jobs() -> Counter[str]:
        words = ("--input-path", str(source), "--profiler-type", "torch")
        done = run(output, *words, env=env, cwd=tmp_path)
        assert done.code == 0, done.text
        return done.jobs

    install()
    first = Counter({"parse": 4, "merge": 1, "timeline_html": 1})
    assert jobs() == first

    # WHEN it is installed again, which makes all its files newer than what they made
    install()
    # THEN nothing is stale
    assert jobs() == NOTHING

    # WHEN its parser writes something else than before
    parser = package / "rl_insight" / "parsers" / "torch.py"
    text = parser.read_text()
    changed = re.sub(r"cache_version = (\d+)", "cache_version = 999", text)
    assert changed != text
    parser.write_text(changed)
    # THEN what it parsed is parsed again
    assert jobs() == first
