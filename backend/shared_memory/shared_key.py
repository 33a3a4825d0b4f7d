"""The names of a view's keys in shared memory: an integer, or bytes.

Keys that the dataflow takes for equal must get the same name, in every process: 1, 1.0 and
DECIMAL 1.00 are one key, texts are equal if their collation says so. A key of one integer
column is the integer itself, so that many can be compared at once; all others are encoded.
Where a value cannot be a key of its column (1.5 of an integer column) there is no name, and
the worker has to be asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec

from dataflow.expressions.source import Key, text_key
from dataflow.values.key_values import ImpossibleKey, key_value
from dataflow.values.types import BLOBS, REALS, STRINGS, Kind, SqlType, Value

SharedKey = int | bytes

_encode = msgspec.msgpack.Encoder().encode
_INTEGER = frozenset({int})
_INTEGER_MIN, _INTEGER_MAX = -(1 << 63), (1 << 63) - 1


class KeyNaming:
    """The names of the keys of a view over `key` columns of a node with these `types`.

    `is_exact`: names are integers. `name` takes values in the order of `key`; `name_of_index_key`
    and `index_key` translate between names and the keys of the dataflow's indexes.
    """

    def __init__(self, types: Sequence[SqlType], key: Sequence[int]) -> None:
        columns = sorted(set(key))
        self._order = [key.index(column) for column in columns]
        kinds = [types[column] for column in columns]
        self.is_exact = len(kinds) == 1 and _is_integer(kinds[0])
        self._pick = itemgetter(*self._order) if len(kinds) > 1 and all(map(_is_integer, kinds)) else None
        """The parts of a key, where all are integers as a rule."""
        self._texts = [text_key(kind) for kind in kinds]
        self._normal = [key_value(kind) for kind in kinds]
        parts = tuple[*(_part_type(kind) for kind in kinds)] if kinds else tuple[()]  # type: ignore[misc]
        self._decode = msgspec.msgpack.Decoder(parts).decode

    def name(self, values: Sequence[Value]) -> SharedKey | None:
        """None if the worker has to be asked."""
        parts = []
        for place, text in zip(self._order, self._texts):
            value: Any = values[place]
            if text is not None and value is not None:
                if not isinstance(value, str):
                    return None
                value = text(value)
            parts.append(value)
        return self._name(parts)

    def names(self, keys: Sequence[Sequence[Value]]) -> Sequence[SharedKey] | None:
        """The names of all these keys; None if the worker has to be asked."""
        if self.is_exact:
            numbers: list[Any] = [values[0] for values in keys]
            if set(map(type, numbers)) <= {int}:
                inside = not numbers or (min(numbers) >= _INTEGER_MIN and max(numbers) <= _INTEGER_MAX)
                return numbers if inside else None
        if self._pick is not None:
            picked = list(map(self._pick, keys))
            if _INTEGER.issuperset(map(type, chain.from_iterable(picked))):
                try:
                    return list(map(_encode, picked))
                except OverflowError:  # as below
                    return None
        names = []
        for values in keys:
            name = self.name(values)
            if name is None:
                return None
            names.append(name)
        return names

    def name_of_index_key(self, key: Key) -> SharedKey | None:
        return self._name([key] if len(self._order) == 1 else key)

    def _name(self, parts: Sequence[Any]) -> SharedKey | None:
        try:
            if self._pick is not None and _INTEGER.issuperset(map(type, parts)):
                return _encode(parts)
            if not self.is_exact:
                return _encode([normal(part) for normal, part in zip(self._normal, parts)])
            value = self._normal[0](parts[0])
        except (ImpossibleKey, OverflowError):  # msgpack has no integers beyond 64 bits
            return None
        return value if value is not None and _INTEGER_MIN <= value <= _INTEGER_MAX else None

    def index_key(self, name: SharedKey) -> Key:
        """The key that an index of the dataflow has for a name."""
        if isinstance(name, int):
            return name
        parts = self._decode(name)
        return parts[0] if len(parts) == 1 else parts


def _is_integer(kind: SqlType) -> bool:
    return kind.kind not in STRINGS | BLOBS | REALS | {Kind.DECIMAL, Kind.NULL}


def _part_type(kind: SqlType) -> Any:
    if kind.kind in STRINGS:
        return str | None if text_key(kind) is None else bytes | None
    if kind.kind in BLOBS:
        return bytes | None
    if kind.kind in REALS:
        return float | None
    if kind.kind is Kind.NULL:
        return Any
    return Decimal | None if kind.kind is Kind.DECIMAL else int | None
