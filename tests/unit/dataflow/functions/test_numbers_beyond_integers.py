"""A DECIMAL argument that no integer of 64 bits can hold is cut, with a warning."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dataflow.expressions.notices import overheard
from dataflow.values.numerals import round_decimal


@pytest.mark.parametrize(
    ("value", "found", "warnings"),
    [("18446744073709551615", 2**64 - 1, 0), ("18446744073709551616", 2**64 - 1, 1), ("-9223372036854775808", -(2**63), 0), ("-1e30", -(2**63), 1)],
)
def test_a_decimal_beyond_64_bits_is_cut_with_a_warning(value: str, found: int, warnings: int) -> None:
    with overheard() as heard:
        assert round_decimal(Decimal(value)) == found
    assert len(heard) == warnings
