"""The census of an input folder as JSON; docs/check.md names its keys, which stay."""

import json
from dataclasses import asdict

from rl_insight.data.coverage import Coverage
from rl_insight.data.coverage_words import sentences
from rl_insight.data.tree import File
from rl_insight.pipeline.check import Census
from rl_insight.pipeline.check_inputs import Checked
from rl_insight.pipeline.check_report import actions

VERSION = 1


def as_json(census: Census, exit_code: int) -> str:
    """One JSON object, in ASCII: names that are no UTF-8 have a lone surrogate for each byte."""
    content = {
        "version": VERSION,
        "path": str(census.root),
        "middles_seen": False,
        "files": census.files,
        "size_bytes": census.size_bytes,
        "oldest": _file(census.oldest),
        "newest": _file(census.newest),
        "inputs": [_input(one) for one in census.inputs],
        "skipped": [asdict(row) for row in census.skipped],
        "unclaimed": census.unclaimed,
        "others": dict(census.others),
        "unplaced": census.unplaced,
        "unfinished": list(census.unfinished),
        "coverage": {preset: _coverage(found) for preset, found in census.coverage.items()},
        "to_do": list(actions(census)),
        "nothing": census.nothing,
        "exit_code": exit_code,
    }
    return json.dumps(content, indent=1)


def _file(file: File | None) -> dict[str, object] | None:
    return None if file is None else {"path": file.path, "mtime_ns": file.mtime_ns}


def _input(one: Checked) -> dict[str, object]:
    who = one.who
    return {
        "path": one.path,
        "parser": one.parser,
        "preset": one.preset,
        "state": one.state,
        "role": who.role,
        "replica": who.replica,
        "rank_id": who.rank_id,
        "step": who.step,
        "world_size": who.world_size,
        "host": who.host,
        "formats": list(one.formats),
        "files": one.files,
        "size_bytes": one.size_bytes,
        "mtime_ns": one.mtime_ns,
        "problems": [
            {"path": path, "code": found.code, "text": found.text, "harmless": found.harmless}
            for path, found in one.ailments
        ],
    }


def _coverage(found: Coverage) -> dict[str, object]:
    return {
        "expected": found.expected,
        "present": found.present,
        "ranks_expected": found.ranks_expected,
        "ranks_present": found.ranks_present,
        "missing": [asdict(column) for column in found.columns],
        "scattered": list(found.scattered),
        "sentences": sentences(found),
    }
