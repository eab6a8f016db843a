"""What a file is that is no trace, in words for a person."""

_MAGICS = (
    (b"PK\x03\x04", "a zip archive; unpack it"),
    (b"\x1f\x8b", "data that gzip packed twice; unpack it once"),
    (b"\x28\xb5\x2f\xfd", "zstandard-compressed data; unpack it with zstd -d"),
    (b"BZh", "bzip2-compressed data; unpack it with bunzip2"),
    (b"\xfd7zXZ\x00", "xz-compressed data; unpack it with unxz"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF"),
    (b"\x80", "a pickle or other binary data"),
    (b"version https://git-lfs", "a Git LFS pointer; the file itself was never downloaded"),
)
# POSIX.1, ustar: the magic of the first member's header.
_TAR_MAGIC = slice(257, 262)
_SHOWN = 40


def named_kind(head: bytes) -> str | None:
    """Which well-known kind of file starts with `head` (some hundred bytes); None of others."""
    for magic, name in _MAGICS:
        if head.startswith(magic):
            return name
    if head[_TAR_MAGIC] == b"ustar":
        return "a tar archive; unpack it"
    return "HTML or XML" if head.lstrip()[:1] == b"<" else None


def named_format(head: bytes) -> str | None:
    """Names what starts with `head`: "it holds an SQLite database"; None: text."""
    kind = named_kind(head)
    if kind is not None:
        return f"it holds {kind}"
    if not head.strip().strip(b"\0"):
        return "it holds only zero bytes: the data never reached the disk"
    return None


def what_it_is(head: bytes) -> str:
    """As `named_format`, and of text says how it begins."""
    known = named_format(head)
    if known is not None:
        return known
    text = head.strip()
    shown = ascii(text[:_SHOWN].decode("utf-8", "replace"))
    if text[:1] == b"[":
        return f"it holds a list of something else than events, or text: {shown}"
    return f"it holds no JSON object or list; it starts with {shown}"
