"""One statement with its values, to be run once or until it wins its race."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property

from backend.execution.answering.query import CompiledQuery
from backend.execution.execution import Execution
from backend.execution.outcome import Answer, Done, warnings_of
from backend.execution.pace import aside
from backend.execution.transaction import EpochLost, RowsChanged, Transaction
from backend.execution.writes.directed import CompiledDirected
from backend.execution.writes.insert import CompiledInsert
from backend.execution.writes.numbers import AutoIncrement, Numbers
from backend.execution.writes.update import CompiledDelete, CompiledUpdate
from controller.sql.plan import Plan
from dataflow.errors import Condition, Retryable
from dataflow.expressions.notices import ignore, listen
from dataflow.expressions.user_variables import UserVariables
from dataflow.functions.waiting import WaitingCalls
from dataflow.values.modes import Modes
from dataflow.values.storing import Report
from dataflow.values.temporal import from_datetime
from dataflow.values.types import Row, Value

LOOKS_MAX = 20
"""How often a statement looks for its rows again because others had changed them before they were locked."""

Compiled = CompiledQuery | CompiledInsert | CompiledUpdate | CompiledDelete | CompiledDirected


class StatementRun:
    """`streams`: a large result may come while it is read."""

    def __init__(
        self,
        plan: Plan,
        compiled: Compiled,
        parameters: Sequence[Value],
        modes: Modes,
        numbers: Numbers,
        memory: Mapping[int, Sequence[Row]],
        streams: bool,
    ) -> None:
        self._plan = plan
        self._memory = memory
        self._streams = streams
        self._compiled = compiled
        self._parameters = parameters
        self._modes = modes
        self._now = utc_now() if modes.now is None else modes.now
        self._numbers = numbers
        self._numbering: AutoIncrement | None = None

    @cached_property
    def _vectors(self) -> list[tuple[Value, ...]]:
        """The parameters of each row of a batch."""
        plan, parameters = self._plan, self._parameters
        own = len(parameters) - len(plan.facts)
        if plan.batch is None:
            return [tuple(parameters)]
        return aside(len(parameters), lambda: plan.vectors(parameters[:own], parameters[own:]))

    @property
    def may_share(self) -> bool:
        """Whether it may be committed together with others that want the same row."""
        plan = self._plan
        is_one = plan.batch is None or len(self._parameters) == len(plan.parameter_types) + len(plan.facts)
        is_change = isinstance(self._compiled, CompiledInsert | CompiledUpdate | CompiledDelete)
        return is_one and is_change and "waiting_calls" not in plan.facts

    @property
    def name(self) -> Hashable:
        """The statement with its values."""
        return id(self._compiled), self._vectors[0]

    @property
    def may_assume_absent(self) -> bool:
        return isinstance(self._compiled, CompiledInsert) and self._compiled.may_assume_absent

    def _numbered(self, row_count: int) -> AutoIncrement:
        """The AUTO_INCREMENT values of an INSERT of so many rows, however often it has to be run."""
        assert isinstance(self._compiled, CompiledInsert)
        self._numbering = AutoIncrement(self._numbers, self._compiled.table, row_count, self._modes.number_step, self._modes.number_offset)
        return self._numbering

    def _execution(self, transaction: Transaction, parameters: tuple[Value, ...], assume_absent: bool) -> Execution:
        return Execution(
            transaction,
            parameters,
            self._modes,
            self._now,
            self._numbers,
            assume_absent=assume_absent,
            memory=self._memory,
        )

    async def __call__(self, transaction: Transaction, assume_absent: bool = False) -> Answer:
        if assume_absent and isinstance(self._compiled, CompiledInsert) and self._compiled.bulk is not None:
            execution = self._execution(transaction, (), True)
            done = await self._compiled.bulk.run(execution, self._plan, self._parameters, self._numbered)
            if done is not None:
                return done
        execution = self._execution(transaction, self._vectors[0], assume_absent)
        for _ in range(LOOKS_MAX):
            mark = transaction.mark()
            for value in self._vectors[0]:
                if isinstance(value, UserVariables | WaitingCalls):
                    value.restart()
            try:
                return await self._once(execution)
            except (RowsChanged, EpochLost):
                transaction.rollback_to_mark(mark)
                execution.report = Report()
            finally:
                execution.end()
        raise Retryable(Condition.DEADLOCK)

    async def _once(self, execution: Execution) -> Answer:
        if isinstance(self._compiled, CompiledQuery):
            return await self._answer(execution)
        ignores = self._compiled.ignore
        heard = listen(self._modes.strict and not ignores, ignores, self._modes.refuses_division_by_zero and not ignores)
        try:
            done = await self._answer(execution)
        finally:
            ignore()
        assert isinstance(done, Done)
        divides = self._modes.error_for_division_by_zero
        said = [each for each in heard if divides or each[0] is not Condition.DIVISION_BY_ZERO]
        return done if not said else replace(done, warnings=(*done.warnings, *warnings_of(said)))

    async def _answer(self, execution: Execution) -> Answer:
        if isinstance(self._compiled, CompiledInsert):
            numbering = self._numbering or self._numbered(self._compiled.row_count(self._vectors))
            return await self._compiled.run(execution, self._vectors, numbering)
        if self._streams and isinstance(self._compiled, CompiledQuery):
            return await self._compiled.stream(execution)
        return await self._compiled.run(execution)


class RunTogether:
    """Several statements that change rows, in one transaction."""

    def __init__(self, runs: Sequence[StatementRun]) -> None:
        self._runs = runs

    @property
    def may_assume_absent(self) -> bool:
        return any(run.may_assume_absent for run in self._runs)

    async def __call__(self, transaction: Transaction, assume_absent: bool = False) -> Answer:
        """The answer of the first."""
        answers = [await run(transaction, assume_absent and run.may_assume_absent) for run in self._runs]
        return answers[0]


def utc_now() -> int:
    """The time as packed DATETIME in UTC, with microseconds."""
    return from_datetime(datetime.now(UTC))
