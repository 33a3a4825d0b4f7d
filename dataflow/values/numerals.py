"""Numbers as text and text as numbers, digit for digit like MySQL.

`format_*` are what CONCAT and the text protocol show; `read_*` take the longest numeric
prefix, which is what a text is worth in arithmetic.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.notices import say

EXACT = Context(prec=100, rounding=ROUND_HALF_UP, Emin=-999999, Emax=999999)
"""The context of all DECIMAL arithmetic; the default one would round at 28 digits."""

INT64_MIN, INT64_MAX, UINT64_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
SHOWN_MAX = 128
"""As many characters of a wrong value are in a message."""
REAL_MAX = 1.7976931348623157e308

_REAL = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_SINGLE = struct.Struct("<f")
_EXPONENT_FROM = 15
"""Up to this many digits before the point, and zeros after it, are written out; more if a fraction follows."""
DECIMAL_DIGITS_MAX = 81
"""What MySQL computes with."""


def format_double(value: float) -> str:
    """The shortest digits that give `value` back: 0.1, 100000000000000, 1e15, 1.5e-16."""
    return _written(repr(value), value)


def format_float(value: float) -> str:
    """Six significant digits, as MySQL shows a FLOAT."""
    return _written(f"{value:.5e}", value)


def _written(shortest: str, value: float) -> str:
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    mantissa, _, exponent = shortest.partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    if not digits:
        return shortest
    if -_EXPONENT_FROM < point <= _EXPONENT_FROM or _EXPONENT_FROM < point < len(digits):
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        if len(digits) <= point:
            return f"{sign}{digits}{'0' * (point - len(digits))}"
        return f"{sign}{digits[:point]}.{digits[point:]}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1}"


def format_decimal(value: Decimal) -> str:
    return f"{value:f}"


def read_real(text: str) -> float:
    """The number `text` starts with, 0 if none."""
    found = _REAL.match(text)
    if found is None:
        cut("DOUBLE", text, 0)
        return 0.0
    if found.end() < len(text):
        cut("DOUBLE", text, found.end())
    value = float(found[1])
    if value in (math.inf, -math.inf):
        say(Condition.TRUNCATED_VALUE, "DOUBLE", text[:SHOWN_MAX])
        return math.copysign(REAL_MAX, value)
    return value


def read_decimal(text: str) -> Decimal:
    found = _REAL.match(text)
    cut("DECIMAL", text, 0 if found is None else found.end())
    return written_decimal(found[1]) if found is not None else Decimal(0)


def written_decimal(text: str) -> Decimal:
    """What no DECIMAL could hold is as large as one can be, or 0: nobody has to write out its zeros."""
    try:
        value = Decimal(text)
    except InvalidOperation:  # an exponent that even this type has no room for
        value = Decimal("0" if "e-" in text.lower() else "-1e1000" if text.startswith("-") else "1e1000")
    if not value:
        return Decimal(0) if value.adjusted() > 0 else value
    if value.adjusted() < DECIMAL_DIGITS_MAX:
        return value if value.adjusted() > -DECIMAL_DIGITS_MAX else Decimal(0)
    return largest_decimal(65, 0).copy_sign(value)


def whole_number(text: str) -> int:
    """An integer of any number of digits, right as far as any type needs it: from 30 digits on they do not matter."""
    sign = text[:1] if text[:1] in ("-", "+") else ""
    return int(sign + (text[len(sign) :].lstrip("0")[:30] or "0"))


def read_integer(text: str) -> int:
    """The integer `text` starts with; a fraction or exponent after it is not looked at."""
    found = _INTEGER.match(text)
    cut("INTEGER", text, 0 if found is None else found.end())
    return max(INT64_MIN, min(whole_number(found[1]), UINT64_MAX)) if found is not None else 0


def cut(kind: str, text: str, end: int) -> None:
    """A warning, if what follows the number is more than spaces."""
    if end == 0 or text[end:].strip(" \t\n\v\f\r"):
        say(Condition.TRUNCATED_VALUE, kind, text[:SHOWN_MAX])


def is_number(text: str) -> bool:
    """Whether all of `text` but the spaces around it is one number."""
    found = _REAL.match(text)
    return found is not None and not text[found.end() :].strip(" \t\n\v\f\r")


def round_decimal(value: Decimal) -> int:
    """Half away from zero, within the integers of 64 bits, signed or not. What is beyond them is an argument that is too large: a warning."""
    whole = int(value.to_integral_value(ROUND_HALF_UP))
    if INT64_MIN <= whole <= UINT64_MAX:
        return whole
    say(Condition.TRUNCATED_VALUE, "DECIMAL", format_decimal(value)[:SHOWN_MAX])
    return INT64_MIN if whole < 0 else UINT64_MAX


def round_real(value: float) -> int:
    """Half to even, within the integers of 64 bits."""
    if value >= 9.3e18 or value <= -9.3e18:
        return INT64_MAX if value > 0 else INT64_MIN
    return max(INT64_MIN, min(round(value), INT64_MAX))


def single(value: float) -> float:
    """`value` rounded to single precision; infinite where it does not fit."""
    try:
        return float(_SINGLE.unpack(_SINGLE.pack(value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def quantum(scale: int) -> Decimal:
    return Decimal(1).scaleb(-scale)


def largest_decimal(digits: int, scale: int) -> Decimal:
    """The largest value of DECIMAL(digits, scale)."""
    return Decimal("9" * digits).scaleb(-scale, EXACT)


def settle(value: Decimal, unit: Decimal) -> Decimal:
    """Rounded half away from zero to the digits of `unit`, with no negative zero."""
    try:
        rounded = value.quantize(unit, ROUND_HALF_UP, EXACT)
    except InvalidOperation:
        raise InvalidStatement(Condition.VALUE_OUT_OF_RANGE, "DECIMAL", f"{value:.20g}") from None
    return rounded if rounded else rounded.copy_abs()
