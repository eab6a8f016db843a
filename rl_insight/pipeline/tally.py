"""How far a run is: which jobs are planned, done and failed, in words of the product."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# The parts of a run in their order: what a rule's name begins with, and what is then going on.
_PHASES = (
    ("parse", "parsing"),
    ("merge", "merging"),
    ("structure", "finding layers"),
    ("timeline", "drawing"),
    ("heatmap", "drawing"),
)

# Rules that only gather others' outputs are no work.
_TARGETS = ("all", "total")


@dataclass(frozen=True, slots=True)
class Job:
    """One job that has begun: its rule, and what it works on (empty where there is no choice)."""

    rule: str
    unit: str

    def __str__(self) -> str:
        return f"{self.rule} {self.unit}" if self.unit else self.rule

    def of(self, what: str | None) -> str:
        """The same for a person who asks what is read: by its input, where that is known."""
        return str(self) if what is None else f"{self.rule} {what}"


@dataclass(slots=True)
class Tally:
    """The state of one Snakemake run, from its log events."""

    planned: dict[str, int] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    done: dict[int, str] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)

    def plan(self, stats: Mapping[str, int]) -> None:
        """Take the number of jobs of each rule."""
        self.planned = {rule: n for rule, n in stats.items() if rule not in _TARGETS}

    def begin(self, job_id: int, rule: str, wildcards: Mapping[str, object]) -> Job:
        """A job begins, perhaps not for the first time."""
        job = Job(rule, "/".join(str(value) for value in wildcards.values()))
        self.jobs[job_id] = job
        return job

    def end(self, job_id: int, ok: bool) -> None:
        """A job ended well, or failed for good."""
        job = self.jobs.get(job_id)
        if job is not None and job.rule not in _TARGETS:
            (self.done if ok else self.failed)[job_id] = job.rule

    @property
    def total(self) -> int:
        """How many jobs are planned."""
        return sum(self.planned.values())

    @property
    def ended(self) -> int:
        """How many jobs are over, well or not."""
        return len(self.done) + len(self.failed)

    def phase(self) -> tuple[str, int, int]:
        """What is going on now, how many of its jobs are over, and of how many."""
        for verb, rules in self._phases().items():
            planned = sum(self.planned[rule] for rule in rules)
            over = sum(rule in rules for rule in (*self.done.values(), *self.failed.values()))
            if over < planned:
                return verb, over, planned
        return ("finishing" if self.planned else "looking at the input"), 0, 0

    def words(self) -> str:
        """`phase` as text: `parsing 12/64`, `merging`."""
        verb, over, planned = self.phase()
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"{verb} {over}/{planned}{failed}" if planned > 1 else f"{verb}{failed}"

    def _phases(self) -> dict[str, list[str]]:
        """The planned rules by what they do, in the order in which that happens."""
        verbs: dict[str, list[str]] = {verb: [] for _, verb in _PHASES}
        for rule in self.planned:
            verb = next((verb for start, verb in _PHASES if rule.startswith(start)), rule)
            verbs.setdefault(verb, []).append(rule)
        return {verb: rules for verb, rules in verbs.items() if rules}
