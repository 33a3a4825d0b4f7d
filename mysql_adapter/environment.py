"""The environment that the sessions of one adapter process share.

A statement that fails because of a missing name is tried once more with a fresh catalog before
the error is believed: another adapter may have made the name.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from backend.execution.catalog_retry import with_fresh_catalog
from backend.execution.counted_statements import StatementCounts
from backend.execution.pace import aside
from backend.network.tls import Certificate
from backend.worker.session_services import LocalServices, Services
from controller.accounts import Account, find_account
from controller.catalog import Catalog, CatalogView
from controller.privileges import sees_database
from controller.sql.plan import Plan
from controller.sql.planner import PlanCache
from dataflow.errors import MillraceError
from dataflow.schema import Table
from dataflow.values.types import Row, Value
from mysql_adapter.admission import Admission
from mysql_adapter.database import DatabaseFace
from mysql_adapter.information_schema import DATABASE, extended, rows_of
from mysql_adapter.loop_watch import LoopWatch
from mysql_adapter.neighbours import answer
from mysql_adapter.sessions.query_log import VARIABLES as LOG_VARIABLES
from mysql_adapter.sessions.query_log import QueryLog
from mysql_adapter.sessions.variables import Variables
from mysql_adapter.shortcuts.shortcuts import Shortcuts
from mysql_adapter.wire.answers import Formats

if TYPE_CHECKING:
    from mysql_adapter.connection import Connection
    from mysql_adapter.sessions.session import Session

T = TypeVar("T")



class Environment:
    def __init__(
        self,
        database: DatabaseFace,
        services: Services | None = None,
        plans: PlanCache | None = None,
        adapter_number: int = 0,
    ) -> None:
        self.database = database
        self.plans = plans or PlanCache(aside)
        self.globals = Variables()
        self.formats = Formats()
        self.shortcuts = Shortcuts(database)
        self.query_log = QueryLog(self.globals, self.shortcuts)
        self.watch = LoopWatch()
        self.statements = StatementCounts()
        self.services = services or LocalServices()
        self.connections: dict[int, Connection] = {}
        self.started = time.time()
        self.past_counts: Counter[str] = Counter()
        self.certificate: Certificate | None = None
        self.admission = Admission(self)
        self.process = f"{adapter_number}-{secrets.token_hex(4)}"
        """Tells the sessions of this process from those of others, in the names of temporary tables."""
        self._base: Catalog | None = None
        self._extended = Catalog()
        self.described: dict[CatalogView, Table] = {}
        """Views as tables, as far as anyone has asked, under the present catalog."""
        self.plans_of_many: dict[int, tuple[Plan, Plan]] = {}
        """Plans of statements for one row, as those for any number of rows (`statements.uploads`)."""
        self.services.serve(partial(answer, self), self._locks_lost)

    def set_global(self, name: str, value: Value) -> None:
        """`value` has been checked."""
        self.globals.put(name, value)
        if name in LOG_VARIABLES:
            self.query_log.settings_changed()

    def catalog(self) -> Catalog:
        """The catalog with information_schema in it."""
        base = self.database.catalog
        if base is not self._base:
            self._extended = extended(base)
            self.described.clear()
            self._base = base
        return self._extended

    def visible_catalog(self, session: Session) -> Catalog:
        """The catalog as far as the session may know of it."""
        catalog, rights = self.catalog(), session.rights
        if rights.everything:
            return catalog
        tables = {
            each.id: each
            for each in catalog.tables.values()
            if each.database == DATABASE or rights.sees_table(each.database, each.name)
        }
        return replace(
            catalog,
            databases={name: each for name, each in catalog.databases.items() if sees_database(session, name)},
            tables=tables,
            names={(each.database, each.name): each.id for each in tables.values()},
            views={name: each for name, each in catalog.views.items() if rights.sees_table(*name)},
        )

    def _locks_lost(self, owner: int) -> None:
        """A connection's locks are gone with the process that kept them: so must it be."""
        if owner in self.connections:
            self.connections[owner].kill()

    # Accounts, for authentication

    def find(self, user: str, client_host: str) -> Account | None:
        return find_account(self.database.catalog.known_accounts, user, client_host)

    async def refresh(self) -> None:
        """Ask for the newest catalog; the one known will do while nobody answers."""
        with contextlib.suppress(MillraceError):
            await self.database.refresh_catalog()

    # Statements

    async def virtual_rows(self, session: Session, table: Table) -> list[Row]:
        """The rows of a table that is computed, as of the newest catalog: another adapter may have changed it."""
        await self.refresh()
        return await rows_of(session, table)

    async def with_catalog(self, use: Callable[[Catalog], T]) -> T:
        """`use` the catalog, and again a newer one if a name was missing."""

        async def used() -> T:
            return use(self.catalog())

        return await with_fresh_catalog(self.database, used)

    async def attempt(self, run: Callable[[Catalog], Awaitable[T]]) -> T:
        """`run` with the catalog, and again while it turns out to be out of date."""
        return await with_fresh_catalog(self.database, lambda: run(self.catalog()))
