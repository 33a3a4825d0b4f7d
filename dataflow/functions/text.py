"""Functions that cut, join, pad and change texts.

Positions start at 1, as in SQL, and count characters of text or bytes of binary strings (see
`string_function`). TRIM(LEADING x FROM y) and its TRAILING form are the calls
`trim_leading(y, x)` and `trim_trailing(y, x)`; TRIM(BOTH x FROM y) is `trim(y, x)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, AnyStr

from dataflow.expressions.expression import Call
from dataflow.functions.registry import Domain, Fragment, function, special
from dataflow.functions.strings import (
    Arguments,
    display_length,
    is_binary,
    joined_type,
    like_first,
    string_function,
    string_type,
    unbounded,
)
from dataflow.values.long_values import windows, windows_of
from dataflow.values.result_limits import planned, total
from dataflow.values.types import BIGINT, STRINGS, SqlType, text

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter


@string_function("concat", arguments=(Domain.TEXT,), rest=Domain.TEXT, result=joined_type, size=total)
def concat(*parts: AnyStr) -> AnyStr:
    return parts[0][:0].join(parts)


def _separated_type(arguments: Arguments) -> SqlType:
    joined = joined_type(arguments[1:])
    separator = display_length(arguments[0].type)
    if joined.length is None or separator is None:
        return string_type(arguments, None)
    return string_type(arguments, joined.length + separator * (len(arguments) - 2))


def _separated_size(separator: AnyStr | None, *parts: AnyStr | None) -> int:
    return total(*parts) + (len(parts) - parts.count(None) - 1) * len(separator or "")


@string_function(
    "concat_ws", arguments=(Domain.TEXT, Domain.TEXT), rest=Domain.TEXT, nulls=True, result=_separated_type,
    size=_separated_size,
)  # fmt: skip
def concat_ws(separator: AnyStr | None, *parts: AnyStr | None) -> AnyStr | None:
    if separator is None:
        return None
    return separator.join([part for part in parts if part is not None])


@function("length", "octet_length", arguments=(Domain.BYTES,), result=BIGINT)
def length(value: bytes) -> int:
    return len(value)


@string_function("char_length", "character_length", arguments=(Domain.TEXT,), result=BIGINT)
def char_length(value: str | bytes) -> int:
    return len(value)


@function("bit_length", arguments=(Domain.BYTES,), result=BIGINT)
def bit_length(value: bytes) -> int:
    return len(value) * 8


# MySQL maps one character to one character, so 'ß' has no upper case; Python's title case
# holds the single-character mapping of what has several characters in upper case.


def _upper_character(character: str) -> str:
    for mapped in (character.upper(), character.title()):
        if len(mapped) == 1:
            return mapped
    return character


def _lower_character(character: str) -> str:
    return character.lower() if character != "İ" else "i"


@string_function("upper", "ucase", arguments=(Domain.TEXT,), result=like_first)
def upper(value: AnyStr) -> AnyStr:
    if isinstance(value, bytes):
        return value
    return value.upper() if value.isascii() else "".join(["".join(map(_upper_character, part)) for part in windows(value)])


@string_function("lower", "lcase", arguments=(Domain.TEXT,), result=like_first)
def lower(value: AnyStr) -> AnyStr:
    if isinstance(value, bytes):
        return value
    return value.lower() if value.isascii() else "".join(["".join(map(_lower_character, part)) for part in windows(value)])


@string_function(
    "substring", "substr", "mid",
    arguments=(Domain.TEXT, Domain.INTEGER, Domain.INTEGER), optional=1, result=like_first,
)  # fmt: skip
def substring(value: AnyStr, position: int, count: int = 1 << 63) -> AnyStr:
    start = position - 1 if position > 0 else len(value) + position
    if position == 0 or start < 0 or count <= 0:
        return value[:0]
    return value[start : start + count]


@string_function("left", arguments=(Domain.TEXT, Domain.INTEGER), result=like_first)
def left(value: AnyStr, count: int) -> AnyStr:
    return value[: max(count, 0)]


@string_function("right", arguments=(Domain.TEXT, Domain.INTEGER), result=like_first)
def right(value: AnyStr, count: int) -> AnyStr:
    return value[max(len(value) - count, 0) :] if count > 0 else value[:0]


@string_function("substring_index", arguments=(Domain.TEXT, Domain.TEXT, Domain.INTEGER), result=like_first)
def substring_index(value: AnyStr, delimiter: AnyStr, count: int) -> AnyStr:
    if not delimiter or count == 0:
        return value[:0]
    if count > 0:
        end = _occurrence(value, delimiter, count)
        return value if end < 0 else value[:end]
    if isinstance(value, bytes):
        start = len(value)
        for _ in windows_of(-count):
            start = value.rfind(delimiter, 0, start)
            if start < 0:
                return value
        return value[start + len(delimiter) :]
    # Occurrences in text are found from the left, even when counted from the right.
    number = value.count(delimiter) + count + 1
    return value if number <= 0 else value[_occurrence(value, delimiter, number) + len(delimiter) :]


def _occurrence(value: AnyStr, part: AnyStr, number: int) -> int:
    """Where the part begins for the so-manieth time; below 0 if it does not."""
    place = -len(part)
    for _ in windows_of(number):
        place = value.find(part, place + len(part))
        if place < 0:
            break
    return place


def _padded_size(value: AnyStr, count: int, pad: AnyStr) -> int:
    return count


def _padding(value: AnyStr, count: int, pad: AnyStr) -> AnyStr | None:
    """What makes `value` as long as `count`, which it is not yet; None if nothing can."""
    if not pad:
        return None
    missing = count - len(value)
    return (pad * (missing // len(pad) + 1))[:missing]


@string_function("lpad", arguments=(Domain.TEXT, Domain.INTEGER, Domain.TEXT), result=unbounded(0, 2), size=_padded_size)
def lpad(value: AnyStr, count: int, pad: AnyStr) -> AnyStr | None:
    if count <= len(value):
        return value[:count] if count >= 0 else None
    padding = _padding(value, count, pad)
    return None if padding is None else padding + value


@string_function("rpad", arguments=(Domain.TEXT, Domain.INTEGER, Domain.TEXT), result=unbounded(0, 2), size=_padded_size)
def rpad(value: AnyStr, count: int, pad: AnyStr) -> AnyStr | None:
    if count <= len(value):
        return value[:count] if count >= 0 else None
    padding = _padding(value, count, pad)
    return None if padding is None else value + padding


@string_function("trim_leading", arguments=(Domain.TEXT, Domain.TEXT), result=like_first)
def trim_leading(value: AnyStr, mark: AnyStr) -> AnyStr:
    start = 0
    while mark and value.startswith(mark, start):
        start += len(mark)
    return value[start:]


@string_function("trim_trailing", arguments=(Domain.TEXT, Domain.TEXT), result=like_first)
def trim_trailing(value: AnyStr, mark: AnyStr) -> AnyStr:
    end = len(value)
    while mark and value.endswith(mark, 0, end):
        end -= len(mark)
    return value[:end]


@string_function("trim", arguments=(Domain.TEXT, Domain.TEXT), optional=1, result=like_first)
def trim(value: AnyStr, mark: AnyStr | None = None) -> AnyStr:
    if mark is None:
        return rtrim(ltrim(value))
    return trim_trailing(trim_leading(value, mark), mark)


@string_function("ltrim", arguments=(Domain.TEXT,), result=like_first)
def ltrim(value: AnyStr) -> AnyStr:
    return value.lstrip(" ") if isinstance(value, str) else value.lstrip(b" ")


@string_function("rtrim", arguments=(Domain.TEXT,), result=like_first)
def rtrim(value: AnyStr) -> AnyStr:
    return value.rstrip(" ") if isinstance(value, str) else value.rstrip(b" ")


def _replaced_size(value: AnyStr, old: AnyStr, new: AnyStr) -> int:
    return len(value) + value.count(old) * (len(new) - len(old)) if old and len(new) > len(old) else 0


@string_function("replace", arguments=(Domain.TEXT, Domain.TEXT, Domain.TEXT), result=unbounded(), size=_replaced_size)
def replace(value: AnyStr, old: AnyStr, new: AnyStr) -> AnyStr:
    return value.replace(old, new) if old else value


@string_function(
    "insert", arguments=(Domain.TEXT, Domain.INTEGER, Domain.INTEGER, Domain.TEXT), result=unbounded(0, 3),
    size=lambda *arguments: 0,
)  # fmt: skip
def insert(value: AnyStr, position: int, count: int, new: AnyStr) -> AnyStr:
    if position < 1 or position > len(value):
        return value
    end = position - 1 + count if count >= 0 else len(value)
    return value[: position - 1] + new + value[end:]


@string_function("reverse", arguments=(Domain.TEXT,), result=like_first)
def reverse(value: AnyStr) -> AnyStr:
    return value[::-1]


@string_function(
    "repeat", arguments=(Domain.TEXT, Domain.INTEGER), result=unbounded(0), size=lambda value, count: len(value) * count
)
def repeat(value: AnyStr, count: int) -> AnyStr:
    return value * max(count, 0) if value else value


@function("space", arguments=(Domain.INTEGER,), result=text(), size=lambda count: count)
def space(count: int) -> str:
    return " " * max(count, 0)


_QUOTED = str.maketrans({"\\": "\\\\", "'": "\\'", "\0": "\\0", "\x1a": "\\Z"})


def _quoted_type(arguments: Arguments) -> SqlType:
    if arguments[0].type.kind in STRINGS or is_binary(arguments[0]):
        return string_type(arguments, None)
    return text(None, planned().collation)


@special("quote", least=1, most=1, result=_quoted_type, grows=True)
def quote(emitter: Emitter, node: Call) -> Fragment:
    """Of binary strings as of texts; the word NULL for NULL."""

    def quoted(value: str | None) -> str:
        return "NULL" if value is None else "'" + "".join([each.translate(_QUOTED) for each in windows(value)]) + "'"

    def quoted_bytes(value: bytes | None) -> bytes:
        return quoted(None if value is None else value.decode("latin-1")).encode("latin-1")

    binary = is_binary(node.arguments[0])
    function = emitter.bounded(node, quoted_bytes if binary else quoted, total)
    return emitter.apply(function, [emitter.convert(node.arguments[0], Domain.BYTES if binary else Domain.TEXT)], nulls=True)


_SOUNDEX = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230120022455012623010202"))


@function("soundex", arguments=(Domain.TEXT,), result=unbounded(0))
def soundex(value: str) -> str:
    """The original algorithm: vowels go first, then repeated codes; not cut to four characters."""
    codes: list[str] = []
    last = ""
    for part in windows(value):
        for letter in [c.upper() if c.isascii() else c for c in part if (c.isascii() and c.isalpha()) or c >= "\u00c0"]:
            code = _SOUNDEX.get(letter, "0")
            if not codes:
                codes.append(letter)
                last = code
            elif code not in ("0", last):
                codes.append(code)
                last = code
    return "".join(codes).ljust(4, "0") if codes else ""
