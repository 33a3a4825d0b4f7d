"""An engine in this process with SQL going in and rows coming out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from backend.execution.database import Database
from backend.execution.embedded import open_embedded
from backend.execution.held_locks import TIMEOUT_S
from backend.execution.local_store import LocalStore
from backend.execution.outcome import Done, Outcome, ResultSet
from backend.execution.transaction import Transaction
from controller.sql.planner import PlanCache
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.values.modes import DEFAULT_MODES, Modes
from dataflow.values.types import Row


class Engine:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.plans = PlanCache()
        self.modes: Modes = DEFAULT_MODES

    @property
    def store(self) -> LocalStore:
        store = self.database.store
        assert isinstance(store, LocalStore)
        return store

    async def define(self, *statements: str) -> None:
        for sql in statements:
            await self.database.define(sql, "d", DEFAULT_SETTINGS)

    async def run(self, sql: str, transaction: Transaction | None = None, lock_timeout_s: float = TIMEOUT_S) -> Outcome:
        plan, values = self.plans.plan_text(sql, self.database.catalog, "d", DEFAULT_SETTINGS)
        return await self.database.execute(plan, values, transaction, self.modes, lock_timeout_s=lock_timeout_s)

    async def rows(self, sql: str, transaction: Transaction | None = None) -> list[Row]:
        outcome = await self.run(sql, transaction)
        assert isinstance(outcome, ResultSet)
        return outcome.rows

    async def done(self, sql: str, transaction: Transaction | None = None) -> Done:
        outcome = await self.run(sql, transaction)
        assert isinstance(outcome, Done)
        return outcome


def run(folder: Path, scenario: Callable[[Engine], Awaitable[None]], shard_count: int = 3, create: bool = True) -> None:
    """Run a scenario on an engine with a database d."""

    async def main() -> None:
        engine = Engine(await open_embedded(folder, shard_count))
        try:
            if create:
                await engine.define("CREATE DATABASE d")
            await scenario(engine)
        finally:
            engine.store.close()

    asyncio.run(main())
