"""Storing into CHAR … LONGTEXT, BINARY … LONGBLOB, ENUM, SET and JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataflow.errors import Condition, InvalidStatement
from dataflow.values import documents
from dataflow.values.collation.keys import collation_key
from dataflow.values.collation.names import Charset, charset_of
from dataflow.values.conversion import Domain, conversion
from dataflow.values.storing.report import Report, Target
from dataflow.values.types import BLOBS, NUMBERS, Kind, SqlType

Store = Callable[[Any, Report], Any]
BYTES_MAX = {
    Kind.TINYTEXT: 255, Kind.TEXT: 65535, Kind.MEDIUMTEXT: (1 << 24) - 1, Kind.LONGTEXT: (1 << 32) - 1,
    Kind.TINYBLOB: 255, Kind.BLOB: 65535, Kind.MEDIUMBLOB: (1 << 24) - 1, Kind.LONGBLOB: (1 << 32) - 1,
}  # fmt: skip


def text_storer(column: SqlType, source: SqlType, target: Target) -> Store:
    """CHAR keeps no trailing spaces; too long a text may lose spaces but nothing else."""
    charset = charset_of(column.collation)
    function = conversion(source, Domain.TEXT).function
    is_char = column.kind is Kind.CHAR
    characters_max = (column.length if column.length is not None else 1) if column.kind in (Kind.CHAR, Kind.VARCHAR) else None
    bytes_max = BYTES_MAX.get(column.kind, 0)

    def store(value: Any, report: Report) -> str | None:
        if value is None:
            return None
        said = len(report.notices)
        if type(value) is bytes and not charset.is_utf8:
            text, bad = charset.read(value)
            if bad >= 0:
                _say_bad(value[bad:], target, report)
        else:
            text = value if function is None or type(value) is str else function(value)
        if not text.isascii():
            text = _representable(text, charset, target, report)
        if characters_max is not None:
            if is_char:
                text = text.rstrip(" ")
            if type(value) is float and len(text) > characters_max:
                text, is_cut = _shortened(value, characters_max)
                if is_cut:
                    target.object(report, Condition.DATA_TOO_LONG, relaxed=Condition.DATA_TRUNCATED)
            if len(text) <= characters_max:
                return text
            kept = text[:characters_max]
            if len(report.notices) > said:
                pass  # that characters are missing is enough
            elif text[characters_max:].strip(" "):
                target.object(report, Condition.DATA_TOO_LONG, relaxed=Condition.DATA_TRUNCATED)
            else:
                target.note(report)
            return kept.rstrip(" ") if is_char else kept
        encoded = text.encode("utf-8") if len(text) * 4 > bytes_max else b""
        if len(encoded) <= bytes_max:
            return text
        if encoded[bytes_max:].strip(b" "):
            target.object(report, Condition.DATA_TOO_LONG, relaxed=Condition.DATA_TRUNCATED)
        else:
            target.note(report)
        return encoded[:bytes_max].decode("utf-8", "ignore")

    return store


def _shortened(value: float, characters_max: int) -> tuple[str, bool]:
    """An approximate number in few characters, and whether not even that many are enough.

    Of 12.2 and 1e1 the form with more digits is taken; if both have as many, the one without an exponent."""
    sign = "-" if value < 0 else ""
    room = characters_max - len(sign)
    mantissa, _, exponent = f"{abs(value):.{min(max(characters_max, 1), 17) - 1}e}".partition("e")
    digits, power = len(mantissa.replace(".", "").rstrip("0")), int(exponent)
    whole = max(power + 1, 1)
    plain_digits = room - 1 + power if power < 0 else whole if room - whole < 2 else room - 1
    exponent_room = room - 1 - len(str(power))
    exponent_digits = max(0, min(exponent_room, 1 if exponent_room < 3 or digits == 1 else exponent_room - 1))
    if whole <= room and (0 < plain_digits >= min(digits, exponent_digits) or (exponent_digits == 0 and power >= -3)):
        plain = f"{abs(value):.{max(0, room - whole - 1)}f}"
        short = plain.rstrip("0").rstrip(".") if "." in plain else plain
        return "0" if short == "0" else sign + short, False
    mantissa, _, exponent = f"{abs(value):.{max(exponent_digits - 1, 0)}e}".partition("e")
    short = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{sign}{short}e{int(exponent)}"[:characters_max], exponent_room - (digits > 1) < 1


def _representable(text: str, charset: Charset, target: Target, report: Report) -> str:
    """`text`, with what the character set lacks replaced by question marks (1366)."""
    clean, bad = charset.fit(text)
    if bad < 0:
        return text
    _say_bad(text[bad:].encode("utf-8", "surrogateescape"), target, report)
    return clean


def _say_bad(rest: bytes, target: Target, report: Report) -> None:
    quoted = "".join(chr(byte) if 32 <= byte <= 126 else f"\\x{byte:02X}" for byte in rest[:6]) + ("..." if len(rest) > 6 else "")
    target.object(report, Condition.INCORRECT_VALUE, "string", quoted)


def bytes_storer(column: SqlType, source: SqlType, target: Target) -> Store:
    function = conversion(source, Domain.BYTES).function
    bytes_max = BYTES_MAX.get(column.kind) or (column.length if column.length is not None else 1)
    pads = column.kind is Kind.BINARY

    def store(value: Any, report: Report) -> bytes | None:
        if value is None:
            return None
        data: bytes = value if function is None or type(value) is bytes else function(value)
        if len(data) > bytes_max:
            target.object(report, Condition.DATA_TOO_LONG, relaxed=Condition.DATA_TRUNCATED)
            data = data[:bytes_max]
        return data.ljust(bytes_max, b"\0") if pads else data

    return store


def _gives_number(source: SqlType, value: Any) -> bool:
    return source.kind in NUMBERS or (source.kind is Kind.NULL and not isinstance(value, str | bytes))


def enum_storer(column: SqlType, source: SqlType, target: Target) -> Store:
    key = collation_key(column.collation or "utf8mb4_0900_ai_ci")
    by_text: dict[bytes, str] = {}
    for member in column.members:
        by_text.setdefault(key(member), member)
    function = conversion(source, Domain.TEXT).function

    def store(value: Any, report: Report) -> str | None:
        if value is None:
            return None
        number = 0
        if _gives_number(source, value):
            number = int(value)
        else:
            text = value if function is None else function(value)
            found = by_text.get(key(text))
            if found is None:
                text = text.rstrip(" ")
                found = by_text.get(key(text))
            if found is not None:
                return found
            number = int(text) if text.isascii() and text.isdigit() else 0
        if 1 <= number <= len(column.members):
            return column.members[number - 1]
        target.object(report, Condition.DATA_TRUNCATED)
        return ""

    return store


def set_storer(column: SqlType, source: SqlType, target: Target) -> Store:
    key = collation_key(column.collation or "utf8mb4_0900_ai_ci")
    bits: dict[bytes, int] = {}
    for position, member in enumerate(column.members):
        bits.setdefault(key(member), 1 << position)
    every = (1 << len(column.members)) - 1
    function = conversion(source, Domain.TEXT).function

    def store(value: Any, report: Report) -> str | None:
        if value is None:
            return None
        chosen, unknown = 0, False
        if _gives_number(source, value):
            chosen = int(value)
        else:
            text = value if function is None else function(value)
            for part in text.split(",") if text else ():
                bit = bits.get(key(part)) or bits.get(key(part.rstrip(" ")), 0)
                chosen |= bit
                unknown = unknown or not bit
            if unknown and not chosen and text.isascii() and text.isdigit():
                chosen, unknown = int(text), False
        if unknown or not 0 <= chosen <= every:
            target.object(report, Condition.DATA_TRUNCATED)
            chosen &= every
        return ",".join([member for position, member in enumerate(column.members) if chosen >> position & 1])

    return store


def json_storer(source: SqlType, target: Target) -> Store:
    """JSON must be valid in any mode."""
    if source.kind is Kind.JSON:
        return lambda value, report: value
    as_value = source.kind in NUMBERS or source.kind in (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP, Kind.TIME)
    to_json = conversion(source, Domain.JSON_VALUE).function if as_value else None
    to_text = conversion(source, Domain.TEXT).function

    def store(value: Any, report: Report) -> str | None:
        if value is None:
            return None
        if to_json is not None:
            return str(to_json(value))
        if source.kind in BLOBS or isinstance(value, bytes):
            raise InvalidStatement(Condition.INVALID_JSON_CHARSET, "binary")
        try:
            return documents.normalise(value if to_text is None else to_text(value))
        except documents.NotJson as error:
            raise InvalidStatement(Condition.INVALID_JSON, error.reason, error.position, target.name) from None

    return store
