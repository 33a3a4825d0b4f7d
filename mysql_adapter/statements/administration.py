"""USE, KILL, DO, PREPARE/EXECUTE/DEALLOCATE, and the table maintenance that has nothing to maintain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backend.execution.outcome import Answer, Done, Outcome, ResultSet
from controller.privileges import check_global, check_sees_table
from controller.sql.lexer import TokenKind
from controller.sql.plan import OutputColumn
from dataflow.errors import Condition, InvalidStatement, MillraceError, Unsupported
from dataflow.types import Row, text
from mysql_adapter import neighbours, preparing
from mysql_adapter.planned import evaluate, evaluate_list, evaluate_typed
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.statements.waiting import is_waiting_function, waiting_statement

if TYPE_CHECKING:
    from mysql_adapter.session import Session

_MAINTENANCE = tuple(
    OutputColumn(name, text(length)) for name, length in (("Table", 128), ("Op", 10), ("Msg_type", 10), ("Msg_text", 393216))
)


async def use(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("USE")
    name = cursor.identifier()
    cursor.expect_end()
    await session.use(name)
    return Done()


async def kill(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("KILL")
    kind = cursor.accept_any("CONNECTION", "QUERY")
    number = await evaluate(session, cursor.rest())
    if not isinstance(number, int):
        raise InvalidStatement(Condition.UNKNOWN_THREAD, number)
    await neighbours.kill(session, number, query_only=kind == "QUERY")
    return Done()


async def do(session: Session, cursor: TokenCursor) -> Done:
    start = cursor.mark()
    cursor.expect("DO")
    try:
        await evaluate_list(session, cursor.rest())
    except InvalidStatement as error:
        if error.condition is not Condition.UNKNOWN_FUNCTION or not is_waiting_function(error.arguments[0]):
            raise
        cursor.back_to(start)
        if await waiting_statement(session, cursor) is None:
            raise
    return Done()


async def maintain(session: Session, cursor: TokenCursor) -> ResultSet:
    """CHECK, ANALYZE, OPTIMIZE, REPAIR TABLE: every table is fine."""
    operation = cursor.next().text.lower()
    cursor.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    if not cursor.accept_any("TABLE", "TABLES"):
        raise cursor.error()
    rows: list[Row] = []
    while True:
        database, name = cursor.qualified_name()
        database = database or session.database
        shown = f"{database}.{name}"
        try:
            check_sees_table(session, database, name)
            await session.environment.with_catalog(lambda catalog: catalog.table(database, name))  # noqa: B023
            if operation == "optimize":
                note = "Table does not support optimize, doing recreate + analyze instead"
                rows.append((shown, operation, "note", note))
            rows.append((shown, operation, "status", "OK"))
        except MillraceError as error:
            rows.append((shown, operation, "Error", str(error)))
            rows.append((shown, operation, "status", "Operation failed"))
        if not cursor.accept(","):
            break
    return ResultSet(_MAINTENANCE, rows)


async def prepare(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("PREPARE")
    name = cursor.identifier().lower()
    cursor.expect("FROM")
    if cursor.token.kind is TokenKind.VARIABLE:
        value = await evaluate(session, cursor.rest())
        sql = value if isinstance(value, str) else str(value)
    else:
        sql = cursor.string()
        cursor.expect_end()
    old = session.named_prepared.pop(name, None)
    if old is not None:
        session.prepared.pop(old.id, None)
    session.named_prepared[name] = await preparing.prepare(session, sql)
    return Done(info="Statement prepared")


async def execute(session: Session, cursor: TokenCursor) -> Answer:
    cursor.expect("EXECUTE")
    name = cursor.identifier()
    statement = session.named_prepared.get(name.lower())
    if statement is None:
        raise InvalidStatement(Condition.UNKNOWN_PREPARED, name, "EXECUTE")
    values = []
    if cursor.accept("USING"):
        while True:
            token = cursor.next()
            if token.kind is not TokenKind.VARIABLE:
                raise cursor.error()
            values.append(await evaluate_typed(session, token.text))
            if not cursor.accept(","):
                break
    cursor.expect_end()
    if len(values) != statement.parameter_count:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "EXECUTE")
    return await preparing.execute(session, statement, values, stream=True)


async def deallocate(session: Session, cursor: TokenCursor) -> Done:
    if not cursor.accept_any("DEALLOCATE", "DROP"):
        raise cursor.error()
    cursor.expect("PREPARE")
    name = cursor.identifier()
    statement = session.named_prepared.pop(name.lower(), None)
    if statement is None:
        raise InvalidStatement(Condition.UNKNOWN_PREPARED, name, "DEALLOCATE PREPARE")
    session.prepared.pop(statement.id, None)
    return Done()


async def flush(session: Session, cursor: TokenCursor) -> Done:
    """FLUSH TABLES, STATUS, PRIVILEGES, …: nothing is held back that could be flushed."""
    check_global(session, "RELOAD")
    return Done()


async def unsupported(session: Session, cursor: TokenCursor) -> Outcome:
    words = [cursor.next().text.upper()]
    if not cursor.at_end:
        words.append(cursor.next().text.upper())
    raise Unsupported(" ".join(words))
