"""The rows of one key in order: sorted blocks, so that a change moves few rows and a range reads few.

`OrderedRows` is a bag with one `SortedRows` for each order that views have asked for. A block
has at most twice `BLOCK_ROWS` rows; `starts` says where each but the first begins, and stays as
it is while rows come and go, until a block is split or has become empty: then `shape` counts on.
Whoever shows the blocks elsewhere finds in `changed` those that are not what they were.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dataflow.plan.node import Columns, Order
from dataflow.values.ordering import sort_function, whole_row_key
from dataflow.values.types import Row

BLOCK_ROWS = 64

SortKey = Callable[[Row], Any]
Entry = tuple[Any, ...]
"""The keys of the order's columns, and the row as what decides between ties."""


class Tie:
    """A row at the end of a sort key: rows that the order calls equal fall by all their columns."""

    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.row = row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tie) and self.row == other.row

    def __hash__(self) -> int:
        return hash(self.row)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Tie):
            return NotImplemented  # the end of a range knows
        return whole_row_key(self.row) < whole_row_key(other.row)


def entry_function(order: Iterable[Order]) -> SortKey:
    """The entry of a row in this order."""
    return sort_function(tuple(order), Tie)


class SortedBlock(list[Entry]):
    """Some neighbouring entries. No two blocks of one `SortedRows` ever have the same number."""

    __slots__ = ("number",)

    def __init__(self, number: int, entries: Iterable[Entry]) -> None:
        super().__init__(entries)
        self.number = number


class SortedRows:
    """The distinct rows of one key in one order."""

    __slots__ = ("_count", "_entry_of", "blocks", "changed", "shape", "starts")

    def __init__(self, rows: Iterable[Row], entry_of: SortKey) -> None:
        self._entry_of = entry_of
        entries: list[Entry] = sorted(map(entry_of, rows))
        places = range(0, max(len(entries), 1), BLOCK_ROWS)
        self.blocks = [SortedBlock(n, entries[place : place + BLOCK_ROWS]) for n, place in enumerate(places)]
        self.starts: list[Entry] = [block[0] for block in self.blocks[1:]]
        self.shape = 0
        self.changed: dict[int, SortedBlock] | None = None
        """Blocks that have changed; None while nobody wants to know."""
        self._count = len(self.blocks)

    def add(self, row: Row) -> None:
        entry = self._entry_of(row)
        number = bisect_right(self.starts, entry)
        block = self.blocks[number]
        insort(block, entry)
        if self.changed is not None:
            self.changed[block.number] = block
        if len(block) > 2 * BLOCK_ROWS:
            upper = SortedBlock(self._count, block[BLOCK_ROWS:])
            del block[BLOCK_ROWS:]
            self.blocks.insert(number + 1, upper)
            self.starts.insert(number, upper[0])
            self.shape += 1
            self._count += 1
            if self.changed is not None:
                self.changed[upper.number] = upper

    def remove(self, row: Row) -> None:
        entry = self._entry_of(row)
        number = bisect_right(self.starts, entry)
        block = self.blocks[number]
        place = bisect_left(block, entry)
        assert block[place] == entry, "a row leaves that was never there"
        del block[place]
        if self.changed is not None:
            self.changed[block.number] = block
        if not block and len(self.blocks) > 1:
            del self.blocks[number]
            del self.starts[max(number - 1, 0)]
            self.shape += 1
            if self.changed is not None:
                del self.changed[block.number]

    def mark(self, row: Row) -> None:
        """The row is there more or less often than before."""
        if self.changed is not None:
            block = self.blocks[bisect_right(self.starts, self._entry_of(row))]
            self.changed[block.number] = block

    def between(self, low: Any, high: Any, descending: bool = False) -> Iterator[Row]:
        """The rows with low ≤ entry < high, in order or against it."""
        blocks, starts = self.blocks, self.starts
        first = 0 if low is None else bisect_left(starts, low)
        last = len(starts) if high is None else bisect_left(starts, high)
        numbers = range(first, last + 1)
        for number in reversed(numbers) if descending else numbers:
            block = blocks[number]
            start = bisect_left(block, low) if number == first and low is not None else 0
            stop = bisect_left(block, high) if number == last and high is not None else len(block)
            found = block[start:stop]
            if descending:
                found.reverse()
            for entry in found:
                yield entry[-1].row


class OrderedRows(dict[Row, int]):
    """A bag that also has its rows in one or more orders."""

    __slots__ = ("orders",)

    def __init__(self, bag: Mapping[Row, int], orders: Mapping[Columns, SortKey]) -> None:
        super().__init__(bag)
        self.orders = {columns: SortedRows(bag, entry_of) for columns, entry_of in orders.items()}

    def place(self, row: Row) -> None:
        """The row is new here."""
        for each in self.orders.values():
            each.add(row)

    def count_again(self, row: Row) -> None:
        """The row is there more or less often than before."""
        for each in self.orders.values():
            each.mark(row)

    def displace(self, row: Row) -> None:
        """The row goes."""
        for each in self.orders.values():
            each.remove(row)

    def between(
        self, order: Columns, low: Any, high: Any, limit: int | None = None, descending: bool = False
    ) -> list[Row]:
        """The first `limit` rows with low ≤ entry < high, each as often as it is there."""
        found: list[Row] = []
        for row in self.orders[order].between(low, high, descending):
            if limit is not None and len(found) >= limit:
                break
            count = self[row]
            found.append(row) if count == 1 else found.extend([row] * count)
        return found[:limit]
