"""Names of device operations as small integers, so that millions of events need few bytes each."""

from collections.abc import Callable

from rl_insight.schema import CATEGORIES

OTHER = "(other)"

# Bounds for a hostile or endless set of names; what comes after counts under OTHER.
_MOST_NAMES = 60_000
_MOST_CHARACTERS = 4_000_000

LEFT_OUT = -1


class OpNames:
    """Codes for (category, name), where a category is an index into `schema.CATEGORIES`.

    The first codes stand for device time of a category whose names are no longer known (`united`),
    the next for the names beyond the bounds. All codes fit an unsigned 16-bit integer.
    """

    def __init__(self) -> None:
        count = len(CATEGORIES)
        self.names: list[str] = [""] * count + [OTHER] * count
        self.categories: list[int] = [*range(count), *range(count)]
        self._codes: dict[tuple[int, str], int] = {}
        self._characters = 0

    def __len__(self) -> int:
        return len(self.names)

    @property
    def has_room(self) -> bool:
        """Whether a new name would still get a code of its own."""
        return len(self.names) < _MOST_NAMES and self._characters < _MOST_CHARACTERS

    def united(self, category: int) -> int:
        """The code of device time without a name."""
        return category

    def code(self, category: int, name: str) -> int:
        """The code of `name`; that of OTHER when there are too many names already."""
        known = self._codes.get((category, name))
        if known is not None:
            return known
        if not self.has_room:
            return len(CATEGORIES) + category
        self._characters += len(name)
        code = len(self.names)
        self.names.append(name)
        self.categories.append(category)
        self._codes[category, name] = code
        return code


class NameCodes(dict[object, int]):
    """From a name to its code, worked out once per distinct name: the look-up of a hot loop.

    `classify` gives the category of a name, or None for one that is left out (LEFT_OUT).
    """

    def __init__(self, names: OpNames, classify: Callable[[str], int | None]) -> None:
        super().__init__()
        self._names = names
        self._classify = classify

    def __missing__(self, name: object) -> int:
        text = name if isinstance(name, str) else "" if name is None else str(name)
        category = self._classify(text)
        code = LEFT_OUT if category is None else self._names.code(category, text)
        if len(self) < _MOST_NAMES and self._names.has_room:
            self[name] = code
        return code
