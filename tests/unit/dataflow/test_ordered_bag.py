"""A bag in order is what sorting its values gives, after any changes; and a change costs the same however many there are."""

from __future__ import annotations

import random

import pytest

from dataflow.state import ordered_bag
from dataflow.state.ordered_bag import OrderedBag


@pytest.mark.parametrize("seed", range(10))
def test_oracle_sorted_counts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_bag, "BLOCK_LENGTH", 4)
    chance, bag, counts = random.Random(seed), OrderedBag(), dict[int, int]()
    for step in range(600):
        value, weight = chance.randrange(60), chance.choice([1, 1, 1, -1, 2])
        if step % 200 > 150 and counts:  # now and then it gets empty
            value = chance.choice(list(counts))
            weight = -counts[value]
        bag.add(value, weight)
        counts[value] = counts.get(value, 0) + weight
        if not counts[value]:
            del counts[value]
        if step > chance.randrange(20):
            assert list(bag.entries) == sorted(counts)
            if counts:
                assert (bag.first, bag.last) == (min(counts), max(counts))
    assert bag.counts == counts
