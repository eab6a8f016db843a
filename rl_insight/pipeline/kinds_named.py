"""What went wrong, by kind, for a terminal: of a few inputs all are named, of many the first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rl_insight.pipeline.terminal import printable

MOST_NAMED = 5
"""Of so many inputs of one kind each is named."""

# However many kinds there are, naming their inputs costs no more lines than this.
_ROOM = 30
_LONGEST_PATH = 160
# On a line of its own a path is there to be copied.
_LONGEST_ALONE = 1_000


@dataclass(frozen=True, slots=True)
class Kind:
    """`number` inputs with one trouble: `opening` stands before it, `counted` says how many.

    `named` has the path and the sentence of each where they are few, else at least of the first.
    Sentences are as they are to be shown; "" for none.
    """

    number: int
    counted: str
    named: Sequence[tuple[str, str]]
    opening: str = ""

    @property
    def few(self) -> bool:
        """Whether each of them is to be named."""
        return self.number <= MOST_NAMED


def blocks(kinds: Iterable[Kind], room: int = _ROOM) -> list[list[str]]:
    """The lines of each kind, which take no more than `room` lines beside their first ones."""
    result = []
    for kind in kinds:
        own = _each(kind) if kind.few else []
        if not own or len(own) - 1 > room:
            own = [_such_as(kind)]
        room -= len(own) - 1
        result.append(own)
    return result


def _each(kind: Kind) -> list[str]:
    texts = {text for _, text in kind.named}
    if kind.number > 1 and len(texts) == 1:
        head = kind.opening + kind.counted + _behind(kind.named[0][1])
        return [head, *(f"  {printable(path, _LONGEST_ALONE)}" for path, _ in kind.named)]
    return [
        f"{kind.opening}{printable(path, _LONGEST_PATH)}{_behind(text)}"
        for path, text in kind.named
    ]


def _such_as(kind: Kind) -> str:
    path, text = kind.named[0]
    example = f"such as {printable(path, _LONGEST_PATH)}{_behind(text)}"
    return f"{kind.opening}{kind.counted}, {example}"


def _behind(text: str) -> str:
    return f": {text}" if text else ""
