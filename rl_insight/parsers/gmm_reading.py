"""Reading one dump: its small JSON files first, then one group list after the other."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from rl_insight.data import packings
from rl_insight.data.names import DUMP_FOLDER, folder_facts, root_label
from rl_insight.errors import ReadError
from rl_insight.parsers import gmm_dump, gmm_parallel, gmm_stack
from rl_insight.parsers.base import Parsed, Source
from rl_insight.parsers.gmm_calls import CallNumbers
from rl_insight.parsers.gmm_discovery import DUMP, METADATA, STACK
from rl_insight.parsers.gmm_dump import Dump
from rl_insight.parsers.gmm_files import GroupLists, file_name
from rl_insight.parsers.gmm_names import Call, call_of, kind_by_format
from rl_insight.parsers.gmm_parallel import Place
from rl_insight.parsers.gmm_rows import LoadRows
from rl_insight.parsers.gmm_stack import BACKWARD, Phases
from rl_insight.parsers.gmm_vector import NotALoadError, Vector, vector
from rl_insight.parsers.gmm_words import settle
from rl_insight.problems import LEFTOVER, PACKED_OTHERWISE
from rl_insight.readers.torch_file import read

# In `Dump.files`: a file is named, and it was there.
_NAMED, _SEEN = 1, 2


@dataclass(slots=True)
class DumpReader:
    """Reads `source` once; what came of it stands in `parsed` when `rows` is exhausted."""

    source: Source
    parsed: Parsed
    _dump: Dump | None = None
    _phases: Phases = field(default_factory=Phases)
    _place: Place | None = None
    # Joining paths as such takes a tenth of the time of all else.
    _root: str = ""
    # Calls with a row of their own.
    _read: CallNumbers = field(default_factory=CallNumbers)
    # Files that dump.json names.
    _named: int = 0
    _nameless: int = 0
    _unsaid: int = 0
    _experts: dict[int, str] = field(default_factory=dict)

    def rows(self) -> Iterator[pa.Table]:
        """Rows of `expert_load`, by API and number of the call, in tables of a bounded size."""
        self._root = str(self.source.root)
        files = GroupLists(self.source.files)
        self._read_json(files)
        rows = LoadRows(self.source.source_id)
        for path, call in files:
            self._count_named(call)
            if self._file(path, call, rows) and rows.full:
                yield rows.take()
        for _ in self._listed(rows):
            if rows.full:
                yield rows.take()
        if len(rows):
            yield rows.take()
        self._leftovers(files)
        self._doubts()
        settle(self.parsed, self._dump, 0 if self._dump is None else self._dump.named - self._named)

    def _read_json(self, files: GroupLists) -> None:
        problems, root = self.parsed.problems, self.source.root
        for path in self.source.files:
            name = file_name(path) if path.endswith(".json") else ""
            if name == DUMP:
                self._dump = gmm_dump.read(root / path, problems)
            elif name == STACK:
                self._phases = gmm_stack.read(root / path, problems, files.apis)
            elif name == METADATA:
                # Beside the dump it is the rank's own, above it that of whoever wrote it there.
                folder = path.replace("\\", "/").rpartition("/")[0]
                own = self.source.path in (folder or ".", f"{folder}/{DUMP_FOLDER}".lstrip("/"))
                rank = folder_facts(self.source.path, root_label(root)).rank
                self._place = gmm_parallel.place(root / path, rank, own, problems)

    def _count_named(self, call: Call | None) -> None:
        """Count a file that dump.json names, the first time."""
        dump = self._dump
        if dump is not None and call is not None and dump.files.get(call) == _NAMED:
            dump.files.put(call, _SEEN)
            self._named += 1

    def _file(self, path: str, call: Call | None, rows: LoadRows) -> bool:
        """Read one file into a row; False where there is none."""
        problems = self.parsed.problems
        if call is not None and self._read.get(call):
            problems.add("duplicate_call", "info", example=file_name(path))
            return False
        where = f"{self._root}/{path}"
        try:
            content = read(where)
            found = vector(content.value)
        except ReadError as error:
            why = str(error).removeprefix(f"{where} cannot be read: ")
            problems.add("unreadable", "warning", example=f"{file_name(path)}: {why}")
            return False
        except NotALoadError as error:
            self._left_out(error, file_name(path))
            return False
        exact = content.exact_to
        if exact is not None and int(found.numbers.max()) > exact:
            example = f"{file_name(path)}: its kind of numbers is exact up to {exact} only"
            problems.add("inexact_counts", "warning", example=example)
        self._row(found, call, file_name(path), rows)
        return True

    def _listed(self, rows: LoadRows) -> Iterator[None]:
        """Add the group lists that stand in dump.json itself."""
        if self._dump is None or not self._dump.lists:
            return
        path = next(path for path in self.source.files if file_name(path) == DUMP)
        for call, numbers in gmm_dump.lists(self.source.root / path):
            if self._read.get(call):
                continue
            what = f"{call.api} {call.number} in {DUMP}"
            try:
                self._row(vector(numbers), call, what, rows)
            except NotALoadError as error:
                self._left_out(error, what)
                continue
            yield

    def _left_out(self, error: NotALoadError, where: str) -> None:
        self.parsed.problems.add(error.code, "warning", example=f"{where}: {error}")

    def _row(self, found: Vector, call: Call | None, where: str, rows: LoadRows) -> None:
        api = call.api if call is not None else None
        if call is None:
            self.parsed.problems.add("unnumbered_call", "warning", example=where)
            number, phase = self._nameless, None
            self._nameless += 1
        else:
            self._read.put(call, 1)
            number = call.number
            phase = BACKWARD if call.backward else self._phases.get(call)
        kind, told_by = self._kind(found, call, where)
        place = self._place
        rows.add(
            found.numbers,
            op_index=number,
            api=api,
            phase=phase,
            ep_rank=place.rank if place else None,
            ep_size=place.size if place else None,
            expert_offset=place.offset(found.experts) if place and not found.pairs else None,
            load_kind=kind,
            load_kind_from=told_by,
        )
        self._experts.setdefault(found.experts, where)
        self.parsed.events += 1

    def _kind(
        self, found: Vector, call: Call | None, where: str
    ) -> tuple[str, str] | tuple[None, None]:
        """What the numbers are and what says so, as far as the dump or the format tells."""
        told = self._dump.kind(call) if self._dump is not None and call is not None else None
        if found.pairs:
            if told not in (None, "pairs"):
                example = f"{where}: a list of pairs, which {DUMP} calls {told}"
                self.parsed.problems.add("kind_conflict", "warning", example=example)
            return "pairs", "format"
        if told == "pairs":
            example = f"{where}: a plain list, which {DUMP} calls pairs"
            self.parsed.problems.add("kind_conflict", "warning", example=example)
            told = None
        by_format = kind_by_format(call.api if call is not None else None)
        if by_format is not None:
            return by_format, "format"
        if told is not None:
            return told, DUMP
        if self._dump is not None:
            self._unsaid += 1
        return None, None

    def _leftovers(self, files: GroupLists) -> None:
        """Tell of files that were not completed or are packed, unless the same was read."""

        def read(path: str) -> bool:
            call = call_of(file_name(path))
            return call is not None and bool(self._read.get(call))

        problems = self.parsed.problems
        problems.add_left(LEFTOVER, [(file_name(path), read(path)) for path in files.leftovers])
        words = [
            (f"{file_name(one)}: {packings.why_not_read(one)}", read(one)) for one in files.packed
        ]
        problems.add_left(PACKED_OTHERWISE, words)

    def _doubts(self) -> None:
        problems = self.parsed.problems
        problems.add(
            "not_in_dump", "info", self._unsaid, example=f"calls whose kind {DUMP} does not tell"
        )
        if len(self._experts) > 1:
            counts = sorted(self._experts)
            example = f"{_listing(counts)} experts, first in {self._experts[counts[0]]}"
            problems.add("experts_differ", "warning", len(counts) - 1, example=example)


def _listing(counts: list[int]) -> str:
    shown = [str(count) for count in counts[:5]]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(counts) <= 5 else ", ".join(shown)
