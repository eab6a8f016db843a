"""Healthy files take the quick path: what is there for damage is not entered, not even once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rl_insight.parsers.mstx_events import QUICK_EVENT, MstxEvent, MstxEventExact
from rl_insight.parsers.nvtx_json import JsonRows
from rl_insight.parsers.torch_events import TorchEvent, TorchEventExact
from rl_insight.problems import Problems
from rl_insight.readers import event_decoding, json_row
from rl_insight.readers.chrome_trace import ChromeTraceReader

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo" / "data"
CORPUS = ROOT.parent / "shared" / "corpus"

TRACES = sorted((*DEMO.rglob("*.json.gz"), *(CORPUS / "torch").rglob("*.json*")))
ASCEND = sorted((CORPUS / "mstx").rglob("trace_view.json"))
LINES = sorted((CORPUS / "nvtx").rglob("*.jsonl"))


@pytest.fixture
def repairs(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The texts that anything tried to repair."""
    tried: list[bytes] = []

    def note(text: bytes, *_: object) -> Iterator[tuple[bytes, bool]]:
        tried.append(text)
        return iter(())

    monkeypatch.setattr(event_decoding, "repairs", note)
    monkeypatch.setattr(json_row, "repairs", note)
    return tried


def read(reader: ChromeTraceReader[Any]) -> None:
    for events in reader:
        del events
    assert reader.fallback_blocks == 0
    assert {one.code for one in reader.problems if one.severity != "info"} == set()


def shown(path: Path) -> str:
    return path.name


def test_there_are_traces_of_the_demo() -> None:
    assert len(list(DEMO.rglob("*.json.gz"))) >= 20


@pytest.mark.parametrize("path", TRACES, ids=shown)
def test_a_healthy_trace_needs_no_patience(path: Path, repairs: list[bytes]) -> None:
    read(ChromeTraceReader(path, TorchEvent, ("distributedInfo",), TorchEventExact))
    assert repairs == []


@pytest.mark.parametrize("path", ASCEND, ids=shown)
def test_a_healthy_trace_of_ascend_needs_no_patience(path: Path, repairs: list[bytes]) -> None:
    read(ChromeTraceReader(path, MstxEvent, (), MstxEventExact, quick_type=QUICK_EVENT))
    assert repairs == []


@pytest.mark.parametrize("path", LINES, ids=shown)
def test_a_healthy_export_of_nsys_needs_no_repair(path: Path, repairs: list[bytes]) -> None:
    problems = Problems()
    for batch in JsonRows(path, problems):
        del batch
    assert repairs == []
    assert [one.code for one in problems] == []
