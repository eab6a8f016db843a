"""Whose process an export of nsys is, by the few rows that tell it, without reading the others.

Only where Ray's name (`worker_process_<pid>`) says which process it was: whose rank the processes
below a launcher are is known only when all of them were seen.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from rl_insight.data.names import facts
from rl_insight.errors import ReadError
from rl_insight.parsers import nvtx_environment as environment
from rl_insight.parsers.nvtx_ranks import Named, ranks
from rl_insight.parsers.nvtx_rows import Fact
from rl_insight.parsers.nvtx_schema import CAPTURE, SYSTEM
from rl_insight.problems import Problems
from rl_insight.readers.sqlite import MAGIC

_TELLING: Final = (CAPTURE, SYSTEM)
_SUFFIXES: Final = (".parquet", ".arrow")
_LONGEST_LINE: Final = 1_000


class _Row(msgspec.Struct, gc=False):
    name: str | int | float | None = None
    table: str | None = None
    value: msgspec.Raw = msgspec.Raw()


_ROW: Final = msgspec.json.Decoder(_Row)
_TEXT: Final = msgspec.json.Decoder(str | int)


def told(
    root: Path, path: str, files: Sequence[str], ends: Sequence[bytes]
) -> Mapping[str, object]:
    """`rank_id`, `world_size` and `host` of the capture at `path`, as far as that is cheap to see.

    `files` are its files, and `ends` the text of the beginning and the end of one that is alone.
    Never raises for what is in them.
    """
    name = facts(path)
    if name.grammar != "nsys" or name.pid is None:
        return {}
    # What is damaged is told by whoever reads all of it.
    found: list[Fact] = []
    with contextlib.suppress(ReadError, OSError):
        found.extend(_facts(root, files, ends))
    (own,) = ranks(found, [name.pid], Named(name.pid, name.rank), Problems())
    hosts = (fact.value for fact in found if fact.name == environment.HOSTNAME)
    return {"rank_id": own.rank_id, "world_size": own.world_size, "host": next(hosts, None)}


def _facts(root: Path, files: Sequence[str], ends: Sequence[bytes]) -> Iterator[Fact]:
    tables = {
        stem: root / file
        for file in files
        if file.endswith(_SUFFIXES) and (stem := PurePosixPath(file).stem) in _TELLING
    }
    if tables:
        from rl_insight.parsers.nvtx_arrow import ArrowRows

        yield from (one for one in ArrowRows(tables, Problems()) if isinstance(one, Fact))
    elif len(files) == 1 and ends and ends[0].startswith(MAGIC):
        from rl_insight.parsers.nvtx_sqlite import SqliteRows

        rows = SqliteRows(root / files[0], Problems(), _TELLING)
        yield from (one for one in rows if isinstance(one, Fact))
    elif len(files) == 1:
        for text in ends:
            yield from _in_lines(text)


def _in_lines(text: bytes) -> Iterator[Fact]:
    """What whole lines of `text` say; whole environments are in it, so little is decoded."""
    signs = tuple(table.encode() for table in _TELLING)
    for line in text.splitlines():
        if len(line) > _LONGEST_LINE or not any(sign in line for sign in signs):
            continue
        with contextlib.suppress(msgspec.MsgspecError, RecursionError):
            row = _ROW.decode(line)
            table = row.table or ""
            if environment.may_pass(table, row.name, bytes(row.value)):
                yield from environment.facts_in(table, row.name, _TEXT.decode(row.value))
