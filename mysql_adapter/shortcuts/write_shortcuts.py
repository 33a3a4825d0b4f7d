"""Writes of one row that the worker runs by itself, and what their clients are told (`backend.clustering.point_writes`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backend.clustering.point_writes import PointWrite, Written
from backend.execution.counted_statements import CountedStatement
from backend.execution.writes.point_write import CHANGED, UNMATCHED
from controller.sql.plan import Insert, Plan, Update
from dataflow.values.modes import Modes
from mysql_adapter.wire.framing import frame
from mysql_adapter.wire.packets import ok

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session


class WriteShortcut:
    """One planned statement, which the account of its context may execute."""

    __slots__ = ("_is_insert", "_is_update", "_write", "counted", "modes", "takes")

    def __init__(self, write: PointWrite, plan: Plan, modes: Modes, counted: CountedStatement) -> None:
        self._write = write
        self.modes = modes
        self.counted = counted
        self.takes = write.takes
        self._is_insert = isinstance(plan.statement, Insert)
        self._is_update = isinstance(plan.statement, Update)

    def ask(self, parameters: tuple[object, ...], then: Written) -> bool:
        """False if the statement has to be executed with these parameters."""
        return self._write.takes(parameters) and self._write.ask(parameters, then)  # type: ignore[arg-type]

    def answer(self, result: int, session: Session, counts_found: bool) -> bytes:
        """The packet for a result that is not ELSEWHERE; the session is left as if the statement had been executed."""
        session.warnings = ()
        if self._is_insert:
            session.row_count = 1
            if result:
                session.last_insert_id = result
            return frame(ok(session.status, affected=1, last_insert_id=result), 1)
        matched, changed = int(result != UNMATCHED), int(result == CHANGED)
        session.row_count = matched if counts_found else changed
        info = f"Rows matched: {matched}  Changed: {changed}  Warnings: 0" if self._is_update else ""
        return frame(ok(session.status, affected=session.row_count, info=info), 1)


def write_shortcut(session: Session, plan: Plan, sql: str, is_prepared: bool) -> WriteShortcut | None:
    """That of a statement which the session may execute, if the worker can run it."""
    write = session.environment.database.point_write(plan, session.modes)
    if write is None:
        return None
    return WriteShortcut(write, plan, session.modes, session.environment.statements.of(plan, sql, session.database, is_prepared=is_prepared))
