"""What the sessions of one adapter process share.

A statement that fails because of a missing name is tried once more with a fresh catalog before
the error is believed: another adapter may have made the name.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from backend.execution.outcome import Outcome
from backend.execution.transaction import SchemaChanged
from controller.catalog import Catalog, View
from controller.sql.planner import PlanCache
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import Table
from dataflow.types import Row
from mysql_adapter.answers import Formats
from mysql_adapter.authentication import Users
from mysql_adapter.database import Database
from mysql_adapter.information_schema import extended, rows_of
from mysql_adapter.locks import LocalLocks
from mysql_adapter.variables import Variables

if TYPE_CHECKING:
    from mysql_adapter.connection import Connection
    from mysql_adapter.session import Session

T = TypeVar("T")

ATTEMPTS_MAX = 5
STALE = frozenset(
    {
        Condition.UNKNOWN_TABLE,
        Condition.UNKNOWN_COLUMN,
        Condition.UNKNOWN_DATABASE,
        Condition.VIEW_INVALID,
        Condition.TABLE_DEFINITION_CHANGED,
    }
)
"""Errors that an outdated catalog may be the reason of."""


class Environment:
    def __init__(self, database: Database, users: Users, plans: PlanCache | None = None, alone: bool = True) -> None:
        self.database = database
        self.users = users
        self.plans = plans or PlanCache()
        self.globals = Variables()
        self.formats = Formats()
        self.locks = LocalLocks() if alone else None
        self.connections: dict[int, Connection] = {}
        self.started = time.time()
        self._base: Catalog | None = None
        self._extended = Catalog()
        self.described: dict[View, Table] = {}
        """Views as tables, as far as anyone has asked, under the present catalog."""

    def catalog(self) -> Catalog:
        """The catalog with information_schema in it."""
        base = self.database.catalog
        if base is not self._base:
            self._extended = extended(base)
            self.described.clear()
            self._base = base
        return self._extended

    def virtual_rows(self, session: Session, table: Table) -> list[Row]:
        """The rows of a table that is computed: one of information_schema or behind a SHOW."""
        return rows_of(session, table)

    async def with_catalog(self, use: Callable[[Catalog], T]) -> T:
        """`use` the catalog, and once more a fresh one if a name was missing."""
        try:
            return use(self.catalog())
        except InvalidStatement as error:
            if error.condition not in STALE:
                raise
        await self.database.refresh_catalog()
        return use(self.catalog())

    async def attempt(self, run: Callable[[Catalog], Awaitable[Outcome]]) -> Outcome:
        """`run` with the catalog, and again while it turns out to be out of date."""
        for _ in range(ATTEMPTS_MAX):
            before = self.database.catalog
            try:
                return await run(self.catalog())
            except (InvalidStatement, SchemaChanged) as error:
                if error.condition not in STALE:
                    raise
                await self.database.refresh_catalog()
                if self.database.catalog is before:
                    raise
        raise SchemaChanged
