"""Rows found along an access path, with the transaction's own uncommitted rows laid over.

What comes out is (row key, version, encoded row) in chunks. Ranges of the primary key come
in key order, whatever the number of shards; other paths in no particular order. No row
comes twice.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Callable, Iterable
from functools import lru_cache
from operator import itemgetter

from backend.clustering.store import Address, Store
from backend.execution.answering.sorting import sort_rows
from backend.execution.evaluation.access import AccessPath, Bound, bind
from backend.execution.held_locks import LockRefused
from backend.execution.pace import breathe, parts
from backend.execution.transaction import OWN, EpochLost, Transaction
from controller.sql.locking import Locking
from dataflow.errors import Condition, Retryable
from dataflow.schema import Table
from dataflow.values.types import Row, Value
from persistence.key_range import KeyRange, comparison_range, equal_prefix
from persistence.layout import IndexWriter, TableWriter

Found = tuple[bytes, int, bytes]
"""(row key, version, encoded row)"""
EPOCH_TRIES_MAX = 5
READ_AT_ONCE = 2_000
"""So many keys are asked for in one message."""
_key = itemgetter(0)


class _Same:
    """A table compared by identity: hashing the whole value at each statement would be slow."""

    __slots__ = ("table",)

    def __init__(self, table: Table) -> None:
        self.table = table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.table is self.table

    def __hash__(self) -> int:
        return id(self.table)


@lru_cache(maxsize=512)
def _table_writer(same: _Same) -> TableWriter:
    return TableWriter(same.table)


def table_writer(table: Table) -> TableWriter:
    """The compiled encodings of a table, made once for each."""
    return _table_writer(_Same(table))


async def find(
    transaction: Transaction,
    table: Table,
    path: AccessPath,
    parameters: tuple[Value, ...],
    *,
    reverse: bool = False,
    locking: Locking | None = None,
    epoch: int = 0,
) -> AsyncIterator[list[Found]]:
    """The rows along `path`, or all rows if this execution's values rule its index out.

    All that is found is as of one epoch: the one given, which somebody holds, or a recent one. With
    `locking`, rows that are named by their primary keys are locked as they are read, and are as
    of then; others are left to be locked by those who know whether they are wanted.
    """
    bound = bind(path, parameters)
    if bound is None:
        bound = Bound(AccessPath(table.primary_key), [()], [])
    async for chunk in find_bound(transaction, table, bound, reverse=reverse, locking=locking, epoch=epoch):
        yield chunk


async def find_bound(
    transaction: Transaction,
    table: Table,
    bound: Bound,
    *,
    reverse: bool = False,
    locking: Locking | None = None,
    epoch: int = 0,
) -> AsyncIterator[list[Found]]:
    """The rows along a path whose values are known."""
    for attempt in range(EPOCH_TRIES_MAX):
        started = False
        try:
            async for chunk in _find(transaction, table_writer(table), bound, reverse, locking, epoch):
                started = True
                yield chunk
            return
        except Retryable as error:
            # who is out of reach has been waited for
            if isinstance(error, LockRefused) or error.condition is Condition.SHARD_UNREACHABLE:
                raise
            if epoch:
                raise EpochLost from error
            if started or attempt == EPOCH_TRIES_MAX - 1:
                raise


async def _find(
    transaction: Transaction, writer: TableWriter, bound: Bound, reverse: bool, locking: Locking | None, epoch: int
) -> AsyncIterator[list[Found]]:
    if bound.is_complete and not any(None in values for values in bound.alternatives):
        yield await _find_keys(transaction, writer, bound, reverse, locking, epoch)
        return
    if not bound.alternatives:
        return
    index, store = bound.path.index, transaction.store
    by_row = index is writer.table.primary_key
    # one range of rows of one shard is one scan, which is as of one epoch in any case
    held = not epoch and not (by_row and len(bound.alternatives) == 1 and store.shard_count == 1)
    if held:
        epoch = await store.hold_epoch()
    try:
        if by_row:
            source = _scan_ranges(transaction, writer, bound, reverse, epoch)
        else:
            index_writer = next(each for each in writer.indexes if each.index is index)
            source = _scan_index(transaction, writer, index_writer, bound, epoch)
        async for chunk in source:
            yield chunk
    finally:
        if held:
            store.release_epoch(epoch)


def _ranges(ranges: Iterable[KeyRange]) -> list[KeyRange]:
    return sorted({(start, stop) for start, stop in ranges if start < stop})


def _pending(transaction: Transaction, table: Table) -> list[tuple[bytes, int, bytes | None]]:
    found: list[tuple[bytes, int, bytes | None]] = []
    for (_, key), value in transaction.pending_rows(table.id):
        breathe()
        found.append((key, OWN, value))
    return found


# Whole keys


async def _find_keys(
    transaction: Transaction, writer: TableWriter, bound: Bound, reverse: bool, locking: Locking | None, epoch: int
) -> list[Found]:
    index = bound.path.index
    if index is writer.table.primary_key:
        prefixes = (equal_prefix(writer.primary_key, writer.row_prefix, values) for values in bound.alternatives)
        keys = _distinct(prefixes)
        sort_rows(keys, _itself, reverse)
        if locking is None:
            return await get_rows(transaction, keys, epoch)
        stored = await transaction.get_locked([row_address(transaction.store, key) for key in keys], locking)
        return [(key, each[0], each[1]) for key, each in zip(keys, stored) if each is not None]
    index_writer = next(each for each in writer.indexes if each.index is index)
    prefixes = (
        equal_prefix(index_writer.encoding, index_writer.unique_prefix, values) for values in bound.alternatives
    )
    keys = _distinct(prefixes)
    sort_rows(keys, _itself)
    shard_of = transaction.store.shard_of
    addresses = [(shard_of(key), key) for part in parts(keys) for key in part]
    if not epoch and len(keys) == 1:
        found = await _get_named(transaction, writer, addresses, 0)
        if found is not None:
            return found
    held = not epoch
    if held:
        epoch = await transaction.store.hold_epoch()
    try:
        return await _get_named(transaction, writer, addresses, epoch) or []
    finally:
        if held:
            transaction.store.release_epoch(epoch)


def _distinct(keys: Iterable[bytes | None]) -> list[bytes]:
    found: set[bytes] = set()
    for key in keys:
        breathe()
        if key is not None:
            found.add(key)
    return list(found)


def _itself(key: bytes) -> bytes:
    return key


async def _get_named(
    transaction: Transaction, writer: TableWriter, addresses: list[Address], epoch: int
) -> list[Found] | None:
    """The rows that unique index entries name; None if a row was moved after its entry was read."""
    entries = await transaction.get(addresses, epoch)
    keys = [writer.row_prefix + entry[1] for entry in entries if entry is not None]
    found = await get_rows(transaction, keys, epoch)
    return found if len(found) == len(keys) else None


async def get_rows(transaction: Transaction, keys: list[bytes], epoch: int = 0) -> list[Found]:
    """The rows stored under `keys`, without those that are gone, all as of one epoch."""
    shard_of = transaction.store.shard_of
    addresses = [(shard_of(key), key) for part in parts(keys) for key in part]
    if len(addresses) <= READ_AT_ONCE:
        if not epoch and len({shard for shard, _ in addresses}) > 1:
            epoch = await transaction.store.read_epoch()
        stored = await transaction.get(addresses, epoch)
        return [(key, each[0], each[1]) for key, each in zip(keys, stored) if each is not None]
    held = not epoch
    if held:
        epoch = await transaction.store.hold_epoch()
    try:
        found: list[Found] = []
        for first in range(0, len(addresses), READ_AT_ONCE):
            stored = await transaction.get(addresses[first : first + READ_AT_ONCE], epoch)
            wanted = keys[first : first + READ_AT_ONCE]
            found += [(key, each[0], each[1]) for key, each in zip(wanted, stored) if each is not None]
            breathe()
        return found
    finally:
        if held:
            transaction.store.release_epoch(epoch)


# Ranges of the primary key


async def _scan_ranges(
    transaction: Transaction, writer: TableWriter, bound: Bound, reverse: bool, epoch: int
) -> AsyncIterator[list[Found]]:
    encoding, base = writer.primary_key, writer.row_prefix
    ranges = _ranges(comparison_range(encoding, base, values, bound.comparisons) for values in bound.alternatives)
    pending = _pending(transaction, writer.table)
    sort_rows(pending, _key)
    for key_range in reversed(ranges) if reverse else ranges:
        async for chunk in _scan_rows(transaction.store, key_range, pending, reverse, epoch):
            yield chunk


async def _scan_rows(
    store: Store, key_range: KeyRange, pending: list[tuple[bytes, int, bytes | None]], reverse: bool, epoch: int
) -> AsyncIterator[list[Found]]:
    own = [each for part in parts(pending) for each in part if key_range[0] <= each[0] < key_range[1]]
    if not own:
        async for chunk in _merged(store, key_range, reverse, epoch):
            yield chunk
        return
    touched = {key for key, _, _ in own}
    live = [(key, version, value) for part in parts(own) for key, version, value in part if value is not None]
    if reverse:
        live.reverse()
    count = 0
    async for chunk in _merged(store, key_range, reverse, epoch):
        last = chunk[-1][0]
        start = count
        while count < len(live) and (live[count][0] >= last if reverse else live[count][0] <= last):
            count += 1
            breathe()
        chunk = [found for found in chunk if found[0] not in touched] + live[start:count]
        sort_rows(chunk, _key, reverse)
        if chunk:
            yield chunk
    if count < len(live):
        yield live[count:]


async def _merged(store: Store, key_range: KeyRange, reverse: bool, epoch: int) -> AsyncIterator[list[Found]]:
    """All shards' keys in one order: what no shard can still precede goes out."""
    sources = [store.scan(shard, *key_range, reverse=reverse, epoch=epoch) for shard in range(store.shard_count)]
    buffers: list[list[Found]] = [[] for _ in sources]
    waiting = list(range(len(sources)))
    active = set(waiting)
    try:
        while active:
            chunks = await asyncio.gather(*(anext(sources[number], None) for number in waiting))
            for number, chunk in zip(waiting, chunks):
                if chunk is None:
                    active.discard(number)
                else:
                    buffers[number] = chunk
            waiting = [number for number in active if not buffers[number]]
            if waiting:
                continue
            edges = [buffers[number][-1][0] for number in active]
            out: list[Found] = []
            for number, buffer in enumerate(buffers):
                count = len(buffer) if not active else _count(buffer, max(edges) if reverse else min(edges), reverse)
                out += buffer[:count] if count < len(buffer) else buffer
                buffers[number] = buffer[count:]
            waiting = [number for number in active if not buffers[number]]
            if len(sources) > 1:
                out.sort(key=_key, reverse=reverse)
            if out:
                yield out
    finally:
        for source in sources:
            await _close(source)


def _count(buffer: list[Found], edge: bytes, reverse: bool) -> int:
    """How many of the buffer do not lie behind `edge`."""
    if reverse:
        return len(buffer) - bisect_left(buffer[::-1], edge, key=_key)
    return bisect_right(buffer, edge, key=_key)


async def _close(source: AsyncIterator[list[Found]]) -> None:
    close: Callable[[], object] | None = getattr(source, "aclose", None)
    if close is not None:
        await close()  # type: ignore[misc]


# Ranges of other indexes


async def _scan_index(
    transaction: Transaction, writer: TableWriter, index: IndexWriter, bound: Bound, epoch: int
) -> AsyncIterator[list[Found]]:
    store = transaction.store
    pending = _pending(transaction, writer.table)
    seen = {key for key, _, _ in pending}

    def fresh(chunk: list[Found]) -> list[Found]:
        result = []
        for found in chunk:
            if found[0] not in seen:
                seen.add(found[0])
                result.append(found)
        return result

    def sources(base: bytes, resolve: bytes | None) -> list[AsyncIterator[list[Found]]]:
        ranges = _ranges(comparison_range(index.encoding, base, values, bound.comparisons) for values in bound.alternatives)
        return [
            store.scan(shard, start, stop, resolve=resolve, epoch=epoch)
            for start, stop in ranges
            for shard in range(store.shard_count)
        ]

    plain = sources(index.prefix, writer.row_prefix)
    unique = sources(index.unique_prefix, None) if index.index.unique else []
    try:
        first = await asyncio.gather(*(anext(source, None) for source in plain + unique))
        live = [(key, version, value) for key, version, value in pending if value is not None]
        if live:
            yield live  # whatever the transaction has written is looked at: the WHERE decides
        for source, chunk in zip(plain + unique, first):
            named = source in unique
            while chunk is not None:
                if named:
                    keys = [writer.row_prefix + primary_key for _, _, primary_key in chunk]
                    chunk = await get_rows(transaction, keys, epoch)
                yield fresh(chunk)
                chunk = await anext(source, None)
    finally:
        for source in plain + unique:
            await _close(source)


def row_address(store: Store, key: bytes) -> Address:
    return store.shard_of(key), key


def row_decoder(table: Table) -> Callable[[bytes], Row]:
    return table_writer(table).decode


async def lock_rows(
    transaction: Transaction, rows: list[tuple[Found, Row]], locking: Locking
) -> list[tuple[Found, Row]]:
    """Lock the rows and have the commit find them unchanged; those that were skipped are left out."""
    addresses = [row_address(transaction.store, found[0]) for part in parts(rows) for found, _ in part]
    seen = [(address, found[1]) for address, (found, _) in zip(addresses, rows)]
    left_out = await transaction.lock_found(seen, locking)
    kept = []
    for pair, address, (_, version) in zip(rows, addresses, seen):
        breathe()
        if address not in left_out:
            transaction.check(address, version)
            kept.append(pair)
    return kept
