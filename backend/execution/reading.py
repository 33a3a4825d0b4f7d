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

from backend.execution.access import Bound, Path, bind
from backend.execution.transaction import OWN, Address, Transaction
from backend.store import Store
from dataflow.schema import Table
from dataflow.types import Row, Value
from persistence.key_range import KeyRange, after_prefix, comparison_range, equal_prefix
from persistence.layout import IndexWriter, TableWriter

Found = tuple[bytes, int, bytes]
"""(row key, version, encoded row)"""
_key = itemgetter(0)


@lru_cache(maxsize=512)
def _table_writer(table_id: int, version: int, identity: int, table: _Same) -> TableWriter:
    return TableWriter(table.table)


class _Same:
    """A table compared by identity: hashing the whole value at each statement would be slow."""

    __slots__ = ("table",)

    def __init__(self, table: Table) -> None:
        self.table = table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.table is self.table

    def __hash__(self) -> int:
        return id(self.table)


def table_writer(table: Table) -> TableWriter:
    """The compiled encodings of a table, made once for each."""
    return _table_writer(table.id, table.version, id(table), _Same(table))


async def find(
    transaction: Transaction, table: Table, path: Path, parameters: tuple[Value, ...], *, reverse: bool = False
) -> AsyncIterator[list[Found]]:
    """The rows along `path`, or all rows if this execution's values rule its index out."""
    writer = table_writer(table)
    bound = bind(path, parameters)
    if bound is None:
        bound = Bound(Path(table.primary_key), [()], [])
    index = bound.path.index
    if bound.path.is_complete and not any(None in values for values in bound.alternatives):
        yield await _find_keys(transaction, writer, bound)
    elif index is table.primary_key:
        encoding, base = writer.primary_key, writer.row_prefix
        ranges = _ranges(comparison_range(encoding, base, values, bound.comparisons) for values in bound.alternatives)
        pending = sorted(_pending(transaction, table))
        for key_range in reversed(ranges) if reverse else ranges:
            async for chunk in _scan_rows(transaction.store, key_range, pending, reverse):
                yield chunk
    else:
        index_writer = next(each for each in writer.indexes if each.index is index)
        async for chunk in _scan_index(transaction, writer, index_writer, bound):
            yield chunk


def _ranges(ranges: Iterable[KeyRange]) -> list[KeyRange]:
    return sorted({(start, stop) for start, stop in ranges if start < stop})


def _pending(transaction: Transaction, table: Table) -> list[tuple[bytes, int, bytes | None]]:
    return [(key, OWN, value) for (_, key), value in transaction.pending_rows(table.id)]


# Whole keys


async def _find_keys(transaction: Transaction, writer: TableWriter, bound: Bound) -> list[Found]:
    index = bound.path.index
    if index is writer.table.primary_key:
        prefixes = (equal_prefix(writer.primary_key, writer.row_prefix, values) for values in bound.alternatives)
        return await get_rows(transaction, sorted({key for key in prefixes if key is not None}))
    index_writer = next(each for each in writer.indexes if each.index is index)
    prefixes = (
        equal_prefix(index_writer.encoding, index_writer.unique_prefix, values) for values in bound.alternatives
    )
    keys = sorted({key for key in prefixes if key is not None})
    shard_of = transaction.store.shard_of
    entries = await transaction.get([(shard_of(key), key) for key in keys])
    return await get_rows(transaction, [writer.row_prefix + entry[1] for entry in entries if entry is not None])


async def get_rows(transaction: Transaction, keys: list[bytes]) -> list[Found]:
    """The rows stored under `keys`, without those that are gone."""
    shard_of = transaction.store.shard_of
    stored = await transaction.get([(shard_of(key), key) for key in keys]) if keys else []
    return [(key, each[0], each[1]) for key, each in zip(keys, stored) if each is not None]


# Ranges of the primary key


async def _scan_rows(
    store: Store, key_range: KeyRange, pending: list[tuple[bytes, int, bytes | None]], reverse: bool
) -> AsyncIterator[list[Found]]:
    own = [each for each in pending if key_range[0] <= each[0] < key_range[1]]
    if not own:
        async for chunk in _merged(store, key_range, reverse):
            yield chunk
        return
    touched = {key for key, _, _ in own}
    live = [(key, version, value) for key, version, value in own if value is not None]
    if reverse:
        live.reverse()
    async for chunk in _merged(store, key_range, reverse):
        last = chunk[-1][0]
        count = 0
        while count < len(live) and (live[count][0] >= last if reverse else live[count][0] <= last):
            count += 1
        chunk = [found for found in chunk if found[0] not in touched] + live[:count]
        del live[:count]
        chunk.sort(key=_key, reverse=reverse)
        if chunk:
            yield chunk
    if live:
        yield live


async def _merged(store: Store, key_range: KeyRange, reverse: bool) -> AsyncIterator[list[Found]]:
    """All shards' keys in one order: what no shard can still precede goes out."""
    sources = [store.scan(shard, *key_range, reverse=reverse) for shard in range(store.shard_count)]
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
    transaction: Transaction, writer: TableWriter, index: IndexWriter, bound: Bound
) -> AsyncIterator[list[Found]]:
    store = transaction.store
    pending = _pending(transaction, writer.table)
    seen = {key for key, _, _ in pending}
    live = [(key, version, value) for key, version, value in pending if value is not None]
    if live:
        yield live  # whatever the transaction has written is looked at: the WHERE decides

    def fresh(chunk: list[Found]) -> list[Found]:
        result = []
        for found in chunk:
            if found[0] not in seen:
                seen.add(found[0])
                result.append(found)
        return result

    def ranges(base: bytes) -> list[KeyRange]:
        return _ranges(comparison_range(index.encoding, base, values, bound.comparisons) for values in bound.alternatives)

    for start, stop in ranges(index.prefix):
        for shard in range(store.shard_count):
            source = store.scan(shard, start, stop, resolve=writer.row_prefix)
            try:
                async for chunk in source:
                    yield fresh(chunk)
            finally:
                await _close(source)
    if not index.index.unique:
        return
    for start, stop in ranges(index.unique_prefix):
        for shard in range(store.shard_count):
            source = store.scan(shard, start, stop)
            try:
                async for chunk in source:
                    keys = [writer.row_prefix + primary_key for _, _, primary_key in chunk]
                    yield fresh(await get_rows(transaction, keys))
            finally:
                await _close(source)


def row_address(store: Store, key: bytes) -> Address:
    return store.shard_of(key), key


def row_decoder(table: Table) -> Callable[[bytes], Row]:
    return table_writer(table).decode


__all__ = ["Found", "after_prefix", "find", "get_rows", "row_address", "row_decoder", "table_writer"]
