"""A registry of named features, open to other packages through entry points.

RL-Insight registers its own features the same way, by the place where they are defined, so that a
parse job imports only the one parser that it needs.
"""

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

from rl_insight import without_pandas
from rl_insight.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Feature = TypeVar("Feature")


class Registry(Generic[Feature]):
    """Features of one kind by name; `group` is the entry point group that adds to it."""

    def __init__(self, what: str, group: str) -> None:
        self._what = what
        self._group = group
        self._known: dict[str, Feature | str] = {}
        self._outside: dict[str, EntryPoint] | None = None

    def register(self, name: str, feature: "Feature | str") -> None:
        """Add `feature`, or the place where it is defined as `module:attribute`, under `name`."""
        self._known[name] = feature

    def names(self) -> list[str]:
        """All names, our own first, then those of other packages."""
        return list(dict.fromkeys([*self._known, *self._entry_points()]))

    def get(self, name: str) -> Feature:
        """The feature called `name`.

        Raises PluginError when there is none, when another package's cannot be loaded, and when
        something that one of ours needs is not installed.
        """
        if name in self._known:
            feature = self._known[name]
            if isinstance(feature, str):
                feature = self._imported(name, feature)
                self._known[name] = feature
            return feature
        if name in self._entry_points():
            return self._load(self._entry_points()[name])
        near = difflib.get_close_matches(name, self.names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise PluginError(
            f"Unsupported {self._what}: {name}{hint} (known: {', '.join(self.names())})"
        )

    def _imported(self, name: str, place: str) -> Feature:
        module, _, attribute = place.partition(":")
        try:
            feature: Feature = getattr(import_module(module), attribute)
        except ImportError as error:
            raise PluginError(f"{self._what} {name!r} cannot be loaded: {error}") from error
        return feature

    def _load(self, entry: "EntryPoint") -> Feature:
        # Our own jobs do without it, and other packages need not.
        without_pandas.let_in()
        try:
            feature: Feature = entry.load()
        except Exception as error:
            raise PluginError(
                f"{self._what} {entry.name!r} ({entry.value}) cannot be loaded: {error}"
            ) from error
        self._known[entry.name] = feature
        return feature

    def _entry_points(self) -> "dict[str, EntryPoint]":
        if self._outside is None:
            # It takes a twentieth of a second, which a job that knows its parser need not spend.
            from importlib.metadata import entry_points

            self._outside = {entry.name: entry for entry in entry_points(group=self._group)}
        return self._outside
