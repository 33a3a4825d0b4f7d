"""A cluster as asyncio applications see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from backend.client import table_sql
from backend.client.async_view import AsyncView
from backend.client.changes import ChangeReader, ChangeSet
from backend.client.key_values import key_converter
from backend.client.keyed_query import KeyedQuery
from backend.client.statement_origin import follow_cluster
from backend.client.statement_reports import StatementReports
from backend.client.statements import Result, Statements
from backend.client.target import find_deployment
from backend.clustering.node import Node
from backend.execution import database as execution
from backend.execution.counted_statements import StatementCounts
from backend.execution.memory_account import LIMIT_BYTES
from backend.execution.transaction import State, Transaction
from backend.execution.writes.column_values import Array
from backend.feeds.feed_reading import BYTES_MAX, SECONDS
from backend.feeds.feed_source import FeedSource
from backend.views.shared_view import SharedViews
from controller.catalog import Catalog
from controller.privileges import Asker
from controller.sql.planner import PlanCache
from dataflow.schema import Table


async def connect_async(
    target: str | Path, database: str | None = None, *, secret: str | None = None
) -> AsyncDatabase:
    """Join a cluster; see `backend.client.target` for what `target` may be."""
    deployment = await asyncio.to_thread(find_deployment, target, secret)
    follow_cluster(deployment)
    node = Node(deployment)
    try:
        await node.start()
        await node.cluster.check_secret()
    except BaseException:
        await node.stop()
        raise
    return AsyncDatabase(node.database, database, node.cluster.shared, node)


class AsyncDatabase:
    """`database` names the schema that unqualified names are in, as USE does."""

    def __init__(
        self,
        engine: execution.Database,
        database: str | None = None,
        shared: SharedViews | None = None,
        node: Node | None = None,
        *,
        plans: PlanCache | None = None,
        session: Asker | None = None,
        counts: StatementCounts | None = None,
    ) -> None:
        """With a `session`, what that may not do is refused. All that is run is added to `counts`; with a `node`, the cluster is told of it."""
        memory_bytes = LIMIT_BYTES if node is None else node.deployment.statement_memory_bytes
        is_told = node is not None and node.deployment.takes_origins
        self._statements = Statements(engine, database, plans, session, memory_bytes, counts, is_told)
        self._shared = shared
        self._node = node
        self._reports = None if node is None else StatementReports(node.cluster, engine, self._statements.counts)

    async def close(self) -> None:
        if self._reports is not None:
            await self._reports.stop()
        if self._node is not None:
            await self._node.stop()

    async def __aenter__(self) -> AsyncDatabase:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Result:
        """Run one SQL statement, with a value for each `?`; durable when this returns."""
        return await self._statements.run(sql, parameters)

    async def extend_program(self, sql: str) -> None:
        """Carry out definition statements, separated by semicolons, as one transition: all of them or none."""
        await self._statements.define(table_sql.statements(sql))

    async def remove_view(self, name: str) -> None:
        """Drop a view that CREATE VIEW has made."""
        await self._statements.define([table_sql.drop_view(name)])

    async def view(self, query: str, key: Sequence[str] | str | None = None) -> AsyncView:
        """A maintained view: of a SELECT whose `?` are its keys, or of a table or SQL view by name.

        Of a name, `key` are the columns to look up by. If they are not given, a table's are its primary
        key, a view's those that tell its rows apart: what it groups by, or the primary key of one of its tables.
        """
        if len(query.split()) == 1:
            return await self.named_view(query.strip(), [key] if isinstance(key, str) else key)
        if key is not None:
            raise ValueError("the key of a SELECT are its ?; columns are given with a name")
        return await self.query_view(query)

    async def query_view(self, query: str) -> AsyncView:
        """As `view` of a SELECT, whatever is in it."""
        return await self._view(lambda catalog: query)

    async def named_view(self, name: str, key: Sequence[str] | None = None) -> AsyncView:
        """As `view` of a name, whatever is in it."""
        return await self._view(lambda catalog: table_sql.select(catalog, self._statements.schema, name, key), name)

    async def _view(self, select: Callable[[Catalog], str], name: str = "") -> AsyncView:
        async def plan(catalog: Catalog) -> KeyedQuery:
            return KeyedQuery(select(catalog), catalog, self._statements.schema)

        return AsyncView(self._statements, self._shared, await self._statements.with_catalog(plan), name)

    async def check_select(self, sql: str, parameter_count: int) -> None:
        """Raises what `execute` would raise before it reads anything."""

        async def plan(catalog: Catalog) -> None:
            self._statements.plan(sql, [None] * parameter_count, catalog)

        await self._statements.with_catalog(plan)

    def table(self, name: str) -> AsyncTable:
        return AsyncTable(self._statements, name)

    def change_reader(self, name: str, check: Callable[[FeedSource], None] = lambda source: None) -> ChangeReader:
        """The changes of a table or SQL view; see `ChangeReader`."""
        return ChangeReader(self._statements, name, check)

    def begin(self) -> AsyncTransaction:
        """As `transaction`, for who ends it himself."""
        return AsyncTransaction(self._statements)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncTransaction]:
        """All that is done in the block, or nothing: Retryable (1213) if somebody else was first."""
        begun = self.begin()
        try:
            yield begun
        except BaseException:
            begun.rollback()
            raise
        await begun.commit()


class AsyncTable:
    """Writes to one table, each durable and visible to every lookup after it when it returns."""

    def __init__(self, statements: Statements, name: str, transaction: Transaction | None = None) -> None:
        self._statements = statements
        self._name = name
        self._transaction = transaction

    async def keep_changes(self, seconds: int = SECONDS, bytes_max: int = BYTES_MAX) -> int:
        """Keep changes from now on, so long and so many bytes on each shard; the epoch after which they can be read."""
        return await ChangeReader(self._statements, self._name).keep(seconds, bytes_max)

    def changes(self, since: int | None = None, follow: bool = True) -> AsyncGenerator[ChangeSet, None]:
        """What has changed after epoch `since`, or from now on; and what will, if `follow`."""
        return ChangeReader(self._statements, self._name).read(since, follow)

    async def insert(self, values: Mapping[str, Any] | None = None, **columns: Any) -> Result:
        """Insert a row; `last_insert_id` of the result is its AUTO_INCREMENT number."""
        row = {**(values or {}), **columns}
        return await self._run(table_sql.insert(self._name, tuple(row)), list(row.values()))

    async def insert_many(self, rows: Sequence[Mapping[str, Any]]) -> Result:
        """Insert rows, which all give values for the same columns, in one transaction."""
        if not rows:
            return Result()
        names = list(rows[0])
        try:
            columns = [[row[name] for row in rows] for name in names]
        except KeyError:
            columns = []
        if not columns or set(map(len, rows)) != {len(names)}:
            raise ValueError("all rows must have the same columns, at least one")
        return await self._statements.run_many(table_sql.insert(self._name, tuple(names)), columns, self._transaction)

    async def insert_columns(self, columns: Mapping[str, Sequence[Any] | Array]) -> Result:
        """As `insert_many`, with a sequence or an array of numpy for each column."""
        counts = set(map(len, columns.values()))
        if len(counts) != 1:
            raise ValueError("all columns must have as many values, and there must be at least one")
        if counts == {0}:
            return Result()
        sql = table_sql.insert(self._name, tuple(columns))
        return await self._statements.run_many(sql, list(columns.values()), self._transaction)

    async def update(self, key: Any, values: Mapping[str, Any] | None = None, **columns: Any) -> Result:
        """Change columns of the row with this primary key."""
        row = {**(values or {}), **columns}
        if not row:
            raise ValueError("at least one column has to be given")
        names, parts = await self._key(key)
        return await self._run(table_sql.update(self._name, row, names), [*row.values(), *parts])

    async def delete(self, key: Any) -> Result:
        """Delete the row with this primary key."""
        names, parts = await self._key(key)
        return await self._run(table_sql.delete(self._name, names), parts)

    async def _key(self, given: Any) -> tuple[list[str], list[Any]]:
        """The columns of the primary key, and a value for each."""

        async def find(catalog: Catalog) -> Table:
            return table_sql.find(catalog, self._statements.schema, self._name)

        columns = table_sql.primary_key(await self._statements.with_catalog(find))
        parts = list(given) if isinstance(given, tuple | list) else [given]
        if len(parts) != len(columns):
            raise ValueError(f"the primary key has {len(columns)} column(s), the key has {len(parts)}")
        for column, part in zip(columns, parts):
            key_converter(column.type)(part)  # else SQL would compare it somehow, and find any number of rows
        return [column.name for column in columns], parts

    async def _run(self, sql: str, values: Sequence[Any]) -> Result:
        return await self._statements.run(sql, values, self._transaction)


class AsyncTransaction:
    """Sees its own writes; others see them when it is committed."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._transaction = statements.database.begin()

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Result:
        return await self._statements.run(sql, parameters, self._transaction)

    def table(self, name: str) -> AsyncTable:
        return AsyncTable(self._statements, name, self._transaction)

    async def commit(self) -> None:
        """Done at the end of the block, if not before."""
        if self._transaction.state is State.OPEN:
            with self._statements.named():
                await self._transaction.commit()

    def rollback(self) -> None:
        if self._transaction.state is State.OPEN:
            self._transaction.rollback()
