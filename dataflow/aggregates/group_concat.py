"""The texts of a group put together, up to a length: GROUP_CONCAT, and the arrays and objects of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dataflow.errors import Condition
from dataflow.expressions.notices import say
from dataflow.values.result_limits import byte_length, say_too_long


def concatenated(texts: Iterable[str], separator: str, bytes_max: int) -> str:
    """What goes beyond `bytes_max` is cut between two characters, with warning 1260; the rest is not even looked at."""
    parts: list[str] = []
    length, between = 0, byte_length(separator)
    for row, text in enumerate(texts, 1):
        parts.append(text)
        length += byte_length(text) + (between if row > 1 else 0)
        if length > bytes_max:
            say(Condition.GROUP_CONCAT_CUT, row)
            kept = separator.join(parts)[:bytes_max]
            return kept.encode("utf-8", "surrogatepass")[:bytes_max].decode("utf-8", "ignore")
    return separator.join(parts)


def concatenated_bytes(values: Iterable[bytes], separator: str, bytes_max: int) -> bytes:
    """As `concatenated`, of what is no text."""
    between = separator.encode("utf-8", "surrogateescape")
    joined = bytearray()
    for row, value in enumerate(values, 1):
        joined += (between if row > 1 else b"") + value
        if len(joined) > bytes_max:
            say(Condition.GROUP_CONCAT_CUT, row)
            return bytes(joined[:bytes_max])
    return bytes(joined)


def json_array(documents: Sequence[str], bytes_max: int) -> str | None:
    return _enclosed("[", documents, "]", bytes_max, "json_arrayagg") if documents else None


def json_object(members: Sequence[str], bytes_max: int) -> str | None:
    return _enclosed("{", members, "}", bytes_max, "json_objectagg") if members else None


def _enclosed(start: str, parts: Sequence[str], end: str, bytes_max: int, name: str) -> str | None:
    if sum(map(byte_length, parts)) + 2 * len(parts) > bytes_max:
        say_too_long(name, bytes_max)
        return None
    return start + ", ".join(parts) + end
