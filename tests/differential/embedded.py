"""The engine in this process as a peer: plans from text, as the MySQL face makes them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType

from backend.execution.embedded import open_embedded
from backend.execution.local_store import LocalStore
from backend.execution.outcome import Done, Outcome, ResultSet
from backend.execution.transaction import SchemaChanged, Transaction
from controller.sql.planner import PlanCache
from controller.sql.settings import Settings
from controller.sql.text.lexer import leading_words
from dataflow.errors import MillraceError
from dataflow.values.modes import DEFAULT_SQL_MODE, Modes
from dataflow.values.result_limits import ResultSettings
from dataflow.values.types import REALS
from tests.differential.comparison import Answer
from tests.sent_values import sent_bytes

DEFINITIONS = frozenset({"CREATE", "DROP", "ALTER", "TRUNCATE", "RENAME"})


class EmbeddedPeer:
    """Use it as a context manager."""

    def __init__(self, folder: Path, shard_count: int = 2, sql_mode: str = DEFAULT_SQL_MODE) -> None:
        self._loop = asyncio.new_event_loop()
        self.database = self._loop.run_until_complete(open_embedded(folder, shard_count))
        self.plans = PlanCache()
        collation = "utf8mb4_general_ci"
        self.settings = Settings(collation=collation, results=ResultSettings(collation=collation))
        self.modes = Modes.parse(sql_mode)
        self.transaction: Transaction | None = None
        self.outcome: Outcome | None = None
        self.run("CREATE DATABASE d")

    def __enter__(self) -> EmbeddedPeer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        store = self.database.store
        assert isinstance(store, LocalStore)
        store.close()
        self._loop.close()

    def run(self, sql: str) -> Answer:
        try:
            outcome = self.outcome = self._loop.run_until_complete(self._run(sql))
        except MillraceError as error:
            return Answer(error=error.condition.code, message=str(error))
        if not isinstance(outcome, ResultSet):
            return Answer(affected=outcome.affected, last_insert_id=outcome.last_insert_id)
        types = [column.type for column in outcome.columns]
        rows = [
            tuple(sent_bytes(value, type_) for value, type_ in zip(row, types))
            for row in outcome.rows
        ]
        floats = frozenset(position for position, type_ in enumerate(types) if type_.kind in REALS)
        return Answer(rows, floats=floats)

    def run_by_column(self, sql: str, rows_min: int | None = 0) -> Answer:
        """As `run`, from the base tables, by column where that is possible; by rows if `rows_min` is None."""
        store = self.database.store
        assert isinstance(store, LocalStore) and self.transaction is None
        before, store.column_rows_min = store.column_rows_min, rows_min
        self.transaction = self.database.begin(repeatable=True)
        try:
            return self.run(sql)
        finally:
            self.transaction.rollback()
            self.transaction, store.column_rows_min = None, before

    async def _run(self, sql: str) -> Outcome:
        if await self._ran_transaction_statement(sql.split()):
            return Done()
        if leading_words(sql)[0].upper() in DEFINITIONS:
            return await self.database.define(sql, "d", self.settings)
        try:
            return await self._execute(sql)
        except SchemaChanged:
            await self.database.refresh_catalog()
            return await self._execute(sql)

    async def _execute(self, sql: str) -> Outcome:
        plan, values = self.plans.plan_text(sql, self.database.catalog, "d", self.settings)
        assert not plan.facts, "no session has facts here"
        return await self.database.execute(plan, values, self.transaction, self.modes)

    async def _ran_transaction_statement(self, words: list[str]) -> bool:
        """What the MySQL face does itself."""
        transaction = self.transaction
        match words:
            case ["BEGIN"]:
                assert transaction is None
                self.transaction = self.database.begin()
            case ["COMMIT"]:
                self.transaction = None
                assert transaction is not None
                await transaction.commit()
            case ["ROLLBACK"]:
                self.transaction = None
                assert transaction is not None
                transaction.rollback()
            case ["SAVEPOINT", name] if transaction is not None:
                transaction.savepoint(name)
            case ["ROLLBACK", "TO", "SAVEPOINT", name] if transaction is not None:
                transaction.rollback_to(name)
            case ["RELEASE", "SAVEPOINT", name] if transaction is not None:
                transaction.release(name)
            case _:
                return False
        return True
