"""The name of each statement that is executed, for logs and traces of all processes (see `backend.network.origin`).

Only used where origins are told. Shortcuts are off while there are traces, so each statement has its span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backend.network.origin import OpenSpan, Origin, current, observers
from controller.sql.text.lexer import leading_words

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session


def statement_name(session: Session) -> str:
    """The id of the command that is executed: the connection, and the number of its command."""
    return f"{session.connection.id}.{session.command_count}"


def begin_statement(session: Session) -> OpenSpan | None:
    """Name the command that is about to be executed; its span, if there are traces."""
    name, span = statement_name(session), None
    if observers.spans is not None:
        facts: dict[str, str | int] = {"db.system.name": "mysql", "millrace.statement": name, "client.address": session.host_name}
        span = observers.spans.begin("statement", "", facts)
    current.set(Origin(name, "" if span is None else span.trace))
    return span


def end_statement(session: Session, span: OpenSpan, failed: bool) -> None:
    code = str(session.warnings[-1].code) if failed and session.warnings else ""
    facts: dict[str, str | int] = {"db.query.text": shown_statement(session), "db.namespace": session.database or ""}
    if code:
        facts["db.response.status_code"] = code
    words = leading_words(session.statement, 1)
    if words:
        facts["db.operation.name"] = words[0].upper()
    span.end(facts, code)


def shown_statement(session: Session) -> str:
    """What was executed, with `?` for its values; of what has no plan the first words alone, as passwords may follow."""
    return session.counted.text if session.counted is not None else " ".join(leading_words(session.statement, 2))
