"""BEGIN, COMMIT, ROLLBACK, savepoints, and LOCK TABLES."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from backend.execution.outcome import Done
from controller.catalog import Catalog
from controller.privileges import check_sees_table
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.values.types import Value
from mysql_adapter.sessions.table_locks import lock
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session


async def begin(session: Session, cursor: TokenCursor) -> Done:
    read_only: bool | None = None
    snapshot = False
    if cursor.accept("START"):
        if not cursor.accept("TRANSACTION"):
            raise Unsupported("START " + cursor.rest().split(" ")[0].upper()) if not cursor.at_end else cursor.error()
        while not cursor.at_end:
            if read_only is None and (cursor.at("READ", "ONLY") or cursor.at("READ", "WRITE")):
                cursor.next()
                read_only = cursor.next().upper == "ONLY"
            elif cursor.accept("WITH", "CONSISTENT", "SNAPSHOT"):
                snapshot = True
            else:
                raise cursor.error()
            if not cursor.accept(","):
                break
    else:
        cursor.expect("BEGIN")
        cursor.accept("WORK")
    cursor.expect_end()
    if session.table_locks is not None and session.table_locks.is_written is not None:
        session.table_locks = None
    await session.begin(read_only, snapshot)
    return Done()


async def commit(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("COMMIT")
    chain, release = _completion(cursor)
    before = session.characteristics
    await session.commit()
    await _complete(session, before if chain else None, release)
    return Done()


async def rollback(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("ROLLBACK")
    cursor.accept("WORK")
    if cursor.accept("TO"):
        cursor.accept("SAVEPOINT")
        name = cursor.identifier()
        cursor.expect_end()
        if session.transaction is None:
            raise InvalidStatement(Condition.SAVEPOINT_MISSING, name)
        session.transaction.rollback_to(name)
        return Done()
    chain, release = _completion(cursor)
    before = session.characteristics
    session.rollback()
    await _complete(session, before if chain else None, release)
    return Done()


async def savepoint(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("SAVEPOINT")
    name = cursor.identifier()
    cursor.expect_end()
    transaction = session.statement_transaction()
    if transaction is not None:
        transaction.savepoint(name)
    return Done()


async def release(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("RELEASE", "SAVEPOINT")
    name = cursor.identifier()
    cursor.expect_end()
    if session.transaction is None:
        raise InvalidStatement(Condition.SAVEPOINT_MISSING, name)
    session.transaction.release(name)
    return Done()


async def lock_tables(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("LOCK")
    if cursor.accept("INSTANCE"):
        return Done()
    if not cursor.accept_any("TABLES", "TABLE"):
        raise cursor.error()
    await session.commit()
    session.table_locks = None
    wanted: dict[tuple[str, str], bool] = {}
    while True:
        database, name = cursor.qualified_name()
        if not session.has_temporary(database or session.database, name):
            check_sees_table(session, database or session.database, name)
            await session.environment.with_catalog(partial(_expect_table_or_view, database or session.database, name))
        if cursor.accept("AS") or not cursor.at_any("READ", "WRITE", "LOW_PRIORITY"):
            cursor.identifier()
        cursor.accept("LOW_PRIORITY")
        owner = database or session.database or ""
        if cursor.accept("READ"):
            cursor.accept("LOCAL")
            wanted.setdefault((owner, name), False)
        else:
            cursor.expect("WRITE")
            wanted[owner, name] = True
        if not cursor.accept(","):
            break
    cursor.expect_end()
    lock(session, wanted)
    return Done()


def _expect_table_or_view(database: str | None, name: str, catalog: Catalog) -> None:
    if (database or "", name) not in catalog.views:
        catalog.table(database, name)


async def unlock_tables(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("UNLOCK")
    is_instance = cursor.accept("INSTANCE")
    if not is_instance and not cursor.accept_any("TABLES", "TABLE"):
        raise cursor.error()
    cursor.expect_end()
    if not is_instance:
        session.table_locks = None
    return Done()


def _completion(cursor: TokenCursor) -> tuple[bool, bool]:
    """(chain, release) of COMMIT and ROLLBACK."""
    cursor.accept("WORK")
    chain = release = False
    if cursor.accept("AND"):
        chain = not cursor.accept("NO")
        cursor.expect("CHAIN")
        if chain and cursor.at("RELEASE"):
            raise cursor.error()
    if cursor.accept("NO"):
        cursor.expect("RELEASE")
    else:
        release = cursor.accept("RELEASE")
    cursor.expect_end()
    return chain, release


async def _complete(session: Session, chained: dict[str, Value] | None, release: bool) -> None:
    """`chained`: the characteristics of the transaction before, which the next one has, too."""
    if chained is not None:
        session.next_transaction.update(chained)
        await session.begin()
    if release:
        session.close_after_answer()
