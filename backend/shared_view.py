"""The views of this machine's workers as other processes read them, without asking anybody.

A worker says with its answers in which file the view is; from then on keys that are there
are read from it. A view that is closed is forgotten, and the next answer tells where it is
now. When a worker has moved, everything is forgotten: a file that its dead predecessor left
on another machine would never be closed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from backend.misses import Misses
from backend.sharded_views import ShardedReader, ShardedViews
from backend.shared_memory.ordered_entries import RangeReader
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import is_possible
from backend.shared_memory.shared_key import SharedKey
from backend.view_definition import ViewDefinition, is_packed
from backend.view_range import Range

UNREACHABLE_MAX = 10_000

_encode = msgspec.msgpack.Encoder().encode


class SharedViews:
    def __init__(self, sharded: ShardedViews | None = None) -> None:
        """`sharded` are the views of several workers, whose keys are in more than one file."""
        self._sharded = sharded
        self._readers: dict[bytes, SharedViewReader] = {}
        self._range_readers: dict[bytes, tuple[SharedViewReader, RangeReader]] = {}
        self._elsewhere: set[str] = set()
        self.missed_keys: Misses | None = None
        """Where the worker is asked for keys that are not here, if somebody can be called back with them."""
        self.hits = 0
        self.misses = 0

    def keys(self, view: bytes) -> SharedViewReader | ShardedReader | None:
        """Where keys of the view can be read, if it is shared and was asked for before."""
        return self.reader(view) if self._sharded is None else self._sharded.reader(view)

    def reader(self, view: bytes) -> SharedViewReader | None:
        """The view's only file, if it has just one."""
        found = self._readers.get(view)
        if found is not None and found.is_gone:
            self._drop(view)
            return None
        return found

    def _drop(self, view: bytes) -> None:
        self._readers.pop(view, None)
        self._range_readers.pop(view, None)

    def lookup(self, definition: ViewDefinition, keys: bytes, part: Range | None = None) -> list[bytes] | None:
        """The rows of each key, keys and rows encoded, as of one epoch; None if a worker has to be asked."""
        # Who has packed keys knows that they are not here.
        reader = None if is_packed(keys) else self.reader(definition.name)
        if reader is None or bool(definition.order) != (part is not None):
            return None  # an ordered view is here by range only
        named = definition.naming.names(definition.decode_keys(keys))
        if part is not None and named is not None:
            found = self._ranges(definition, reader, named, part)
        else:
            found = None if named is None else reader.get_many(named)
        if found is None or None in found:
            self.misses += 1
            return None
        self.hits += 1
        return found  # type: ignore[return-value]

    def _ranges(
        self, definition: ViewDefinition, reader: SharedViewReader, keys: Sequence[SharedKey], part: Range
    ) -> list[bytes | None] | None:
        known = self._range_readers.get(definition.name)
        if known is None or known[0] is not reader:
            ranges = RangeReader(definition.types, definition.order, definition.decode)
            known = self._range_readers[definition.name] = (reader, ranges)
        read = known[1].read
        found = reader.consistently(lambda look: [read(look, key, part) for key in keys])
        return None if found is None else [None if rows is None else _encode(rows) for rows in found]

    def learn(self, view: bytes, file: str) -> None:
        """A worker shows the view in this file."""
        if not file or self.reader(view) is not None or file in self._elsewhere:
            return
        reader = SharedViewReader.open(file) if is_possible() else None
        if reader is not None:
            # Views that nobody asks for any more are never found to be gone, and would stay mapped for good.
            for other, known in list(self._readers.items()):
                if not known.follow():
                    self._drop(other)
            self._readers[view] = reader
        elif len(self._elsewhere) < UNREACHABLE_MAX:
            self._elsewhere.add(file)

    def forget(self) -> None:
        for reader in self._readers.values():
            reader.leave()
        self._readers.clear()
        self._range_readers.clear()
        self._elsewhere.clear()
