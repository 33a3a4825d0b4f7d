"""The views of this machine's workers as other processes read them, without asking anybody.

A worker says with its answers in which file its part of the view is; from then on keys that are there
are read from it. A view that is closed is forgotten, and the next answer tells where it is
now. When a worker has moved, everything is forgotten: a file that its dead predecessor left
on another machine would never be closed. Where there are others, which may commit without it, what a lost worker
shows is forgotten at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from backend.clustering.misses import Misses
from backend.shared_memory.epoch_words import open_epoch_words
from backend.shared_memory.ordered_entries import RangeReader
from backend.shared_memory.parts import PartsReader, SeenEpoch, ViewReader
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import is_possible
from backend.shared_memory.shared_key import SharedKey
from backend.views.view_definition import ViewDefinition, is_packed
from backend.views.view_range import Range
from dataflow.values.types import Row

UNREACHABLE_MAX = 10_000

_encode = msgspec.msgpack.Encoder().encode


class Shown(Protocol):
    """What a worker says of where keys of a view are; see `backend.network.messages.Found`."""

    @property
    def file(self) -> str: ...

    @property
    def epoch(self) -> int: ...

    @property
    def words(self) -> str: ...


class SharedViews:
    def __init__(self, shard_count: int = 1) -> None:
        self._shard_count = shard_count
        self.seen = SeenEpoch()
        self._readers: dict[bytes, ViewReader] = {}
        self._range_readers: dict[bytes, tuple[ViewReader, RangeReader]] = {}
        self._words: dict[str, memoryview] = {}
        self._elsewhere: set[str] = set()
        self.missed_keys: Misses | None = None
        """Where workers are asked for keys that are not here, if somebody can be called back with them."""
        self.hits = 0
        self.misses = 0

    def reader(self, view: bytes) -> ViewReader | None:
        """Where keys of the view can be read, if it is shared and was asked for before."""
        found = self._readers.get(view)
        if found is not None and found.is_gone:
            self._drop(view)
            return None
        return found

    def _drop(self, view: bytes) -> None:
        reader = self._readers.pop(view, None)
        if reader is not None:
            reader.is_gone = True
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
        self, definition: ViewDefinition, reader: ViewReader, keys: Sequence[SharedKey], part: Range
    ) -> list[bytes | None] | None:
        known = self._range_readers.get(definition.name)
        if known is None or known[0] is not reader:
            ranges = RangeReader(definition.types, definition.order, definition.decode)
            known = self._range_readers[definition.name] = (reader, ranges)
        read = known[1].read

        def rows(file: SharedViewReader, own: Sequence[SharedKey]) -> list[list[Row] | None] | None:
            return file.consistently(lambda look: [read(look, key, part) for key in own])

        found = reader.each(keys, rows)
        return None if found is None else [None if each is None else _encode(each) for each in found]

    def learn(self, definition: ViewDefinition, shown: Shown, shard: int = 0) -> None:
        """A worker has answered for keys of the view, and shows its part of it in a file of its machine."""
        self.seen.see(shown.epoch)
        file = shown.file
        if not file or file in self._elsewhere:
            return
        reader = self.reader(definition.name)
        if reader is not None and (not isinstance(reader, PartsReader) or reader.part(shard) is not None):
            return
        opened = SharedViewReader.open(file) if is_possible() else None
        words = None if opened is None or not shown.words else self._words.get(shown.words) or open_epoch_words(shown.words)
        if opened is None or (words is None) != (self._shard_count == 1):
            if len(self._elsewhere) < UNREACHABLE_MAX:
                self._elsewhere.add(file)
            return
        # Views that nobody asks for any more are never found to be gone, and would stay mapped for good.
        for other, known in list(self._readers.items()):
            if known is not reader and not known.follow():
                self._drop(other)
        if words is None:
            self._readers[definition.name] = opened
            return
        self._words[shown.words] = words
        if reader is None:
            reader = self._readers[definition.name] = PartsReader(self._shard_count, definition.naming, self.seen)
        assert isinstance(reader, PartsReader)
        reader.add(shard, (opened, words))

    def shard_lost(self, shard: int) -> None:
        """What it shows is not kept up to date, unless it is the only one: nothing is committed without that."""
        for reader in self._readers.values():
            if isinstance(reader, PartsReader):
                reader.forget(shard)

    def forget(self) -> None:
        for reader in self._readers.values():
            reader.leave()
        self._readers.clear()
        self._range_readers.clear()
        self._words.clear()
        self._elsewhere.clear()
