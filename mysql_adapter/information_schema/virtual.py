"""Computed tables: a definition that the planner can use, and a function that makes the rows.

Columns are declared as lines `NAME type`, with `?` after the type for those that may be NULL.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from controller.sql.plan import OutputColumn
from dataflow.schema import Index, Table, TableColumn
from dataflow.values import types
from dataflow.values.types import Kind, Row, SqlType

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

DATABASE = "information_schema"
COLLATION = "utf8mb3_general_ci"

MakeRows = Callable[["Session"], Iterable[Row] | Awaitable[Iterable[Row]]]

Rows = TypeVar("Rows", bound=MakeRows)

_TYPES = {
    "bigint": types.BIGINT,
    "ubigint": types.BIGINT_UNSIGNED,
    "int": types.INT,
    "uint": SqlType(Kind.INT, unsigned=True),
    "longtext": types.text(None, COLLATION),
    "datetime": types.DATETIME,
    "timestamp": SqlType(Kind.TIMESTAMP),
    "double": types.DOUBLE,
    "time": types.TIME,
    "json": types.JSON,
}


@dataclass(frozen=True, slots=True)
class VirtualTable:
    definition: Table
    rows: MakeRows


def columns_of(lines: str) -> tuple[TableColumn, ...]:
    found: list[TableColumn] = []
    for line in lines.strip().splitlines():
        name, type_name = line.strip().rsplit(" ", 1)
        nullable = type_name.endswith("?")
        type_name = type_name.removesuffix("?")
        type = _TYPES.get(type_name) or types.text(int(type_name), COLLATION)
        found.append(TableColumn(len(found) + 1, name, type, nullable))
    return tuple(found)


def table_of(table_id: int, database: str, name: str, columns: tuple[TableColumn, ...]) -> Table:
    return Table(table_id, database, name, columns, Index(0, "PRIMARY", ()), engine="", collation=COLLATION)


@cache
def outputs_of(lines: str) -> tuple[OutputColumn, ...]:
    """The result columns of a SHOW with these columns."""
    return tuple(OutputColumn(column.name, column.type, column.nullable) for column in columns_of(lines))


TABLES: dict[tuple[str, str], VirtualTable] = {}
"""By database and name in lower case."""


def virtual(name: str, lines: str, database: str = DATABASE) -> Callable[[Rows], Rows]:
    """Declare a computed table whose rows the decorated function makes."""

    def declare(rows: Rows) -> Rows:
        definition = table_of(-1 - len(TABLES), database, name, columns_of(lines))
        TABLES[database, name.lower()] = VirtualTable(definition, rows)
        return rows

    return declare


def empty(name: str, lines: str) -> None:
    """Declare a table that never has rows: what it would list does not exist in millrace."""
    virtual(name, lines)(lambda session: ())
