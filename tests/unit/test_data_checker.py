"""A check is all or nothing for who calls it, and findings for everybody else."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from rl_insight.data import DataChecker, DataEnum, DataValidationError, Finding
from rl_insight.data import rules as every_rule
from rl_insight.data.rules import (
    RULES,
    RULES_BY_KIND,
    PathExistsRule,
    ReadableRule,
    TreeRule,
    ValidationRule,
    register_rule,
)
from rl_insight.data.tree import scan
from rl_insight.errors import PluginError, RLInsightError

CHECKOUT = Path(__file__).resolve().parents[2]

KINDS = [
    "multi_json_mstx",
    "multi_json_torch",
    "multi_json_nvtx",
    "ascend_memory",
    "verl_log",
    "gmm_data",
    "summary_event",
    "gmm_summary",
    "memory_summary",
    "unknown",
]
FOLDER_KINDS = [*KINDS[:4], "gmm_data"]


@pytest.fixture
def own_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is gone behind it."""
    monkeypatch.setattr(RULES, "_known", dict(RULES._known))
    before = {kind: list(rules) for kind, rules in RULES_BY_KIND.items()}
    yield
    RULES_BY_KIND.clear()
    RULES_BY_KIND.update(before)


def trace(folder: Path, name: str = "prof_rank-0_1_2.json", **changed: object) -> Path:
    event = {"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 5.0, "dur": 1.0, **changed}
    info = {"rank": 0, "world_size": 1, "backend": "nccl"}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps({"distributedInfo": info, "traceEvents": [event]}))
    return path


def test_the_kinds_have_their_documented_names() -> None:
    assert [kind.value for kind in DataEnum] == KINDS
    assert [kind.name for kind in DataEnum] == [name.upper() for name in KINDS]


def test_every_kind_but_unknown_has_rules() -> None:
    assert {kind for kind in KINDS if not DataChecker.rules[kind]} == {"unknown"}
    assert DataChecker(DataEnum.UNKNOWN, object()).run() == []


@pytest.mark.parametrize("kind", FOLDER_KINDS)
@pytest.mark.parametrize("data", ["no/such/folder", "", {"a": 1}, None, 3, b""])
def test_what_is_no_path_fails_with_one_sentence(kind: str, data: object) -> None:
    with pytest.raises(DataValidationError) as caught:
        DataChecker(kind, data).run()

    assert str(caught.value).startswith("Data validation failed\n  - the ")
    assert len(caught.value.errors) == 1
    if not isinstance(data, str) or not data:
        assert "not a path" in caught.value.errors[0]


@pytest.mark.parametrize("kind", FOLDER_KINDS)
def test_an_empty_folder_fails_for_every_kind_of_folder(kind: str, tmp_path: Path) -> None:
    with pytest.raises(DataValidationError, match="there is no "):
        DataChecker(kind, tmp_path).run()


def test_the_parameters_have_their_documented_names(tmp_path: Path) -> None:
    trace(tmp_path / "actor_update")
    assert DataChecker(data_type=DataEnum.MULTI_JSON_TORCH, data=str(tmp_path)).run() == []


def test_a_listing_is_as_good_as_its_path(tmp_path: Path) -> None:
    trace(tmp_path / "actor_update")
    assert DataChecker(DataEnum.MULTI_JSON_TORCH, scan(tmp_path)).run() == []


def test_a_folder_is_listed_once_and_each_file_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = trace(tmp_path / "actor_update")
    from rl_insight.data import trace_check, validation_rule

    listed, read = [], []
    reader = trace_check.ChromeTraceReader

    def counted(path: Path, *more: object, **options: object) -> object:
        read.append(path)
        return reader(path, *more, **options)

    monkeypatch.setattr(validation_rule, "scan", lambda root: listed.append(root) or scan(root))
    monkeypatch.setattr(trace_check, "ChromeTraceReader", counted)
    DataChecker("multi_json_torch", tmp_path).run()
    assert (listed, read) == ([tmp_path], [path])


def test_one_bad_source_fails_the_check_and_the_others_are_told_all_the_same(
    tmp_path: Path,
) -> None:
    trace(tmp_path / "actor_update")
    (tmp_path / "actor_update" / "prof_rank-1_1_2.json").write_text("{")
    checker = DataChecker(DataEnum.MULTI_JSON_TORCH, tmp_path)

    assert {(one.path, one.severity) for one in checker.findings()} == {
        ("actor_update/prof_rank-1_1_2.json", "error")
    }
    with pytest.raises(DataValidationError) as caught:
        checker.run()
    assert caught.value.findings == checker.findings()
    assert caught.value.exit_code == 1


def test_what_is_no_error_comes_back_from_a_good_run(tmp_path: Path) -> None:
    trace(tmp_path / "actor_update")
    (tmp_path / "actor_update" / "prof_rank-1_1_2.json.tmp").write_text("{")
    (only,) = DataChecker(DataEnum.MULTI_JSON_TORCH, tmp_path).run()
    assert (only.rule, only.severity) == ("TorchJsonFileExistsRule", "info")
    assert "killed writer" in only.message


def test_the_error_lists_its_lines() -> None:
    error = DataValidationError("Data validation failed", ["line1", "line2"])
    assert isinstance(error, RLInsightError)
    assert str(error) == "Data validation failed\n  - line1\n  - line2"
    assert error.errors == ["line1", "line2"]


def test_of_thousands_of_errors_the_text_shows_the_first_and_the_count() -> None:
    error = DataValidationError(errors=[f"rank {rank}" for rank in range(1_050)])
    lines = str(error).splitlines()
    assert len(lines) == 52
    assert lines[-2:] == ["  - rank 49", "  - … and 1,000 more"]
    assert len(error.errors) == 1_050


def test_names_from_files_do_not_reach_a_terminal_as_they_are() -> None:
    hostile = "a\x1b[2J\nb\u202ec\udcff"
    assert str(Finding("Rule", "error", "is bad", hostile)) == "a�b�c�: is bad"


@pytest.mark.parametrize("kind", ["multi_json_troch", "", "MULTI_JSON_TORCH"])
def test_an_unknown_kind_is_refused_by_name(kind: str) -> None:
    with pytest.raises(ValueError, match=f"Invalid data type: '{kind}'.*known: multi_json_mstx"):
        DataChecker(kind, ".").findings()
    if kind.endswith("troch"):
        with pytest.raises(ValueError, match="did you mean 'multi_json_torch'"):
            DataChecker(kind, ".").run()


def test_a_path_that_is_there_satisfies_the_rule_about_it(tmp_path: Path) -> None:
    rule = PathExistsRule()
    assert rule.check(str(tmp_path)) is True
    assert rule.check(tmp_path) is True
    assert rule.error_message == ""
    assert rule.check({"path": "x"}) is False
    assert "not a path" in rule.error_message
    assert rule.check(tmp_path / "nothing") is False
    assert "nothing" in rule.error_message
    assert rule.check("a\0b") is False
    assert rule.check("x" * 5_000) is False


def test_a_folder_that_cannot_be_listed_is_an_error_and_a_pipe_is_passed_over(
    ordinary_folder: Path,
) -> None:
    (ordinary_folder / "closed").mkdir(mode=0o000)
    os.mkfifo(ordinary_folder / "pipe")
    findings = list(ReadableRule().findings(ordinary_folder))
    assert [(one.path, one.severity) for one in findings] == [("closed", "error"), ("pipe", "info")]


def test_the_documented_names_of_rules_are_there() -> None:
    assert [name for name in every_rule.__all__ if not hasattr(every_rule, name)] == []
    assert {
        *("PathExistsRule", "MstxJsonFileExistsRule", "MstxJsonFieldValidRule"),
        *("TorchJsonFileExistsRule", "TorchJsonFieldValidRule", "NvtxJsonFileExistsRule"),
        *("NvtxJsonFieldValidRule", "AscendMemoryFileExistsRule", "AscendMemoryFieldValidRule"),
        *("GmmDataRule", "ParserOutputValidatorRule", "VerlLogExistRule", "VerlLogKeyParamsRule"),
        *("ValidationRule", "DataValidationError"),
    } <= set(every_rule.__all__)


@pytest.mark.parametrize(
    "rule",
    [
        *("MstxJsonFileExistsRule", "MstxJsonFieldValidRule"),
        *("TorchJsonFileExistsRule", "TorchJsonFieldValidRule"),
        *("NvtxJsonFileExistsRule", "NvtxJsonFieldValidRule"),
        *("AscendMemoryFileExistsRule", "AscendMemoryFieldValidRule"),
        *("GmmDataRule", "GroupListRule", "ReadableRule"),
    ],
)
def test_a_rule_by_itself_fails_for_a_folder_that_is_not_there(rule: str) -> None:
    own = getattr(every_rule, rule)()
    assert own.check("fake_path") is False
    assert "fake_path" in own.error_message


def test_a_rule_of_the_older_form_works_as_it_is(own_rules: None, tmp_path: Path) -> None:
    @register_rule
    class MarkerRule(ValidationRule):
        kinds = (DataEnum.UNKNOWN,)

        def __init__(self) -> None:
            self._error_message = ""

        def check(self, data: object) -> bool:
            if not (Path(str(data)) / "marker").exists():
                self._error_message = "there is no marker"
                return False
            return True

    with pytest.raises(DataValidationError) as caught:
        DataChecker("unknown", tmp_path).run()
    assert caught.value.findings == [Finding("MarkerRule", "error", "there is no marker")]
    (tmp_path / "marker").touch()
    assert DataChecker("unknown", tmp_path).run() == []


def test_a_rule_that_is_registered_again_takes_the_place_of_the_first(own_rules: None) -> None:
    for text in ("first", "second"):

        @register_rule
        class SpeakingRule(ValidationRule):
            kinds = ("unknown",)
            said = text

            def findings(self, data: object) -> list[Finding]:
                return [self.found("info", self.said)]

        assert [one.message for one in DataChecker("unknown", None).run()] == [text]


def test_rules_can_be_added_to_the_list_of_a_kind(own_rules: None) -> None:
    class LateRule(ValidationRule):
        def findings(self, data: object) -> list[Finding]:
            return [self.found("warning", "late")]

    DataChecker.rules[DataEnum.UNKNOWN].append(LateRule())
    assert [one.message for one in DataChecker(DataEnum.UNKNOWN, 1).run()] == ["late"]


def test_a_rule_with_neither_way_of_checking_is_refused() -> None:
    with pytest.raises(TypeError, match="IdleRule has neither"):
        type("IdleRule", (ValidationRule,), {})


def test_the_example_in_the_docs_runs(
    own_rules: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (CHECKOUT / "docs" / "extending.md").read_text("utf-8")
    section = text.partition("## A rule about data")[2].partition("\n## ")[0]
    blocks = [textwrap.dedent(one.partition("```")[0]) for one in section.split("```python\n")[1:]]
    assert len(blocks) == 2
    trace(tmp_path / "actor_update")
    trace(tmp_path / "actor_update", "prof_rank-1_1_2.json", dur=9.0)
    trace(tmp_path / "ref_compute_log_prob")
    names: dict[str, object] = {"PROFILES": str(tmp_path)}
    for block in blocks:
        exec(block, names)
    assert (
        capsys.readouterr().out == "warning ref_compute_log_prob: 1 trace, elsewhere there are 2\n"
    )
    assert isinstance(names["TracesPerRoleRule"](), TreeRule)


def test_the_docs_name_every_kind() -> None:
    text = (CHECKOUT / "docs" / "extending.md").read_text("utf-8")
    assert [kind for kind in DataEnum if f"`{kind}`" not in text] == []
    assert [kind.name for kind in DataEnum if f"`{kind.name}`" not in text] == []


def test_another_package_adds_rules_and_a_kind_of_its_own(tmp_path: Path) -> None:
    package = CHECKOUT / "tests" / "data" / "outside_package"
    told = tmp_path / "site" / "rl_insight_stopwatch-1.0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rl-insight-stopwatch\nVersion: 1\n"
    )
    (told / "entry_points.txt").write_text(
        "[rl_insight.rules]\nStopwatchRowsRule = rl_insight_stopwatch:StopwatchRowsRule\n"
    )
    assert 'StopwatchRowsRule = "rl_insight_stopwatch:StopwatchRowsRule"' in (
        package / "pyproject.toml"
    ).read_text("utf-8")
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    (profiles / "a.stopwatch.csv").write_text("0,update_actor,1,2\n")
    (profiles / "b.stopwatch.csv").write_text("0,update_actor\n")
    program = (
        "import sys\nfrom rl_insight.data import DataChecker\n"
        "print(*DataChecker('stopwatch', sys.argv[1]).findings(), sep='\\n')\n"
    )
    paths = [str(told.parent), str(package), str(CHECKOUT)]
    done = subprocess.run(
        [sys.executable, "-c", program, str(profiles)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.stdout == "b.stopwatch.csv: row 1 has 2 fields, not 4\n", done.stderr


def test_a_rule_that_cannot_be_loaded_is_named(
    own_rules: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    RULES.register("BrokenRule", "no_such_module_anywhere:BrokenRule")
    RULES_BY_KIND.clear()
    with pytest.raises(PluginError, match="data rule 'BrokenRule' cannot be loaded"):
        DataChecker("unknown", 1).run()


def test_names_are_there_before_anything_heavy_is_imported() -> None:
    program = (
        "import sys\nfrom rl_insight.data import DataChecker, DataEnum, DataValidationError\n"
        "DataChecker(DataEnum.MULTI_JSON_TORCH, 'nothing').findings()\n"
        "DataChecker(DataEnum.SUMMARY_EVENT, {}).findings()\n"
        "print([name for name in ('pandas', 'pyarrow', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
