"""The writer of one view's file: edits that readers see all at once.

`put` and `remove` edit the index that nobody reads; `publish` makes it the current one. The
other index is brought up to date when the next edits begin, which gives a reader the time
between two publications to finish what it reads. A publication without edits costs nothing.

When the index fills up or the heap has more holes than entries, a new file takes over: it is
built aside, gets the rest of the edits, and is announced in the old file by `publish`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np

from backend.shared_memory.amendment import Amender
from backend.shared_memory.entry import TAIL_BYTES, EntryLayout, entry_extent, entry_extents, key_of
from backend.shared_memory.heap import Heap, block_sizes, by_size
from backend.shared_memory.probing import Array, find, tags_of
from backend.shared_memory.relocation import copy_blocks, moved_entries, placed_entries
from backend.shared_memory.segment import (
    BITS_MIN,
    CLOSED,
    COMPLETE,
    EMPTY,
    EPOCH,
    GROUPED,
    HEAP_BYTES_MAX,
    LENGTH_BITS,
    LENGTH_MASK,
    PROBE_MAX,
    REMOVED,
    WORD_MASK,
    WRITING,
    Segment,
    generation_path,
    number_of,
    tag_of,
)
from backend.shared_memory.shared_key import SharedKey
from dataflow.values.types import Row

LOAD_MAX, LOAD_PRESSED_MAX = 0.6, 0.7
"""An index that is fuller than this is made anew; fuller ones take more time to search, and less memory."""
LOAD_NEW, LOAD_PRESSED_NEW = 1 / 3, 0.55
"""A new index is no fuller than this."""
GARBAGE_BYTES_MIN, GARBAGE_PRESSED_BYTES_MIN = 4 << 20, 64 << 10

log = logging.getLogger(__name__)


class SharedViewWriter:
    """`file_name` is what readers open. Every method may raise OSError when memory has run out.

    A view that is `complete` has all of its keys here: one that is not found has no rows.
    """

    def __init__(self, name: str, layout: EntryLayout, exact: bool, complete: bool = False) -> None:
        self._name = name
        self._layout = layout
        self._exact = exact
        self._generation = 0
        self._segment = self._new_segment(BITS_MIN)
        self._heap = Heap(HEAP_BYTES_MAX, self._segment.reserve)
        self._announced: Segment = self._segment
        self._epoch = 0
        self._edits: list[int] = []
        self._edits_at_once: list[Array] = []
        """Positions that the current index has changed, and the idle one not yet."""
        self._editing = False
        self._pressed = False
        self._used = 0
        self.count = 0
        self.complete = complete
        self._grouped = 0
        self._segment.words[COMPLETE] = complete

    def _new_segment(self, bits: int) -> Segment:
        return Segment.create(generation_path(self._name, self._generation), bits, self._layout.width, self._exact)

    @property
    def file_name(self) -> str:
        """Where the view is found now; a file of an earlier generation leads there too."""
        return self._announced.path.name

    @property
    def memory_bytes(self) -> int:
        return self._segment.heap_start + self._heap.reserved_bytes

    # --- edits

    def put(self, key: SharedKey, rows: Sequence[Row], payload: bytes) -> bool:
        """Have the key's rows, encoded in `payload`; False if there is no place for them."""
        self._begin()
        load_max = LOAD_PRESSED_MAX if self._pressed else LOAD_MAX
        if self._used >= load_max * (1 << self._segment.bits):
            self._rebuild()
        tag = self._tag(key)
        position, found = self._find(key, tag)
        if position is None:
            if tag <= REMOVED or not self._is_crowded:
                return self._not_put()
            self._rebuild()
            return self.put(key, rows, payload)
        encoded_key = b"" if isinstance(key, int) else key
        head = self._layout.head(rows, payload, len(encoded_key))
        size = len(head) + len(payload) + len(encoded_key)
        place = self._heap.allocate(size) if len(payload) <= LENGTH_MASK else None
        if place is None:
            self.remove(key)
            return self._not_put()
        start = self._segment.heap_start + place
        self._segment.memory[start : start + size] = head + payload + encoded_key
        index = self._idle
        if found:
            self._free(index[position + 1])
        else:
            self._used += index[position] == EMPTY
            self.count += 1
            self._segment.touched[position] = 0
        location = (start + len(head)) >> 3 << LENGTH_BITS | len(payload)
        index[position], index[position + 1] = tag, location
        self._edits.append(position)
        return True

    @property
    def _is_crowded(self) -> bool:
        """Whether a new index could have room for a key that this one has none for, and not only the same few slots."""
        is_larger = self._bits(self.count) > self._segment.bits
        return self._used >= LOAD_MAX / 2 * (1 << self._segment.bits) and (is_larger or self._used > self.count)

    def _not_put(self) -> bool:
        self.give_up_completeness()
        return False

    def remove(self, key: SharedKey) -> None:
        """Forget the key: whoever looks it up has to ask."""
        if key not in self:
            return
        self._begin()
        position, _ = self._find(key, self._tag(key))
        assert position is not None
        index = self._idle
        self._free(index[position + 1])
        index[position], index[position + 1] = REMOVED, 0
        self._edits.append(position)
        self.count -= 1
        if index[position + 2] == EMPTY:  # no search goes on from here: it may end here, and before
            while position >= 0 and index[position] == REMOVED:
                index[position], index[position + 1] = EMPTY, 0
                self._edits.append(position)
                self._used -= 1
                position -= 2

    def __contains__(self, key: SharedKey) -> bool:
        return self._find(key, self._tag(key))[1]

    def size_of(self, key: SharedKey) -> int | None:
        """The length of the key's encoded rows, None if it is not here."""
        location = self._location(key)
        return None if location is None else location & LENGTH_MASK

    def payload(self, key: SharedKey) -> bytes | None:
        """The key's encoded rows, None if it is not here."""
        location = self._location(key)
        if location is None:
            return None
        start = location >> LENGTH_BITS << 3
        return self._segment.memory[start : start + (location & LENGTH_MASK)]

    def _location(self, key: SharedKey) -> int | None:
        position, found = self._find(key, self._tag(key))
        return self._segment.pairs[(self._epoch + self._editing) & 1][position + 1] if found and position is not None else None

    def find_many(self, numbers: Array) -> tuple[Array, Array]:
        """The slots of keys that are numbers, and the lengths of their encoded rows, 0 for one that is not here."""
        assert self._exact
        slots, locations = find(self._segment.slots_array((self._epoch + self._editing) & 1), tags_of(numbers), self._segment.shift)
        return slots, locations & np.uint64(LENGTH_MASK)

    def replace_many(self, slots: Array, rows: Sequence[Sequence[Row]], payloads: Sequence[bytes]) -> Sequence[int]:
        """The keys in these slots, as `find_many` tells them, get these rows; which of them have found no place."""
        self._begin()
        segment, heap, heap_start = self._segment, self._heap, self._segment.heap_start
        heads = self._layout.heads(rows, payloads)
        entries = [head + payload for head, payload in zip(heads, payloads)]
        sizes, before = np.array(list(map(len, entries)), np.int64), np.array(list(map(len, heads)), np.int64)
        starts = np.zeros(len(entries), np.int64)
        for size, some in by_size(block_sizes(sizes)):
            places = heap.allocate_many(size, len(some))
            starts[some[: len(places)]] = np.array(places, np.int64) + heap_start
        for start, size, entry in zip(starts.tolist(), sizes.tolist(), entries):
            if start:
                segment.memory[start : start + size] = entry
        index, at = segment.index_array((self._epoch + 1) & 1), 2 * slots + 1
        locations, placed = (starts + before) >> 3 << LENGTH_BITS | (sizes - before), starts > 0
        if not placed.all():
            at, locations = at[placed], locations[placed]
        old_starts, old_sizes = entry_extents(segment.array(np.uint32), self._layout.width, index[at])
        for size, some in by_size(block_sizes(old_sizes)):
            heap.free_many(size, (old_starts[some] - heap_start).tolist())
        index[at] = locations.view(np.uint64)
        self._edits_at_once.append(at)
        return (~placed).nonzero()[0].tolist()

    def amend_many(self, slots: Array, amender: Amender, values: Sequence[Array]) -> Array:
        """The keys in these slots get these numbers, and are the same otherwise; whether that was possible, for each."""
        self._begin()
        segment, heap, heap_start = self._segment, self._heap, self._segment.heap_start
        memory, index, at = segment.memory, segment.index_array((self._epoch + 1) & 1), 2 * slots + 1
        locations = index[at].view(np.int64)
        rows, lengths = locations >> LENGTH_BITS << 3, locations & LENGTH_MASK
        ends, fits = amender.places(memory, rows, values)
        head = TAIL_BYTES + 8 * self._layout.width
        old, starts, blocks = rows - head, np.zeros(len(rows), np.int64), block_sizes(lengths + head)
        blocks *= fits
        for size, some in by_size(blocks):
            places = heap.allocate_many(size, len(some))
            some = some[: len(places)]
            starts[some] = np.array(places, np.int64) + heap_start
            copy_blocks(memory, old[some], memory, starts[some], size)
            heap.free_many(size, (old[some] - heap_start).tolist())
        done = starts > 0
        if not done.all():
            at, starts, lengths = at[done], starts[done], lengths[done]
            ends, values = [each[done] for each in ends], [each[done] for each in values]
        starts += head
        amender.amend(memory, starts, ends, values)
        index[at] = (starts >> 3 << LENGTH_BITS | lengths).view(np.uint64)
        self._edits_at_once.append(at)
        return done

    def give_up_completeness(self) -> None:
        """From now on a key that is not here may still have rows."""
        self.complete = False
        self._segment.words[COMPLETE] = self._announced.words[COMPLETE] = 0

    def group(self, place: int | None) -> None:
        """Say in which column the keys of a group differ; see `key_group`. Who reads meanwhile finds no group of the other kind."""
        self._grouped = 0 if place is None else place + 1
        self._segment.words[GROUPED] = self._announced.words[GROUPED] = self._grouped

    def publish(self) -> None:
        """Readers see all edits from now on."""
        if not self._editing:
            return
        self._editing = False
        self._epoch += 1
        self._segment.words[EPOCH] = self._epoch
        if self._announced is not self._segment:
            self._announced.close(self._generation)
            self._announced = self._segment

    def close(self) -> None:
        """The view is gone."""
        for segment in {self._announced, self._segment}:
            segment.close()

    # --- what readers have looked at

    def take_touched(self) -> Iterator[SharedKey]:
        """The keys that were read since last asked."""
        touched = self._segment.touched_array()
        positions = np.flatnonzero(touched.copy())  # numpy fails if a reader touches something meanwhile
        touched[positions] = 0
        index = self._idle if self._editing else self._segment.pairs[self._epoch & 1]
        for position in positions.tolist():
            tag, location = index[position], index[position + 1]
            if tag > REMOVED:
                yield self._key_at(tag, location)

    @property
    def is_touched(self) -> bool:
        return bool(self._segment.touched_array().any())

    def forget_touched(self) -> None:
        self._segment.touched_array()[:] = 0

    # --- the index

    @property
    def _idle(self) -> memoryview:
        return self._segment.pairs[(self._epoch + 1) & 1]

    def _tag(self, key: SharedKey) -> int:
        return tag_of(key if isinstance(key, int) else crc32(key))

    def _begin(self) -> None:
        """Take the idle index from its readers and repeat on it what the other one has got."""
        if self._editing:
            return
        if self._segment.words[WRITING] >= CLOSED:
            raise OSError(f"{self._segment.path.name} was removed by another process")
        self._editing = True
        self._segment.words[WRITING] = self._epoch + 1
        segment, which = self._segment, self._epoch & 1
        index, current = segment.pairs[1 - which], segment.pairs[which]
        for position in self._edits:
            index[position], index[position + 1] = current[position], current[position + 1]
        for positions in self._edits_at_once:
            segment.index_array(1 - which)[positions] = segment.index_array(which)[positions]
        self._forget_edits()
        self._heap.release()

    def _forget_edits(self) -> None:
        self._edits.clear()
        self._edits_at_once.clear()

    def _find(self, key: SharedKey, tag: int) -> tuple[int | None, bool]:
        """(the key's position, True), or (where it could go, False); None if that is nowhere."""
        segment = self._segment
        index = segment.pairs[(self._epoch + self._editing) & 1]
        vacant = None
        first = (tag >> segment.shift) * 2
        if tag <= REMOVED:
            return None, False
        for position in range(first, first + 2 * PROBE_MAX, 2):
            found = index[position]
            if found == tag and (self._exact or self._key_at(tag, index[position + 1]) == key):
                return position, True
            if found <= REMOVED:
                if vacant is None:
                    vacant = position
                if found == EMPTY:
                    break
        return vacant, False

    def _key_at(self, tag: int, location: int) -> SharedKey:
        if self._exact:
            return number_of(tag)
        return key_of(self._segment.memory, location >> LENGTH_BITS << 3, location & LENGTH_MASK)

    def _free(self, location: int) -> None:
        start, size = entry_extent(
            self._segment.memory, self._layout.width, location >> LENGTH_BITS << 3, location & LENGTH_MASK
        )
        self._heap.free(start - self._segment.heap_start, size)

    # --- a new file

    def compact(self, pressed: bool = False) -> bool:
        """Leave the holes of the heap behind if they are more than what it holds, or half of that if memory is short.

        If it is, an index with too few keys gets smaller, too.
        """
        self._pressed = pressed
        garbage, live = self._heap.top - self._heap.live_bytes, self._heap.live_bytes
        if garbage < (max(GARBAGE_PRESSED_BYTES_MIN, live // 2) if pressed else max(GARBAGE_BYTES_MIN, live)):
            if not pressed or self._bits(self.count) >= self._segment.bits:
                return False
            self._begin()
            self._rebuild()
            return True
        self._begin()
        self._rebuild(compact=True)
        return True

    def _bits(self, count: int) -> int:
        """The size of a new index for so many keys."""
        load = LOAD_PRESSED_NEW if self._pressed else LOAD_NEW
        return max(BITS_MIN, int(count / load).bit_length())

    def _rebuild(self, compact: bool = False) -> None:
        """Go on in a new file."""
        assert self._editing
        old, old_heap = self._segment, self._heap
        pairs = old.index_array((self._epoch + 1) & 1).reshape(-1, 2)
        live = np.flatnonzero(pairs[:, 0] > REMOVED)
        bits = self._bits(len(live))
        self._generation += 1
        new = self._new_segment(bits)
        try:
            tags, locations = pairs[live, 0], pairs[live, 1].copy()
            if compact:
                self._heap = Heap(HEAP_BYTES_MAX, new.reserve)
                locations = moved_entries(old, new, self._heap, self._layout.width, self._exact, locations)
            else:
                new.reserve(0, max(old_heap.reserved_bytes, 1))
                start, stop = old.heap_start, old.heap_start + old_heap.top
                new.memory[new.heap_start : new.heap_start + old_heap.top] = memoryview(old.memory)[start:stop]
                shift = (new.heap_start - old.heap_start) >> 3 << LENGTH_BITS
                locations += np.uint64(shift & WORD_MASK)  # a smaller index moves the heap back
                self._heap = old_heap.moved(new.reserve)
        except BaseException:
            self._heap = old_heap
            new.close()
            raise
        self._used = self.count = placed_entries(old, new, live, tags, locations)
        if self.count < len(live):
            self.give_up_completeness()
        self._segment = new
        self._forget_edits()
        new.words[COMPLETE], new.words[GROUPED] = self.complete, self._grouped
        new.words[EPOCH], new.words[WRITING] = self._epoch, self._epoch + 1
        if old is not self._announced:
            old.path.unlink(missing_ok=True)  # nobody has heard of it
        log.debug("%s: generation %d, %d keys, %d slots", self._name, self._generation, self.count, 1 << bits)
