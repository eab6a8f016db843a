"""Rules for one training log of VeRL: it is one, and it has the metrics that plots are made of.

The keywords are those that VeRL's console logger prints per step (verl, trainer/ppo/metric_utils.py
and ray_trainer.py); «Training Progress:» is its progress bar.
"""

import codecs
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from rl_insight.data.data_kinds import DataEnum
from rl_insight.data.findings import Finding
from rl_insight.data.validation_rule import ValidationRule

HEAD_BYTES = 64 << 10
"""Where the name does not say that a log is VeRL's, so much of its beginning is looked at."""

READ_BYTES = 2 << 20
"""So much of a log is searched for keywords: by then many steps have been printed."""

_BRAND = "verl"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class VerlLogExistRule(ValidationRule):
    """The data is one log file, is not empty, and is VeRL's by its name or its beginning."""

    kinds = (DataEnum.VERL_LOG,)

    def findings(self, data: object) -> Iterable[Finding]:
        """The first reason why it is none."""
        path = _path(data)
        if path is None:
            return [self.found("error", f"the data is not a path: {type(data).__name__}")]
        why = _why_no_log(path)
        if why is None and _BRAND not in path.name.lower():
            try:
                if _BRAND not in _text(path, HEAD_BYTES):
                    why = (
                        "nothing says that it is a log of VeRL: «verl» stands neither in its name "
                        f"nor in its first {HEAD_BYTES >> 10} KiB"
                    )
            except OSError as error:
                why = f"it cannot be read: {error.strerror or error}"
        return [] if why is None else [self.found("error", why, str(path))]


class VerlLogKeyParamsRule(ValidationRule):
    """The first 2 MiB of the log hold every keyword, in any case of letters.

    `required_keywords` takes the place of the default ones.
    """

    kinds = (DataEnum.VERL_LOG,)

    DEFAULT_REQUIRED_KEYWORDS = (
        "verl",
        "actor/loss",
        "critic/score/mean",
        "critic/rewards/mean",
        "response_length/mean",
        "actor/grad_norm",
        "training/global_step",
        "training/epoch",
        "actor/lr",
        "actor/entropy",
        "Training Progress:",
    )

    def __init__(self, required_keywords: Sequence[str] | None = None) -> None:
        chosen = self.DEFAULT_REQUIRED_KEYWORDS if required_keywords is None else required_keywords
        self.required_keywords = tuple(chosen)

    def findings(self, data: object) -> Iterable[Finding]:
        """One error that names all keywords that are missing."""
        path = _path(data)
        if path is None:
            return [self.found("error", f"the data is not a path: {type(data).__name__}")]
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                return [self.found("error", "it is not a regular file", str(path))]
            text = _text(path, READ_BYTES)
        except (OSError, ValueError) as error:
            return [self.found("error", f"it cannot be read: {error}", str(path))]
        missing = [word for word in self.required_keywords if word.lower() not in text]
        if not missing:
            return []
        why = f"its first {READ_BYTES >> 20} MiB do not hold {', '.join(missing)}"
        return [self.found("error", why, str(path))]


def _path(data: object) -> Path | None:
    if not isinstance(data, str | os.PathLike) or not os.fspath(data):
        return None
    return Path(os.fsdecode(data))


def _why_no_log(path: Path) -> str | None:
    """Why there is no log at `path`; None where there may be one."""
    try:
        info = path.stat()
    except (OSError, ValueError) as error:
        return f"it cannot be looked at: {error}"
    if stat.S_ISDIR(info.st_mode):
        return "it must be a single .log file, not a directory"
    if not stat.S_ISREG(info.st_mode):
        return "it is not a regular file"
    if path.suffix.lower() != ".log":
        return "its name does not end with .log"
    return None if info.st_size else "the log is empty (0 bytes)"


def _text(path: Path, most: int) -> str:
    """The beginning of a log in lower case; what is no text stands for itself as well as it can."""
    with path.open("rb") as file:
        raw = file.read(most)
    text = raw.decode("utf-8", "replace")
    if raw.startswith(_UTF16):
        # The mark is two bytes that may also stand there by chance.
        text += raw.decode("utf-16", "replace")
    return text.lower()
