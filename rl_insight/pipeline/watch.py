"""When to draw again while a job goes on writing: the decisions of `rl-insight watch`.

A file is complete once it has been left alone for a while; time is counted from when it was last
seen to change. Captures of one step come one after the other, so what is complete waits a little
for what is not.
"""

from dataclasses import dataclass, field

from rl_insight.data.tree import File, Tree

# Nobody waits longer for files that still grow: a log in the folder may never stop.
PATIENCE_S = 30.0

# How much longer than a listing takes the next one has to wait: a shared file system is not ours.
_REST = 10.0
_SHORTEST_REST_S = 1.0

# A full disk is made room on by somebody, who may be asleep.
_FIRST_RETRY_S = 60.0
_LAST_RETRY_S = 960.0


@dataclass(slots=True)
class Watcher:
    """What was drawn of a folder, and what has come since.

    `settle_s` is how many seconds a file must be left alone to be complete.
    """

    settle_s: float
    _drawn: dict[str, File] = field(default_factory=dict)
    _changed: dict[str, tuple[File, float]] = field(default_factory=dict)
    _waits_since: float | None = None
    _begun: bool = False

    def due(self, tree: Tree, now_s: float) -> bool:
        """Whether it is time to draw what `tree` lists; `now_s` is the time in seconds since 1970.

        The first time it is so at once for files that are old by their own date.
        """
        listed = {file.path: file for file in tree.files}
        pending = [file for file in listed.values() if self._drawn.get(file.path) != file]
        before = self._changed
        self._changed = {
            file.path: known
            if (known := before.get(file.path)) is not None and known[0] == file
            else (file, now_s)
            for file in pending
        }
        complete = sum(self._is_complete(path, now_s) for path in self._changed)
        if not complete and self._drawn.keys() <= listed.keys():
            self._waits_since = None
            return False
        if self._waits_since is None:
            self._waits_since = now_s
        return complete == len(pending) or now_s - self._waits_since >= PATIENCE_S

    def draw(self, tree: Tree, now_s: float) -> int:
        """Take what `tree` lists for drawn from now on, but for what still grows.

        Gives how many files are new, changed or gone.
        """
        listed = {file.path: file for file in tree.files}
        news = len(self._changed) + len(self._drawn.keys() - listed.keys())
        left = {path for path in self._changed if not self._is_complete(path, now_s)}
        self._drawn = {path: file for path, file in listed.items() if path not in left}
        self._changed = {path: one for path, one in self._changed.items() if path in left}
        self._waits_since = None
        self._begun = True
        return news

    def _is_complete(self, path: str, now_s: float) -> bool:
        file, since_s = self._changed[path]
        # Before the first look nobody saw anything change: a file's own date has to tell.
        if not self._begun and not 0 <= now_s - file.mtime_ns / 1e9 < self.settle_s:
            return True
        return now_s - since_s >= self.settle_s


@dataclass(slots=True)
class Retries:
    """When to draw again after it failed though nothing new came; times in seconds."""

    _wait_s: float = 0.0
    _due_at_s: float | None = None

    def due(self, now_s: float) -> bool:
        """Whether the last drawing failed so long ago that it is worth another try."""
        return self._due_at_s is not None and now_s >= self._due_at_s

    def after(self, well: bool, now_s: float) -> float | None:
        """Take note of how a drawing ended; gives how long to wait for another, None if well."""
        if well:
            self._wait_s, self._due_at_s = 0.0, None
            return None
        self._wait_s = min(max(_FIRST_RETRY_S, 2 * self._wait_s), _LAST_RETRY_S)
        self._due_at_s = now_s + self._wait_s
        return self._wait_s


def rest_s(listing_s: float) -> float:
    """How long to wait before the next listing, after one that took `listing_s` seconds."""
    return max(_SHORTEST_REST_S, _REST * listing_s)
