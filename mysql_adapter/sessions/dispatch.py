"""The statements of a text, and the handlers of those that a session answers itself, by their first words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from backend.execution.outcome import Answer
from controller.sql.text.lexer import first_tokens, split_statements
from dataflow.errors import Condition, InvalidStatement
from mysql_adapter.statements import (
    accounts,
    administration,
    assignment,
    definition,
    describe,
    load,
    maintenance,
    scans,
    transactions,
)
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.statements.show import show

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

Handler = Callable[["Session", TokenCursor], Awaitable[Answer]]

NOTHING = "DO 0"
"""What a comment on its own is: done at once. Dumps have those of versions to come."""
COMMENTS = ("/", "-", "#")

_PLANNED = frozenset({"select", "insert", "update", "delete", "replac"})

_HANDLERS: dict[str, Handler] = {
    "SET": assignment.set_statement,
    "USE": administration.use,
    "SHOW": show,
    "DESCRIBE": describe.describe,
    "DESC": describe.describe,
    "EXPLAIN": describe.describe,
    "BEGIN": transactions.begin,
    "START": transactions.begin,
    "COMMIT": transactions.commit,
    "ROLLBACK": transactions.rollback,
    "SAVEPOINT": transactions.savepoint,
    "RELEASE": transactions.release,
    "LOCK": transactions.lock_tables,
    "UNLOCK": transactions.unlock_tables,
    "KILL": administration.kill,
    "DO": administration.do,
    "PREPARE": administration.prepare,
    "EXECUTE": administration.execute,
    "DEALLOCATE": administration.deallocate,
    "CHECK": maintenance.maintain,
    "ANALYZE": maintenance.maintain,
    "OPTIMIZE": maintenance.maintain,
    "REPAIR": maintenance.maintain,
    "FLUSH": maintenance.flush,
    "CREATE": definition.define,
    "ALTER": definition.define,
    "DROP": definition.define,
    "TRUNCATE": definition.define,
    "RENAME": definition.define,
    "LOAD": load.load_data,
    "CALL": scans.call,
    "HANDLER": administration.unsupported,
    "XA": administration.unsupported,
    "GRANT": accounts.change_accounts,
    "REVOKE": accounts.change_accounts,
    "CHANGE": administration.unsupported,
    "INSTALL": administration.unsupported,
    "UNINSTALL": administration.unsupported,
    "RESET": administration.unsupported,
    "SHUTDOWN": administration.unsupported,
    "RESTART": administration.unsupported,
    "SIGNAL": administration.unsupported,
    "GET": administration.unsupported,
    "IMPORT": administration.unsupported,
    "CHECKSUM": maintenance.checksum,
    "BINLOG": administration.unsupported,
    "HELP": administration.help_,
}


_ACCOUNT_STATEMENTS = frozenset(
    {
        ("CREATE", "USER"),
        ("ALTER", "USER"),
        ("DROP", "USER"),
        ("RENAME", "USER"),
        ("SET", "PASSWORD"),
        ("CREATE", "ROLE"),
        ("DROP", "ROLE"),
        ("SET", "DEFAULT"),
    }
)


def is_planned(sql: str) -> bool:
    """A quick yes for the statements that come most; no means look closer."""
    return sql[:6].lower() in _PLANNED


def statements_of(sql: str, backslash_escapes: bool, several: bool) -> list[str]:
    """The statements of a query text; more than one only where the client asked for that."""
    if ";" not in sql:
        statements = [sql]
    else:
        statements = split_statements(sql, backslash_escapes)
        if len(statements) > 1 and not several:
            line = sql.count("\n", 0, sql.find(statements[1])) + 1
            raise InvalidStatement(Condition.PARSE_ERROR, statements[1][:80], line)
    if not statements or (len(statements) == 1 and not statements[0].strip(" \t\r\n\0;")):
        if not sql.strip(" \t\r\n\0;"):
            raise InvalidStatement(Condition.EMPTY_QUERY)
        return [NOTHING]
    if sql[:1] in COMMENTS and len(statements) == 1 and next(first_tokens(sql), None) is None:
        return [NOTHING]
    return statements


def handler_of(words: tuple[str, ...]) -> Handler | None:
    """Who answers the statement; None for those that are planned."""
    if not words:
        return None
    if words == ("DROP", "PREPARE"):
        return administration.deallocate
    if words == ("ALTER", "INSTANCE"):
        return administration.alter_instance
    if words in _ACCOUNT_STATEMENTS:
        return accounts.change_accounts
    if words == ("SET", "ROLE"):
        return accounts.set_role
    return _HANDLERS.get(words[0])


def keeps_warnings(words: tuple[str, ...]) -> bool:
    return words in (("SHOW", "WARNINGS"), ("SHOW", "ERRORS"), ("SHOW", "COUNT"))


def only_reads(words: tuple[str, ...]) -> bool:
    """Whether running the statement to learn its columns does nothing else."""
    return words[0] in ("SHOW", "DESCRIBE", "DESC", "EXPLAIN")
