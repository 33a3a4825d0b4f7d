"""The MySQL face's view of the rest of millrace: plans run, definitions made, transactions.

`backend.execution` implements it; tests may bring a smaller one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from backend.clustering.point_writes import PointWrite
from backend.clustering.store import Store
from backend.execution.answering.instant import InstantQuery
from backend.execution.explaining.explanation import Explained
from backend.execution.outcome import Answer, Done, Outcome
from backend.execution.transaction import Transaction
from backend.network.view_messages import HostedViews
from controller.account_changes import AccountStatement
from controller.catalog import Catalog
from controller.sql.plan import Plan
from controller.sql.settings import Settings
from dataflow.schema import Table
from dataflow.values.modes import Modes
from dataflow.values.types import Row, Value


class DatabaseFace(Protocol):
    @property
    def store(self) -> Store:
        """Where the rows are."""
        ...

    @property
    def catalog(self) -> Catalog:
        """The newest snapshot known here; `refresh_catalog` asks for a newer one."""
        ...

    async def refresh_catalog(self) -> None: ...

    async def execute(
        self,
        plan: Plan,
        parameters: Sequence[Value],
        transaction: Transaction | None,
        modes: Modes,
        memory: Mapping[int, Sequence[Row]] | None = None,
        lock_timeout_s: float = ...,
    ) -> Outcome:
        """Run `plan`; `parameters` are the statement's, then one value for each of `plan.facts`.

        Without `transaction` the statement is one of its own and durable when this returns.
        `memory` has the rows of the tables that it reads and that are not stored, by table id.
        """
        ...

    async def execute_together(
        self, statements: Sequence[tuple[Plan, Sequence[Value]]], modes: Modes, lock_timeout_s: float = ...
    ) -> Outcome:
        """Run statements that change rows as one transaction, durable when this returns; the answer of the first."""
        ...

    async def stream(
        self,
        plan: Plan,
        parameters: Sequence[Value],
        transaction: Transaction | None,
        modes: Modes,
        memory: Mapping[int, Sequence[Row]] | None = None,
        lock_timeout_s: float = ...,
    ) -> Answer:
        """As `execute`, but a large result comes as a stream if that is possible."""
        ...

    async def with_reuse(self, explained: Explained) -> Explained:
        """With what of the view that was explained other views have."""
        ...

    def explain(self, plan: Plan, parameters: Sequence[Value]) -> Explained:
        """What `execute` would do."""
        ...

    def view_names(self, plan: Plan) -> list[bytes]:
        """The views that have been asked for, for such a plan."""
        ...

    def instant(self, plan: Plan) -> InstantQuery | None:
        """How to answer `plan` without executing it, where that is possible at times."""
        ...

    def point_write(self, plan: Plan, modes: Modes) -> PointWrite | None:
        """The statement as one that the worker runs by itself, if it is such a one."""
        ...

    async def view_status(self) -> list[tuple[int, HostedViews]]:
        """What each shard keeps in views."""
        ...

    async def next_auto_increment(self, table: Table) -> int:
        """The number that the table's next row gets, if nothing comes in between."""
        ...

    async def check_table(self, table: Table) -> list[str]:
        """What is wrong with what is stored of the table, in words; everything is read."""
        ...

    async def define(self, sql: str, database: str | None, settings: Settings) -> Done:
        """Run a definition statement; afterwards `catalog` shows it."""
        ...

    async def change_accounts(self, statement: AccountStatement) -> Done:
        """Run a statement about accounts; afterwards `catalog` shows it."""
        ...

    def begin(self, repeatable: bool = False) -> Transaction: ...
