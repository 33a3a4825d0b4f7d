"""The range of an index's keys that can hold the rows of a condition.

A range is (start, stop) with start ≤ key < stop; it is empty if start ≥ stop. Every row that
fulfils the condition has its key inside. The reverse holds too, except for key prefixes
(`col(20)`), where the rows have to be checked again.

Bounds are values of the column's kind; for numbers, any number. Comparisons other than
equality leave out NULL, as SQL's do. ENUM and SET compare by position here, which is not how
SQL compares them with a text: do not ask for `<` on those.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Literal

from dataflow.values.types import REALS, Value
from persistence.key_encoding import NULL_DESCENDING, EncodedPart, KeyEncoding

KeyRange = tuple[bytes, bytes]
Operator = Literal["<", "<=", ">", ">=", "IS NOT NULL"]
EMPTY: KeyRange = (b"", b"")

_FIRST_NOT_NULL = b"\x01"


def after_prefix(prefix: bytes) -> bytes:
    """The first byte string behind all those that begin with `prefix`."""
    trimmed = prefix.rstrip(b"\xff")
    assert trimmed, "nothing lies behind all keys"
    return trimmed[:-1] + bytes((trimmed[-1] + 1,))


def comparison_range(
    encoding: KeyEncoding,
    base: bytes,
    values: Sequence[Value],
    comparisons: Sequence[tuple[Operator, Value]],
) -> KeyRange:
    """Keys below `base` whose leading parts equal `values`, and whose next part fulfils all comparisons; None is NULL and equals NULL."""
    prefix = equal_prefix(encoding, base, values)
    if prefix is None:
        return EMPTY
    start, stop = prefix, after_prefix(prefix)
    for operator, bound in comparisons:
        next_start, next_stop = _compared(encoding, prefix, len(values), operator, bound)
        start, stop = max(start, next_start), min(stop, next_stop)
    return (start, stop) if start < stop else EMPTY


def equal_prefix(encoding: KeyEncoding, base: bytes, values: Sequence[Value]) -> bytes | None:
    """What all keys begin with whose leading parts equal `values`; None if no key can."""
    prefix = base
    for value, part, encode in zip(values, encoding.parts, encoding.value_encoders):
        if value is None or part.units == 0:
            prefix += encode(_converted(part, value))
            continue
        below, above = _integers(part, value)
        if below != above:
            return None
        prefix += part.encode_integer(below)
    return prefix


def _compared(
    encoding: KeyEncoding, prefix: bytes, number: int, operator: Operator, bound: Value
) -> KeyRange:
    part = encoding.parts[number]
    first, last = prefix + _FIRST_NOT_NULL, after_prefix(prefix)
    if part.descending:
        first, last = prefix, prefix + NULL_DESCENDING
    if operator == "IS NOT NULL":
        return first, last
    if bound is None:
        return EMPTY
    downward = operator in ("<", "<=")
    inclusive = operator in ("<=", ">=") or part.prefix is not None
    if part.units:
        below, above = _integers(part, bound)
        edge = prefix + part.encode_integer(below if downward == inclusive else above)
    else:
        edge = prefix + encoding.value_encoders[number](_converted(part, bound))
    if downward != part.descending:
        return first, after_prefix(edge) if inclusive else edge
    return edge if inclusive else after_prefix(edge), last


def _converted(part: EncodedPart, value: Value) -> Value:
    if part.type.kind in REALS and isinstance(value, int | Decimal):
        return float(value)
    return value


def _integers(part: EncodedPart, value: Value) -> tuple[int, int]:
    """The two integers around the number, in the part's units; twice the same if it is one itself.

    Numbers beyond what the column can hold become one just outside.
    """
    limit = part.limit
    if isinstance(value, int):
        below = above = value * part.units
    else:
        assert isinstance(value, float | Decimal), f"{value!r} is no bound for {part.type.kind}"
        exact = Fraction(value) * part.units
        below, above = floor(exact), ceil(exact)
    return max(-limit, min(below, limit)), max(-limit, min(above, limit))
