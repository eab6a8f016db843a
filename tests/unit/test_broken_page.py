"""docs/broken.md names every code that a source can have."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = CHECKOUT / "rl_insight"

CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
SEVERITIES = ("info", "warning", "error")


def literals(node: ast.AST) -> list[str]:
    """The texts that `node` may stand for: itself, or both sides of `a if b else c`."""
    if isinstance(node, ast.IfExp):
        return [*literals(node.body), *literals(node.orelse)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value] if CODE.fullmatch(node.value) else []
    return []


def is_severity(node: ast.AST) -> bool:
    found = literals(node)
    return bool(found) and set(found) <= set(SEVERITIES)


def codes_of(tree: ast.Module) -> Iterator[str]:
    """The codes in a module, by the ways in which they are written there.

    Before a severity (`add(code, "warning")`, `(code, "warning", text)`), handed to a method that
    adds (`_lose`, `_note`, `_stop`) or to an error that carries it, chosen as `code`, listed in
    `for code, …`, or a constant that one of these names, of the module's own or of `problems`.
    """
    shared = ast.parse((PACKAGE / "problems.py").read_text("utf-8"))
    constants: dict[str, str] = {}
    for node in (*ast.walk(shared), *ast.walk(tree)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            for text in literals(node.value):
                constants[node.targets[0].id] = text
    for node in ast.walk(tree):
        given: list[ast.AST] = []
        if isinstance(node, ast.Call):
            arguments: list[ast.expr] = list(node.args)
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("_lose", "_note", "_stop") or name.endswith("LoadError"):
                given += arguments[:1]
        elif isinstance(node, ast.Tuple):
            arguments = list(node.elts)
        else:
            arguments = []
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "code":
                given.append(node.value)
            if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple):
                named = getattr(node.target.elts[0], "id", "") == "code"
                rows = getattr(node.iter, "elts", []) if named else []
                given += [row.elts[0] for row in rows if isinstance(row, ast.Tuple)]
        given += [first for first, second in pairwise(arguments) if is_severity(second)]
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add":
            keywords = {word.arg for word in node.keywords}
            if keywords & {"example", "offset"} or any(map(is_severity, arguments)):
                given += arguments[:1]
        for one in given:
            yield from literals(one)
            if isinstance(one, ast.Name) and one.id in constants:
                yield constants[one.id]


def all_codes() -> set[str]:
    found: set[str] = set()
    for name in ("readers", "parsers", "analysis", "pipeline", "notes.py"):
        path = PACKAGE / name
        for module in path.rglob("*.py") if path.is_dir() else [path]:
            found.update(codes_of(ast.parse(module.read_text("utf-8"))))
    # Named in one module and added in another.
    from rl_insight.notes import EXPERT_IDS_LOCAL
    from rl_insight.parsers.gmm_vector import IMPOSSIBLE, NO_VECTOR
    from rl_insight.readers.json_entries import DAMAGED

    return (found | {EXPERT_IDS_LOCAL, IMPOSSIBLE, NO_VECTOR, DAMAGED}) - set(SEVERITIES)


def test_the_page_names_every_code_and_no_other() -> None:
    text = (CHECKOUT / "docs" / "broken.md").read_text("utf-8")
    written = all_codes()
    assert len(written) > 80
    assert not {code for code in written if f"`{code}`" not in text}
    first_columns = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    told = {
        code for column in first_columns for code in re.findall(r"`([a-z0-9]+_[a-z0-9_]+)`", column)
    }
    sources = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    assert not {code for code in told if f'"{code}"' not in sources}


@pytest.mark.parametrize(
    "words",
    [
        "gave nothing",
        "never analysed",
        "database disk image is malformed",  # SQLite's own
        "its JSON does not close",
        "its last line is cut",
        "the gzip has no end",
        "the gzip is damaged inside",
        "only an unfinished",
        "make fuzz",
    ],
)
def test_what_is_seen_can_be_searched_for(words: str) -> None:
    assert words in (CHECKOUT / "docs" / "broken.md").read_text("utf-8")
    sources = "".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    others = ("database disk image is malformed", "make fuzz")
    assert words in others or words in sources


def test_the_first_script_names_what_is_wrong_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (CHECKOUT / "docs" / "broken.md").read_text("utf-8")
    script = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    span = {"code": "profiler_span", "severity": "info"}
    late = {"code": "clock_skew", "severity": "warning"}
    rows = [
        {"path": "good", "status": "ok", "detail": None, "problems": [span]},
        {"path": "late", "status": "ok", "detail": None, "problems": [span, late]},
        {"path": "gone", "status": "failed", "detail": "no trace", "problems": []},
    ]
    monkeypatch.setattr("rl_insight.tables.read", lambda _: pa.Table.from_pylist(rows))
    exec(script, {})
    assert capsys.readouterr().out.splitlines() == [
        "late ok None ['clock_skew']",
        "gone failed no trace []",
    ]


def test_every_way_of_writing_a_code_is_seen() -> None:
    text = """
NAMED = "by_name"
problems.add("plain_call", "warning", 1)
problems.add(NAMED, severity, example="x")
problems.add("either_one" if a else "or_other", level, offset=3)
self._lose("handed_on", 1)
doubts = [("in_a_tuple", "info", "text")]
code = "chosen_one" if a else "chosen_two"
for code, wrong in (("in_a_loop", mask),):
    pass
seen.add("no_code_at_all")
"""
    assert set(codes_of(ast.parse(text))) == {
        *("by_name", "plain_call", "either_one", "or_other", "handed_on", "in_a_tuple"),
        *("chosen_one", "chosen_two", "in_a_loop"),
    }


def test_the_page_can_be_found() -> None:
    for name in ("README.md", "README.zh.md", "docs/tables.md", "docs/check.md"):
        link = "broken.md" if name.startswith("docs/") else "docs/broken.md"
        assert f"({link})" in (CHECKOUT / name).read_text("utf-8"), name
