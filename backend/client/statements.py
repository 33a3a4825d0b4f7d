"""SQL statements of a client: planned through a cache, tried again where the catalog was out of date."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

from backend.client.statement_origin import named_statement
from backend.client.values import Rows, column_sample, column_values, row_converter, to_value, type_code
from backend.execution.catalog_retry import with_fresh_catalog
from backend.execution.counted_statements import SLOW_S, CountedStatement, StatementCounts
from backend.execution.database import Database
from backend.execution.memory_account import LIMIT_BYTES, MemoryAccount
from backend.execution.outcome import Done, Outcome, ResultSet
from backend.execution.pace import account, paced
from backend.execution.transaction import State, Transaction
from backend.execution.writes.column_values import Array, ColumnValues
from backend.processes.process_log import without_secrets
from backend.processes.statement_counts import SlowStatement
from controller.catalog import Catalog
from controller.definition_privileges import check_definition
from controller.privileges import Asker, check_plan, check_text
from controller.sql.plan import Plan
from controller.sql.planner import PlanCache
from controller.sql.settings import DEFAULT_SETTINGS
from controller.sql.text.cursor import TokenReader
from controller.sql.text.lexer import leading_words, tokens
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.values import temporal
from dataflow.values.types import Row, Value

T = TypeVar("T")

CONNECTIONS_ONLY = frozenset(
    {
        "ANALYZE", "BEGIN", "CALL", "CHECK", "COMMIT", "DESC", "DESCRIBE", "DO", "EXECUTE", "EXPLAIN", "FLUSH", "GRANT", "KILL",
        "LOAD", "LOCK", "OPTIMIZE", "PREPARE", "REVOKE", "ROLLBACK", "SAVEPOINT", "SET", "SHOW", "START", "UNLOCK", "USE",
    }
)  # fmt: skip
"""Statements that are for, or about, sessions of MySQL."""
DEFINITIONS = frozenset({"CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME"})
SLOW_CHARACTERS_MAX = 4_000


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gave: rows, or how many it changed. Iterating goes over the rows."""

    columns: tuple[str, ...] = ()
    rows: Rows = ()  # type: ignore[assignment]
    affected: int = 0
    last_insert_id: int = 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class _Run:
    """One execution of a statement, as far as it has come."""

    statement: CountedStatement | None = None
    answer: Outcome | None = None


class Statements:
    """`schema` is the default database, as after USE. With a `session`, what that may not do is refused. `counts` are of all that is run.

    The rows that a statement holds while it runs take up to `memory_bytes`. The cluster `is_told` each statement's name, if it takes them.
    """

    def __init__(
        self,
        database: Database,
        schema: str | None,
        plans: PlanCache | None = None,
        session: Asker | None = None,
        memory_bytes: int = LIMIT_BYTES,
        counts: StatementCounts | None = None,
        is_told: bool = False,
    ) -> None:
        self.database = database
        self.schema = schema
        self._plans = plans or PlanCache()
        self._session = session
        self._memory_bytes = memory_bytes
        self.counts = counts or StatementCounts()
        self._is_told = is_told

    def named(self) -> AbstractContextManager[str]:
        """A block that is one statement; its name."""
        return named_statement(self._is_told)

    async def run(self, sql: str, parameters: Sequence[Any] = (), transaction: Transaction | None = None) -> Result:
        """Run one statement with a value for each `?`."""
        words = leading_words(sql, 1)
        if words and words[0].upper() in DEFINITIONS:
            if transaction is not None:
                raise Unsupported("definition statements inside a transaction")
            await self.define([sql])
            return Result()
        values = [to_value(each) for each in parameters]

        async def attempt(catalog: Catalog) -> Outcome:
            plan, found = self.plan(sql, parameters, catalog)
            given = values if found is None else found
            run.statement = self.counts.of(plan, sql, self.schema, given, is_prepared=found is None)
            return await self._execute(plan, given, transaction)

        with self._counted(sql) as run:
            run.answer = await self._paced(self.with_catalog(attempt))
        return _result(run.answer)

    @contextmanager
    def _counted(self, sql: str) -> Iterator[_Run]:
        """Count what is run in the block, whether it fails or not."""
        run, started = _Run(), time.perf_counter()
        with self.named() as name:
            try:
                yield run
            finally:
                seconds = time.perf_counter() - started
                if run.statement is None:
                    self.counts.run_other(sql, seconds, run.answer is None)
                else:
                    run.statement.run(seconds, run.answer is None, name)
                    if isinstance(run.answer, ResultSet):
                        run.statement.answered(run.answer)
                if seconds >= SLOW_S:
                    user, host = ("", "") if self._session is None else (self._session.account.user, self._session.host_name)
                    text = without_secrets(sql[:SLOW_CHARACTERS_MAX])
                    self.counts.slow.append(SlowStatement(time.time(), user, host, self.schema or "", 0, seconds, text, name))

    async def rows(self, plan: Plan, parameters: Sequence[Value]) -> list[Row]:
        """The rows of a query, as the engine has them."""
        found = await self._paced(self.database.execute(plan, parameters))
        assert isinstance(found, ResultSet)
        return found.rows

    def plan(
        self, sql: str, parameters: Sequence[Any], catalog: Catalog
    ) -> tuple[Plan, Sequence[Value] | None]:
        """What is to be done, with the text's own values if there are no parameters."""
        try:
            if parameters:
                if len(parameters) != _placeholders(sql):
                    raise InvalidStatement(Condition.WRONG_ARGUMENTS, "EXECUTE")
                codes = tuple([type_code(each) for each in parameters])
                plan, found = self._plans.plan_prepared(sql, catalog, self.schema, DEFAULT_SETTINGS, codes), None
            else:
                plan, found = self._plans.plan_text(sql, catalog, self.schema, DEFAULT_SETTINGS)
        except InvalidStatement as error:
            if self._session is not None:
                check_text(self._session, sql)
            words = [each.upper() for each in leading_words(sql, 1)]
            if error.condition is Condition.PARSE_ERROR and not CONNECTIONS_ONLY.isdisjoint(words):
                raise Unsupported(f"{words[0]} outside of a connection over MySQL") from None
            raise
        if self._session is not None:
            check_plan(self._session, plan, sql)
        return plan, found

    async def define(self, statements: Sequence[str]) -> None:
        """Carry out definition statements, all or none."""
        if any("TEMPORARY" in leading_words(sql, 2) for sql in statements):
            raise Unsupported("temporary tables, which need a connection that they end with")
        if self._session is not None:
            for sql in statements:
                check_definition(self._session, TokenReader(sql, DEFAULT_SETTINGS))
        with self._counted("; ".join(statements)) as run:
            await self.database.extend_program(statements, self.schema, DEFAULT_SETTINGS)
            run.answer = Done()

    async def run_many(
        self, sql: str, columns: Sequence[Sequence[Any] | Array], transaction: Transaction | None = None
    ) -> Result:
        """Run an INSERT of one row for many, whose values are given by column, as one statement."""
        samples = tuple(map(column_sample, columns))
        values = ColumnValues(list(map(column_values, columns)))

        async def attempt(catalog: Catalog) -> Outcome:
            # Values that only go into a column: their own type will do, unless it is another's here.
            plan, _ = self.plan(sql, samples, catalog)
            run.statement = self.counts.of(plan, sql, self.schema, is_prepared=True)
            return await self._execute(self._batch(plan, len(samples)), values, transaction)

        with self._counted(sql) as run:
            run.answer = await self._paced(self.with_catalog(attempt))
        return _result(run.answer)

    async def _paced(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in slices and within its memory, unless whoever runs this has seen to that."""
        return await (work if account() is not None else paced(work, MemoryAccount(self._memory_bytes)))

    def _batch(self, plan: Plan, width: int) -> Plan:
        """The plan for any number of rows; one object for each plan, so that it is compiled once."""
        kept = _BATCHES.get(id(plan))
        if kept is None or kept[0] is not plan:
            if len(_BATCHES) >= BATCHES_MAX:
                _BATCHES.clear()
            kept = _BATCHES[id(plan)] = (plan, replace(plan, batch=(0, width)))
        return kept[1]

    async def with_catalog(self, use: Callable[[Catalog], Awaitable[T]]) -> T:
        """`use` the catalog, and again while it turns out to be out of date."""
        return await with_fresh_catalog(self.database, lambda: use(self.database.catalog))

    async def _execute(self, plan: Plan, values: Sequence[Value], transaction: Transaction | None) -> Outcome:
        if transaction is not None and transaction.state is not State.OPEN:
            raise InvalidStatement(Condition.UNKNOWN_ERROR, "the transaction has ended")
        if plan.facts:
            values = [*values, *(self._fact(name) for name in plan.facts)]
        return await self.database.execute(plan, values, transaction)

    def _fact(self, name: str) -> Value:
        """What a statement asks its session for. A client's clock is UTC, and it has no variables."""
        kind, _, digits = name.partition(":")
        now = temporal.from_datetime(datetime.now(UTC).replace(tzinfo=None))
        match kind:
            case "now" | "utc_now" | "sysdate":
                return temporal.round_datetime(now, int(digits or 0))
            case "today" | "utc_today":
                return temporal.date_part(now)
            case "time" | "utc_time":
                return temporal.time_part(temporal.round_datetime(now, int(digits or 0)))
            case "unix_timestamp":
                return int(time.time())
            case "database":
                return self.schema
        raise Unsupported(f"{kind}() in the client library")


@lru_cache(maxsize=2000)
def _placeholders(sql: str) -> int:
    return sum(token.text == "?" for token in tokens(sql))


BATCHES_MAX = 1000
_BATCHES: dict[int, tuple[Plan, Plan]] = {}


def _result(outcome: Outcome) -> Result:
    if isinstance(outcome, Done):
        return Result(affected=outcome.affected, last_insert_id=outcome.last_insert_id)
    assert isinstance(outcome, ResultSet)
    convert = row_converter([column.type for column in outcome.columns])
    rows: Rows = outcome.rows if convert is None else convert(outcome.rows)
    return Result(tuple(column.name for column in outcome.columns), rows)
