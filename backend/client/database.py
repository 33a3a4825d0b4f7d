"""A cluster as applications without asyncio see it.

Requests run on an event loop in a thread of its own; lookups of keys that are in shared
memory never leave the caller's thread. All of it may be used by several threads at once.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

import uvloop

from backend.client.async_database import AsyncDatabase, AsyncTable, AsyncTransaction, connect_async
from backend.client.async_view import AsyncView
from backend.client.batch import Array, Batch
from backend.client.changes import ChangeSet
from backend.client.ordered_query import Inclusive
from backend.client.statements import Result
from backend.client.values import Rows
from backend.feeds.feed_reading import BYTES_MAX, SECONDS

T = TypeVar("T")


def connect(target: str | Path, database: str | None = None, *, secret: str | None = None) -> Database:
    """Join a cluster: give its data directory, the host:port of its HTTP interface, or zk://host:port/root.

    `database` names the schema that unqualified names are in. zk:// needs the cluster's
    `secret`, here or in MILLRACE_SECRET.
    """
    loop = _Loop()
    try:
        return Database(loop, loop.run(connect_async(target, database, secret=secret)))
    except BaseException:
        loop.stop()
        raise


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="millrace", daemon=True)
        self._process = os.getpid()
        self._lock = threading.Lock()
        self.is_stopped = False
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work`, with less ado than `asyncio.run_coroutine_threadsafe`."""
        loop, over, tasks = self._loop, threading.Lock(), list[asyncio.Task[T]]()
        over.acquire()

        def begin() -> None:
            task = loop.create_task(work)
            tasks.append(task)
            task.add_done_callback(lambda _: over.release())

        if os.getpid() != self._process:  # the thread has stayed behind
            work.close()
            raise RuntimeError("the database was connected to in another process: connect after a fork")
        with self._lock:  # so that whatever is begun is over before the loop is
            if self.is_stopped:
                work.close()
                raise RuntimeError("the database is closed")
            loop.call_soon_threadsafe(begin)
        try:
            over.acquire()
        except BaseException:
            loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            raise
        if tasks[0].cancelled():
            raise RuntimeError("the database is closed")
        return tasks[0].result()

    def iterate(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        """The items one after the other; who stops early ends them."""

        async def following() -> tuple[T] | None:
            async for item in items:
                return (item,)
            return None

        try:
            while (found := self.run(following())) is not None:
                yield found[0]
        finally:
            if not self.is_stopped:
                self.run(items.aclose())

    def stop(self, last: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Give up what is under way, do the `last` work and end; once."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if self.is_stopped:
                return
            self.is_stopped = True
            ended = asyncio.run_coroutine_threadsafe(self._end(last), self._loop)
        try:
            ended.result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _end(self, last: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if last is not None:
            await last()
        await self._loop.shutdown_default_executor()


class Database:
    def __init__(self, loop: _Loop, inner: AsyncDatabase) -> None:
        self._loop = loop
        self._inner = inner

    def close(self) -> None:
        """What is under way in other threads ends with an error."""
        self._loop.stop(self._inner.close)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Result:
        """Run one SQL statement, with a value for each `?`; durable when this returns."""
        return self._loop.run(self._inner.execute(sql, parameters))

    def extend_program(self, sql: str) -> None:
        """Carry out definition statements, separated by semicolons, as one transition: all of them or none."""
        self._loop.run(self._inner.extend_program(sql))

    def remove_view(self, name: str) -> None:
        """Drop a view that CREATE VIEW has made."""
        self._loop.run(self._inner.remove_view(name))

    def view(self, query: str, key: Sequence[str] | str | None = None) -> View:
        """A maintained view: of a SELECT whose `?` are its keys, or of a table or SQL view by name.

        Of a name, `key` are the columns to look up by. If they are not given, a table's are its primary
        key, a view's those that tell its rows apart: what it groups by, or the primary key of one of its tables.
        """
        return View(self._loop, self._loop.run(self._inner.view(query, key)))

    def table(self, name: str) -> Table:
        return Table(self._loop, self._inner.table(name))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All that is done in the block, or nothing: Retryable (1213) if somebody else was first."""
        begun = Transaction(self._loop, self._inner.begin())
        try:
            yield begun
        except BaseException:
            begun.rollback()
            raise
        begun.commit()


class View:
    """A SELECT kept up to date by its keys. Keys are single values, or tuples for several `?`."""

    def __init__(self, loop: _Loop, inner: AsyncView) -> None:
        self._loop = loop
        self._inner = inner

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a row."""
        return self._inner.columns

    def keep_changes(self, seconds: int = SECONDS, bytes_max: int = BYTES_MAX) -> int:
        """Keep changes from now on, so long and so many bytes on each shard; the epoch after which they can be read."""
        return self._loop.run(self._inner.keep_changes(seconds, bytes_max))

    def changes(self, since: int | None = None, follow: bool = True) -> Iterator[ChangeSet]:
        """What has changed after epoch `since`, or from now on, in rows of any key; and what will, if `follow`."""
        return self._loop.iterate(self._inner.changes(since, follow))

    def subscribe(self, key: Any) -> Iterator[Rows]:
        """The key's rows as they are, and again each time they are others."""
        return self._loop.iterate(self._inner.subscribe(key))

    @overload
    def lookup(self, key: Any, block: Literal[True] = True) -> Rows: ...
    @overload
    def lookup(self, key: Any, block: bool) -> Rows | None: ...
    def lookup(self, key: Any, block: bool = True) -> Rows | None:
        """The key's rows. A key that is not at hand is asked for, or None unless `block`."""
        found = self._inner.quick(key)
        if found is not None:
            return found
        found = self._inner.try_lookup(key)
        return found if found is not None or not block else self._loop.run(self._inner.lookup(key))

    @overload
    def lookup_many(self, keys: Iterable[Any], block: Literal[True] = True) -> list[Rows]: ...
    @overload
    def lookup_many(self, keys: Iterable[Any], block: bool) -> list[Rows] | None: ...
    def lookup_many(self, keys: Iterable[Any], block: bool = True) -> list[Rows] | None:
        """The rows of each key, all as of one moment."""
        wanted = list(keys)
        found = self._inner.try_lookup_many(wanted)
        if found is not None or not block:
            return found
        return self._loop.run(self._inner.lookup_many(wanted))

    def range(
        self,
        *key: Any,
        low: Any = None,
        high: Any = None,
        limit: int | None = None,
        descending: bool | None = None,
        inclusive: Inclusive = "left",
    ) -> Rows:
        """The key's rows between two values of the columns that the view is ordered by; see `AsyncView.range`."""
        found = self._inner.try_range(
            *key, low=low, high=high, limit=limit, descending=descending, inclusive=inclusive
        )
        if found is not None:
            return found
        return self._loop.run(
            self._inner.range(*key, low=low, high=high, limit=limit, descending=descending, inclusive=inclusive)
        )

    @overload
    def lookup_columns(
        self, keys: Sequence[Any] | Array, columns: Sequence[str] | None = None, block: Literal[True] = True
    ) -> Batch: ...
    @overload
    def lookup_columns(
        self, keys: Sequence[Any] | Array, columns: Sequence[str] | None = None, *, block: bool
    ) -> Batch | None: ...
    def lookup_columns(
        self, keys: Sequence[Any] | Array, columns: Sequence[str] | None = None, block: bool = True
    ) -> Batch | None:
        """The rows of keys that have at most one each, column by column; ValueError if one has more.

        Millions of integer keys per second, if they come as a numpy array.
        """
        found = self._inner.try_lookup_columns(keys, columns)
        if found is not None or not block:
            return found
        return self._loop.run(self._inner.lookup_columns(keys, columns))


class Table:
    """Writes to one table, each durable and visible to every lookup after it when it returns."""

    def __init__(self, loop: _Loop, inner: AsyncTable) -> None:
        self._loop = loop
        self._inner = inner

    def keep_changes(self, seconds: int = SECONDS, bytes_max: int = BYTES_MAX) -> int:
        """Keep changes from now on, so long and so many bytes on each shard; the epoch after which they can be read."""
        return self._loop.run(self._inner.keep_changes(seconds, bytes_max))

    def changes(self, since: int | None = None, follow: bool = True) -> Iterator[ChangeSet]:
        """What has changed after epoch `since`, or from now on; and what will, if `follow`."""
        return self._loop.iterate(self._inner.changes(since, follow))

    def insert(self, values: Mapping[str, Any] | None = None, **columns: Any) -> Result:
        """Insert a row; `last_insert_id` of the result is its AUTO_INCREMENT number."""
        return self._loop.run(self._inner.insert(values, **columns))

    def insert_many(self, rows: Sequence[Mapping[str, Any]]) -> Result:
        """Insert rows, which all give values for the same columns, in one transaction."""
        return self._loop.run(self._inner.insert_many(rows))

    def insert_columns(self, columns: Mapping[str, Sequence[Any] | Array]) -> Result:
        """As `insert_many`, with a sequence or an array of numpy for each column: the quickest way."""
        return self._loop.run(self._inner.insert_columns(columns))

    def update(self, key: Any, values: Mapping[str, Any] | None = None, **columns: Any) -> Result:
        """Change columns of the row with this primary key."""
        return self._loop.run(self._inner.update(key, values, **columns))

    def delete(self, key: Any) -> Result:
        """Delete the row with this primary key."""
        return self._loop.run(self._inner.delete(key))


class Transaction:
    """Sees its own writes; others see them when it is committed."""

    def __init__(self, loop: _Loop, inner: AsyncTransaction) -> None:
        self._loop = loop
        self._inner = inner

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Result:
        return self._loop.run(self._inner.execute(sql, parameters))

    def table(self, name: str) -> Table:
        return Table(self._loop, self._inner.table(name))

    def commit(self) -> None:
        """Done at the end of the block, if not before."""
        self._loop.run(self._inner.commit())

    def rollback(self) -> None:
        if not self._loop.is_stopped:  # else nothing of it is left
            self._loop.run(self._rolled_back())

    async def _rolled_back(self) -> None:
        self._inner.rollback()
