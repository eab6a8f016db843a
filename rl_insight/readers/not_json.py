"""What a file is that is no trace, in words for a person."""

_MAGICS = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x28\xb5\x2f\xfd", "zstandard-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ\x00", "xz-compressed data"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF"),
    (b"\x80", "a pickle or other binary data"),
    (b"version https://git-lfs", "a Git LFS pointer; the file itself was never downloaded"),
)
_SHOWN = 40


def named_format(head: bytes) -> str | None:
    """Names what starts with `head` (some hundred bytes): "it holds a zip archive"; None: text."""
    for magic, name in _MAGICS:
        if head.startswith(magic):
            return f"it holds {name}"
    text = head.strip()
    if not text.strip(b"\0"):
        return "it holds only zero bytes: the data never reached the disk"
    return "it holds HTML or XML" if text[:1] == b"<" else None


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
