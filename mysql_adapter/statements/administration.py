"""USE, KILL, DO, HELP, PREPARE/EXECUTE/DEALLOCATE, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backend.execution.outcome import Answer, Done, Outcome, ResultSet, Warning
from controller.privileges import check_global
from controller.sql.plan import OutputColumn
from controller.sql.text.lexer import TokenKind
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.values.types import text
from mysql_adapter import neighbours
from mysql_adapter.sessions.planned import evaluate, evaluate_list, evaluate_typed
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_HELP = (OutputColumn("name", text(64)), OutputColumn("is_it_category", text(1)))


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


async def alter_instance(session: Session, cursor: TokenCursor) -> Done:
    """ALTER INSTANCE RELOAD TLS [FOR CHANNEL name] [NO ROLLBACK ON ERROR]"""
    cursor.expect("ALTER", "INSTANCE")
    if not cursor.accept("RELOAD", "TLS"):
        raise Unsupported("ALTER INSTANCE " + cursor.token.upper)
    if cursor.accept("FOR", "CHANNEL"):
        cursor.identifier()
    lenient = cursor.accept("NO", "ROLLBACK", "ON", "ERROR")
    cursor.expect_end()
    check_global(session, "CONNECTION_ADMIN", "SUPER")
    failure = await neighbours.reload_tls(session)
    if not failure:
        return Done()
    error = InvalidStatement(Condition.TLS_NOT_RELOADED, failure)
    if not lenient:
        raise error
    return Done(warnings=(Warning("Warning", error.condition.code, str(error)),))


async def do(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("DO")
    await evaluate_list(session, cursor.rest())
    return Done()


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
    session.named_prepared[name] = await session.prepare(sql)
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
    return await session.execute(statement, values)


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


async def help_(session: Session, cursor: TokenCursor) -> ResultSet:
    """There are no help tables, as on a MySQL server where nobody has filled them."""
    cursor.expect("HELP")
    cursor.word_or_string()
    cursor.expect_end()
    return ResultSet(_HELP, [])


async def unsupported(session: Session, cursor: TokenCursor) -> Outcome:
    words = [cursor.next().text.upper()]
    if not cursor.at_end:
        words.append(cursor.next().text.upper())
    raise Unsupported(" ".join(words))
