"""A reader's side of one view's file: copies rows out, and knows when to try again.

Nothing here waits. `get` and its kin answer None where the worker has to be asked: the key is
not here, or the view's file is closed and no other has taken its place (`is_gone`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import pyarrow as pa

from backend.shared_memory.gathering import gathered
from backend.shared_memory.key_group import alike_names, group_name, group_of, has_member, members_among
from backend.shared_memory.probing import Array, find, tags_of
from backend.shared_memory.segment import (
    ADDEND,
    CLOSED,
    COMPLETE,
    EMPTY,
    EPOCH,
    EXACT,
    FOLDER,
    GROUPED,
    HEADER_BYTES,
    LENGTH_BITS,
    LENGTH_MASK,
    MULTIPLIER,
    PROBE_MAX,
    REMOVED,
    SUCCESSOR,
    WORD_MASK,
    WRITING,
    Segment,
    generation_path,
    tag_of,
)
from backend.shared_memory.shared_key import SharedKey

NO_ROWS = b"\x90"
"""An empty list, encoded."""
TRIES_MAX = 100
AT_ONCE_MIN = 8
"""From so many keys on numpy is quicker."""

_LENGTH_BITS, _LENGTH_MASK = np.array(LENGTH_BITS, np.uint64), np.array(LENGTH_MASK, np.uint64)
_EIGHT_BYTES = np.array(3, np.uint64)

_CLOSED_WORDS = memoryview(bytearray(HEADER_BYTES)).cast("Q")
_CLOSED_WORDS[WRITING] = CLOSED


T = TypeVar("T")


class _Moved(Exception):
    """The writer has come back to what was being read."""


class SharedViewReader:
    def __init__(self, name: str, segment: Segment) -> None:
        self._view = name.rpartition(".")[0]
        self.is_exact = bool(segment.words[EXACT])
        self.is_gone = False
        self.retries = 0
        self._file_count = 0
        self._map(segment)

    @staticmethod
    def open(name: str) -> SharedViewReader | None:
        """The view in the file of this name, as its writer calls it now, if that is on this machine."""
        segment = Segment.open(FOLDER / name)
        return None if segment is None else SharedViewReader(name, segment)

    def _map(self, segment: Segment) -> None:
        # Several threads may read. Who has the old words finds them closed, whatever else it
        # has; so the new ones come last. What is used together is taken out together.
        self.segment = segment
        self._file_count += 1
        self._arrays = (
            (segment.slots_array(0), segment.slots_array(1)),
            segment.shift,
            segment.touched_array()[::2],
            segment.memory,
            pa.py_buffer(segment.memory),
        )
        self._words = segment.words
        self.get_number: Callable[[int], bytes | None] = _number_getter(segment, self.get)
        """The encoded rows of a key that is an integer of 64 bits: the shortest way. Not to be kept, it changes."""

    @property
    def moment(self) -> tuple[int, int]:
        """What is shown now: as long as it `is_at` this, all that can be read here is the same."""
        return self._file_count, self._words[EPOCH]

    def is_at(self, moment: tuple[int, int]) -> bool:
        words = self._words
        return words[EPOCH] == moment[1] and words[WRITING] <= moment[1] + 1 and self._file_count == moment[0] and not self.is_gone

    @property
    def grouped_by(self) -> int | None:
        """The place of the column in which the keys of a group differ, if there are groups; see `key_group`."""
        return self._words[GROUPED] - 1 if self._words[GROUPED] else None

    def follow(self) -> bool:
        """Go on to where the view is now; False if it is gone."""
        words = self._words
        self.is_valid(words, words[EPOCH])
        return not self.is_gone

    def leave(self) -> None:
        """Read here no more: what is here may be out of date without saying so."""
        self._words = _CLOSED_WORDS
        self.get_number = self.get
        self.is_gone = True

    def get_many(self, keys: Sequence[SharedKey]) -> list[bytes | None] | None:
        """The encoded rows of each key, all as of one epoch; None if writers leave no time for that."""
        tags = None
        if self.is_exact and len(keys) >= AT_ONCE_MIN:
            tags = tags_of(np.array(keys, np.int64))
        for _ in range(TRIES_MAX):
            words = self._words
            epoch = words[EPOCH]
            if tags is None:
                found = [self._look(key, epoch) for key in keys]
                if words[GROUPED] and None in found:
                    self._look_at_groups(keys, found, epoch, words[GROUPED] - 1)
            else:
                found = self._look_at_once(tags, epoch)
            if self.is_valid(words, epoch):
                return found
            if self.is_gone:
                return [None] * len(keys)
        return None

    def get_alike(self, parts: Sequence[int], place: int, numbers: Sequence[int]) -> list[bytes | None] | None:
        """As `get_many`, of the keys that have these parts, and at `place` among them one of the numbers.

        What is not a member of their group is not looked for. If the group is not shown, None may also mean that one of them is not here.
        """
        for _ in range(TRIES_MAX):
            words = self._words
            epoch = words[EPOCH]
            if words[GROUPED] != place + 1:
                return self.get_many(alike_names(parts, place, numbers))
            members = self._look(group_name(parts, place), epoch)
            if members is None or len(members) % 8:
                found = self._look_at_all(alike_names(parts, place, numbers), epoch)
            elif len(numbers) == 1:
                is_there = has_member(members, numbers[0])
                found = [self._look(alike_names(parts, place, numbers)[0], epoch) if is_there else NO_ROWS]
            else:
                found = [NO_ROWS] * len(numbers)
                there = members_among(members, numbers)
                for at, number in enumerate(numbers) if there else ():
                    if number in there:
                        found[at] = self._look(alike_names(parts, place, (number,))[0], epoch)
            if self.is_valid(words, epoch) or self.is_gone:
                return found
        return None

    def _look_at_all(self, keys: Sequence[SharedKey], epoch: int) -> list[bytes | None] | None:
        """The rows of all keys; None if one of them is not here."""
        found: list[bytes | None] = []
        for key in keys:
            rows = self._look(key, epoch)
            if rows is None:
                return None
            found.append(rows)
        return found

    def each(
        self, keys: Sequence[SharedKey], read: Callable[[SharedViewReader, Sequence[SharedKey]], list[T] | None]
    ) -> list[T] | None:
        """What `read` finds of the keys in each file of the view: there is one (but see `parts`)."""
        return read(self, keys)

    def get_together(self, numbers: Array) -> Any | None:
        """The encoded rows of all these keys one after the other, as of one epoch; None if one is not here."""
        tags = tags_of(numbers)
        for _ in range(TRIES_MAX):
            words = self._words
            epoch = words[EPOCH]
            indexes, shift, touched, _, buffer = self._arrays
            slots, locations = find(indexes[epoch & 1], tags, shift)
            lengths = (locations & _LENGTH_MASK).view(np.int64)
            if np.count_nonzero(lengths) == len(lengths):
                touched[slots] = 1
                starts = (locations >> _LENGTH_BITS << _EIGHT_BYTES).view(np.int64)
                found = gathered(buffer, (starts, 0), (starts, lengths), pa.large_binary()).buffers()[2]
                if self.is_valid(words, epoch):
                    return found
            elif self.is_valid(words, epoch):
                return None
            if self.is_gone:
                return None
        return None

    def consistently(self, read: Callable[[Callable[[bytes], bytes | None]], T]) -> T | None:
        """What `read` makes of entries that it looks up one after the other, all as of one epoch.

        None if writers leave no time for that, or the view is gone.
        """
        for _ in range(TRIES_MAX):
            words = self._words
            epoch = words[EPOCH]

            def look(key: bytes, words: memoryview = words, epoch: int = epoch) -> bytes | None:
                found = self._look(key, epoch)
                if not self.is_valid(words, epoch):
                    raise _Moved
                return found

            try:
                return read(look)
            except _Moved:
                if self.is_gone:
                    return None
        return None

    def get(self, key: SharedKey) -> bytes | None:
        """As `get_many`, of one key."""
        for _ in range(TRIES_MAX):
            words = self._words
            epoch = words[EPOCH]
            found = self._look(key, epoch)
            if found is None and words[GROUPED]:
                every: list[bytes | None] = [None]
                self._look_at_groups((key,), every, epoch, words[GROUPED] - 1)
                found = every[0]
            if self.is_valid(words, epoch):
                return found
            if self.is_gone:
                return None
        return None

    def _look(self, key: SharedKey, epoch: int) -> bytes | None:
        """What the index of `epoch` has, unless the writer has come back to it."""
        number = isinstance(key, int)
        tag = tag_of(key if number else crc32(key))  # type: ignore[arg-type]
        if tag <= REMOVED:
            return None
        segment = self.segment
        index, memory = segment.pairs[epoch & 1], segment.memory
        first = tag >> segment.shift << 1
        for position in range(first, first + 2 * PROBE_MAX, 2):
            found = index[position]
            if found == tag:
                location = index[position + 1]
                start, length = location >> LENGTH_BITS << 3, location & LENGTH_MASK
                stop = start + length
                # Encoded keys say where they end, so none is the beginning of another.
                if number or memory[stop : stop + len(key)] == key:  # type: ignore[arg-type]
                    segment.touched[position] = 1
                    return memory[start:stop]
            elif found == EMPTY:
                break
        return NO_ROWS if segment.words[COMPLETE] else None

    def _look_at_groups(self, keys: Sequence[SharedKey], found: list[bytes | None], epoch: int, place: int) -> None:
        """Find out which of the keys that were not found have no rows, because they are not in their group."""
        groups: dict[tuple[Any, ...], bytes | None] = {}
        for number, key in enumerate(keys):
            if found[number] is None and (group := group_of(key, place)) is not None:
                parts, member = group
                if parts in groups:
                    members = groups[parts]
                else:
                    members = groups[parts] = self._look(group_name(parts, place), epoch)
                if members is not None and len(members) % 8 == 0 and not has_member(members, member):
                    found[number] = NO_ROWS

    def _look_at_once(self, tags: Array, epoch: int) -> list[bytes | None]:
        indexes, shift, touched, memory, _ = self._arrays
        slots, locations = find(indexes[epoch & 1], tags, shift)
        touched[slots] = 1
        stops = locations & _LENGTH_MASK
        is_all = stops.all()
        starts = locations >> _LENGTH_BITS << _EIGHT_BYTES
        stops += starts
        found: list[bytes | None] = [memory[start:stop] for start, stop in zip(starts.tolist(), stops.tolist())]
        if not is_all:
            absent = NO_ROWS if self._words[COMPLETE] else None
            found = [rows or absent for rows in found]
        return found

    def is_valid(self, words: memoryview, epoch: int) -> bool:
        """Whether what was read at `epoch` holds. If the file is closed, go on in its successor."""
        writing = words[WRITING]
        if writing <= epoch + 1:
            return True
        self.retries += 1
        if writing >= CLOSED and words is self._words:
            successor = words[SUCCESSOR]
            segment = Segment.open(generation_path(self._view, successor)) if successor else None
            if words is self._words:  # else another thread has gone on meanwhile
                if segment is None:
                    self.is_gone = True
                else:
                    self._map(segment)
        return False


def _number_getter(segment: Segment, get: Callable[[int], bytes | None]) -> Callable[[int], bytes | None]:
    """A function for one file, which has all that it needs at hand; `get` goes on where it cannot."""
    even, odd = segment.pairs
    words, memory, touched, shift = segment.words, segment.memory, segment.touched, segment.shift

    def get_number(key: int) -> bytes | None:
        tag = (key * MULTIPLIER + ADDEND) & WORD_MASK
        epoch = words[EPOCH]
        index = odd if epoch & 1 else even
        position = tag >> shift << 1
        found = index[position]
        while found != tag:
            if found == EMPTY:
                return get(key)
            position += 2
            found = index[position]
        location = index[position + 1]
        start = location >> LENGTH_BITS << 3
        rows = memory[start : start + (location & LENGTH_MASK)]
        touched[position] = 1
        if words[WRITING] > epoch + 1 or not rows:  # the tags of two numbers mean an empty slot
            return get(key)
        return rows

    return get_number
