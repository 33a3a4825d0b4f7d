"""Keys that are equal live on one shard, and keys spread over all of them."""

from collections import Counter
from decimal import Decimal

import pytest

from dataflow.sharding import shard_of

EQUAL = [(5, Decimal("5.00"), 5.0), (0, -0.0, Decimal(0)), (1.5, Decimal("1.50")), (Decimal("0.10"), Decimal("0.1"))]


@pytest.mark.parametrize("equal", EQUAL)
def test_equal_keys_are_on_one_shard(equal: tuple[object, ...]) -> None:
    for count in range(1, 9):
        assert len({shard_of(each, count) for each in equal}) == 1
        assert len({shard_of((each, b"x"), count) for each in equal}) == 1


@pytest.mark.parametrize("count", [2, 3, 5, 16])
def test_consecutive_numbers_spread(count: int) -> None:
    found = Counter(shard_of(number, count) for number in range(10_000))
    assert len(found) == count and min(found.values()) > 0.8 * 10_000 / count


@pytest.mark.parametrize("key", [None, (), "", float("inf"), Decimal("1e300"), Decimal("1e-300"), (None, 1)])
def test_every_key_has_a_shard(key: object) -> None:
    assert 0 <= shard_of(key, 3) < 3
