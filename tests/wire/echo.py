"""A database without tables: enough for tests of the protocol alone.

`SELECT 'series N'` gives N rows and `SELECT 'sleep'` runs until it is killed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

from backend.execution.database import Database
from backend.execution.outcome import Done, Outcome, ResultSet
from controller import catalog
from controller.accounts import Account
from controller.catalog import Catalog
from controller.sql.plan import OutputColumn, Plan, Query
from controller.sql.settings import Settings
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Literal
from dataflow.values import types
from dataflow.values.modes import Modes
from dataflow.values.types import Value

TEXT_LENGTH = 100


class EchoTransaction:
    """Remembers what was done to it."""

    may_use_views = True
    repeatable = True

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._names: list[str] = []

    async def commit(self) -> None:
        self._note("commit")

    def rollback(self) -> None:
        self._note("rollback")

    def savepoint(self, name: str) -> None:
        self._names.append(name)
        self._note(f"savepoint {name}")

    def rollback_to(self, name: str) -> None:
        if name not in self._names:
            raise InvalidStatement(Condition.SAVEPOINT_MISSING, name)
        self._note(f"rollback to {name}")

    def release(self, name: str) -> None:
        self._note(f"release {name}")


class EchoDatabase:
    def __init__(self, accounts: tuple[Account, ...] = ()) -> None:
        self.catalog = Catalog.of((catalog.CatalogDatabase("test"),), (), 1, 1, accounts=accounts)
        self.log: list[str] = []
        self.sleeping = 0
        self._changed = threading.Condition()
        nothing: Any = None
        self._engine = Database(nothing, self.catalog, nothing, nothing)
        self.explain = self._engine.explain

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait in another thread for what happens here: a sleep that begins, a transaction's end."""
        with self._changed:
            assert self._changed.wait_for(condition, timeout=10)

    def note(self, event: str) -> None:
        with self._changed:
            self.log.append(event)
            self._changed.notify_all()

    async def refresh_catalog(self) -> None:
        pass

    async def execute(
        self,
        plan: Plan,
        parameters: Sequence[Value],
        transaction: EchoTransaction | None,
        modes: Modes,
        memory: Any = None,
        lock_timeout_s: float = 0.0,
    ) -> Outcome:
        assert isinstance(plan.statement, Query)
        first = plan.statement.outputs[0]
        if isinstance(first, Literal) and first.value == "sleep":
            with self._changed:
                self.sleeping += 1
                self._changed.notify_all()
            await asyncio.Event().wait()
        if isinstance(first, Literal) and isinstance(first.value, str) and first.value.startswith("series "):
            columns = (OutputColumn("n", types.BIGINT, False), OutputColumn("s", types.text(TEXT_LENGTH)))
            return ResultSet(columns, [(number, "x" * TEXT_LENGTH) for number in range(int(first.value[7:]))])
        return await self._engine.execute(plan, parameters, None, modes, memory)

    stream = execute

    def instant(self, plan: Any) -> None:
        return None

    async def view_status(self) -> list[Any]:
        return []

    async def next_auto_increment(self, table: Any) -> int:
        return 1

    async def define(self, sql: str, database: str | None, settings: Settings) -> Done:
        self.note(sql)
        return Done()

    def begin(self, repeatable: bool = False) -> EchoTransaction:
        self.note("begin")
        return EchoTransaction(self.note)
