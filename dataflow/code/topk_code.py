"""Top-k: the first rows of each held partition in order, and the window of them that is shown.

A row that leaves the window is replaced at once by one of those kept behind it. Where a partition can be computed again
only some hundred of these are kept: `is_cut` says that rows which sort later than the last of them are not there. Changes of
such rows are dropped; when deletions leave the window short, the partition is computed again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Any

from dataflow.expressions.source import Function, Key, key_function
from dataflow.plan.node import TopK
from dataflow.runtime.operator import Operator
from dataflow.sorting import sort_in_pieces
from dataflow.state.arrangement import Arrangement
from dataflow.state.delta import Bag, Delta, Weighted
from dataflow.values.ordering import sort_function
from dataflow.values.types import Row

Entry = tuple[Any, Row]
Partitions = dict[Key, list[Any]]
"""partition → [ordered entries, is_cut, bag of the window]"""

KEPT_MIN, KEPT_WINDOWS = 1_000, 4
"""So many rows, or windows, of a partition are kept, and up to twice as many until they are cut again."""
LED_MIN = 100
"""So many rows are kept where it is cheap to read some more."""
LEAD_ROWS_MAX = 10_000
"""So many rows of other partitions are passed to find the first rows of one."""


def _cut(node: TopK, entries: list[Entry]) -> bool:
    """Leave the first entries; whether some were cut off. Equal ones stay together."""
    kept = max(KEPT_MIN, KEPT_WINDOWS * (node.offset + node.limit))
    if len(entries) < 2 * kept:
        return False
    while kept < len(entries) and entries[kept] == entries[kept - 1]:
        kept += 1
    is_cut = kept < len(entries)
    del entries[kept:]
    return is_cut


def _window(node: TopK, entries: list[Entry]) -> Bag:
    bag: Bag = {}
    for _, row in entries[node.offset : node.offset + node.limit]:
        bag[row] = bag.get(row, 0) + 1
    return bag


def topk_loader(operator: Operator, is_whole: bool = True) -> Callable[[Weighted], Partitions]:
    """input rows → the state of each of their partitions, with all rows if `is_whole`."""
    node = operator.node
    assert isinstance(node, TopK)
    partition_of = key_function(node.partition, node.types)
    sort_key = sort_function(node.order)

    def load(bag: Weighted) -> Partitions:
        partitions: Partitions = {}
        for row, weight in bag.items():
            state = partitions.setdefault(partition_of(row), [[], False, {}])
            state[0].extend([(sort_key(row), row)] * weight)
        for state in partitions.values():
            sort_in_pieces(state[0])
            state[1] = not is_whole and _cut(node, state[0])
            state[2] = _window(node, state[0])
        return partitions

    return load


def topk_lead(operator: Operator) -> Callable[[Key, Iterable[Row]], Partitions | None]:
    """(partition, rows of all partitions in the order of the node) → its state, from as few of the rows as it takes.

    None if it takes too many.
    """
    node = operator.node
    assert isinstance(node, TopK)
    partition_of, sort_key = key_function(node.partition, node.types), sort_function(node.order)

    def lead(given: Key, rows: Iterable[Row]) -> Partitions | None:
        kept, left = max(LED_MIN, KEPT_WINDOWS * (node.offset + node.limit)), LEAD_ROWS_MAX
        entries: list[Any] = []
        for row in rows:
            if partition_of(row) == given:
                if len(entries) == kept:
                    return {given: [entries, True, _window(node, entries)]}
                entries.append((sort_key(row), row))
            elif not left:
                return None
            else:
                left -= 1
        return {given: [entries, False, _window(node, entries)]} if entries else {}

    return lead


def topk_update(operator: Operator, state: Arrangement, store: Function, is_whole: bool = True) -> Function:
    """delta of the input → delta of the windows; `store` applies it to the operator's arrangements.

    All rows of a partition are kept if `is_whole`. Others are computed again by `state.compute`, which sees the whole delta already.
    """
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
            kept = part.setdefault(partition, [[], False, {}])
            entry, entries = (sort_key(row), row), kept[0]
            if kept[1] and (not entries or entries[-1] < entry):
                continue
            changed[partition] = (held, part, kept)
            _place(entries, entry, weight)
        out: Delta = []
        for partition, (held, part, kept) in changed.items():
            entries, is_cut, old = kept
            if is_cut and len(entries) < node.offset + node.limit:
                entries, kept[1], _ = state.compute(held).get(partition, [[], False, {}])
                kept[0] = entries
            elif not is_whole and _cut(node, entries):
                kept[1] = True
            new = kept[2] = _window(node, entries)
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
