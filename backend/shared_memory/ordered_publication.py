"""The publication of an ordered view: keys whose rows others read by range, without asking.

A key is shown once it was asked for; from then on the blocks that an epoch changes are written
again with it, as `publication` does with whole keys. A key that is evicted, filled anew, too
large or changed in too many places at once is taken away, and comes back when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from backend.shared_memory.entry import EntryLayout
from backend.shared_memory.ordered_entries import DIRECTORY, directory, entry_name, key_of_entry
from backend.shared_memory.segment import SegmentNames
from backend.shared_memory.shared_key import KeyNaming, SharedKey
from backend.shared_memory.writer import SharedViewWriter
from dataflow.expressions.source import Key
from dataflow.runtime.engine import Engine, View
from dataflow.state.sorted_rows import OrderedRows, SortedBlock, SortedRows
from dataflow.values.types import Row

KEY_ROWS_MAX = 200_000
CHANGED_BLOCKS_MAX = 64

_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class _Shown:
    name: SharedKey
    rows: SortedRows
    shape: int
    numbers: set[int]


class OrderedPublication:
    """One ordered view's shared copy."""

    def __init__(self, names: SegmentNames, view: View) -> None:
        self.view = view
        self._naming = KeyNaming(view.node.types, view.key)
        self.writer = SharedViewWriter(names.new(), EntryLayout(()), exact=False)
        self._shown: dict[Key, _Shown] = {}
        self._version = 0

    def show_new(self, keys: Sequence[Row]) -> None:
        """Have these keys, too, if they are not too large."""
        for values in keys:
            key = self.view.index_key(values)
            if key not in self._shown:
                self._show(key)

    def follow(self, engine: Engine, keys: Iterable[Key], amended: Iterable[Key]) -> None:
        """These keys were filled, changed, amended or evicted; those that are shown are to be shown as they are now."""
        for key in (*keys, *amended):
            shown = self._shown.get(key)
            if shown is None:
                continue
            bag, rows = self._rows(key)
            changed = shown.rows.changed
            assert changed is not None
            if rows is not shown.rows or len(changed) > CHANGED_BLOCKS_MAX or not self._put(shown, bag, changed):
                self._forget(key)
            else:
                changed.clear()

    def read_keys(self) -> set[Key]:
        """The keys that were read here since last asked."""
        return {self._naming.index_key(key_of_entry(name)) for name in self.writer.take_touched()}  # type: ignore[arg-type]

    def close(self) -> None:
        for shown in self._shown.values():
            shown.rows.changed = None

    def _rows(self, key: Key) -> tuple[Mapping[Row, int], SortedRows | None]:
        bag = self.view.arrangement.index.get(key)
        return (bag, bag.orders.get(self.view.order)) if isinstance(bag, OrderedRows) else ({}, None)

    def _show(self, key: Key) -> None:
        name = self._naming.name_of_index_key(key)
        bag, rows = self._rows(key)
        if name is None or rows is None or rows.changed is not None or len(bag) > KEY_ROWS_MAX:
            return
        shown = self._shown[key] = _Shown(name, rows, -1, set())
        rows.changed = {}
        if not self._put(shown, bag, {block.number: block for block in rows.blocks}):
            self._forget(key)

    def _put(self, shown: _Shown, bag: Mapping[Row, int], blocks: Mapping[int, SortedBlock]) -> bool:
        """Write these blocks, and the directory if it is another; False if there is no place for them."""
        writer, rows = self.writer, shown.rows
        for number, block in blocks.items():
            found = [row for entry in block for row in [entry[-1].row] * bag[entry[-1].row]]
            shown.numbers.add(number)
            if not writer.put(entry_name(shown.name, number), (), _encode(found)):
                return False
        if rows.shape == shown.shape:
            return True
        numbers = [block.number for block in rows.blocks]
        for number in shown.numbers.difference(numbers):
            writer.remove(entry_name(shown.name, number))
        shown.shape, shown.numbers = rows.shape, set(numbers)
        self._version += 1
        payload = directory(self._version, numbers, [start[:-1] for start in rows.starts])
        return writer.put(entry_name(shown.name, DIRECTORY), (), payload)

    def _forget(self, key: Key) -> None:
        shown = self._shown.pop(key)
        shown.rows.changed = None
        for number in (DIRECTORY, *shown.numbers):
            self.writer.remove(entry_name(shown.name, number))
