"""The error for two rows with the same key, in MySQL's words."""

from __future__ import annotations

from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import Index, Table
from dataflow.values.conversion import Domain, convert
from dataflow.values.types import Row

ENTRY_CHARACTERS_MAX = 64


def duplicate_entry(table: Table, index: Index, row: Row) -> InvalidStatement:
    return InvalidStatement(Condition.DUPLICATE_ENTRY, key_text(table, index, row), f"{table.name}.{index.name}")


def key_text(table: Table, index: Index, row: Row) -> str:
    """The values of the key's columns, joined by a dash."""
    positions = {column.id: position for position, column in enumerate(table.columns)}
    texts = []
    for part in index.parts:
        position = positions[part.column_id]
        value = row[position]
        text = "NULL" if value is None else str(convert(value, table.columns[position].type, Domain.TEXT))
        texts.append(text if part.prefix is None else text[: part.prefix])
    return "-".join(texts)[:ENTRY_CHARACTERS_MAX]
