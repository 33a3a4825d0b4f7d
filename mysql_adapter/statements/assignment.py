"""SET in all its forms: system and user variables, NAMES, CHARACTER SET, TRANSACTION.

All values of one SET are computed and checked before the first one is stored, so a SET that
fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from backend.execution.outcome import Done, warnings_of
from controller.privileges import check_global
from controller.sql.text.lexer import Token, TokenKind, literal_value
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.notices import Said, overheard
from dataflow.values import temporal
from dataflow.values.types import Value
from mysql_adapter.neighbours import set_global
from mysql_adapter.sessions import variables
from mysql_adapter.sessions.planned import evaluate, evaluate_typed, plain_value
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.wire.charsets import NOT_FOR_CLIENTS, charset_of, collation_of

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

Change = Callable[[], Awaitable[None] | None]
_SCOPES = {"GLOBAL": "global", "PERSIST": "global", "PERSIST_ONLY": "global", "SESSION": "session", "LOCAL": "session"}

_SIMPLE = frozenset({TokenKind.WORD, TokenKind.QUOTED, TokenKind.NUMBER, TokenKind.STRING})


async def set_statement(session: Session, cursor: TokenCursor) -> Done:
    cursor.expect("SET")
    if cursor.accept_any("ROLE", "RESOURCE") or cursor.at("DEFAULT", "ROLE"):
        raise Unsupported("SET of roles")
    changes: list[Change] = []
    said: list[Said] = []
    scope = ""
    autocommit: Value = None
    while True:
        # A scope word holds for the following assignments until another one is named.
        word = cursor.accept_any(*_SCOPES)
        scope = _SCOPES[word] if word else scope
        if word and cursor.token.kind is TokenKind.VARIABLE:
            raise cursor.error()
        if cursor.accept("TRANSACTION"):
            changes += _transaction(session, cursor, scope)
            break
        if cursor.accept("NAMES"):
            changes.append(_names(session, cursor))
        elif cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
            changes.append(_character_set(session, cursor))
        else:
            token = cursor.next()
            if token.kind is TokenKind.VARIABLE and not token.text.startswith("@@"):
                changes.append(await _user_variable(session, cursor, token))
            else:
                name, own_scope = _system_name(cursor, token, scope)
                value = await _value(session, cursor, name, own_scope)
                changes.append(_assign(session, name, own_scope, value, said))
                if name == "autocommit" and own_scope != "global":
                    autocommit = session.variables.get("autocommit") if value is None else value
        if not cursor.accept(","):
            break
    cursor.expect_end()
    if autocommit is not None and variables.checked(variables.find("autocommit"), autocommit):
        await session.commit()
    for change in changes:
        done = change()
        if done is not None:
            await done
    session.settings_changed()
    return Done(warnings=tuple(warnings_of(said)))


def _system_name(cursor: TokenCursor, token: Token, scope: str) -> tuple[str, str]:
    text = token.text
    if token.kind is TokenKind.VARIABLE:
        path = text[2:].replace("`", "").lower().split(".")
        if path[0].upper() in _SCOPES and len(path) > 1:
            scope = _SCOPES[path.pop(0).upper()]
        else:
            scope = scope or "session"
        return ".".join(path), scope
    if token.kind not in (TokenKind.WORD, TokenKind.QUOTED):
        raise cursor.error()
    return text.strip("`").lower(), scope


async def _value(session: Session, cursor: TokenCursor, name: str, scope: str) -> Value:
    """What is assigned: a bare word is a text, DEFAULT the global value, else any expression."""
    if not (cursor.accept("=") or cursor.accept(":=")):
        raise cursor.error()
    token = cursor.token
    variable = variables.find(name)
    if cursor.accept("DEFAULT"):
        return variable.default if scope == "global" else session.environment.globals.get(name)
    mark = cursor.mark()
    if token.kind in _SIMPLE and token.upper not in ("NULL", "TRUE", "FALSE"):
        cursor.next()
        if cursor.at_end or cursor.at(","):
            if token.kind is TokenKind.WORD:
                return token.text
            if token.kind is TokenKind.QUOTED:
                return token.text[1:-1]
            return literal_value(token.text, cursor.settings.backslash_escapes)
        cursor.back_to(mark)
    return await evaluate(session, cursor.expression(","))


def _assign(session: Session, name: str, scope: str, value: Value, said: list[Said]) -> Change:
    variable = variables.find(name)
    if variable.fixed:
        raise InvalidStatement(Condition.READ_ONLY_VARIABLE, name, "read only")
    if variable.scope == "global" and scope != "global":
        raise InvalidStatement(Condition.GLOBAL_VARIABLE, name)
    if variable.scope == "session" and scope == "global":
        raise InvalidStatement(Condition.LOCAL_VARIABLE, name)
    if name in variables.GLOBAL_TO_SET and scope != "global":
        raise InvalidStatement(Condition.SESSION_READ_ONLY, name)
    with overheard() as heard:
        checked = variables.checked(variable, value)
    said += heard
    checked = session.environment.query_log.checked(name, checked)
    if variable.shape is variables.Shape.TIME_ZONE and temporal.zone(str(checked)) is None:
        raise InvalidStatement(Condition.UNKNOWN_TIME_ZONE, checked)
    if name == "character_set_client" and str(checked).lower() in NOT_FOR_CLIENTS:
        raise InvalidStatement(Condition.WRONG_VALUE_FOR_VARIABLE, name, checked)
    if scope == "global":
        check_global(session, "SUPER", "SYSTEM_VARIABLES_ADMIN")
        return lambda: set_global(session, name, checked)

    def change() -> None:
        session.variables.put(name, checked)
        if name == "last_insert_id" or name == "identity":
            session.last_insert_id = int(checked) if isinstance(checked, int) else 0

    return change


async def _user_variable(session: Session, cursor: TokenCursor, token: Token) -> Change:
    name = token.text[1:].strip("`'\"").lower()
    if not name:
        raise cursor.error()
    if not (cursor.accept("=") or cursor.accept(":=")):
        raise cursor.error()
    value = plain_value(session, await evaluate_typed(session, cursor.expression(",")))
    return lambda: session.user_variables.__setitem__(name, value)


def _names(session: Session, cursor: TokenCursor) -> Change:
    if cursor.accept("DEFAULT"):
        return lambda: session.set_names("utf8mb4", None)
    name = cursor.word_or_string()
    charset = charset_of(name)
    if charset is None:
        raise InvalidStatement(Condition.UNKNOWN_CHARACTER_SET, name)
    if charset.name in NOT_FOR_CLIENTS:
        raise InvalidStatement(Condition.WRONG_VALUE_FOR_VARIABLE, "character_set_client", name)
    collation_name = None
    if cursor.accept("COLLATE"):
        wanted = cursor.word_or_string()
        collation = collation_of(wanted)
        if collation is None:
            raise InvalidStatement(Condition.UNKNOWN_COLLATION, wanted)
        if collation.charset is not charset:
            raise InvalidStatement(Condition.COLLATION_CHARSET_MISMATCH, collation.name, charset.name)
        collation_name = collation.name
    return lambda: session.set_names(charset.name, collation_name)


def _character_set(session: Session, cursor: TokenCursor) -> Change:
    """As NAMES, but the connection's character set becomes the database's."""
    if cursor.accept("DEFAULT"):
        return lambda: session.set_names("utf8mb4", None)
    name = cursor.word_or_string()
    charset = charset_of(name)
    if charset is None:
        raise InvalidStatement(Condition.UNKNOWN_CHARACTER_SET, name)

    def change() -> None:
        session.set_names(charset.name, None)
        session.variables.put("collation_connection", session.variables.get("collation_database"))

    return change


def _transaction(session: Session, cursor: TokenCursor, scope: str) -> list[Change]:
    if scope == "global":
        check_global(session, "SUPER", "SYSTEM_VARIABLES_ADMIN")
    if not scope and session.in_transaction:
        raise InvalidStatement(Condition.TRANSACTION_IN_PROGRESS)
    changes: list[Change] = []
    while True:
        if cursor.accept("ISOLATION", "LEVEL"):
            words = [cursor.next().upper]
            if words[0] in ("READ", "REPEATABLE"):
                words.append(cursor.next().upper)
            level = "-".join(words)
            if level not in variables.ISOLATION_LEVELS:
                raise cursor.error()
            changes.append(_characteristic(session, scope, "transaction_isolation", level))
        elif cursor.at("READ", "ONLY") or cursor.at("READ", "WRITE"):
            cursor.next()
            read_only = cursor.next().upper == "ONLY"
            changes.append(_characteristic(session, scope, "transaction_read_only", int(read_only)))
        else:
            raise cursor.error()
        if not cursor.accept(","):
            return changes


def _characteristic(session: Session, scope: str, name: str, value: Value) -> Change:
    """Of all transactions that begin from now on, or without a scope of the next one."""
    if scope:
        return _put(session, scope, name, value)
    return lambda: session.next_transaction.update({name: value})


def _put(session: Session, scope: str, name: str, value: Value) -> Change:
    if scope == "global":
        return lambda: set_global(session, name, value)

    def change() -> None:
        session.variables.put(name, value)
        session.next_transaction.pop(name, None)

    return change
