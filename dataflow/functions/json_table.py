"""JSON_TABLE: the rows that a document has under a path.

Each match of the path is a row. A nested path adds rows below it: one for each of its matches, with NULLs for the columns of the
other nested paths beside it; where none of them has a match, one row with NULLs for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from dataflow.errors import Condition, InvalidStatement
from dataflow.functions.json_paths import JsonPath, find
from dataflow.values.documents import Json, NotJson, dumps, loads
from dataflow.values.storing import Report, store
from dataflow.values.types import BIGINT, BOOLEAN, DOUBLE, JSON, Kind, Row, SqlType, Value, text

_TEXT = text(collation="utf8mb4_bin")
_NUMBER = SqlType(Kind.INT, unsigned=True)


class Otherwise(Enum):
    """What a column has where its path finds nothing, or nothing that fits."""

    NULL = "null"
    ERROR = "error"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Handling:
    otherwise: Otherwise = Otherwise.NULL
    default: str = ""
    """A JSON document, as text."""


@dataclass(frozen=True, slots=True)
class PathColumn:
    name: str
    type: SqlType
    path: JsonPath
    empty: Handling = Handling()
    error: Handling = Handling()


@dataclass(frozen=True, slots=True)
class ExistsColumn:
    """1 where its path finds something, else 0."""

    name: str
    type: SqlType
    path: JsonPath


@dataclass(frozen=True, slots=True)
class OrdinalityColumn:
    """The number of the match, from 1, within what is around it."""

    name: str
    type: SqlType = _NUMBER


@dataclass(frozen=True, slots=True)
class JsonTable:
    """One level: its path, its columns, and the paths that are nested in it."""

    path: JsonPath
    columns: tuple[PathColumn | ExistsColumn | OrdinalityColumn | JsonTable, ...]


def leaf_columns(table: JsonTable) -> Iterator[PathColumn | ExistsColumn | OrdinalityColumn]:
    """All columns in the order in which they are declared, those of nested paths in their place."""
    for each in table.columns:
        if isinstance(each, JsonTable):
            yield from leaf_columns(each)
        else:
            yield each


def expand(document: str, table: JsonTable) -> list[Row]:
    """Error 3141 for what is no document."""
    try:
        value = loads(document)
    except NotJson as error:
        raise InvalidStatement(Condition.INVALID_JSON_ARGUMENT, 1, "json_table", error.reason, error.position) from None
    return [tuple(cells) for cells in _rows(value, table)]


def _rows(document: Json, table: JsonTable) -> Iterator[list[Value]]:
    for number, (_, value) in enumerate(find(document, table.path), 1):
        cells: list[Value] = []
        nested: list[tuple[int, int, JsonTable]] = []
        for column in table.columns:
            if isinstance(column, JsonTable):
                width = sum(1 for _ in leaf_columns(column))
                nested.append((len(cells), width, column))
                cells += [None] * width
            else:
                cells.append(_cell(column, value, number))
        found = False
        for start, width, inner in nested:
            for row in _rows(value, inner):
                found = True
                yield [*cells[:start], *row, *cells[start + width :]]
        if not found:
            yield cells


def _cell(column: PathColumn | ExistsColumn | OrdinalityColumn, value: Json, number: int) -> Value:
    if isinstance(column, OrdinalityColumn):
        return number
    found = [match for _, match in find(value, column.path)]
    if isinstance(column, ExistsColumn):
        return store(column.type, int(bool(found)), BIGINT, column.name, Report())
    if not found:
        return _handled(column, column.empty, InvalidStatement(Condition.JSON_TABLE_MISSING, column.name))
    try:
        return _stored(column, found[0] if len(found) == 1 else found)
    except InvalidStatement as error:
        return _handled(column, column.error, error)


def _handled(column: PathColumn, handling: Handling, error: InvalidStatement) -> Value:
    match handling.otherwise:
        case Otherwise.NULL:
            return None
        case Otherwise.ERROR:
            raise error
        case Otherwise.DEFAULT:
            return _stored(column, loads(handling.default))


def _stored(column: PathColumn, value: Json) -> Value:
    if column.type.kind is Kind.JSON:
        return dumps(value)
    if isinstance(value, dict | list):
        raise InvalidStatement(Condition.JSON_TABLE_SCALAR, column.name)
    if value is None:
        return None
    plain: Value = int(value) if isinstance(value, bool) else value
    try:
        return store(column.type, plain, _type_of(value), column.name, Report())
    except InvalidStatement as error:
        if error.condition is Condition.OUT_OF_RANGE:
            raise InvalidStatement(Condition.JSON_TABLE_RANGE, column.name) from None
        raise


def _type_of(value: Json) -> SqlType:
    match value:
        case bool():
            return BOOLEAN
        case int():
            return SqlType(Kind.BIGINT, unsigned=value >= 0)
        case Decimal():
            return DOUBLE
        case float():
            return DOUBLE
        case str():
            return _TEXT
        case _:
            return JSON
