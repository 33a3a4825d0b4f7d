"""CREATE TABLE … SELECT: a definition made from the query's columns, then an INSERT of its rows.

The query never reads the new table, whatever its name. If the rows cannot be inserted the table goes again. Columns that are only declared come first, then
those of the query, as in MySQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backend.execution.outcome import Done
from controller.catalog import Catalog
from controller.sql.definitions.show_create import comment_clause, default_clauses, type_text
from controller.sql.definitions.temporary import stored_name
from controller.sql.plan import OutputColumn, Query
from controller.sql.text.lexer import TokenKind, quoted
from dataflow.errors import Condition, InvalidStatement, MillraceError
from dataflow.values.inference import DECIMAL_DIGITS_MAX, DECIMAL_SCALE_MAX
from dataflow.values.numerals import DECIMAL_DIGITS_MAX as COMPUTED_DIGITS_MAX
from dataflow.values.types import TEXTS, Kind, SqlType, decimal
from mysql_adapter.sessions.planned import plan_prepared, run_insert
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.wire.parameters import Typed

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_QUERIES = ("SELECT", "WITH", "VALUES")
_NO_COLUMNS = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK"})


@dataclass(frozen=True, slots=True)
class CreateSelect:
    """`head` is what comes before the column list, `elements` that list, `options` what follows it."""

    head: str
    name: str
    database: str | None
    table: str
    elements: str
    options: str
    insert: str
    query: str
    temporary: bool
    optional: bool


def create_select(cursor: TokenCursor) -> CreateSelect | None:
    """The parts of a CREATE TABLE … SELECT; None if it is another statement. The cursor stays where it is."""
    mark = cursor.mark()
    try:
        return _read(cursor)
    finally:
        cursor.back_to(mark)


def _read(cursor: TokenCursor) -> CreateSelect | None:
    cursor.back_to(0)
    cursor.expect("CREATE")
    temporary = cursor.accept("TEMPORARY")
    if not cursor.accept("TABLE"):
        return None
    optional = cursor.accept("IF", "NOT", "EXISTS")
    start = cursor.token.start
    database, table = cursor.qualified_name()
    head = cursor.sql[: cursor.token.start] if not cursor.at_end else cursor.sql
    name = head[start:].strip()
    elements = ""
    if cursor.at("(") and not _at_query(cursor) and cursor.ahead(1).upper != "LIKE":
        elements = cursor.parenthesised()
    first = None if cursor.at_end else cursor.token.start
    partitioned = False  # then VALUES is that of a partition
    while not cursor.at_end:
        partitioned = partitioned or cursor.at("PARTITION", "BY")
        at, insert = cursor.token.start, "INSERT"
        if word := cursor.accept_any("IGNORE", "REPLACE"):
            insert = "REPLACE" if word == "REPLACE" else "INSERT IGNORE"
        cursor.accept("AS")
        if _at_query(cursor) and not (partitioned and cursor.at("VALUES")):
            assert first is not None
            options = cursor.sql[first:at].strip()
            return CreateSelect(head, name, database, table, elements, options, insert, cursor.rest(), temporary, optional)
        if not cursor.at_end:
            cursor.next()
    return None


def _at_query(cursor: TokenCursor) -> bool:
    """Whether a query follows, in parentheses or not."""
    distance = 0
    while cursor.ahead(distance).text == "(":
        distance += 1
    return cursor.ahead(distance).upper in _QUERIES


async def run_create_select(session: Session, parts: CreateSelect, values: Sequence[Typed] = ()) -> Done:
    query = (await plan_prepared(session, parts.query, values or None)).statement
    columns = query.columns if isinstance(query, Query) else ()
    declared = _declared(TokenCursor(parts.elements, session.settings))
    catalog = session.own(session.catalog)
    selected = [
        declared.pop(column.name.lower(), "") or _definition(column, catalog, session.time_zone) for column in columns
    ]
    keys = [declared.pop(name) for name in list(declared) if name.endswith(".")]
    elements = ", ".join([*declared.values(), *selected, *keys])
    name, head = parts.name, parts.head
    if not parts.temporary and _is_hidden(session, parts):  # it is made under another name first
        name = ".".join(quoted(each) for each in (parts.database, f"#sql-new-{parts.table}") if each)
        head = f"CREATE TABLE {name}"
    done = await session.define(f"{head} ({elements}) {parts.options}")
    if done.warnings and parts.optional:
        return done  # it was there before
    names = ", ".join(quoted(column.name) for column in columns)
    unborn = stored_name(session.settings.owner, parts.table) if parts.temporary else ""
    target = ".".join(quoted(each) for each in (parts.database, unborn) if each) if unborn else name
    try:
        done = await run_insert(session, f"{parts.insert} INTO {target} ({names}) {parts.query}", values, unborn)
    except MillraceError:
        await session.define(f"DROP {'TEMPORARY ' if parts.temporary else ''}TABLE {name}")
        raise
    if name != parts.name:
        await session.define(f"RENAME TABLE {name} TO {parts.name}")
    return done


def _is_hidden(session: Session, parts: CreateSelect) -> bool:
    """Whether the session has a temporary table of the new table's name, and there is no other."""
    path = parts.database or session.database or "", parts.table
    return session.own(session.catalog).find_table(*path) is not None and session.catalog.find_table(*path) is None


def _declared(cursor: TokenCursor) -> dict[str, str]:
    """The elements by the name of the column that each is; what is none has a number and a point."""
    found: dict[str, str] = {}
    depth, start, name = 0, 0, ""
    while not cursor.at_end:
        token = cursor.next()
        if not name:
            is_column = token.kind is TokenKind.QUOTED or token.upper not in _NO_COLUMNS
            name = token.text.strip("`\"").lower() if is_column else f"{len(found)}."
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == ",":
            if name in found:
                raise InvalidStatement(Condition.DUPLICATE_COLUMN, name)
            found[name] = cursor.sql[start : token.start].strip()
            start, name = token.end, ""
    if name in found:
        raise InvalidStatement(Condition.DUPLICATE_COLUMN, name)
    if name:
        found[name] = cursor.sql[start:].strip()
    return found


def _definition(column: OutputColumn, catalog: Catalog, time_zone: str) -> str:
    """A column that holds such values; one of a table keeps its default and comment."""
    found = column.type
    text = type_text(_stored(found))
    if found.kind in TEXTS and found.collation:
        text += f" COLLATE {found.collation}"
    pieces = [quoted(column.name), text, *([] if column.nullable else ["NOT NULL"])]
    source = catalog.find_table(column.database, column.original_table)
    original = None if source is None else next((each for each in source.columns if each.name == column.original_name), None)
    if original is not None:
        pieces += ["DEFAULT 0"] if original.auto_increment else default_clauses(original, time_zone)
        pieces += comment_clause(original)
    return " ".join(pieces)


def _stored(found: SqlType) -> SqlType:
    """The type of a column that holds such values."""
    if found.kind is Kind.NULL:
        return SqlType(Kind.BINARY, length=0)
    if found.kind is Kind.VARCHAR and (found.length is None or found.length > 16_383):
        return SqlType(Kind.LONGTEXT, collation=found.collation)
    if found.kind is Kind.DECIMAL:  # a literal may have more digits than any column
        whole = (found.length or 10) - found.scale
        scale = max(0, min(found.scale, DECIMAL_SCALE_MAX, COMPUTED_DIGITS_MAX - whole))
        return decimal(min(whole + scale, DECIMAL_DIGITS_MAX), scale, found.unsigned)
    return found
