"""Reading a shard's stored state as of one epoch.

A stored value is the epoch that wrote it, its version, in 8 bytes, and then the payload. A
`StateView` reads from one LevelDB snapshot, so nothing that is applied later shows in it, however
long a scan takes; dropping the view releases the snapshot.

`History` keeps the snapshots of the latest epochs, because a reader of several shards finds
some of them an epoch further than others. It holds few: LevelDB cannot drop overwritten
values while a snapshot still sees them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from threading import Lock
from time import perf_counter
from typing import Any, Protocol

from dataflow.errors import CorruptState
from persistence.emptied_ranges import EmptiedRanges
from persistence.files.database import DamageNoticed

VERSION_BYTES = 8
FIRST_CHUNK_ROWS = 64
CHUNK_ROWS_MAX = 1024
CHUNK_BYTES_TARGET = 256 << 10
VALUES_MAX = 8192
VALUE_BYTES_TARGET = 2 << 20
SLOW_S = 300e-6
"""A step that takes longer has passed many deletions, or waited for the disk: then a gap is noted that is no use."""
SLOW_ROW_S = 10e-6

Clock = Callable[[], float]

Stored = tuple[int, bytes]
"""(version, payload)"""
Entry = tuple[bytes, int, bytes]
"""(key, version, payload)"""


def split(value: bytes) -> Stored:
    """A stored value as (version, payload)."""
    if len(value) < VERSION_BYTES:
        raise CorruptState(f"a stored value of {len(value)} bytes has no version")
    return int.from_bytes(value[:VERSION_BYTES], "big"), value[VERSION_BYTES:]


class Readable(Protocol):
    """What `Source` is read by."""

    @property
    def reading(self) -> DamageNoticed: ...

    @property
    def iterator(self) -> Callable[..., Any]: ...

    def get(self, key: bytes) -> bytes | None: ...


class StateView:
    """The stored state as of `epoch`, which is the last one applied in it."""

    __slots__ = ("_clock", "_gaps", "_get", "_iterator", "_reading", "epoch")

    def __init__(self, source: Readable, epoch: int, gaps: EmptiedRanges | None = None, clock: Clock = perf_counter) -> None:
        self.epoch = epoch
        self._get = source.get
        self._iterator = source.iterator
        self._reading = source.reading
        self._gaps = gaps
        self._clock = clock

    def get(self, key: bytes) -> Stored | None:
        value = self._get(key)
        return None if value is None else split(value)

    def get_many(self, keys: Sequence[bytes]) -> list[Stored | None]:
        get = self._get
        return [None if (value := get(key)) is None else split(value) for key in keys]

    def scan(
        self, start: bytes, stop: bytes, *, resolve: bytes | None = None, reverse: bool = False
    ) -> Iterator[list[Entry]]:
        """The entries with start ≤ key < stop in key order (or the reverse), in growing chunks.

        With `resolve`, entries are index entries whose payload is a primary key; what comes
        back is the row stored under `resolve` + that key, in the order of the index.
        """
        if start >= stop:
            return
        # plyvel 1.5.1, going backwards, misses a first key that equals `start`: so that is checked here
        iterator: Any = self._backwards(start, stop) if reverse else self._pairs(start, stop)
        pairs = takewhile(lambda pair: pair[0] >= start, iterator) if reverse else iterator
        rows_max = FIRST_CHUNK_ROWS
        began = self._clock()
        try:
            while chunk := _piece(pairs, rows_max, self._reading):
                if began and not reverse:
                    self._learn(start, stop, began, len(chunk))
                began = 0.0
                if resolve is not None:
                    chunk = self._resolved(chunk, resolve)
                yield chunk
                rows_max = _next_chunk(rows_max, [payload for _, _, payload in chunk])
            if began and not reverse:
                self._learn(start, stop, began, 0)
        finally:
            iterator.close()

    # --- over what was deleted, see `persistence.emptied_ranges`

    def _pairs(self, start: bytes, stop: bytes) -> Any:
        """The entries of the range, found without stepping through what is known to be a gap."""
        if self._gaps and self._gaps.first(start, stop, self.epoch) is not None:
            return self._over_gaps(start, stop)
        return self._iterator(start=start, stop=stop)

    def _backwards(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The entries before `stop`, the last first, those before `start`, too."""
        if self._gaps:
            stop = self._gaps.last_start(start, stop, self.epoch)
        began = self._clock()
        iterator = self._iterator(stop=stop, reverse=True)
        try:
            first = next(iterator, None)
            if self._gaps is not None and self._clock() - began > SLOW_S:
                self._gaps.note(start if first is None or first[0] < start else first[0] + b"\0", stop, self.epoch)
            if first is not None:
                yield first
                yield from iterator
        finally:
            iterator.close()

    def _over_gaps(self, start: bytes, stop: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Also notes the gaps that are found. They are looked for between the first entries only: the rest is worth a long step."""
        gaps, clock, place, left = self._gaps, self._clock, start, FIRST_CHUNK_ROWS
        assert gaps is not None
        while left and place < stop:
            gap = gaps.first(place, place + b"\0", self.epoch)
            if gap is not None:
                place = gap[1]
                continue
            iterator = self._iterator(start=place)  # without an end: a gap may go on behind `stop`
            try:
                while left and gap is None:
                    began = clock()
                    pair = next(iterator, None)
                    end = stop if pair is None else pair[0]
                    if clock() - began > SLOW_S:
                        gaps.note(place, end, self.epoch)
                    if pair is None or end >= stop:
                        return
                    left -= 1
                    yield pair
                    place = end + b"\0"
                    gap = gaps.first(place, place + b"\0", self.epoch)
            finally:
                iterator.close()
        if place < stop:
            rest = self._iterator(start=place, stop=stop)
            try:
                yield from rest
            finally:
                rest.close()

    def _learn(self, start: bytes, stop: bytes, began: float, found: int) -> None:
        """A read that began then has found so many entries at first: if it took long, look for what it stepped through."""
        if self._gaps is not None and self._clock() - began > SLOW_S + SLOW_ROW_S * found:
            with self._reading:
                deque(islice(self._over_gaps(start, stop), found + 1), 0)

    def payload(self, key: bytes) -> bytes | None:
        value = self._get(key)
        return None if value is None else value[VERSION_BYTES:]

    def payloads(self, start: bytes, stop: bytes, resolve: bytes | None = None) -> Iterator[list[bytes]]:
        """As `scan`, for who wants neither keys nor versions: costs half as much."""
        iterator = self._values(start, stop)
        rows_max = FIRST_CHUNK_ROWS
        began = self._clock()
        try:
            while True:
                with self._reading:
                    values = list(islice(iterator, rows_max))
                if began:
                    self._learn(start, stop, began, len(values))
                    began = 0.0
                if not values:
                    return
                ended = len(values) < rows_max
                if resolve is not None:
                    values = self._named(values, resolve)
                yield [value[VERSION_BYTES:] for value in values]
                if ended:
                    return
                rows_max = _next_chunk(rows_max, values)
        finally:
            iterator.close()

    def few_payloads(self, start: bytes, stop: bytes, resolve: bytes | None = None) -> list[bytes] | None:
        """All that `payloads` gives, for less; None if these are many."""
        iterator = self._values(start, stop)
        began = self._clock()
        try:
            with self._reading:
                values = list(islice(iterator, FIRST_CHUNK_ROWS))
        finally:
            iterator.close()
        self._learn(start, stop, began, len(values))
        if len(values) == FIRST_CHUNK_ROWS:
            return None
        return [value[VERSION_BYTES:] for value in (values if resolve is None else self._named(values, resolve))]

    def named_payload(self, entry: bytes, resolve: bytes) -> bytes | None:
        """The row that the index entry names, if there is such an entry."""
        value = self._get(entry)
        return None if value is None else self._named([value], resolve)[0][VERSION_BYTES:]

    def _named(self, entries: Iterable[bytes], resolve: bytes) -> list[bytes]:
        """What is stored for the rows that index entries name."""
        rows: list[bytes] = []
        for entry in entries:
            stored = self._get(resolve + entry[VERSION_BYTES:])
            if stored is None:
                raise CorruptState(f"an index entry names a row that is not there: {(resolve + entry[VERSION_BYTES:]).hex()}")
            rows.append(stored)
        return rows

    def _values(self, start: bytes, stop: bytes) -> Any:
        """As `_pairs`, without keys."""
        if self._gaps and self._gaps.first(start, stop, self.epoch) is not None:
            return (value for _, value in self._over_gaps(start, stop))
        return self._iterator(start=start, stop=stop, include_key=False)

    def values(self, start: bytes, stop: bytes) -> Iterator[list[bytes]]:
        """As `payloads`, many at once and with their versions: for who reads outside of an event loop."""
        return self._many(self._iterator(start=start, stop=stop, include_key=False), len)

    def pairs(self, start: bytes, stop: bytes) -> Iterator[list[tuple[bytes, bytes]]]:
        """As `values`, each with its key."""
        return self._many(self._iterator(start=start, stop=stop), lambda pair: len(pair[1]))

    def _many(self, iterator: Any, bytes_of: Callable[[Any], int]) -> Iterator[list[Any]]:
        try:
            while True:
                found: list[Any] = []
                size = 0
                while len(found) < VALUES_MAX and size < VALUE_BYTES_TARGET:
                    with self._reading:
                        piece = list(islice(iterator, CHUNK_ROWS_MAX if size < VALUE_BYTES_TARGET // 8 else FIRST_CHUNK_ROWS))
                    if not piece:
                        break
                    found += piece
                    size += sum(map(bytes_of, piece))
                if not found:
                    return
                yield found
        finally:
            iterator.close()

    def _resolved(self, entries: list[Entry], prefix: bytes) -> list[Entry]:
        rows: list[Entry] = []
        for key, _, primary_key in entries:
            row_key = prefix + primary_key
            stored = self.get(row_key)
            if stored is None:
                raise CorruptState(f"index entry {key.hex()} names a row that is not there")
            rows.append((row_key, *stored))
        return rows


def _piece(pairs: Iterator[tuple[bytes, bytes]], rows_max: int, reading: DamageNoticed) -> list[Entry]:
    """The next entries, and no more than fit into a message of sensible size."""
    chunk: list[Entry] = []
    size = 0
    with reading:
        for key, value in islice(pairs, rows_max):
            chunk.append((key, *split(value)))
            size += len(value)
            if size >= CHUNK_BYTES_TARGET:
                break
    return chunk


def _next_chunk(rows: int, values: Sequence[bytes]) -> int:
    """How many rows come next, after a chunk of `rows` with these values."""
    row_bytes = 1 + sum(map(len, values)) // len(values)
    return max(1, min(rows * 4, CHUNK_ROWS_MAX, CHUNK_BYTES_TARGET // row_bytes))


class History:
    """The views of the latest epochs, oldest first, without the current one.

    It is read while another thread writes the next epoch.
    """

    def __init__(self, epochs_max: int) -> None:
        self._lock = Lock()
        self._epochs_max = epochs_max
        self._ends: list[int] = []
        self._views: list[StateView] = []

    def add(self, view: StateView, end: int) -> None:
        """Keep `view`, which is what every epoch from its own up to `end` saw."""
        with self._lock:
            self._ends.append(end)
            self._views.append(view)
            if len(self._views) > self._epochs_max:
                del self._views[0], self._ends[0]

    def at(self, epoch: int) -> StateView | None:
        """What `epoch` saw, if that is still kept."""
        with self._lock:
            position = bisect_left(self._ends, epoch)
            if position == len(self._ends) or self._views[position].epoch > epoch:
                return None
            return self._views[position]

    def forget(self, is_unwanted: Callable[[StateView], bool]) -> None:
        with self._lock:
            kept = [(end, view) for end, view in zip(self._ends, self._views) if not is_unwanted(view)]
            self._ends, self._views = [end for end, _ in kept], [view for _, view in kept]

    def clear(self) -> None:
        self._ends.clear()
        self._views.clear()
