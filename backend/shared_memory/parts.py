"""A view whose keys are in the files of several workers, read as if it were in one.

Each worker says beside its files which epoch they show (`epoch_words`). What is read of several files at once is as of
one epoch, or not read at all; and nothing is read from before an epoch that this process has seen. Workers show an epoch
one a moment after the other: who can wait for that moment tries again (`settled`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from backend.shared_memory.columns import ColumnReader, Entries, EntryColumns, joined_entries
from backend.shared_memory.epoch_words import BEGUN, SHOWN
from backend.shared_memory.key_group import alike_names
from backend.shared_memory.probing import Array
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.shared_key import KeyNaming, SharedKey
from dataflow.sharding import shard_of, shards_of
from dataflow.values.types import SqlType

T = TypeVar("T")
TRIES_MAX, TRY_S = 20, 0.0005
"""How often, and after how long, files that show different epochs are looked at again."""
Part = tuple[SharedViewReader, memoryview]
"""A worker's file of the view, and its epoch words."""


class SeenEpoch:
    """The latest epoch that somebody in this process has seen."""

    __slots__ = ("epoch",)

    def __init__(self) -> None:
        self.epoch = 0

    def see(self, epoch: int) -> None:
        if epoch > self.epoch:
            self.epoch = epoch


class PartsReader:
    """As `SharedViewReader`, over a part for each shard that is known to have one on this machine."""

    def __init__(self, shard_count: int, naming: KeyNaming, seen: SeenEpoch) -> None:
        self.shard_count = shard_count
        self.is_exact = naming.is_exact
        self.is_gone = False
        self.is_between = False
        """Whether what was last looked for was not to be had because files show different epochs."""
        self._index_key = naming.index_key
        self._seen = seen
        self._parts: dict[int, Part] = {}

    def part(self, shard: int) -> Part | None:
        found = self._parts.get(shard)
        if found is not None and found[0].is_gone:
            self._parts.pop(shard, None)
            return None
        return found

    def add(self, shard: int, part: Part) -> None:
        self._parts[shard] = part

    def forget(self, shard: int) -> None:
        """What the shard shows may be out of date."""
        part = self._parts.pop(shard, None)
        if part is not None:
            part[0].leave()

    def follow(self) -> bool:
        """Keep nothing mapped that is gone; False if that is all."""
        for shard, (reader, _) in list(self._parts.items()):
            if not reader.follow():
                self._parts.pop(shard, None)
        return bool(self._parts)

    def leave(self) -> None:
        for shard in list(self._parts):
            self.forget(shard)
        self.is_gone = True

    def get_number(self, key: int) -> bytes | None:
        part = self.part(shard_of(key, self.shard_count))
        if part is None or part[1][SHOWN] < self._seen.epoch:
            return None
        found = part[0].get_number(key)
        self._seen.see(part[1][BEGUN])
        return found

    def get_many(self, keys: Sequence[SharedKey]) -> list[bytes | None] | None:
        return self.each(keys, lambda file, own: file.get_many(own))

    def get(self, key: SharedKey) -> bytes | None:
        found = self.get_many((key,))
        return None if found is None else found[0]

    def get_alike(self, parts: Sequence[int], place: int, numbers: Sequence[int]) -> list[bytes | None] | None:
        return self.get_many(alike_names(parts, place, numbers))

    def each(
        self, keys: Sequence[SharedKey], read: Callable[[SharedViewReader, list[SharedKey]], list[T] | None]
    ) -> list[T] | None:
        """What `read` finds of the keys of each file, in the order of the keys, as of one epoch; None if it cannot be had."""
        places: dict[int, list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(shard_of(self._index_key(key), self.shard_count), []).append(place)
        found = self.at_once(places, lambda shard, file: read(file, [keys[place] for place in places[shard]]))
        if found is None:
            return None
        result: list[Any] = [None] * len(keys)
        for shard, own in places.items():
            for place, each in zip(own, found[shard], strict=True):
                result[place] = each
        return result

    def at_once(self, shards: Collection[int], read: Callable[[int, SharedViewReader], T | None]) -> dict[int, T] | None:
        """What `read` finds in the files of these shards, as of one epoch; None if that is not to be had of one of them."""
        self.is_between = False
        parts = {shard: part for shard in shards if (part := self.part(shard)) is not None}
        if not parts or len(parts) < len(shards):
            return None
        shown = {part[1][SHOWN] for part in parts.values()}
        self.is_between = len(shown) > 1 or min(shown) < self._seen.epoch
        if self.is_between:
            return None
        result: dict[int, T] = {}
        for shard, (file, words) in parts.items():
            found = read(shard, file)
            if found is None:
                return None
            result[shard] = found
            begun = words[BEGUN]
            if len(parts) > 1 and begun not in shown:  # else what one file has is of one epoch, whichever
                self.is_between = True
                return None
            self._seen.see(begun)
        return result


ViewReader = SharedViewReader | PartsReader


async def settled(reader: ViewReader | None, look: Callable[[], T | None]) -> T | None:
    """What `look` finds, which has just found nothing, if that is because the reader's files show different epochs."""
    for _ in range(TRIES_MAX):
        if not isinstance(reader, PartsReader) or not reader.is_between:
            return None
        await asyncio.sleep(TRY_S)
        found = look()
        if found is not None:
            return found
    return None


class PartsColumns:
    """As `ColumnReader`."""

    def __init__(self, reader: PartsReader, types: Sequence[SqlType]) -> None:
        self._reader = reader
        self._types = types
        self._readers: dict[int, tuple[SharedViewReader, ColumnReader]] = {}

    def read(self, keys: Array, wanted: Sequence[int]) -> EntryColumns | None:
        found = self._each(keys, lambda file, own: file.read(own, wanted))
        if found is None:
            return None
        known, present = np.zeros(len(keys), bool), np.zeros(len(keys), bool)
        for own, each in found:
            known[own] = each.known
            present[own] = each.present
        # The rows of all files, one after the other, are put in the order of the keys.
        order = np.argsort(np.concatenate([own[each.present] for own, each in found]))
        cells = [_joined([each.cells[place] for _, each in found], order) for place in range(len(wanted))]
        nulls = None
        if any(each.nulls is not None for _, each in found):
            nothing = [np.zeros(np.count_nonzero(each.present), np.int64) if each.nulls is None else each.nulls for _, each in found]
            nulls = np.concatenate(nothing)[order]
        return EntryColumns(known, present, cells, nulls)

    def entries(self, keys: Array, bytes_max: int) -> Entries | None:
        found = self._each(keys, lambda file, own: file.entries(own, bytes_max))
        return None if found is None else joined_entries(found, len(keys), bytes_max)

    def _each(self, keys: Array, read: Callable[[ColumnReader, Array], T | None]) -> list[tuple[Array, T]] | None:
        """The places of the keys of each file, and what `read` finds of them."""
        shards = shards_of(keys, self._reader.shard_count)
        places = {shard: np.flatnonzero(shards == shard) for shard in np.unique(shards).tolist()}
        found = self._reader.at_once(places, lambda shard, file: read(self._columns(shard, file), keys[places[shard]]))
        return None if not found else [(places[shard], each) for shard, each in found.items()]

    def _columns(self, shard: int, file: SharedViewReader) -> ColumnReader:
        known = self._readers.get(shard)
        if known is None or known[0] is not file:
            known = self._readers[shard] = (file, ColumnReader(file, self._types))
        return known[1]


def columns_of(reader: ViewReader, types: Sequence[SqlType]) -> ColumnReader | PartsColumns:
    """What reads columns of a view with these types and integer keys."""
    return ColumnReader(reader, types) if isinstance(reader, SharedViewReader) else PartsColumns(reader, types)


def _joined(cells: list[Any], order: Array) -> Any:
    if isinstance(cells[0], np.ndarray):
        return np.concatenate(cells)[order]
    return pa.concat_arrays(cells).take(pa.array(order))
