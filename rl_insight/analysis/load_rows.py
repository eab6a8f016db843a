"""The rows of one step's expert load as flat numpy arrays, and who recorded them.

A table of 300,000 vectors is never turned into Python objects: the vectors stay one flat array with
the place and length of each, and everything else is an array over the rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rl_insight.schema import PHASES

UNKNOWN = -1
"""Stands for null in the integer arrays here; nothing that they hold is negative."""

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of strings: `code` per row is a place in `names`, or UNKNOWN."""

    code: Array
    names: tuple[str, ...]

    def name(self, code: int) -> str | None:
        """The string of `code`, None for UNKNOWN."""
        return self.names[code] if code >= 0 else None


@dataclass(frozen=True, slots=True)
class Piece:
    """Vectors that lie one after the other: `values[start : start + length]`."""

    rows: slice
    values: Array
    start: Array
    length: Array

    def sums(self, values: Array) -> Array:
        """Per vector the sum of `values`, one per value of the piece."""
        before = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=before[1:])
        return np.asarray(before[self.start + self.length] - before[self.start])


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of int64, each `values[start : start + length]`, in the order of `start`; a row
    without one has length 0."""

    values: Array
    start: Array
    length: Array

    def __len__(self) -> int:
        return len(self.start)

    def of(self, row: int) -> Array:
        """The vector of one row."""
        return self.values[self.start[row] : self.start[row] + self.length[row]]

    def block(self, rows: Array, length: int) -> Array:
        """The vectors of `rows`, all of `length`, as a 2-D array."""
        return np.asarray(self.values[self.start[rows][:, None] + np.arange(length)])

    def pieces(self, most: int = 1 << 20) -> Iterator[Piece]:
        """All vectors, in pieces of about `most` values: what is worked out on them stays small."""
        end = self.start + self.length
        low = 0
        while low < len(self):
            first = self.start[low]
            high = max(low + 1, int(np.searchsorted(self.start, first + most)))
            last = int(end[low:high].max())
            rows = slice(low, high)
            yield Piece(rows, self.values[first:last], self.start[rows] - first, self.length[rows])
            low = high

    def sums(self) -> Array:
        """The sum of each vector."""
        total = np.zeros(len(self), dtype=np.int64)
        for piece in self.pieces():
            total[piece.rows] = piece.sums(piece.values)
        return total


@dataclass(frozen=True, slots=True)
class LoadRows:
    """The rows of one step; `group` numbers those of one (role, rank, API), `sequence` those of one
    (source, API). A rank that is not known is not one rank: its rows are grouped by source."""

    step: int | None
    source: Labels
    role: Labels
    api: Labels
    rank: Array
    op: Array
    layer: Array
    phase: Array
    vectors: Vectors
    group: Array
    sequence: Array

    def __len__(self) -> int:
        return len(self.rank)

    def whose(self, row: int) -> str:
        """For a sentence: role, rank and step of `row`."""
        role = self.role.name(int(self.role.code[row])) or "an unknown role"
        rank = int(self.rank[row])
        owner = f"{role} rank {rank}" if rank >= 0 else f"{role} of an unknown rank"
        return owner if self.step is None else f"{owner} step {self.step}"


def load_rows(load: pa.Table) -> LoadRows:
    """The rows of `load`, which holds one step of EXPERT_LOAD."""
    source, role, api = (labels(load[name]) for name in ("source_id", "role", "api"))
    rank = integers(load["rank_id"])
    anonymous = np.where(rank < 0, source.code, UNKNOWN)
    steps = load["step"].drop_null()
    return LoadRows(
        step=steps[0].as_py() if len(steps) else None,
        source=source,
        role=role,
        api=api,
        rank=rank,
        op=integers(load["op_index"]),
        layer=integers(load["layer"]),
        phase=_phases(labels(load["phase"])),
        vectors=_vectors(load["load"]),
        group=numbered(role.code, rank, anonymous, api.code),
        sequence=numbered(source.code, role.code, rank, api.code),
    )


def integers(column: pa.ChunkedArray) -> Array:
    """An integer column as int64, UNKNOWN for null."""
    filled = pc.fill_null(column.cast(pa.int64()), UNKNOWN)
    return np.asarray(filled.to_numpy())


def nullable(values: Array) -> pa.Array:
    """The way back from `integers`: null for UNKNOWN."""
    return pa.array(values, mask=values < 0)


def labels(column: pa.ChunkedArray) -> Labels:
    """A column of strings, plain or a dictionary."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    joined = column.unify_dictionaries().combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.chunk(0) if joined.num_chunks else pa.array([], column.type)
    code = pc.fill_null(joined.indices.cast(pa.int64()), UNKNOWN).to_numpy(zero_copy_only=False)
    return Labels(np.asarray(code), tuple(joined.dictionary.to_pylist()))


def numbered(*columns: Array) -> Array:
    """One number from 0 per distinct combination of the values of a row."""
    number = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, code = np.unique(column, return_inverse=True)
        _, number = np.unique(number * (code.max(initial=0) + 1) + code, return_inverse=True)
    return number


def parts(number: Array) -> list[Array]:
    """The rows of each number that `numbered` gave, in their order."""
    order = np.argsort(number, kind="stable")
    cuts = np.flatnonzero(np.diff(number[order])) + 1
    return np.split(order, cuts) if len(order) else []


def places(start: Array, length: Array) -> Array:
    """start, start + 1, … of each vector, one after the other."""
    shift = start - (np.cumsum(length) - length)
    return np.repeat(shift, length) + np.arange(int(length.sum()))


def _phases(given: Labels) -> Array:
    known = {name: at for at, name in enumerate(PHASES)}
    place = np.array([known.get(name, UNKNOWN) for name in given.names] + [UNKNOWN])
    return np.asarray(place[given.code])


def _vectors(column: pa.ChunkedArray) -> Vectors:
    joined = column.combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.chunk(0) if joined.num_chunks else pa.array([], column.type)
    offsets = np.asarray(joined.offsets).astype(np.int64)
    length = np.diff(offsets)
    if joined.null_count:
        length[np.asarray(joined.is_null().to_numpy(zero_copy_only=False))] = 0
    values = pc.fill_null(joined.values, 0) if joined.values.null_count else joined.values
    return Vectors(np.asarray(values), offsets[:-1], length)
