"""The database as one process of the MySQL face sees it: plans run, transactions, definitions.

A statement of its own is a transaction that is tried again when it loses a race, so clients
only ever see its result. Inside BEGIN … COMMIT rows are locked before they are changed, so that
others wait for their turn; a race that is lost all the same is error 1213 at the commit.
Plans are compiled once and kept as long as their caller keeps the plan.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Protocol
from weakref import WeakSet

from backend.clustering.point_writes import PointWrite
from backend.clustering.store import Address, Committed, Locked, StaleSchema, Store
from backend.execution.answering.instant import InstantQuery, instant_query
from backend.execution.answering.query import CompiledQuery, compile_query
from backend.execution.explaining.explanation import Explained, explain, with_reuse
from backend.execution.held_locks import TIMEOUT_S, HeldLocks, LockRefused
from backend.execution.outcome import Answer, Done, Outcome, RowStream
from backend.execution.pace import PARAMETER_LENGTH, aside
from backend.execution.statement_run import Compiled, RunTogether, StatementRun
from backend.execution.table_check import check_table
from backend.execution.transaction import SchemaChanged, TableAltering, Transaction
from backend.execution.writes.convoy import Contended, Convoys, RunAlone
from backend.execution.writes.directed import CompiledDirected
from backend.execution.writes.insert import CompiledInsert
from backend.execution.writes.numbers import Numbers
from backend.execution.writes.point_write import point_definition
from backend.execution.writes.update import CompiledDelete, CompiledUpdate
from backend.network.view_messages import HostedViews
from controller.account_changes import AccountStatement
from controller.catalog import Catalog
from controller.sql.locking import EXCLUSIVE
from controller.sql.plan import Delete, Directed, Insert, Plan, Query, Update
from controller.sql.planner import KEPT_LENGTH_MAX, effort
from controller.sql.settings import Settings
from controller.sql.text.depth import deeply
from dataflow.errors import Condition, MillraceError, Retryable
from dataflow.schema import Table
from dataflow.values.modes import DEFAULT_MODES, Modes
from dataflow.values.types import Row, Value
from persistence.row_encoding import LaterFormat

PLANS_MAX = 2_000
TRIES_MAX = 50
PAUSE_SECONDS = 0.001
PAUSE_SECONDS_MAX = 0.1
PATIENCE_SECONDS = 10.0
ALTERATION_LOOK_SECONDS = 0.2
"""How often a writer asks whether ALTER TABLE is done with its table."""

LoadCatalog = Callable[[], Awaitable[Catalog]]
Define = Callable[[Sequence[str], str | None, Settings], Awaitable[tuple[Done, Catalog]]]
"""Has definition statements carried out; what is answered, and the catalog that shows them."""
ChangeAccounts = Callable[[AccountStatement], Awaitable[tuple[Done, Catalog]]]
"""The same for a statement about accounts."""


class CatalogReader(Protocol):
    def catalog_changed(self, catalog: Catalog) -> None: ...


class Database:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        load_catalog: LoadCatalog,
        define: Define,
        change_accounts: ChangeAccounts | None = None,
    ) -> None:
        self.store = store
        self.catalog = catalog
        """The newest snapshot known here; `refresh_catalog` asks for a newer one."""
        self.catalog_readers: WeakSet[CatalogReader] = WeakSet()
        """Who is told of a newer one."""
        self._load_catalog = load_catalog
        self._define = define
        self._change_accounts = change_accounts
        self._numbers = Numbers(store)
        self._compiled: OrderedDict[int, tuple[Plan, Compiled]] = OrderedDict()
        self._convoys = Convoys(store, _pause_seconds)

    # The catalog

    def learn_catalog(self, catalog: Catalog) -> None:
        """A snapshot was heard of; an older one changes nothing."""
        if catalog.version > self.catalog.version:
            self.catalog = catalog
            for each in list(self.catalog_readers):
                each.catalog_changed(catalog)

    async def refresh_catalog(self) -> None:
        self.learn_catalog(await self._load_catalog())

    async def define(self, sql: str, database: str | None, settings: Settings) -> Done:
        return await self.extend_program([sql], database, settings)

    async def extend_program(self, statements: Sequence[str], database: str | None, settings: Settings) -> Done:
        """Carry out definition statements as one transition: all of them, or none."""
        try:
            done, catalog = await self._define(statements, database, settings)
        except MillraceError:
            await self.refresh_catalog()  # what was published before it failed has been taken back since
            raise
        self.learn_catalog(catalog)
        return done

    async def change_accounts(self, statement: AccountStatement) -> Done:
        assert self._change_accounts is not None
        done, catalog = await self._change_accounts(statement)
        self.learn_catalog(catalog)
        return done

    # Statements

    def begin(self, repeatable: bool = False) -> Transaction:
        """A transaction of several statements, whose writes make those of others wait."""
        return Transaction(self.store, locking=True, repeatable=repeatable)

    def explain(self, plan: Plan, parameters: Sequence[Value]) -> Explained:
        """What `execute` would do."""
        compiled = self._compile(plan)
        known = compiled if isinstance(compiled, CompiledQuery) else None
        jobs = self.store.jobs
        return explain(plan, parameters, known, None if jobs is None else jobs.rows_min)

    async def with_reuse(self, explained: Explained) -> Explained:
        """With what of the view that was explained other views have."""
        planner, view = self.store.planner, explained.view
        plan = None if planner is None or view is None else await planner.plan(view.request())
        return explained if plan is None else with_reuse(explained, plan)

    def view_names(self, plan: Plan) -> list[bytes]:
        """The views that have been asked for, for such a plan."""
        compiled = self._compile(plan)
        return compiled.views.names() if isinstance(compiled, CompiledQuery) and compiled.views is not None else []

    def instant(self, plan: Plan) -> InstantQuery | None:
        """How to answer `plan` without executing it, where that is possible at times."""
        compiled = None if plan.facts else self._compile(plan)
        return instant_query(compiled, self.store.shared_views) if isinstance(compiled, CompiledQuery) else None

    def point_write(self, plan: Plan, modes: Modes) -> PointWrite | None:
        """The statement as one that the worker runs by itself, if it is such a one."""
        writes = self.store.point_writes
        found = None if writes is None else point_definition(plan, modes, self.store.shard_count)
        return None if writes is None or found is None else PointWrite(writes, *found, len(plan.parameter_types))

    async def view_status(self) -> list[tuple[int, HostedViews]]:
        """What each shard keeps in views."""
        return await self.store.view_status()

    async def next_auto_increment(self, table: Table) -> int:
        """The number that the table's next row gets, if nothing comes in between."""
        return await self._numbers.next_auto_increment(table)

    async def check_table(self, table: Table) -> list[str]:
        """What is wrong with what is stored of the table, in words; everything is read."""
        return await check_table(self.store, table)

    async def execute(
        self,
        plan: Plan,
        parameters: Sequence[Value] = (),
        transaction: Transaction | None = None,
        modes: Modes = DEFAULT_MODES,
        memory: Mapping[int, Sequence[Row]] | None = None,
        lock_timeout_s: float = TIMEOUT_S,
    ) -> Outcome:
        """Run `plan`; `parameters` are the statement's, then one value for each of `plan.facts`.

        Without `transaction` the statement is one of its own and durable when this returns.
        `memory` has the rows of the tables that it reads and that are not stored, by table id.
        `SchemaChanged` asks the caller to plan again with a fresh catalog.
        """
        answer = await self._answer(plan, parameters, transaction, modes, memory, lock_timeout_s, False)
        assert not isinstance(answer, RowStream)
        return answer

    async def stream(
        self,
        plan: Plan,
        parameters: Sequence[Value] = (),
        transaction: Transaction | None = None,
        modes: Modes = DEFAULT_MODES,
        memory: Mapping[int, Sequence[Row]] | None = None,
        lock_timeout_s: float = TIMEOUT_S,
    ) -> Answer:
        """As `execute`, but a large result comes as a stream if that is possible."""
        return await self._answer(plan, parameters, transaction, modes, memory, lock_timeout_s, True)

    async def execute_together(
        self, statements: Sequence[tuple[Plan, Sequence[Value]]], modes: Modes, lock_timeout_s: float = TIMEOUT_S
    ) -> Outcome:
        """Run statements that change rows as one transaction, durable when this returns; the answer of the first."""
        runs = [StatementRun(plan, self._compile(plan), values, modes, self._numbers, {}, False) for plan, values in statements]
        locks = HeldLocks(self.store, lock_timeout_s)
        try:
            answer = await self._run_tries(RunTogether(runs), locks)
        except TableAltering:
            await self._wait_for_alteration()
            raise SchemaChanged from None
        finally:
            locks.release()
        assert not isinstance(answer, RowStream)
        return answer

    async def _answer(
        self,
        plan: Plan,
        parameters: Sequence[Value],
        transaction: Transaction | None,
        modes: Modes,
        memory: Mapping[int, Sequence[Row]] | None,
        lock_timeout_s: float,
        streams: bool,
    ) -> Answer:
        run = StatementRun(plan, self._compile(plan), parameters, modes, self._numbers, memory or {}, streams)
        try:
            return await self._run(run, transaction, lock_timeout_s)
        except TableAltering:
            await self._wait_for_alteration()
            raise SchemaChanged from None
        except LaterFormat:  # somebody who has heard of a change before us has written already
            raise SchemaChanged from None

    async def _run(self, run: StatementRun, transaction: Transaction | None, lock_timeout_s: float) -> Answer:
        if transaction is None:
            locks = HeldLocks(self.store, lock_timeout_s)
            try:
                return await self._run_alone(run, locks)
            finally:
                locks.release()
        transaction.locks.timeout_s = lock_timeout_s
        mark = transaction.mark()
        try:
            return await run(transaction)
        except BaseException:
            transaction.rollback_to_mark(mark)
            raise

    async def _wait_for_alteration(self) -> None:
        """Until no table of the statement's catalog is being altered any more, as far as can be known."""
        waiting = {table.id for table in self.catalog.tables.values() if table.altering}
        for attempt in count():
            await asyncio.sleep(min(0.01 * 2**attempt, ALTERATION_LOOK_SECONDS))
            await self.refresh_catalog()
            if not any(table.altering for table in self.catalog.tables.values() if table.id in waiting):
                return

    async def _run_alone(self, run: StatementRun, locks: HeldLocks) -> Answer:
        """Join those of this process who want the same row, if there are any; else run it by itself."""
        if not run.may_share:
            return await self._run_tries(run, locks)
        contended = self._convoys.known(run.name)
        entered: list[Address] = []

        def enter(addresses: Sequence[Address]) -> None:
            self._convoys.enter(addresses)
            entered.extend(addresses)

        while True:
            if contended is not None:
                with contextlib.suppress(RunAlone):
                    return await self._convoys.join(run.name, contended, run, locks.timeout_s)
                return await self._run_tries(run, locks)
            locks.gate = enter
            try:
                return await self._run_tries(run, locks, joins=True)
            except Contended as error:
                contended = error.address
            finally:
                locks.gate = None
                self._convoys.leave(entered)

    async def _run_tries(self, run: StatementRun | RunTogether, locks: HeldLocks, joins: bool = False) -> Answer:
        """Try without locks first; who has lost a race, or meets another's lock, waits for its turn in line."""
        assume_absent = run.may_assume_absent
        give_up = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        for attempt in range(TRIES_MAX):
            transaction = Transaction(self.store, locks=locks, locking=attempt > 0)
            try:
                outcome = await run(transaction, assume_absent)
                result = await transaction.try_commit()
                if isinstance(result, Locked) and attempt:  # a key that statements do not lock ahead
                    await locks.lock([(result.shard, result.key)], EXCLUSIVE)
            except SchemaChanged:
                raise
            except LockRefused as error:
                if error.condition is not Condition.DEADLOCK:
                    raise
                locks.release()  # the others first: nothing has happened yet
                continue
            except Retryable:
                # Nothing was written yet: a shard was lost on the way, or a scan took too long.
                if asyncio.get_running_loop().time() > give_up:
                    raise
                await asyncio.sleep(_pause_seconds(attempt))
                continue
            if isinstance(result, Committed):
                return outcome
            if isinstance(result, StaleSchema):
                raise SchemaChanged()
            assume_absent = False  # now look which key is there
            if joins and attempt == 0 and locks.owner is None:
                raise Contended((result.shard, result.key))
            if attempt:
                await asyncio.sleep(_pause_seconds(attempt))
        raise Retryable(Condition.DEADLOCK)

    def _compile(self, plan: Plan) -> Compiled:
        kept = self._compiled.get(id(plan))
        if kept is not None:  # the plan is kept too, so its id is not another's
            self._compiled.move_to_end(id(plan))
            return kept[1]
        size = max(effort(plan.text), PARAMETER_LENGTH * len(plan.parameter_types))
        compiled = aside(size, lambda: compile_statement(plan))
        if len(plan.text) <= KEPT_LENGTH_MAX:
            self._compiled[id(plan)] = (plan, compiled)
        if len(self._compiled) > PLANS_MAX:
            self._compiled.popitem(last=False)
        return compiled


def _pause_seconds(attempt: int) -> float:
    return random.uniform(0, min(PAUSE_SECONDS * 2**attempt, PAUSE_SECONDS_MAX))


def compile_statement(plan: Plan) -> Compiled:
    return deeply(lambda: _compiled(plan))


def _compiled(plan: Plan) -> Compiled:
    match plan.statement:
        case Query() as query:
            return compile_query(query, effort(plan.text))
        case Insert() as insert:
            return CompiledInsert(insert)
        case Update() as update:
            return CompiledUpdate(update)
        case Delete() as delete:
            return CompiledDelete(delete)
        case Directed() as directed:
            return CompiledDirected(directed)
