"""The statements that LOCK TABLES and FLUSH TABLES WITH READ LOCK forbid their own session.

Other sessions are not held up (docs/status.md): whoever locks tables to be alone with them is told of each statement that has forgotten one, as
by MySQL, and no more than that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.catalog import HIDDEN_NAME_PREFIXES
from controller.definition_privileges import definition_needs
from controller.sql.plan import Plan
from controller.sql.planner import written_tables
from controller.sql.references import Need, needs_of
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.errors import Condition, InvalidStatement
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

Name = tuple[str, str]
_EXEMPT = frozenset({"information_schema", "performance_schema", "mysql", "sys", "millrace"})


@dataclass(frozen=True, slots=True)
class TableLocks:
    """Whether each locked table may be written; None is the read lock on everything."""

    is_written: dict[Name, bool] | None


def lock(session: Session, wanted: dict[Name, bool]) -> None:
    """A view is locked with what it is made of."""
    catalog, found = session.catalog, dict[Name, bool]()
    pending = list(wanted.items())
    while pending:
        name, is_written = pending.pop()
        if found.get(name, False) >= is_written and name in found:
            continue
        found[name] = is_written
        if name in catalog.views:
            view = catalog.views[name]
            pending += [((need.database, need.table), is_written) for need in needs_of(view.select, view.default_database or None, DEFAULT_SETTINGS)]
    session.table_locks = TableLocks(found)


def check_query(session: Session, sql: str, plan: Plan | None) -> None:
    """A statement about rows; without a plan only what it names counts."""
    locks = session.table_locks
    if locks is None:
        return
    needs = needs_of(sql, session.database, session.settings)
    if locks.is_written is None:
        _check_written(session, locks, [(need.database, need.table) for need in needs if need.privilege != "SELECT"])
        return
    _check_named(session, locks.is_written, needs)
    _check_written(session, locks, [(table.database, table.name) for table in (written_tables(plan) if plan is not None else ())])


def check_definition(session: Session, cursor: TokenCursor) -> None:
    locks = session.table_locks
    if locks is None:
        return
    verb, needs = cursor.token.upper, definition_needs(session, cursor)
    needs = [need for need in needs if need.privilege != "CREATE TEMPORARY TABLES" and not session.has_temporary(need.database, need.table)]
    if locks.is_written is None and needs:
        raise InvalidStatement(Condition.CONFLICTING_READ_LOCK)
    if any(not need.table and need.privilege == verb for need in needs):
        raise InvalidStatement(Condition.LOCK_OR_TRANSACTION)  # of a database
    made = "CREATE" if verb != "CREATE" else ""  # the new name of one that is renamed
    needs = [need for need in needs if need.privilege not in (made, "REFERENCES") and (made == "" or need.privilege != "INSERT")]
    needs = [need for need in needs if verb == "CREATE" or (need.database, need.table) not in session.catalog.views]
    _check_named(session, locks.is_written or {}, needs)
    _check_written(session, locks, [(need.database, need.table) for need in needs if need.privilege != "SELECT" and need.table])


def forget_gone(session: Session) -> None:
    """Tables that were dropped or renamed are locked no more; with the last of them it is over."""
    locks, catalog = session.table_locks, session.catalog
    if locks is not None and locks.is_written is not None:
        kept = {
            name: is_written
            for name, is_written in locks.is_written.items()
            if name in catalog.views or catalog.find_table(*name) is not None or session.has_temporary(*name)
        }
        session.table_locks = TableLocks(kept) if kept else None


def _check_named(session: Session, is_written: dict[Name, bool], needs: Iterable[Need]) -> None:
    for need in needs:
        name = need.database, need.table
        if need.table.startswith(HIDDEN_NAME_PREFIXES):
            continue  # a temporary table that is being filled
        if need.table and not need.uncertain and name not in is_written and need.database.lower() not in _EXEMPT and not session.has_temporary(*name):
            raise InvalidStatement(Condition.TABLE_NOT_LOCKED, need.table)


def _check_written(session: Session, locks: TableLocks, written: Iterable[Name]) -> None:
    for name in written:
        if session.has_temporary(*name):
            continue
        if locks.is_written is None:
            raise InvalidStatement(Condition.CONFLICTING_READ_LOCK)
        if not locks.is_written.get(name, True):
            raise InvalidStatement(Condition.TABLE_LOCKED_FOR_READ, name[1])
