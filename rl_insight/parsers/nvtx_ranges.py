"""The NVTX ranges of one process, kept small for any number of them.

Three kinds are kept apart. Ranges that may be stages or batches stay, all of them. Of others, and
of the operators that torch's `emit_nvtx` puts around everything it runs, the longest stay: a range
is never longer than the one around it, so none loses what it lies in.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from rl_insight.data import roles
from rl_insight.intervals import IntArray
from rl_insight.parsers.annotations import Annotations, batch_of
from rl_insight.parsers.extent import Extent
from rl_insight.parsers.nvtx_names import UNNAMED, is_library
from rl_insight.parsers.nvtx_rows import LONGEST_NAME, MISSING, Ranges, thread_of

MOST_RANGES = 50_000
MOST_OPERATORS = 2_000


@dataclass(slots=True)
class _Longest:
    """Keeps the `most` longest of the ranges that it is given, whatever blocks they come in.

    Of equally long ones the earlier stay. `shortest` is the length below which none can stay.
    """

    most: int
    parts: list[Ranges] = field(default_factory=list)
    count: int = 0
    shortest: int = 0
    left_out: int = 0

    def add(self, ranges: Ranges) -> None:
        if self.shortest:
            fits = ranges.ends - ranges.starts >= self.shortest
            if not fits.all():
                self.left_out += int(len(fits) - fits.sum())
                ranges = ranges.select(fits)
        if len(ranges) == 0:
            return
        self.parts.append(ranges)
        self.count += len(ranges)
        if self.count > 3 * self.most:
            self.thin()

    def keep(self, earliest: int, latest: int) -> None:
        """Forget those outside of these times (ns)."""
        self.parts = [
            part.select_if((part.starts >= earliest) & (part.ends <= latest)) for part in self.parts
        ]
        self.count = sum(map(len, self.parts))

    def thin(self) -> None:
        """Keep the `most` longest."""
        if self.count <= self.most:
            return
        together = joined(self.parts)
        lengths = together.ends - together.starts
        order = np.lexsort((together.threads, together.starts, -lengths))[: self.most]
        self.shortest = int(lengths[order[-1]])
        self.left_out += self.count - self.most
        self.parts, self.count = [together.select(np.sort(order))], self.most


class ProcessRanges:
    """Collects the ranges of one process; all have an end and a length.

    `extent` is from the first start to the last end, also of those not kept.
    """

    def __init__(self, most: int = MOST_RANGES, most_operators: int = MOST_OPERATORS) -> None:
        self._wanted = _Longest(most)
        self._others = _Longest(most)
        self._operators = _Longest(most_operators)
        self.extent = Extent()

    def add(
        self, ranges: Ranges, own: IntArray, operators: npt.NDArray[np.bool_], names: "KeptNames"
    ) -> None:
        """Take the ranges at the positions `own`; `operators` tells which of all are torch's.

        `names` tells whose ranges must stay.
        """
        if len(own) == 0:
            return
        starts, ends = ranges.starts[own], ranges.ends[own]
        self.extent.add_block(starts, ends)
        # Operators come by the million, and most are too short to stay: none of those is touched.
        called = operators[own]
        long = ends - starts >= self._operators.shortest
        self._operators.left_out += int((called & ~long).sum())
        self._operators.add(_cut(ranges.select(own[called & long])))
        rest = _cut(ranges.select(own[~called]))
        if len(rest) == 0:
            return
        chosen = np.array(
            [
                names.text(text) if text is not None else names.number(number)
                for text, number in zip(rest.texts, rest.text_ids.tolist(), strict=True)
            ],
            dtype=bool,
        )
        self._wanted.add(rest.select(chosen))
        self._others.add(rest.select(~chosen))

    def keep(self, earliest: int, latest: int) -> int:
        """Forget the ranges outside of these times (ns); returns how many there were."""
        for store in (self._wanted, self._others, self._operators):
            store.keep(earliest, latest)
        return self.extent.keep(earliest, latest)

    @property
    def left_out(self) -> int:
        """How many ranges were not kept, besides operators."""
        return self._wanted.left_out + self._others.left_out

    @property
    def operators_left_out(self) -> int:
        """How many of torch's operators were not kept."""
        return self._operators.left_out

    def annotations(
        self, strings: Mapping[int, str], domain_name: Callable[[int], str]
    ) -> tuple[Annotations, int, int]:
        """The ranges with their names and domains, without those of libraries.

        Also how many have no name that can be told, and how many are a library's.
        """
        found = Annotations()
        unnamed = of_libraries = 0
        for store in (self._wanted, self._others, self._operators):
            store.thin()
        parts = [*self._wanted.parts, *self._others.parts, *self._operators.parts]
        if not parts:
            return found, 0, 0
        together = joined(parts)
        domains = {number: domain_name(number) for number in set(together.domains.tolist())}
        dropped = {number for number, name in domains.items() if is_library(name)}
        for start, end, thread, domain, text, text_id in zip(
            together.starts.tolist(),
            together.ends.tolist(),
            together.threads.tolist(),
            together.domains.tolist(),
            together.texts,
            together.text_ids.tolist(),
            strict=True,
        ):
            name = strings.get(text_id) if text is None else text
            if not name:
                unnamed += 1
                name = UNNAMED
            if domain in dropped and roles.canonical(name) not in roles.STAGES:
                of_libraries += 1
                continue
            found.add(start, end, name, str(thread_of(thread)), domains[domain])
        return found, unnamed, of_libraries


class KeptNames:
    """Tells the names that must stay, whatever their length: of stages, and of batches.

    `strings` are those known so far. A name that is not known yet may be one, and stays.
    """

    def __init__(self, strings: Mapping[int, str]) -> None:
        self._strings = strings
        self._known: dict[str, bool] = {}

    def text(self, name: str) -> bool:
        """Whether a range called `name` must stay."""
        known = self._known.get(name)
        if known is None:
            if len(self._known) > 100_000:
                self._known.clear()
            known = batch_of(name) != (None, None) or roles.canonical(name) in roles.STAGES
            self._known[name] = known
        return known

    def number(self, text_id: int) -> bool:
        """The same for a range that is called by the string with that id."""
        name = self._strings.get(text_id)
        return text_id != MISSING if name is None else self.text(name)


def _cut(ranges: Ranges) -> Ranges:
    """The same without the rest of names that are too long to be kept."""
    if all(text is None or len(text) <= LONGEST_NAME for text in ranges.texts):
        return ranges
    cut = [None if text is None else text[:LONGEST_NAME] for text in ranges.texts]
    return replace(ranges, texts=cut)


def joined(parts: list[Ranges]) -> Ranges:
    """Several as one."""
    if len(parts) == 1:
        return parts[0]
    return Ranges(
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.ends for part in parts]),
        np.concatenate([part.kinds for part in parts]),
        np.concatenate([part.threads for part in parts]),
        np.concatenate([part.domains for part in parts]),
        [text for part in parts for text in part.texts],
        np.concatenate([part.text_ids for part in parts]),
    )
