"""JSON documents: what has no normal text is refused."""

from __future__ import annotations

import pytest

from dataflow.values.documents import NotJson, normalise


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 400, "-" + "9" * 5000])
def test_numbers_that_no_double_has_room_for_are_refused(number: str) -> None:
    with pytest.raises(NotJson, match="Number too big") as caught:
        normalise(f'{{"a": [1, {number}]}}')
    assert caught.value.position == 10


def test_numbers_of_more_than_64_bits_are_doubles() -> None:
    assert normalise("18446744073709551615") == "18446744073709551615"
    assert normalise("-9223372036854775808") == "-9223372036854775808"
    assert normalise("18446744073709551616") == "1.8446744073709552e19"
    assert normalise("-9223372036854775809") == "-9.223372036854776e18"
    assert normalise("1" * 300) == "1.1111111111111112e299"


def test_documents_nest_a_hundred_levels() -> None:
    assert normalise("[" * 100 + "1" + "]" * 100)
    for levels in (101, 50_000):
        with pytest.raises(NotJson, match="maximum depth"):
            normalise("[" * levels + "]" * levels)
