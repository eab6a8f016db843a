"""One parse job: a unit file in, one folder of Parquet tables out.

A job does not fail for its input: what cannot be read becomes a `failed` row, so that one bad rank
never costs the others. It imports as little as it can, because there are thousands of it.
"""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from rl_insight import tables
from rl_insight.errors import RLInsightError
from rl_insight.parsers import PARSERS, Found, Parsed, Parser, Source
from rl_insight.pipeline import layout
from rl_insight.pipeline.manifest import read_unit
from rl_insight.pipeline.units import source_id
from rl_insight.schema import SCHEMAS

_LOG = logging.getLogger(__name__)


def parse_unit(unit_file: Path, root: Path, output: Path, options: Mapping[str, object]) -> None:
    """Parse the sources of `unit_file`, which lie below `root`, into the new folder `output`.

    The folder appears whole or not at all.
    Raises CacheError when the unit file is damaged and PluginError when its parser is missing;
    trouble with a source becomes its row in `sources`.
    """
    name, found = read_unit(unit_file)
    parser = PARSERS.get(name)
    results = [(one, _parse_source(parser, one, root, options)) for one in found]
    rows = [_source_row(parser, one, root, parsed) for one, parsed in results]
    content = {"sources": tables.from_rows(SCHEMAS["sources"], rows)}
    for table in parser.tables:
        parts = (parsed.tables[table] for _, parsed in results if table in parsed.tables)
        content[table] = tables.concat(SCHEMAS[table], parts)
    write_folder(output, content)


def write_folder(folder: Path, content: Mapping[str, pa.Table]) -> None:
    """Write every table of `content` into the new `folder`, which appears whole or not at all."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for name, table in content.items():
        tables.write(layout.table(temporary, name), table)
    shutil.rmtree(folder, ignore_errors=True)
    temporary.replace(folder)


def _parse_source(
    parser: Parser, found: Found, root: Path, options: Mapping[str, object]
) -> Parsed:
    source = Source(source_id(found.path), found.path, root, found.files)
    try:
        return parser.parse(source, options)
    except RLInsightError as error:
        _LOG.warning("%s: %s", found.path, error)
        return Parsed("failed", detail=str(error))
    except OSError as error:
        _LOG.warning("%s: %s", found.path, error)
        return Parsed("failed", detail=f"cannot be read: {error.strerror or error}")
    except MemoryError:
        # Not this source's row: the job is tried again with more memory.
        raise
    except Exception as error:
        _LOG.exception("%s", found.path)
        return Parsed(
            "failed", detail=f"the {parser.name} parser stumbled: {type(error).__name__}: {error}"
        )


def _source_row(parser: Parser, found: Found, root: Path, parsed: Parsed) -> dict[str, object]:
    size, mtime = _size_and_mtime(found, root)
    return {
        "source_id": source_id(found.path),
        "path": found.path,
        "parser": parser.name,
        "status": parsed.status,
        "detail": parsed.detail,
        "problems": list(parsed.problems),
        "size_bytes": size,
        "mtime_ns": mtime,
        "events": parsed.events,
    }


def _size_and_mtime(found: Found, root: Path) -> tuple[int | None, int | None]:
    try:
        infos = [(root / file).stat() for file in found.files]
    except OSError:
        return None, None
    return sum(info.st_size for info in infos), max(info.st_mtime_ns for info in infos)
