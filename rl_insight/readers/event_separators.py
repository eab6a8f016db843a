"""What stands between the events of a list: commas and brackets, too few or too many of them.

None of it costs an event. `problems` gets `trailing_comma`, `missing_comma`, `empty_element` and
`nested_list`, each as mere information.
"""

from rl_insight.problems import Problems
from rl_insight.readers import event_text
from rl_insight.readers.window import Window

# Lists of events inside the list of events: msprof may leave one.
_DEEPEST = 8


class Separators:
    """Goes through them at the start of `window`, and remembers what the next event needs."""

    def __init__(self, window: Window, problems: Problems) -> None:
        self._window = window
        self._problems = problems
        self._nesting = 0
        self._after_event = False
        self._commas = 0

    @property
    def nested(self) -> bool:
        """Whether a list inside the list is open."""
        return self._nesting > 0

    def forget(self) -> None:
        """Something else than an event stood here, or a whole block was decoded in between."""
        self._after_event, self._commas = False, 0

    def pass_by(self) -> None:
        """Go to the next byte that is none of them."""
        window = self._window
        between = event_text.SEPARATORS.match(window.buffer, window.start, window.end)
        assert between is not None  # it matches everywhere
        window.start = between.end()
        nulls = between[0].count(b"null")
        self._commas += between[0].count(b",") - nulls
        if nulls:
            self._note("empty_element")

    def before_event(self) -> None:
        """An object follows."""
        if self._after_event and self._commas == 0:
            self._note("missing_comma")
        if self._commas > 1:
            self._note("empty_element")
        self.forget()

    def after_event(self) -> None:
        """An event was taken."""
        self._after_event = True

    def open_list(self) -> bool:
        """Pass by the bracket of a list inside the list; False where there are too many."""
        if self._nesting == _DEEPEST:
            return False
        self._note("nested_list")
        self._nesting += 1
        self._window.start += 1
        return True

    def close_list(self) -> bool:
        """Pass by a closing bracket; whether it is that of the list itself."""
        if self._commas:
            self._note("trailing_comma")
            self._commas = 0
        self._window.start += 1
        if self._nesting == 0:
            return True
        self._nesting -= 1
        return False

    def close_all(self) -> None:
        """The end of the list itself was seen elsewhere."""
        self._nesting = 0

    def _note(self, code: str) -> None:
        self._problems.add(code, "info", 1, self._window.offset(self._window.start))
