"""The values of one column for some rows: `NumberVector` where 64 bits hold each of them exactly, else an Arrow array.

| SQL                             | here                                                        |
|---------------------------------|-------------------------------------------------------------|
| integers, YEAR                  | numbers; an unsigned one of 2⁶³ and more is `GaveUp`        |
| DECIMAL of at most 18 digits    | numbers, without the point                                  |
| dates, times                    | numbers, packed as `dataflow.values.temporal` packs them    |
| texts, byte strings, all others | Arrow                                                       |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from dataflow.values.arrow_values import arrow_type
from dataflow.values.numerals import EXACT
from dataflow.values.types import INTEGERS, TEMPORALS, Kind, SqlType, Value

Array = np.ndarray[Any, Any]

DIGITS_MAX = 18
_INT64 = range(-(2**63), 2**63)


class GaveUp(Exception):
    """There is no exact answer by column, for the reason given."""


@dataclass(frozen=True, slots=True)
class NumberVector:
    """`values` are int64; where `missing` is true, the value is NULL and the number is 0."""

    values: Array
    missing: Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, places: slice | Array) -> NumberVector:
        return NumberVector(self.values[places], None if self.missing is None else self.missing[places])


Vector = Any
"""`NumberVector`, or an Arrow array."""


def is_number(kind: SqlType) -> bool:
    """Whether values of the type are `NumberVector`."""
    if kind.kind is Kind.DECIMAL:
        return (kind.length or 10) <= DIGITS_MAX
    return kind.kind in INTEGERS or kind.kind in TEMPORALS or kind.kind is Kind.YEAR


def is_exact(kind: SqlType) -> bool:
    """Whether values of the type are numbers that can be computed with."""
    return kind.kind in INTEGERS or (kind.kind is Kind.DECIMAL and is_number(kind))


def unscaled(value: int | Decimal, scale: int) -> int:
    """A number without its point, which has so many digits behind it."""
    return value if isinstance(value, int) else int(EXACT.scaleb(value, scale))


def scaled(number: int, scale: int) -> Decimal:
    return EXACT.scaleb(Decimal(number), -scale)


def vector_of(values: Sequence[Value], kind: SqlType) -> Vector:
    """Values as rows have them."""
    if not is_number(kind):
        try:
            return pa.array(values, arrow_type(kind))
        except (UnicodeEncodeError, pa.ArrowException) as error:
            raise GaveUp(f"a value that Arrow has not: {error}") from None
    numbers = [0 if each is None else unscaled(each, kind.scale) if kind.kind is Kind.DECIMAL else each for each in values]  # type: ignore[arg-type]
    try:
        found = np.array(numbers, np.int64)
    except OverflowError:
        raise GaveUp("a number of more than 63 bits") from None
    missing = np.fromiter((each is None for each in values), bool, len(values))
    return NumberVector(found, missing if missing.any() else None)


def values_of(vector: Vector, kind: SqlType) -> list[Value]:
    """The same as rows have them."""
    if not isinstance(vector, NumberVector):
        listed: list[Value] = vector.to_pylist()
        return listed
    found: list[Value] = vector.values.tolist()
    if kind.kind is Kind.DECIMAL:
        found = [scaled(each, kind.scale) for each in found]  # type: ignore[arg-type]
    if vector.missing is not None:
        for place in np.flatnonzero(vector.missing).tolist():
            found[place] = None
    return found


def taken(vector: Vector, places: Array) -> Vector:
    if isinstance(vector, NumberVector):
        return vector[places]
    return vector.take(pa.array(places))


def filtered(vector: Vector, mask: Array) -> Vector:
    return vector[mask] if isinstance(vector, NumberVector) else vector.filter(pa.array(mask))


def distinct(vector: Vector) -> tuple[Vector, Array]:
    """Each value once, and for each row which of them it has; NULL is one of them."""
    if not isinstance(vector, NumberVector):
        encoded = vector.dictionary_encode(null_encoding="encode")
        return encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False)
    values, places = factorized(vector.values)
    if vector.missing is None:
        return NumberVector(values), places
    places = np.where(vector.missing, len(values), places)
    missing = np.zeros(len(values) + 1, bool)
    missing[-1] = True
    return NumberVector(np.append(values, 0), missing), places


def factorized(values: Array) -> tuple[Array, Array]:
    """The numbers that there are, ascending, and for each row which of them it has."""
    if not len(values):
        return values, np.zeros(0, np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 1024:
        found, places = np.unique(values, return_inverse=True)
        return found, places
    at = values - low
    present = np.zeros(high - low + 1, bool)
    present[at] = True
    return np.flatnonzero(present) + low, (np.cumsum(present) - 1)[at]


def in_64_bits(*numbers: int) -> None:
    if not all(each in _INT64 for each in numbers):
        raise GaveUp("a number of more than 63 bits")
