"""One parse job: a unit file in, one folder of Parquet tables out.

A job does not fail for its input: what cannot be read becomes a `failed` row, so that one bad rank
never costs the others. It imports as little as it can, because there are thousands of it.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from rl_insight import tables
from rl_insight.errors import ReadError, RLInsightError
from rl_insight.parsers import PARSERS, Found, Parsed, Parser, Source
from rl_insight.part_writer import PartWriter
from rl_insight.pipeline import layout
from rl_insight.pipeline.cache_folder import new_folder
from rl_insight.pipeline.unit_file import read_unit, readable
from rl_insight.pipeline.units import source_id
from rl_insight.plain_text import holds_command
from rl_insight.problems import READ_FAILED
from rl_insight.schema import SCHEMAS, STATUSES
from rl_insight.table_parts import write_part

_LOG = logging.getLogger(__name__)

# `detail` is one sentence for a person; an error may quote what it stumbled over.
_DETAIL_LIMIT = 1_000
_NOBODYS: Mapping[str, object] = {}


def parse_unit(unit_file: Path, root: Path, output: Path, options: Mapping[str, object]) -> None:
    """Parse the sources of `unit_file`, which lie below `root`, into the new folder `output`.

    `root` may be a link to the input folder. The folder appears whole or not at all.
    Raises CacheError when the unit file is damaged and PluginError when its parser is missing;
    trouble with a source becomes its row in `sources`.
    """
    name, found = read_unit(unit_file)
    parser = PARSERS.get(name)
    if root.is_symlink():
        # The input folder's own name may say whose captures it holds.
        root = root.parent / root.readlink()
    with new_folder(output) as folder, contextlib.ExitStack() as stack:
        parts = {
            table: stack.enter_context(PartWriter(layout.table(folder, table), SCHEMAS[table]))
            for table in ("sources", *parser.tables)
        }
        unread = {one.path for one in found if not _parse_source(parser, one, root, options, parts)}
        # What nobody could read when the run began is looked at again by each run anyway.
        if unread and not unread.isdisjoint(readable(unit_file)):
            (folder / layout.UNREAD).touch()


def write_folder(folder: Path, content: Mapping[str, pa.Table], marker: str | None = None) -> None:
    """Write every table of `content` into the new `folder`, which appears whole or not at all.

    `marker` names an empty file that it has from the beginning.
    """
    with new_folder(folder) as temporary:
        for name, table in content.items():
            write_part(layout.table(temporary, name), table)
        if marker is not None:
            (temporary / marker).touch()


def _parse_source(
    parser: Parser,
    found: Found,
    root: Path,
    options: Mapping[str, object],
    writers: Mapping[str, PartWriter],
) -> bool:
    """Write the tables of one source, and its row of `sources`.

    Gives whether the system let us read all of it, whatever there was to be read.
    """
    refused = False
    source = Source(source_id(found.path), found.path, root, found.files)
    # Whether anything of it is written already, which nothing takes back.
    begun = False
    try:
        parsed = parser.parse(source, options)
        for name, part in _parts(parsed):
            _check(parser, source, name, part)
            writers[name].add(part)
            begun = True
        for name, table in parsed.tables.items():
            _check(parser, source, name, table)
        row = _row(parser, source, parsed)
        refused = READ_FAILED in parsed.problems
        for name, table in parsed.tables.items():
            writers[name].add(table)
    except MemoryError:
        # Not this source's row: the job is tried again with more memory.
        raise
    except Exception as error:
        detail = in_words(error, parser, source)
        if isinstance(error, RLInsightError | OSError):
            _LOG.warning("%s: %s", found.path, error)
        else:
            _LOG.exception("%s", found.path)
        whose = error.whose if isinstance(error, ReadError) else {}
        row = _lost(parser, source, detail, begun, whose)
        refused = _from_system(error)
    writers["sources"].add(row)
    # Without a time one of its files is gone.
    return not refused and row["mtime_ns"].null_count == 0


def _from_system(error: BaseException | None) -> bool:
    """Whether the system's own refusal is behind `error`; Arrow's OSError has no number."""
    if isinstance(error, OSError):
        return error.errno is not None
    return error is not None and _from_system(error.__cause__)


def in_words(error: Exception, parser: Parser, source: Source) -> str:
    """What the row of `source` says of an error that ended its parser; the row names the path."""
    if isinstance(error, RLInsightError):
        path = str(source.absolute)
        return str(error).removeprefix(f"{path} ").replace(f"{path}/", "")
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return f"the {parser.name} parser stumbled: {type(error).__name__}: {error}"


def _parts(parsed: Parsed) -> Iterator[tuple[str, pa.Table]]:
    for name, parts in parsed.parts.items():
        for part in parts:
            yield name, part


def _check(parser: Parser, source: Source, name: str, table: pa.Table) -> None:
    """What one parser does wrong must not reach the other sources. Raises ValueError."""
    if name not in parser.tables:
        raise ValueError(f"the table {name!r} is not among those that it said it writes")
    if not table.schema.equals(SCHEMAS[name]):
        raise ValueError(f"the table {name!r} has not the columns of its schema")
    owners = table["source_id"] if "source_id" in table.schema.names else ()
    # Not by `unique`: it imports pyarrow.compute, a tenth of a second in every job.
    if any(owner.as_py() != source.source_id for owner in owners):
        raise ValueError(f"the table {name!r} has rows of another source")


def _lost(
    parser: Parser,
    source: Source,
    detail: str,
    begun: bool,
    whose: Mapping[str, object] = _NOBODYS,
) -> pa.Table:
    return _row(parser, source, Parsed("salvaged" if begun else "failed", detail), whose)


def _row(
    parser: Parser, source: Source, parsed: Parsed, whose: Mapping[str, object] = _NOBODYS
) -> pa.Table:
    """The row of `sources`, as a table, with the role, rank and step that are known to be its own.

    Raises ValueError for what a parser must not say.
    """
    if parsed.status not in STATUSES:
        raise ValueError(f"{parsed.status!r} is no status; there are {', '.join(STATUSES)}")
    known = {name: whose.get(name) for name in ("role", "rank_id", "step")}
    return tables.from_rows(SCHEMAS["sources"], [{**_source_row(parser, source, parsed), **known}])


def _source_row(parser: Parser, source: Source, parsed: Parsed) -> dict[str, object]:
    size, mtime = _size_and_mtime(source)
    detail = parsed.detail
    if detail is not None and len(detail) > _DETAIL_LIMIT and not holds_command(detail):
        detail = f"{detail[: _DETAIL_LIMIT - 1]}…"
    return {
        "source_id": source.source_id,
        "path": source.path,
        "parser": parser.name,
        "status": parsed.status,
        "detail": detail,
        "problems": list(parsed.problems),
        "size_bytes": size,
        "mtime_ns": mtime,
        "events": parsed.events,
    }


def _size_and_mtime(source: Source) -> tuple[int | None, int | None]:
    # One after the other: what the system tells of 100,000 files takes 60 MB.
    size, latest = 0, None
    try:
        for file in source.files:
            info = (source.root / file).stat()
            size += info.st_size
            latest = info.st_mtime_ns if latest is None else max(latest, info.st_mtime_ns)
    except OSError:
        return None, None
    return size, latest
