"""The definition of a maintained view, and the encoding of its keys and rows.

A view's name is made from its node and key, so the same query is the same view whoever asks for it. Of its tables the node
has the columns that it uses, by their ids, so it is the same view whatever becomes of their other columns.

Keys travel as one msgpack list of tuples, and the rows of each as one of its own. Keys of one
integer column may also travel as numbers of 64 bits, in one msgpack byte string; the rows of
all of them then come back in one list of lists, so that nothing is done key by key.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np

from backend.network.program_messages import AddView
from backend.shared_memory.shared_key import KeyNaming
from controller.catalog import CatalogView, encode_node, encode_table
from dataflow.expressions.source import value_key
from dataflow.plan.column_use import narrowed
from dataflow.plan.node import Node
from dataflow.schema import Table
from dataflow.sharding import shard_of
from dataflow.values.types import BLOBS, REALS, STRINGS, Kind, Row, SqlType

Array = np.ndarray[Any, Any]


class ViewDefinition:
    """`naming` says what its keys are called in shared memory; it agrees with the engine's indexes."""

    __slots__ = ("_index_key", "decode", "decode_all", "decode_keys", "key", "name", "named", "names", "naming", "node", "order", "table_versions", "tables", "types")

    def __init__(
        self,
        node: Node,
        key: tuple[int, ...],
        tables: tuple[Table, ...],
        order: tuple[int, ...] = (),
        views: tuple[CatalogView, ...] = (),
    ) -> None:
        """With `order`, the rows of a key are kept sorted by these columns, and can be read by range.

        `views` are the named views that the query reads: dropped with any of them.
        """
        self.node = encode_node(narrowed(node, {table.id: table for table in tables}))
        self.key = key
        self.order = order
        self.names = tuple(sorted({f"{view.database}.{view.name}" for view in views}))
        self.named = tuple(sorted({view.id for view in views}))
        self.table_versions = tuple(sorted([(table.id, table.version) for table in tables] + [(each, 0) for each in self.named]))
        self.tables = [encode_table(table) for table in tables]
        self.name = _name(self.node, key, self.named, order)
        self.types = node.types
        self.decode: Callable[[bytes], list[Row]] = rows_decoder(node.types).decode
        self.decode_all: Callable[[bytes], list[list[Row]]] = _decoder(
            _value_types(node.types), many=True
        ).decode
        self.decode_keys: Callable[[bytes], list[Row]] = keys_decoder(
            tuple([node.types[column] for column in key])
        ).decode
        self.naming = KeyNaming(node.types, key)
        columns = sorted(set(key))
        self._index_key = value_key([key.index(column) for column in columns], [node.types[column] for column in columns])

    def request(self) -> AddView:
        """What has the view maintained."""
        return AddView(self.name, self.node, self.key, self.tables, self.order, self.names, named=self.named)

    def shards(self, keys: Sequence[Row], shard_count: int) -> list[int]:
        """Where each key lives; agrees with the views' indexes, which are by the sorted columns."""
        return [shard_of(key, shard_count) for key in map(self._index_key, keys)]


def _name(node: bytes, key: tuple[int, ...], named: tuple[int, ...], order: tuple[int, ...]) -> bytes:
    return blake2b(msgspec.msgpack.encode((node, key, named, order)), digest_size=16).digest()


def rows_decoder(types: tuple[SqlType, ...]) -> msgspec.msgpack.Decoder[list[Row]]:
    """Decodes a list of rows with columns of these types."""
    return _decoder(_value_types(types))


def keys_decoder(types: tuple[SqlType, ...]) -> msgspec.msgpack.Decoder[list[Row]]:
    """Decodes a list of keys over columns of these types; any number may ask for a number."""
    return _decoder([_key_type(each) for each in types])


def packed(numbers: Sequence[int] | Array) -> bytes | None:
    """Keys of one integer column as they travel; None if one is no integer of 64 bits."""
    try:
        if not isinstance(numbers, np.ndarray):
            return _encode(struct.pack(f"<{len(numbers)}q", *numbers))
        is_plain = numbers.dtype.kind == "i" and numbers.ndim == 1
        return _encode(numbers.astype(np.int64).tobytes()) if is_plain else None
    except struct.error:
        return None


def is_packed(keys: bytes) -> bool:
    return keys[0] in _BYTE_STRINGS


def unpacked(keys: bytes) -> Array:
    """The numbers of packed keys."""
    return np.frombuffer(_decode_bytes(keys), np.int64)


def together(count: int, payloads: Sequence[Any]) -> bytes:
    """So many encoded lists, which are in `payloads` one after the other, as one list of lists."""
    return b"".join([struct.pack(">BI", 0xDD, count), *payloads])


_encode, _decode_bytes = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(bytes).decode
_BYTE_STRINGS = b"\xc4\xc5\xc6"
"""What they begin with in msgpack."""


def _decoder(types: list[Any], many: bool = False) -> msgspec.msgpack.Decoder[Any]:
    row: Any = tuple[*types] if types else tuple[()]  # type: ignore[valid-type]
    return msgspec.msgpack.Decoder(list[list[row]] if many else list[row])


def _value_types(types: Sequence[SqlType]) -> list[Any]:
    return [_value_type(each) for each in types]


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
