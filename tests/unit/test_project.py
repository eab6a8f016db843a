"""The project's own files agree with each other."""

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from rl_insight.schema import SCHEMAS

CHECKOUT = Path(__file__).resolve().parents[2]


def test_requirements_txt_repeats_the_core_dependencies() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = (CHECKOUT / "requirements.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == project["dependencies"]


def test_every_rule_has_a_script_and_every_script_a_rule() -> None:
    rules = "".join(path.read_text("utf-8") for path in CHECKOUT.glob("workflow/rules/*.smk"))
    scripts = {path.name for path in (CHECKOUT / "scripts").glob("*.py")}
    assert scripts == {name for name in scripts if f"../../scripts/{name}" in rules}
    assert rules.count("../../scripts/") == len(scripts)


def test_scripts_stay_thin() -> None:
    for script in (CHECKOUT / "scripts").glob("*.py"):
        assert len(script.read_text("utf-8").splitlines()) < 20, script.name


def test_both_readmes_name_the_same_commands() -> None:
    def commands(name: str) -> list[str]:
        text = (CHECKOUT / name).read_text("utf-8")
        blocks = text.split("```")[1::2]
        return [
            line.split("  ")[0].strip()
            for block in blocks
            for line in block.splitlines()
            if line.startswith(("rl-insight", "make", "pip", "python"))
        ]

    assert commands("README.md") == commands("README.zh.md")
    assert "make test" in commands("README.md")


def test_every_column_of_every_table_is_documented() -> None:
    text = (CHECKOUT / "docs" / "tables.md").read_text("utf-8")
    sections = {part.split(" ", 1)[0]: part for part in text.split("\n## ")[1:]}
    for name, schema in SCHEMAS.items():
        missing = [column for column in schema.names if f"`{column}`" not in sections[name]]
        assert not missing, f"docs/tables.md, {name}"


# Each may import from itself and from what stands before it.
LAYERS = (
    ("errors", "files", "identity_expressions", "plain_text", "shell_words", "problems", "notes",
     "presets", "selection", "table_names", "schema", "tables", "table_parts", "part_writer",
     "table_writer", "registry", "without_pandas", "intervals", "breakdown"),
    ("config", "config_docs", "config_file", "config_keys", "config_kinds", "config_model",
     "config_values"),
    ("data", "readers"),
    ("parsers", "analysis", "visualizers"),
    ("pipeline",),
    ("commandline", "help", "main"),
)  # fmt: skip


def test_the_architecture_names_the_modules_at_the_bottom_and_none_that_is_gone() -> None:
    text = (CHECKOUT / "docs" / "architecture.md").read_text("utf-8")
    assert [name for name in LAYERS[0] if f"`{name}`" not in text] == []
    named = set(re.findall(r"\b(\w+\.py)`", text))
    assert len(named) > 10
    assert named <= {path.name for path in (CHECKOUT / "rl_insight").rglob("*.py")}


# They meet in the tables only.
APART = ("parsers", "analysis", "visualizers")


def test_imports_go_downwards_only() -> None:
    level = {name: at for at, names in enumerate(LAYERS) for name in names}
    package = CHECKOUT / "rl_insight"
    for module in package.rglob("*.py"):
        own = module.relative_to(package).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
                if node.module == "rl_insight":
                    names = [f"rl_insight.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                parts = name.split(".")
                if parts[0] != "rl_insight" or parts[1] == "__version__":
                    continue
                same = parts[1] == own
                sideways = level[parts[1]] == level[own] and own in APART
                assert same or (level[parts[1]] <= level[own] and not sideways), (
                    f"{module.name} imports {name}"
                )


@pytest.mark.parametrize(
    "script", sorted((CHECKOUT / "examples").glob("*_exec.sh")), ids=lambda path: path.name
)
def test_an_example_script_passes_further_arguments_on(script: Path, tmp_path: Path) -> None:
    told = tmp_path / "python"
    told.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    told.chmod(0o755)

    ran = subprocess.run(
        [script, tmp_path, "out", "a.key=1-3", "two words"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=True,
    )

    words = ran.stdout.splitlines()
    assert words[:2] == ["-m", "rl_insight.main"]
    assert words[-2:] == ["a.key=1-3", "two words"]
