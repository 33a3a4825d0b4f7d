"""The context of one run of a statement: transaction, parameters, epoch, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backend.execution.outcome import Warning
from backend.execution.transaction import Transaction
from backend.execution.writes.numbers import Numbers
from dataflow.errors import Condition
from dataflow.values.modes import Modes
from dataflow.values.storing import WARNING, Notice, Report
from dataflow.values.types import Row, Value

WARNINGS_MAX = 64
"""As many as MySQL's max_error_count keeps, more or less."""


@dataclass(slots=True)
class Execution:
    """One run of a statement. `parameters` are the statement's, then the session facts it asked for.

    `now` is the time at which the statement started, packed, in UTC, with microseconds.
    `memory` has the rows of tables that are not stored, by table id.

    What is read several times, or of several tables, is read as of one epoch, which is held
    from the first read until `end`.
    """

    transaction: Transaction
    parameters: tuple[Value, ...]
    modes: Modes
    now: int
    numbers: Numbers
    assume_absent: bool = False
    report: Report = field(default_factory=Report)
    memory: Mapping[int, Sequence[Row]] = field(default_factory=dict)
    from_view: bool = False
    """Whether a view has answered it."""
    _epoch: int | None = None

    async def epoch(self) -> int:
        """The epoch that the statement reads."""
        if self.transaction.repeatable:
            return await self.transaction.epoch()
        if self._epoch is None:
            self._epoch = await self.transaction.store.hold_epoch()
        return self._epoch

    def end(self) -> None:
        """Nothing more is read; if something is all the same, it is as of another epoch."""
        if self._epoch is not None:
            self.transaction.store.release_epoch(self._epoch)
            self._epoch = None

    def warn(self, condition: Condition, *arguments: object) -> None:
        self.report.notices.append(Notice(WARNING, condition, arguments))

    def warn_once(self, condition: Condition, *arguments: object) -> None:
        """Of the statement, where others are of a row."""
        notice = Notice(WARNING, condition, arguments)
        if notice not in self.report.notices:
            self.report.notices.append(notice)

    @property
    def warning_count(self) -> int:
        return len(self.report.notices)

    def warnings(self) -> tuple[Warning, ...]:
        return tuple(
            Warning(notice.level, notice.condition.code, notice.message)
            for notice in self.report.notices[:WARNINGS_MAX]
        )
