"""Suffixes of packers and archivers that no reader here unpacks, behind the name of a capture."""

import re

_PACKERS = r"zstd?|xz|lzma|bz2?|lz4|lzo?|br|sz|z"
_ARCHIVERS = r"zip|7z|rar|t[gx]z|tbz2?|tzst|tar(?:\.[a-z0-9]{1,4})?"
SUFFIX = rf"\.(?:{_PACKERS}|{_ARCHIVERS})"
"""A regular expression for one of them, in small letters."""

_AT_END = re.compile(SUFFIX + r"\Z", re.IGNORECASE)


def split(name: str) -> tuple[str, str]:
    """A name without such a suffix, and the suffix with its dot; "" where there is none.

    `x.json.gz.zip` is (`x.json.gz`, `.zip`). A mere `.gz` is none of them: gzip is read.
    """
    found = _AT_END.search(name)
    return (name, "") if found is None else (name[: found.start()], found[0])
