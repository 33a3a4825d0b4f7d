"""Deltas: what changed, as rows with integer weights.

A delta is a list of `(row, weight)`; an UPDATE is −old +new, and weights add, so collections
are bags. Bags are dicts from row to weight without zeros.

Invariant of every delta that enters or leaves an operator: it is one or more segments, each
of which takes the collection from one valid state to another and lists its retractions
first. An index with one row for each key can then apply rows one by one, without merging.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from dataflow.values.types import Row

Change = tuple[Row, int]
Delta = list[Change]
Bag = dict[Row, int]


class Weighted(Protocol):
    """Rows with weights, gone through once: a bag, or rows that come as they are read."""

    def items(self) -> Iterable[Change]: ...


class Stream:
    """Rows with weights that are nowhere collected."""

    __slots__ = ("_changes",)

    def __init__(self, changes: Iterable[Change]) -> None:
        self._changes = changes

    def items(self) -> Iterable[Change]:
        return self._changes


def consolidate(delta: Iterable[Change]) -> Delta:
    """The same change with each row once, nothing of weight zero, retractions first."""
    bag: Bag = {}
    for row, weight in delta:
        bag[row] = bag.get(row, 0) + weight
    return [change for change in bag.items() if change[1] < 0] + [change for change in bag.items() if change[1] > 0]


def ordered(delta: Delta) -> Delta:
    """`delta` in the form operators take; free of charge when it only adds rows."""
    for _, weight in delta:
        if weight <= 0:
            return consolidate(delta)
    return delta


def negated(delta: Iterable[Change]) -> Delta:
    return [(row, -weight) for row, weight in delta]


def merged(bag: Bag, delta: Iterable[Change]) -> Bag:
    """`bag` after `delta`, as a new bag."""
    result = dict(bag)
    for row, weight in delta:
        total = result.get(row, 0) + weight
        if total:
            result[row] = total
        else:
            result.pop(row, None)
    return result


def rows_of(bag: Bag) -> Iterator[Row]:
    """Each row as often as its weight says."""
    for row, weight in bag.items():
        if weight == 1:
            yield row
        else:
            for _ in range(weight):
                yield row
