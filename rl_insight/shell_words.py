"""Commands as text that a shell reads back as they were, whatever the names in them hold."""

import os
import shlex
from collections.abc import Iterable


def command_line(words: Iterable[str]) -> str:
    """`words` as one line to paste into a shell (bash, zsh, ksh: POSIX.1-2024).

    What a terminal would obey or could not show, and bytes that are no UTF-8, stand as escapes.
    """
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    shown = []
    for character in word:
        if character.isprintable() and character not in "\\'":
            shown.append(character)
        else:
            shown += [f"\\{byte:03o}" for byte in os.fsencode(character)]
    return f"$'{''.join(shown)}'"
