"""DESCRIBE of a table, and EXPLAIN of a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backend.execution.outcome import ResultSet
from controller.privileges import check_sees_table
from controller.sql.plan import OutputColumn
from controller.sql.text.lexer import TokenKind
from mysql_adapter.information_schema.description import default_text, output_column
from mysql_adapter.information_schema.views import table_or_view
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.statements.explain import explain
from mysql_adapter.statements.filtering import like_pattern
from mysql_adapter.statements.show_schema import column_rows, describe_columns

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_STATEMENTS = ("SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "TABLE", "FORMAT", "ANALYZE", "EXTENDED", "PARTITIONS", "FOR", "(")


async def field_list(session: Session, name: str, pattern: str) -> list[tuple[OutputColumn, str | None]]:
    """COM_FIELD_LIST: the columns of a table, each with its default."""
    check_sees_table(session, session.database, name)
    table = await session.environment.with_catalog(lambda catalog: session.own(catalog).table(session.database, name))
    matches = like_pattern(pattern or "%")
    return [
        (output_column(table, column), default_text(column, session.time_zone))
        for column in table.columns
        if not column.invisible and matches.fullmatch(column.name)
    ]


async def describe(session: Session, cursor: TokenCursor) -> ResultSet:
    cursor.next()
    if cursor.at_any(*_STATEMENTS):
        return await explain(session, cursor)
    database, name = cursor.qualified_name()
    database = database or session.database
    check_sees_table(session, database, name)
    table = await session.environment.with_catalog(lambda catalog: table_or_view(session, session.own(catalog), database, name))
    rows = column_rows(session, table, False)
    if not cursor.at_end:
        token = cursor.token
        pattern = cursor.word_or_string()
        cursor.expect_end()
        if token.kind is TokenKind.STRING:
            matches = like_pattern(pattern)
            rows = [row for row in rows if matches.fullmatch(str(row[0]))]
        else:
            rows = [row for row in rows if str(row[0]).lower() == pattern.lower()]
    return ResultSet(describe_columns(), rows)
