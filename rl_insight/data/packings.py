"""Suffixes of packers and archivers that no reader here unpacks, behind the name of a capture."""

import re

_PACKERS = r"zstd?|xz|lzma|bz2?|lz4|lzo?|br|sz|z"
_ARCHIVERS = r"zip|7z|rar|t[gx]z|tbz2?|tzst|tar(?:\.[a-z0-9]{1,4})?"
SUFFIX = rf"\.(?:{_PACKERS}|{_ARCHIVERS})"
"""A regular expression for one of them, in small letters."""

_AT_END = re.compile(SUFFIX + r"\Z", re.IGNORECASE)
# To look further ahead than that would take longest of all where 100,000 names are asked about.
_LONGEST = len(".tar.zstd")
_GZIP = ".gz"
# Text, in which gzip is read; a database and a tensor need their file as it is.
_TEXT = (".json", ".jsonl", ".ndjson", ".jsonlines")


def split(name: str) -> tuple[str, str]:
    """A name without such suffixes, and the suffixes with their dots; "" where there is none.

    `x.json.gz.zip` is (`x.json.gz`, `.zip`), and `x.db.gz` is (`x.db`, `.gz`). Behind a name of
    JSON `.gz` is none of them: there gzip is read.
    """
    bare = name
    while True:
        found = _AT_END.search(bare, max(0, len(bare) - _LONGEST))
        if found is not None:
            bare = bare[: found.start()]
        elif bare[-len(_GZIP) :].lower() == _GZIP and not bare[: -len(_GZIP)].lower().endswith(
            _TEXT
        ):
            bare = bare[: -len(_GZIP)]
        else:
            return bare, name[len(bare) :]


def may_be_gzip(name: str) -> bool:
    """Whether what is called `name` but for its packings would be read from a gzip too."""
    return name.lower().removesuffix(_GZIP).endswith(_TEXT)


def why_not_read(name: str) -> str:
    """What to say of a packed file that is called `name`, as the end of a sentence about it."""
    bare, packing = split(name)
    # Of what gzip packed twice one time is too many.
    other = packing.lower() != _GZIP
    instead = ", or pack it with gzip" if other and may_be_gzip(bare) else ""
    return f"packed as {packing}, which is not read: unpack it{instead}"


def there_too(name: str) -> str:
    """Why a packed file is passed over beside what it was packed from, which is called `name`.

    Not that this is read: it may be broken, and its own row says so.
    """
    return f"the same capture is there as {name}"
