"""The census of an input folder in lines for a terminal."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime

from rl_insight.data.coverage_words import sentences
from rl_insight.data.packings import may_be_gzip, split
from rl_insight.data.tree import File
from rl_insight.pipeline.check import Census
from rl_insight.pipeline.check_grid import grid_lines
from rl_insight.pipeline.check_growing import STILL_GROWING
from rl_insight.pipeline.check_inputs import WORKER_PROCESS
from rl_insight.pipeline.kinds_named import MOST_NAMED, Kind, blocks
from rl_insight.pipeline.terminal import printable
from rl_insight.plain_text import count
from rl_insight.problems import PACKED_OTHERWISE
from rl_insight.shell_words import command_line

MIDDLES = (
    "Only the beginning and the end of each file were looked at: "
    "what lies between may still be damaged."
)
_MOST_LINES = 12
_MOST_TROUBLES = 30
# Of these the sentence says more than the code.
_EACH = ("wrong_content", "gave_nothing", "partly_read")
_STATES = {"growing": "still being written"}
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def report(census: Census) -> list[str]:
    """All that there is to say, in a bounded number of lines."""
    lines = [_headline(census), *_ages(census), MIDDLES]
    if census.nothing is not None:
        lines += ["", f"Nothing to draw: {printable(census.nothing, 1_000)}"]
    for title, body in (
        ("Inputs", _inputs(census)),
        *_grids(census),
        ("Missing" if census.missing else "Not known", _capped(_missing(census), _MOST_LINES)),
        ("Damaged, empty, or not to be read as it is", _named(_troubles(census), _MOST_TROUBLES)),
        ("Still being written", _named(_growing(census), _MOST_LINES)),
        ("Passed over", _named(_skipped(census), _MOST_LINES)),
        ("To do", list(actions(census))),
    ):
        if body:
            lines += ["", f"{title}:", *(f"  {line}" for line in body)]
    if census.inputs and not census.lacking:
        whole = "No file is damaged at its ends."
        if not census.unplaced:
            whole = "Nothing is missing, and no file is damaged at its ends."
        lines += ["", whole]
    return lines


def actions(census: Census) -> Iterator[str]:
    """What to do about it, the first thing first; a command stands last in its line."""
    raw = [one for one in census.inputs if one.state == "raw"]
    if raw:
        words = ["rl-insight", "preprocess", str(census.root)]
        yield f"export {count(len(raw), 'raw capture')}: {command_line(words)}"
    codes = Counter(ailment.code for one in census.inputs for _, ailment in one.ailments)
    if codes["statistics_only"]:
        dumps = count(codes["statistics_only"], "dump")
        yield f"dump again with msprobe's task «tensor»: {dumps} without tensors"
    if any(row.status == "empty" for row in census.skipped):
        yield "see whether the profiler was on for the roles whose folders are empty"
    if any(row.status == "failed" for row in census.skipped):
        yield "make readable what could not be listed"
    lost = [one for one in census.inputs if one.state in ("damaged", "empty", "unreadable")]
    paths = [[p for p, what in one.ailments if what.code == PACKED_OTHERWISE] for one in lost]
    packed = sum(map(bool, paths))
    if packed:
        gzip = all(may_be_gzip(split(path)[0]) for some in paths for path in some)
        instead = ", or pack them with gzip, which is read" if gzip else ""
        yield f"unpack {count(packed, 'input')}{instead}"
    copied = len(lost) - packed
    if copied:
        yield f"copy {count(copied, 'damaged input')} again, if the job's own disk has more of them"
    growing = sum(one.state == "growing" for one in census.inputs)
    if growing:
        words = ["rl-insight", "check", str(census.root)]
        what = count(growing, "input")
        yield f"look again at {what} still being written: {command_line(words)}"
    ready = Counter(one.parser for one in census.inputs if one.gives)
    presets = {one.parser: one.preset for one in census.inputs}
    for parser, number in ready.most_common():
        chosen = f"{presets[parser]}.parser.type={parser}"
        words = ["rl-insight", "--input-path", str(census.root), chosen]
        yield f"draw {count(number, f'{parser} input')}: {command_line(words)}"


def _headline(census: Census) -> str:
    where = printable(str(census.root), 1_000)
    return f"{where}: {count(census.files, 'file')}, {_size(census.size_bytes)}"


def _ages(census: Census) -> Iterator[str]:
    for what, file in (("oldest", census.oldest), ("newest", census.newest)):
        if file is not None and census.files > 1:
            yield f"  {what}: {_date(file)}  {printable(file.path, 160)}"


def _inputs(census: Census) -> list[str]:
    lines = []
    for parser in sorted({one.parser for one in census.inputs}):
        own = [one for one in census.inputs if one.parser == parser]
        formats = Counter(name for one in own for name in one.formats)
        listed = ", ".join(f"{name} {number:,}" for name, number in formats.most_common(6))
        states = Counter(one.state for one in own)
        told = ", ".join(
            f"{number:,} {_STATES.get(state, state)}" for state, number in states.most_common()
        )
        size = _size(sum(one.size_bytes for one in own))
        lines.append(
            f"{parser}: {count(len(own), 'input')}, {size}: {told}; {listed or 'no files'}"
        )
    for parser, number in census.others.items():
        lines.append(f"{count(number, 'file')} of {parser}, which was not asked for")
    if census.unclaimed:
        lines.append(f"{count(census.unclaimed, 'file')} of no profiler that is known")
    return lines


def _grids(census: Census) -> Iterator[tuple[str, list[str]]]:
    for preset, found in census.coverage.items():
        recorded = [one.recorded for one in census.inputs if one.preset == preset]
        processes = f"{found.ranks_present:,} of {count(found.ranks_expected, 'rank')}"
        lines = grid_lines(recorded, found)
        if WORKER_PROCESS in {one.role for one in recorded}:
            lines.append("The stages and steps in captures of nsys are known once they are read.")
        yield f"Ranks there of those expected ({preset}, {processes})", lines


def _missing(census: Census) -> list[str]:
    told = [line for found in census.coverage.values() for line in sentences(found)]
    lines = [printable(line) for line in (*told, *census.unfinished)]
    if census.unplaced:
        lines.append(
            f"of {count(census.unplaced, 'input')} the role or the rank is known only once "
            "read: whether any of those is missing cannot be told here"
        )
    return lines


def _troubles(census: Census) -> list[Kind]:
    """What is wrong, by kind."""
    kinds: dict[tuple[str, str, str], list[tuple[str, str]]] = defaultdict(list)
    for one in census.inputs:
        for path, ailment in one.ailments:
            text = ailment.text if ailment.code in _EACH else ""
            if ailment.code != STILL_GROWING:
                kinds[one.parser, ailment.code, text].append((path, ailment.text))
    return [_kind(found) for found in kinds.values()]


def _growing(census: Census) -> list[Kind]:
    found = [
        (path, ailment.text)
        for one in census.inputs
        for path, ailment in one.ailments
        if ailment.code == STILL_GROWING
    ]
    return [_kind(found)] if found else []


def _skipped(census: Census) -> list[Kind]:
    kinds: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for row in census.skipped:
        kinds[row.status, row.reason].append((row.path, row.reason))
    return [_kind(found) for found in kinds.values()]


def _kind(found: list[tuple[str, str]]) -> Kind:
    named = [(path, printable(text)) for path, text in found[:MOST_NAMED]]
    return Kind(len(found), f"{len(found):,} times", named)


def _named(kinds: list[Kind], most: int) -> list[str]:
    lines = [line for block in blocks(kinds[:most]) for line in block]
    more = len(kinds) - most
    if more > 0:
        lines.append(f"and {count(more, 'more kind')}; --json has all")
    elif len(lines) < sum(kind.number for kind in kinds):
        lines.append("--json names each of them")
    return lines


def _capped(lines: list[str], most: int) -> list[str]:
    more = len(lines) - most
    return (
        lines if more <= 0 else [*lines[:most], f"and {count(more, 'more line')}; --json has all"]
    )


def _size(number: int) -> str:
    size = float(number)
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            return f"{number} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return ""


def _date(file: File) -> str:
    try:
        return f"{datetime.fromtimestamp(file.mtime_ns / 1e9):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return "no date"
