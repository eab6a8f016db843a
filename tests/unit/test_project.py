"""The project's own files agree with each other."""

import tomllib
from pathlib import Path

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
