"""Top-k: the rows of each held partition in order, and the window of them that is shown.

All rows of a partition are kept, so a row that leaves the window is replaced at once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Any

from dataflow.arrangement import Arrangement
from dataflow.delta import Bag, Delta, Weighted
from dataflow.node import TopK
from dataflow.operator import Operator
from dataflow.ordering import sort_function
from dataflow.sorting import sort_in_pieces
from dataflow.source import Function, Key, key_function
from dataflow.types import Row

Entry = tuple[Any, Row]
Partitions = dict[Key, list[Any]]
"""partition → [ordered entries, bag of the window]"""


def _window(node: TopK, entries: list[Entry]) -> Bag:
    bag: Bag = {}
    for _, row in entries[node.offset : node.offset + node.limit]:
        bag[row] = bag.get(row, 0) + 1
    return bag


def topk_loader(operator: Operator) -> Callable[[Weighted], Partitions]:
    """input rows → the state of each of their partitions."""
    node = operator.node
    assert isinstance(node, TopK)
    partition_of = key_function(node.partition, node.types)
    sort_key = sort_function(node.order)

    def load(bag: Weighted) -> Partitions:
        partitions: Partitions = {}
        for row, weight in bag.items():
            state = partitions.setdefault(partition_of(row), [[], {}])
            state[0].extend([(sort_key(row), row)] * weight)
        for state in partitions.values():
            sort_in_pieces(state[0])
            state[1] = _window(node, state[0])
        return partitions

    return load


def topk_update(operator: Operator, state: Arrangement, store: Function) -> Function:
    """delta of the input → delta of the windows; `store` applies it to the operator's arrangements."""
    node = operator.node
    assert isinstance(node, TopK)
    partition_of, held_by = key_function(node.partition, node.types), state.key_of
    sort_key, index = sort_function(node.order), state.index

    def update(delta: Delta) -> Delta:
        changed: dict[Key, tuple[Key, Partitions, list[Any]]] = {}
        for row, weight in delta:
            held = held_by(row)
            part = index.get(held)
            if part is None:
                continue
            if state.recorders:
                state.record(held, part)
            partition = partition_of(row)
            entries_window = part.setdefault(partition, [[], {}])
            changed[partition] = (held, part, entries_window)
            _place(entries_window[0], (sort_key(row), row), weight)
        out: Delta = []
        for partition, (held, part, entries_window) in changed.items():
            entries, old = entries_window
            new = entries_window[1] = _window(node, entries)
            if not entries:
                del part[partition]
            if new != old:
                if state.views:
                    state.touched.add(held)
                out.extend((row, new.get(row, 0) - n) for row, n in old.items() if new.get(row, 0) < n)
                out.extend((row, n - old.get(row, 0)) for row, n in new.items() if old.get(row, 0) < n)
        store(out)
        return out

    return update


def _place(entries: list[Entry], entry: Entry, weight: int) -> None:
    if weight > 0:
        for _ in range(weight):
            insort(entries, entry)
    else:
        at = bisect_left(entries, entry)
        assert entries[at : at - weight] == [entry] * -weight, "a top-k is told to forget a row it never had"
        del entries[at : at - weight]
