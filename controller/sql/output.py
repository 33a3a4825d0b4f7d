"""The columns of a result as MySQL describes them to clients: names, origins, flags."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from dataflow.expressions import expression
from dataflow.expressions.expression import Expression
from dataflow.schema import Index, Table, TableColumn, declared_keys, has_row_id
from dataflow.values.types import BLOBS, BOOLEAN, TEMPORALS, TEXTS, Kind, SqlType

NOT_NULL = 1
PRIMARY_KEY = 2
UNIQUE_KEY = 4
MULTIPLE_KEY = 8
BLOB = 16
UNSIGNED = 32
ZEROFILL = 64
BINARY = 128
ENUM = 256
AUTO_INCREMENT = 512
TIMESTAMP = 1024
SET = 2048
NO_DEFAULT = 4096
ON_UPDATE_NOW = 8192
PART_OF_KEY = 16384

_LONG = frozenset(
    {kind for kind in TEXTS if kind.value.endswith("text")} | {kind for kind in BLOBS if kind.value.endswith("blob")} | {Kind.JSON}
)

CONDITION = SqlType(Kind.BIGINT, length=1)
_CHOICES = frozenset({"if", "ifnull", "nullif", "coalesce", "case", "greatest", "least", "cast"})


def type_flags(found: SqlType) -> int:
    flags = 0
    kind = found.kind
    if found.unsigned or kind in (Kind.BIT, Kind.YEAR, Kind.TIMESTAMP):
        flags |= UNSIGNED
    if found.zerofill or kind is Kind.YEAR:
        flags |= ZEROFILL
    if kind in _LONG:
        flags |= BLOB
    if kind in BLOBS or kind in TEMPORALS or (found.collation or "").endswith("_bin"):
        flags |= BINARY
    if kind is Kind.ENUM:
        flags |= ENUM
    if kind is Kind.SET:
        flags |= SET
    return flags


def column_flags(table: Table, column: TableColumn) -> int:
    flags = type_flags(column.type)
    if not column.nullable:
        flags |= NOT_NULL
        if not (column.has_default or column.default_now or column.default_expression or column.auto_increment):
            flags |= NO_DEFAULT
    if column.auto_increment:
        flags |= AUTO_INCREMENT
    if column.on_update_now:
        flags |= ON_UPDATE_NOW
    if column.type.kind is Kind.TIMESTAMP and (column.default_now or column.on_update_now):
        flags |= TIMESTAMP
    if _contains(table.primary_key, column) and not has_row_id(table):
        flags |= PRIMARY_KEY
    if any(_contains(index, column) for index in declared_keys(table)):
        flags |= PART_OF_KEY
    for index in table.indexes:
        if index.parts[0].column_id == column.id:
            flags |= UNIQUE_KEY if index.unique and len(index.parts) == 1 else MULTIPLE_KEY
    return flags


def _contains(index: Index, column: TableColumn) -> bool:
    return any(part.column_id == column.id for part in index.parts)


def shown_type(value: Expression) -> SqlType:
    """The type that a client is told: MySQL's conditions are BIGINT, unlike a column that is BOOLEAN."""
    is_condition = isinstance(value, expression.Call) and value.type == BOOLEAN and value.function not in _CHOICES
    return CONDITION if is_condition else value.type


def default_name(node: Any) -> str:
    """What MySQL calls an item without an alias: a column's name, a string's value, or its text."""
    inner = node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Column):
        return str(inner.name)
    if isinstance(node, exp.Null | exp.Boolean):
        return str(node.sql()).upper()
    if isinstance(node, exp.Introducer):
        node = node.expression if isinstance(node.expression, exp.Literal) else node
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this).encode("utf-8", "replace").decode()
    written = str(node.meta.get("text") or node.sql("mysql"))
    return written if written.isascii() else written.encode("utf-8", "replace").decode()
