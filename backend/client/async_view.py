"""Lookups of one maintained view."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from time import perf_counter
from typing import Any, Literal, TypeVar, overload

import msgspec
import numpy as np

from backend.client.batch import Array, Batch, batch_of_cells, batch_of_rows
from backend.client.changes import ChangeReader, ChangeSet, subscription
from backend.client.keyed_query import Finish, KeyedQuery
from backend.client.ordered_query import Inclusive
from backend.client.statements import Statements
from backend.client.values import Rows
from backend.execution.counted_statements import CountedStatement
from backend.feeds.feed_reading import BYTES_MAX, SECONDS
from backend.shared_memory.columns import ColumnReader
from backend.shared_memory.parts import PartsColumns, ViewReader, columns_of, settled
from backend.views.shared_view import SharedViews
from backend.views.view_definition import packed
from controller.catalog import Catalog
from dataflow.values.types import Row

ATTEMPTS_MAX = 3
TIMED_MASK = 1023
"""One lookup of a single integer in 1,024 is timed."""

T = TypeVar("T")
_encode_keys = msgspec.msgpack.Encoder().encode
_INTEGER_MIN, _INTEGER_MAX = -(1 << 63), (1 << 63) - 1


class AsyncView:
    """A SELECT kept up to date by its keys. Made by `AsyncDatabase.view`.

    Keys are single values, or tuples where there are several `?`. The methods that begin with
    `try_` only look into shared memory, at once and from any thread; they answer None where
    the worker has to be asked.
    """

    def __init__(self, statements: Statements, shared: SharedViews | None, query: KeyedQuery, name: str = "") -> None:
        """`name` is that of a table or SQL view, if it is one."""
        self._statements = statements
        self._name = name
        self._shared = shared
        self._use(query)
        statements.database.catalog_readers.add(self)

    def _use(self, query: KeyedQuery) -> None:
        self.query = query
        self._is_outdated = False
        self._naming = query.definition.naming
        self._decode, self._finish = query.definition.decode, query.finish
        self._counted = self._statements.counts.of_view(query.sql, self._statements.schema, query.definition.name)
        self._read_from(None)

    def _read_from(self, reader: ViewReader | None) -> None:
        self._reader = reader
        self._column_reader: ColumnReader | PartsColumns | None = None
        is_quick = reader is not None and self.query.has_integer_key
        self.quick = _quick(reader, self._decode, self._finish, self._counted) if is_quick else _nothing  # type: ignore[arg-type]
        """`try_lookup`, where the short way leads to the rows; else None."""

    def catalog_changed(self, catalog: Catalog) -> None:
        """Plan the query again before it is next asked, if a table of it has changed: the same text may mean something else."""
        tables = catalog.tables
        known = [(tables.get(each), version) for each, version in self.query.definition.table_versions if each >= 0]
        if any(table is None or table.version != version for table, version in known):
            self._is_outdated = True
            self._read_from(None)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.query.columns

    # --- what changes

    async def keep_changes(self, seconds: int = SECONDS, bytes_max: int = BYTES_MAX) -> int:
        """Keep changes from now on, so long and so many bytes on each shard; the epoch after which they can be read."""
        return await self._change_reader().keep(seconds, bytes_max)

    def changes(self, since: int | None = None, follow: bool = True) -> AsyncGenerator[ChangeSet, None]:
        """What has changed after epoch `since`, or from now on, in rows of any key; and what will, if `follow`."""
        return self._change_reader().read(since, follow)

    def subscribe(self, key: Any) -> AsyncGenerator[Rows, None]:
        """The key's rows as they are, and again each time they are others."""
        return subscription(lambda: self.lookup(key))

    def _change_reader(self) -> ChangeReader:
        if not self._name:
            raise ValueError("changes are kept of tables and of views with a name")
        return ChangeReader(self._statements, self._name)

    # --- asking

    @overload
    async def lookup(self, key: Any, block: Literal[True] = True) -> Rows: ...
    @overload
    async def lookup(self, key: Any, block: bool) -> Rows | None: ...
    async def lookup(self, key: Any, block: bool = True) -> Rows | None:
        """The key's rows. A key that is not at hand is computed, and kept from then on, or None unless `block`."""
        found = self.try_lookup(key)
        if found is None and block:
            found = await settled(self._reader, lambda: self.try_lookup(key))
        return found if found is not None or not block else (await self._ask([key]))[0]

    @overload
    async def lookup_many(self, keys: Iterable[Any], block: Literal[True] = True) -> list[Rows]: ...
    @overload
    async def lookup_many(self, keys: Iterable[Any], block: bool) -> list[Rows] | None: ...
    async def lookup_many(self, keys: Iterable[Any], block: bool = True) -> list[Rows] | None:
        """The rows of each key, all as of one moment."""
        wanted = list(keys)
        found = self.try_lookup_many(wanted)
        if found is None and block:
            found = await settled(self._reader, lambda: self.try_lookup_many(wanted))
        return found if found is not None or not block else await self._ask(wanted)

    @overload
    async def lookup_columns(
        self, keys: Sequence[Any] | Array, columns: Sequence[str] | None = None, block: Literal[True] = True
    ) -> Batch: ...
    @overload
    async def lookup_columns(
        self, keys: Sequence[Any] | Array, columns: Sequence[str] | None = None, *, block: bool
    ) -> Batch | None: ...
    async def lookup_columns(
        self, keys: Sequence[Any] | Array, columns: Sequence[str] | None = None, block: bool = True
    ) -> Batch | None:
        """The rows of keys that have at most one each, column by column; ValueError if one has more."""
        found = self.try_lookup_columns(keys, columns)
        if found is None and block:
            found = await settled(self._reader, lambda: self.try_lookup_columns(keys, columns))
        if found is not None or not block:
            return found
        return self._batch(await self._ask(keys), columns)

    async def range(
        self,
        *key: Any,
        low: Any = None,
        high: Any = None,
        limit: int | None = None,
        descending: bool | None = None,
        inclusive: Inclusive = "left",
    ) -> Rows:
        """The key's rows between two values of the columns that the view is ordered by.

        A bound is a value, or a tuple of values for several columns. `descending` turns the
        order around; without it, it is that of the view's ORDER BY.
        """
        found = self.try_range(*key, low=low, high=high, limit=limit, descending=descending, inclusive=inclusive)
        if found is not None:
            return found
        return await self._count(self._range(key, low, high, limit, descending, inclusive))

    async def _range(
        self, key: tuple[Any, ...], low: Any, high: Any, limit: int | None, descending: bool | None, inclusive: Inclusive
    ) -> tuple[Rows, bool]:
        """The rows, and whether a view had them."""
        store = self._statements.database.store
        if self._is_outdated:
            await self._plan_again()
        for _ in range(ATTEMPTS_MAX):
            query = self.query
            ordered = query.ordered
            part = ordered.part(low, high, limit, descending, inclusive)
            wanted = _encode_keys([query.key(key)])
            payloads = await store.lookup_view(ordered.definition, wanted, part)
            if payloads is not None:
                return ordered.rows(payloads[0]), True
            payloads = await store.lookup_view(query.definition, wanted)
            if payloads is not None:
                return ordered.finished(ordered.cut(query.definition.decode(payloads[0]), part)), True
            if not await self._plan_again():
                break
        rows = await self._evaluated(key)
        ordered = self.query.ordered
        return ordered.finished(ordered.cut(rows, ordered.part(low, high, limit, descending, inclusive))), False

    def try_range(
        self,
        *key: Any,
        low: Any = None,
        high: Any = None,
        limit: int | None = None,
        descending: bool | None = None,
        inclusive: Inclusive = "left",
    ) -> Rows | None:
        if self._shared is None or self._is_outdated:
            return None
        started, ordered = perf_counter(), self.query.ordered
        part = ordered.part(low, high, limit, descending, inclusive)
        found = self._shared.lookup(ordered.definition, _encode_keys([self.query.key(key)]), part)
        return None if found is None else self._hit(ordered.rows(found[0]), started)

    async def _plan_again(self) -> bool:
        """Whether there is a newer catalog, which the query is planned for from now on."""
        await self._statements.database.refresh_catalog()
        if self._statements.database.catalog.version == self.query.catalog_version:
            return False
        sql = self.query.sql

        async def plan(catalog: Catalog) -> KeyedQuery:
            return KeyedQuery(sql, catalog, self._statements.schema)

        self._use(await self._statements.with_catalog(plan))
        return True

    async def _ask(self, keys: Sequence[Any] | Array) -> list[Rows]:
        """Ask the worker; where no view can serve the query, evaluate it."""
        return await self._count(self._asked(keys)) if len(keys) else []

    async def _count(self, work: Coroutine[Any, Any, tuple[T, bool]]) -> T:
        """Count the lookup that `work` is; it says whether a view had the rows."""
        started, failed = perf_counter(), True
        with self._statements.named() as name:
            try:
                found, from_view = await work
                self._counted.asked += from_view
                self._counted.evaluated += not from_view
                failed = False
                return found
            finally:
                self._counted.run(perf_counter() - started, failed, name)

    def _hit(self, found: T, started: float) -> T:
        """Shared memory had it."""
        self._counted.hits += 1
        self._counted.hit_took(perf_counter() - started)
        return found

    async def _asked(self, keys: Sequence[Any] | Array) -> tuple[list[Rows], bool]:
        """The rows of each key, and whether a view had them."""
        store = self._statements.database.store
        if self._is_outdated:
            await self._plan_again()
        for _ in range(ATTEMPTS_MAX):
            query = self.query
            numbers = packed(keys) if query.has_integer_key else None
            if numbers is not None:
                found = await store.lookup_view(query.definition, numbers)
                if found is not None:
                    return query.all_rows(found[0]), True
            else:
                wanted = _encode_keys([query.key(each) for each in _listed(keys)])
                found = await store.lookup_view(query.definition, wanted)
                if found is not None:
                    return [query.rows(each) for each in found], True
            if not await self._plan_again():
                break
        return [self.query.finished(await self._evaluated(key)) for key in _listed(keys)], False

    async def _evaluated(self, given: Any) -> list[Row]:
        """The rows of a key as the view would have them, from the tables."""

        async def attempt(catalog: Catalog) -> list[Row]:
            if catalog.version != self.query.catalog_version:
                self._use(KeyedQuery(self.query.sql, catalog, self._statements.schema))
            key = self.query.key(given)
            return await self._statements.rows(self.query.evaluation(key), self.query.parameters(key))

        return await self._statements.with_catalog(attempt)

    # --- looking, without asking

    def try_lookup(self, key: Any) -> Rows | None:
        found = self.quick(key)
        if found is not None:
            return found
        many = self.try_lookup_many((key,))
        return None if many is None else many[0]

    def try_lookup_many(self, keys: Sequence[Any]) -> list[Rows] | None:
        reader, started = self._find_reader(), perf_counter()
        if reader is None:
            return None
        key = self.query.key
        names = self._naming.names([key(each) for each in keys])
        found = None if names is None else reader.get_many(names)
        if found is None or None in found:
            return None
        rows = self.query.rows
        return self._hit([rows(payload) for payload in found], started)  # type: ignore[arg-type]

    def try_lookup_columns(
        self, keys: Sequence[Any] | Array, columns: Sequence[str] | None = None
    ) -> Batch | None:
        reader, started = self._find_reader(), perf_counter()
        query, names = self.query, self.columns if columns is None else columns
        chosen = self._places(names)
        numbers = _integers(keys) if reader is not None and query.places is not None and query.has_integer_key else None
        if reader is None or query.places is None or numbers is None:
            rows = self.try_lookup_many(_listed(keys))
            return None if rows is None else self._batch(rows, columns)
        if self._column_reader is None:
            self._column_reader = columns_of(reader, query.definition.types)
        places = [query.places[place] for place in chosen]
        found = self._column_reader.read(numbers, places)
        if found is None or np.count_nonzero(found.known) < len(numbers):
            return None
        return self._hit(batch_of_cells(found, places, names, [query.cell_changes[place] for place in chosen]), started)

    def _batch(self, rows: Sequence[Rows], columns: Sequence[str] | None) -> Batch:
        names = self.columns if columns is None else columns
        places = self._places(names)
        chosen = [[tuple([row[place] for place in places]) for row in each] for each in rows]
        return batch_of_rows(chosen, names, [self.query.types[place] for place in places])

    def _places(self, names: Sequence[str]) -> list[int]:
        try:
            return [self.columns.index(name) for name in names]
        except ValueError:
            raise ValueError(f"the view has the columns {', '.join(self.columns)}, and not all of {', '.join(names)}") from None

    def _find_reader(self) -> ViewReader | None:
        if self._reader is not None and self._reader.is_gone:
            self._read_from(None)
        if self._reader is None and self._shared is not None and not self._is_outdated:
            self._read_from(self._shared.reader(self.query.definition.name))
        return self._reader


def _quick(
    reader: ViewReader, decode: Callable[[bytes], list[Row]], finish: Finish | None, counted: CountedStatement
) -> Callable[[Any], Rows | None]:
    """A lookup with as few steps as possible: single ones take hardly longer than their steps."""

    def look(key: Any) -> Rows | None:
        if type(key) is int and _INTEGER_MIN <= key <= _INTEGER_MAX:
            payload = reader.get_number(key)
            if payload is not None:
                hits = counted.hits = counted.hits + 1
                if hits & TIMED_MASK == 1:
                    return timed(key)
                return decode(payload) if finish is None else finish(decode(payload))
        return None

    def timed(key: int) -> Rows | None:
        """The same once more, with a clock."""
        started = perf_counter()
        payload = reader.get_number(key)
        if payload is None:
            return None
        found = decode(payload) if finish is None else finish(decode(payload))
        counted.hit_took(perf_counter() - started)
        return found

    return look


def _nothing(key: Any) -> Rows | None:
    return None


def _listed(keys: Sequence[Any] | Array) -> list[Any]:
    return keys.tolist() if isinstance(keys, np.ndarray) else list(keys)


def _integers(keys: Sequence[Any] | Array) -> Array | None:
    """The keys as numbers of 64 bits; None if one is anything else."""
    try:
        found = np.asarray(keys)
    except (TypeError, ValueError, OverflowError):
        return None
    kind = found.dtype.kind
    fits = kind == "i" or kind == "b" or (kind == "u" and found.max(initial=0) <= _INTEGER_MAX)
    if not fits or found.ndim != 1:
        return None
    return np.ascontiguousarray(found, np.int64)
