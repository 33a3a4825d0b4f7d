"""SQL values as JSON, both ways.

| SQL | JSON |
|---|---|
| NULL | null |
| integers | a number, with all its digits |
| FLOAT, DOUBLE | a number |
| DECIMAL | a string, so that no reader rounds it |
| texts, ENUM, SET, JSON | a string |
| BIT, YEAR | a number |
| binary strings, BLOB | {"base64": "…"}; also a text that is not UTF-8 |
| DATE | "2024-02-29" |
| DATETIME, TIMESTAMP | "2024-02-29T12:30:00.5", in UTC for TIMESTAMP |
| TIME | "-838:59:59.5" |

What is sent may be the same; a number with a point is DECIMAL, one with an exponent DOUBLE, true
and false are 1 and 0, and everything may be sent as a string, which MySQL's rules convert.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

from backend.client.values import Rows


def number_with_point(text: str) -> float | Decimal:
    """What a JSON number that is no integer stands for, as in SQL."""
    found = float(text) if "e" in text or "E" in text else Decimal(text)
    if not isfinite(found):
        raise ValueError(f"{text} is out of range")
    return found


def to_parameter(given: Any) -> Any:
    """What a JSON value stands for; ValueError if that is nothing."""
    match given:
        case bool():
            return int(given)
        case None | int() | float() | Decimal() | str():
            return given
        case {"base64": str(encoded), **rest} if not rest:
            try:
                return b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                raise ValueError("not base64") from None
    raise ValueError('a value is null, a number, a string or {"base64": "…"}')


def to_parameters(given: Sequence[Any]) -> list[Any]:
    return [to_parameter(each) for each in given]


def to_key(given: Any) -> Any:
    """A key: a value, or a list of them for several columns."""
    return tuple(to_parameters(given)) if isinstance(given, list) else to_parameter(given)


def to_json(rows: Rows) -> list[list[Any]]:
    """Rows of the client library as what msgspec encodes in the way above."""
    return [[_SHOWN[type(each)](each) if type(each) in _SHOWN else each for each in row] for row in rows]


def _time(given: timedelta) -> str:
    microseconds = round(given / timedelta(microseconds=1))
    sign, microseconds = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    seconds, fraction = divmod(microseconds, 1_000_000)
    shown = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{shown}.{fraction:06}".rstrip("0") if fraction else shown


def printable(message: str) -> str:
    """A message, in which bytes that are no UTF-8 are shown as such."""
    return message.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def without_surrogates(given: Any) -> Any:
    """The same with the bytes of texts that are no UTF-8; they are rare, so nobody looks for them before."""
    match given:
        case str() if not given.isprintable():
            try:
                given.encode()
            except UnicodeEncodeError:
                return _base64(given.encode("utf-8", "surrogateescape"))
        case list():
            return [without_surrogates(each) for each in given]
        case dict():
            return {name: without_surrogates(each) for name, each in given.items()}
    return given


def _base64(given: bytes) -> dict[str, str]:
    return {"base64": b64encode(given).decode()}


_SHOWN: dict[type, Any] = {bytes: _base64, timedelta: _time}
