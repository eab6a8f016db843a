"""The files of a source, in the order in which the calls that they belong to were recorded."""

from array import array
from collections.abc import Iterator, Sequence

import numpy as np

from rl_insight.parsers.gmm_discovery import LEFTOVERS
from rl_insight.parsers.gmm_names import GROUP_LIST, Call, call_of

_NAMELESS = 1 << 30


class GroupLists:
    """The group lists among `files`, sorted by API and number; 100,000 take a few megabytes.

    A file whose name tells no call comes last, in the order of the names; the files of the others
    beside a dump are passed over. `leftovers` are those that a writer did not complete, `packed`
    those that a person packed, and the folder of tensors where that was.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files
        self._apis: dict[str, int] = {}
        self.leftovers: list[str] = []
        self.packed: list[str] = []
        positions, apis, numbers, backward = array("q"), array("q"), array("q"), array("b")
        for position, path in enumerate(files):
            if path.endswith(LEFTOVERS):
                self.leftovers.append(path)
                continue
            if not path.endswith(GROUP_LIST):
                if not path.endswith(".json"):
                    self.packed.append(path)
                continue
            call = call_of(file_name(path))
            positions.append(position)
            apis.append(_NAMELESS if call is None else self._api(call.api))
            numbers.append(0 if call is None else call.number)
            backward.append(call is not None and call.backward)
        columns = [np.frombuffer(one, one.typecode) for one in (positions, backward, numbers, apis)]
        order = np.lexsort(columns) if positions else np.array([], np.intp)
        self._positions, self._backward, self._numbers, self._in_api = (
            one[order] for one in columns
        )

    @property
    def apis(self) -> list[str]:
        """The names of the APIs, as the files have them."""
        return list(self._apis)

    def _api(self, name: str) -> int:
        return self._apis.setdefault(name, len(self._apis))

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[tuple[str, Call | None]]:
        """Each file with its call."""
        names = dict(enumerate(self._apis))
        for at, position in enumerate(self._positions):
            api = names.get(int(self._in_api[at]))
            call = None
            if api is not None:
                call = Call(api, int(self._numbers[at]), bool(self._backward[at]))
            yield self._files[position], call


def file_name(path: str) -> str:
    """The name of a file, whose path may be one of Windows as a whole."""
    return path.rpartition("/")[2].rpartition("\\")[2]
