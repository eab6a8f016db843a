"""SQLite files that nobody checked: opened read-only, asked by column name, read in chunks."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from rl_insight.errors import ReadError
from rl_insight.problems import JOURNAL_UNREAD, Problems
from rl_insight.readers.gzip_head import GZIP_MAGIC
from rl_insight.readers.pseudo_files import holds_bytes

MAGIC = b"SQLite format 3\x00"

# Python reads SQLite's own message as UTF-8, which quotes a damaged schema as it stands there.
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises."""

_CHUNK_ROWS = 16_384

# Neither locked nor asked for a journal.
_AS_IT_STANDS = "mode=ro&immutable=1"

# Where the header says how the database is written, and the value for a write-ahead log (SQLite,
# "Database File Format", 1.3.3).
_WRITE_VERSION = 18
_WITH_LOG = b"\x02"

# What a check of the pages says of rows (pragma.c, PragTyp_INTEGRITY_CHECK).
_CONSTRAINTS = (
    "NULL value in",
    "CHECK constraint failed",
    "TEXT value in",
    "NUMERIC value in",
    "non-unique entry",
    "non-INT value in",
    "non-BLOB value in",
    "non-TEXT value in",
)


@contextlib.contextmanager
def database(path: Path, problems: Problems | None = None) -> Iterator[sqlite3.Connection]:
    """A read-only connection to the database at `path`; nothing is ever written beside it.

    A database that cannot be opened with its journal (the folder is not writable, another process
    holds a lock) is read as it stands on disk; `problems` gets `journal_unread` where there is one,
    since what was written last is only in there. One that was cut off opens, too: only what asks
    for a missing page fails. Queries reach tables only: a view may run for ever.
    Raises ReadError when it is no database or is damaged, also for queries inside the block.
    """
    try:
        with contextlib.closing(_open(path, problems)) as connection:
            yield connection
    except DAMAGE as error:
        raise ReadError(f"the database cannot be read: {error}") from error


def columns(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """The column names of `table`, in whatever case; none where there is no such table.

    Raises sqlite3.DatabaseError where something else is called so, and where it is damaged.
    """
    known = connection.execute(
        "SELECT type, rootpage FROM sqlite_master WHERE name = ? COLLATE NOCASE", (table,)
    ).fetchone()
    if known is None:
        return ()
    kind, rootpage = known
    if kind != "table" or not rootpage:
        what = "virtual table" if kind == "table" else kind
        raise sqlite3.DatabaseError(f"it is no table, but of the kind «{what}»")
    names = tuple(row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table)})"))
    if not names:
        raise sqlite3.DatabaseError("it is no table, or one without columns")
    return names


def check(connection: sqlite3.Connection, table: str) -> None:
    """Look at the pages of `table`, whose rows may have been read without complaint.

    SQLite reads on in a page that is zero or another's, and gives rows that nobody wrote, or fewer
    than there were. It takes a thirtieth of the time of reading the rows.
    Raises sqlite3.DatabaseError where a page is damaged.
    """
    damage = page_damage(connection, table)
    if damage is not None:
        raise sqlite3.DatabaseError(f"damaged inside: {damage}")


def chunks(
    connection: sqlite3.Connection, query: str, values: Sequence[object] = ()
) -> Iterator[list[tuple[object, ...]]]:
    """The rows of `query`, some ten thousand at a time, so that memory stays bounded.

    Where the database is damaged, those before the damage are given before that is raised.
    """
    given = 0
    rows: list[tuple[object, ...]] = []
    try:
        cursor = connection.execute(query, values)
        # Unlike `fetchmany`, this keeps what it has.
        while True:
            rows.extend(islice(cursor, _CHUNK_ROWS))
            if not rows:
                return
            given += len(rows)
            yield rows
            rows = []
    except DAMAGE:
        # Python's cursor looks one row ahead, and where it meets damage there, loses both.
        with contextlib.suppress(*DAMAGE):
            last = f"{query} LIMIT 1 OFFSET {given + len(rows)}"
            rows += connection.execute(last, values).fetchall()
        if rows:
            yield rows
        raise


def page_damage(connection: sqlite3.Connection, table: str | None = None) -> str | None:
    """What is damaged in the pages of a database, in SQLite's words; None where it is whole.

    Reads the whole database, or `table`. Rows that break a constraint of theirs are no damage.
    """
    asked = "20" if table is None else quoted(table)
    try:
        for (found,) in connection.execute(f"PRAGMA quick_check({asked})"):
            text = decoded(found) if isinstance(found, bytes) else str(found)
            if text != "ok" and not any(words in text for words in _CONSTRAINTS):
                return " ".join(text.split())
    except DAMAGE as error:
        return str(error)
    return None


def names_nothing(connection: sqlite3.Connection) -> bool:
    """Whether a database has pages for tables and names none: zeros stand where the names stood."""
    (named,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    # Without a table no page is read for this.
    return not named and page_damage(connection) is not None


def decoded(raw: bytes) -> str:
    """The text of a database, which nobody checked."""
    return raw.decode("utf-8", "replace")


def quoted(name: str) -> str:
    """`name` as an identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _open(path: Path, problems: Problems | None) -> sqlite3.Connection:
    try:
        with path.open("rb") as file:
            head = file.read(_WRITE_VERSION + 1) if holds_bytes(file) else b""
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror or error}") from error
    if not head:
        raise ReadError("the database is empty (0 bytes): its writer was killed")
    if not head.startswith(MAGIC):
        raise ReadError(f"this is no SQLite database, whatever its name says{_but(head)}")
    try:
        if head[_WRITE_VERSION:] != _WITH_LOG:
            return _connect(path, "mode=ro")
        if _size(path.with_name(f"{path.name}-wal")):
            return _connect(path, "mode=ro&vfs=unix-none", alone=True)
        # SQLite would make an empty log, to lock it.
        return _connect(path, _AS_IT_STANDS)
    except sqlite3.OperationalError as error:
        _tell_journal(path, problems, error)
        return _connect(path, _AS_IT_STANDS)
    except sqlite3.DatabaseError:
        return _connect(path, _AS_IT_STANDS, cut_off=True)


def _but(head: bytes) -> str:
    """What a file is instead, where its first bytes tell."""
    if head.startswith(GZIP_MAGIC):
        return ": it is packed with gzip; unpack it"
    return "" if head.strip(b"\0") else ": it begins with zero bytes; copy it again"


def _tell_journal(path: Path, problems: Problems | None, error: sqlite3.Error) -> None:
    for suffix in ("-wal", "-journal"):
        journal = path.with_name(f"{path.name}{suffix}")
        if problems is not None and _size(journal):
            why = f"what is only in {journal.name} is not read: {error}"
            problems.add(JOURNAL_UNREAD, "warning", example=why)


def _size(path: Path) -> int:
    """Bytes of a file; 0 where there is none that can be looked at."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _connect(
    path: Path, parameters: str, *, cut_off: bool = False, alone: bool = False
) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?{parameters}", uri=True, timeout=1
    )
    try:
        connection.text_factory = decoded
        # A hostile schema may hold views and triggers that call functions, or that never end;
        # and it may say that they are tables.
        connection.execute("PRAGMA trusted_schema = OFF")
        if alone:
            # Who shares a write-ahead log with others puts an index of it beside the database,
            # even to read; alone, the index stays in memory (SQLite, "Write-Ahead Logging").
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.set_authorizer(_authorize)
        if cut_off:
            # SQLite believes a file that is shorter than it says only to who may repair it
            # (btree.c, lockBtree); nothing can be written here all the same.
            connection.execute("PRAGMA writable_schema = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _authorize(
    action: int, first: str | None, second: str | None, schema: str | None, view: str | None
) -> int:
    """What a statement may do: nothing through a view or trigger, which comes last."""
    return sqlite3.SQLITE_OK if view is None else sqlite3.SQLITE_DENY
