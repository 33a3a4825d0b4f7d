"""Reads jump over what was deleted, and find what they would have found without."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dataflow.commit.epoch_effects import PersistEpoch
from persistence.emptied_ranges import GAPS_MAX, EmptiedRanges
from persistence.shard_store import ShardStore
from persistence.view import FIRST_CHUNK_ROWS, StateView


class CountedSource:
    """A snapshot of a store that counts how often LevelDB looks for a place."""

    def __init__(self, store: ShardStore) -> None:
        self._snapshot = store._database.snapshot()
        self.reading = self._snapshot.reading
        self.get = self._snapshot.get
        self.seeks = 0

    def iterator(self, **bounds: Any) -> Any:
        self.seeks += 1
        return self._snapshot.iterator(**bounds)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ShardStore]:
    store = ShardStore(tmp_path / "shard", "os")
    yield store
    store.abort()


def key(number: int) -> bytes:
    return b"r" + number.to_bytes(4, "big")


def write(store: ShardStore, writes: dict[bytes, bytes | None]) -> None:
    store.persist_epoch(PersistEpoch(store.epoch + 1, writes, [], {}, None, durable=False))


def slow(store: ShardStore) -> tuple[StateView, CountedSource]:
    """The state as it is, read with a clock by which everything takes long."""
    source = CountedSource(store)
    ticks = count(1)
    return StateView(source, store.epoch, store._emptied, lambda: float(next(ticks))), source


def found(view: StateView, start: int, stop: int, reverse: bool = False) -> list[int]:
    return [int.from_bytes(each[0][1:], "big") for chunk in view.scan(key(start), key(stop), reverse=reverse) for each in chunk]


def test_after_one_slow_lookup_the_deleted_rows_are_not_looked_at_again(store: ShardStore) -> None:
    write(store, {key(number): b"x" for number in range(2_000)})
    write(store, {key(number): None for number in range(1, 1_999)})
    view, source = slow(store)
    assert found(view, 5, 6) == []
    first = source.seeks
    for number in range(5, 1_990):
        assert not any(view.payloads(key(number), key(number + 1)))
        assert found(view, number, number + 1, reverse=number % 2 == 0) == []
    assert source.seeks - first <= 1_000, "backwards it is one seek, to the entry before the gap"
    before = source.seeks
    assert found(view, 5, 1_999) == [] and source.seeks == before
    assert found(view, 0, 2_000) == [0, 1_999]


def test_a_row_that_comes_into_a_gap_is_found(store: ShardStore) -> None:
    write(store, {key(0): b"x", key(100): b"x"})
    view, _ = slow(store)
    assert found(view, 1, 90) == []
    write(store, {key(50): b"y"})
    assert found(slow(store)[0], 1, 90) == [50]
    assert found(view, 1, 90) == [], "as of its epoch"
    write(store, {key(50): None})
    assert found(slow(store)[0], 1, 90) == []


def test_a_read_of_an_older_state_notes_nothing(store: ShardStore) -> None:
    write(store, {key(0): b"x"})
    view, _ = slow(store)
    write(store, {key(1): b"x"})
    assert found(view, 1, 9) == []
    assert not len(store._emptied)
    assert found(slow(store)[0], 1, 9) == [1]


def test_an_older_state_is_not_read_by_later_notes(store: ShardStore) -> None:
    write(store, {key(5): b"x"})
    view, _ = slow(store)
    write(store, {key(5): None})
    assert found(slow(store)[0], 1, 9) == []
    assert len(store._emptied)
    assert found(view, 1, 9) == [5]
    assert found(view, 1, 9, reverse=True) == [5]


@pytest.mark.parametrize("end", [60, 5 * FIRST_CHUNK_ROWS])
@pytest.mark.parametrize("seed", range(4))
def test_random_reads_and_writes_find_what_is_there(store: ShardStore, seed: int, end: int) -> None:
    random = Random(seed)
    rows: set[int] = set()
    for _ in range(120):
        numbers = {random.randrange(end) for _ in range(random.randint(1, end // 7))}
        is_put = random.random() < 0.5
        write(store, {key(number): b"x" if is_put else None for number in numbers})
        rows = rows | numbers if is_put else rows - numbers
        view, _ = slow(store)
        for _ in range(6):
            start, stop = sorted((random.randrange(end), random.randrange(end + 1)))
            expected = [number for number in sorted(rows) if start <= number < stop]
            reverse = random.random() < 0.3
            assert found(view, start, stop, reverse) == expected[:: -1 if reverse else 1]
            assert sum(map(len, view.payloads(key(start), key(stop)))) == len(expected)


def test_there_are_only_so_many_notes() -> None:
    gaps = EmptiedRanges(1)
    for number in range(GAPS_MAX + 5):
        gaps.note(key(2 * number), key(2 * number + 1), 1)
    assert len(gaps) <= GAPS_MAX
    gaps.begin_epoch(2, None)
    assert not len(gaps)
