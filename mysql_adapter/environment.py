"""What the sessions of one adapter process share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from controller.catalog import Catalog
from controller.sql.planner import PlanCache
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

    def catalog(self) -> Catalog:
        """The catalog with information_schema in it."""
        base = self.database.catalog
        if base is not self._base:
            self._extended = extended(base)
            self._base = base
        return self._extended

    def virtual_rows(self, session: Session, table: Table) -> list[Row]:
        """The rows of a table that is computed: one of information_schema or behind a SHOW."""
        return rows_of(session, table)
