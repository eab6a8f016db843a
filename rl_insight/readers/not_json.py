"""What a file is that is no trace, in words for a person."""

from rl_insight.readers.file_kinds import kind_of

_SHOWN = 40


def named_kind(head: bytes) -> str | None:
    """Which well-known kind of file starts with `head` (some hundred bytes); None of others."""
    kind = kind_of(head)
    if kind is None or kind.words is None:
        return None
    return kind.words if kind.remedy is None else f"{kind.words}; {kind.remedy}"


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
