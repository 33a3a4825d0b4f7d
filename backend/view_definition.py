"""What a maintained view is, and how its keys and rows travel.

A view's name is made from its node and key, so the same query is the same view whoever asks
for it, and a view over another version of a table is another view.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import msgspec

from backend.shared_memory.shared_key import KeyNaming
from controller.catalog import encode_node, encode_table
from dataflow.node import Node
from dataflow.schema import Table
from dataflow.types import BLOBS, REALS, STRINGS, Kind, Row, SqlType


class ViewDefinition:
    """`naming` says what its keys are called in shared memory; it agrees with the engine's indexes."""

    __slots__ = ("decode", "decode_keys", "key", "name", "names", "naming", "node", "order", "table_versions", "tables", "types")

    def __init__(
        self,
        node: Node,
        key: tuple[int, ...],
        tables: tuple[Table, ...],
        order: tuple[int, ...] = (),
        names: tuple[str, ...] = (),
    ) -> None:
        """With `order`, the rows of a key are kept sorted by these columns, and can be read by range.

        `names` are the named views that the query reads.
        """
        self.node = encode_node(node)
        self.key = key
        self.order = order
        self.names = names
        self.table_versions = tuple(sorted((table.id, table.version) for table in tables))
        self.tables = [encode_table(table) for table in tables]
        named = msgspec.msgpack.encode(
            (self.node, key, self.table_versions, order)
        )
        self.name = blake2b(named, digest_size=16).digest()
        self.types = node.types
        self.decode: Callable[[bytes], list[Row]] = rows_decoder(node.types).decode
        self.decode_keys: Callable[[bytes], list[Row]] = keys_decoder(
            tuple([node.types[column] for column in key])
        ).decode
        self.naming = KeyNaming(node.types, key)


def rows_decoder(types: tuple[SqlType, ...]) -> msgspec.msgpack.Decoder[list[Row]]:
    """Decodes a list of rows with columns of these types."""
    return _decoder([_value_type(each) for each in types])


def keys_decoder(types: tuple[SqlType, ...]) -> msgspec.msgpack.Decoder[list[Row]]:
    """Decodes a list of keys over columns of these types; any number may ask for a number."""
    return _decoder([_key_type(each) for each in types])


def _decoder(types: list[Any]) -> msgspec.msgpack.Decoder[list[Row]]:
    row: Any = tuple[*types] if types else tuple[()]  # type: ignore[valid-type]
    return msgspec.msgpack.Decoder(list[row])


def _value_type(column: SqlType) -> Any:
    kind = column.kind
    if kind in STRINGS:
        return str | None
    if kind in BLOBS:
        return bytes | None
    if kind in REALS:
        return float | None
    if kind is Kind.NULL:
        return Any
    return Decimal | None if kind is Kind.DECIMAL else int | None


def _key_type(column: SqlType) -> Any:
    found = _value_type(column)
    return found if column.kind in STRINGS | BLOBS | {Kind.NULL} else int | float | Decimal | None
