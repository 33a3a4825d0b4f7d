"""Parameters of COM_STMT_EXECUTE of plain types, read by a function that is made once for their types."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache

from mysql_mimic.types import ColumnType

from dataflow.values.types import Kind, Value
from mysql_adapter.wire.parameters import DATETIMES, FRACTION, INTEGERS, TEXTS, WireType, packed_datetime

BIGINT_MAX = (1 << 63) - 1
TEXT_BYTES_MAX = 250

Parameters = tuple[Value, ...]
Decode = Callable[[bytes, int], Parameters | None]
"""(packet, where its values begin) to the values, None for unusual ones."""
Read = Callable[[bytes, int], tuple[Value, int] | None]
"""(packet, where a value begins) to the value and where it ends, None if it is unusual."""

_LETTERS = {1: "b", 2: "h", 4: "i", 8: "q"}
_NULL: tuple[Read, str] = lambda data, start: (None, start), "n"


@lru_cache(maxsize=1000)
def decoder_of(wire_types: tuple[WireType, ...], nulls: int, codec: str) -> tuple[Decode, tuple[str, ...]] | None:
    """How values of these types are read, and the codes of their types; None if one is unusual. Bits of `nulls` say which of them are NULL."""
    letters = [_LETTERS[INTEGERS[ColumnType(number)][0]] for number, _ in wire_types if number in INTEGERS]
    if not nulls and len(letters) == len(wire_types):
        letters = [letter.upper() if unsigned else letter for letter, (_, unsigned) in zip(letters, wire_types)]
        if "Q" not in letters:
            return struct.Struct("<" + "".join(letters)).unpack_from, ("i",) * len(letters)
    found = [_NULL if nulls >> place & 1 else _reader(each, codec) for place, each in enumerate(wire_types)]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return _decoder([read for read, _ in known]), tuple([code for _, code in known])


def _decoder(reads: Sequence[Read]) -> Decode:
    def decode(data: bytes, start: int) -> Parameters | None:
        values: list[Value] = []
        for read in reads:
            found = read(data, start)
            if found is None:
                return None
            value, start = found
            values.append(value)
        return tuple(values)

    return decode


def _reader(wire_type: WireType, codec: str) -> tuple[Read, str] | None:
    """How a value is read, and the code of its type."""
    number, unsigned = wire_type
    if number in INTEGERS:
        size = INTEGERS[ColumnType(number)][0]
        return _number(_LETTERS[size].upper() if unsigned else _LETTERS[size]), "i"
    if number == ColumnType.DOUBLE:
        return _number("d"), "f"
    if number in TEXTS:
        return _text(codec), "s8"
    if number in DATETIMES:
        kind = DATETIMES[ColumnType(number)]
        return _datetime(kind), kind.value if kind is Kind.DATE else f"{kind.value}:0"
    return None


def _number(letter: str) -> Read:
    made = struct.Struct(f"<{letter}")
    size, unpack = made.size, made.unpack_from

    def read(data: bytes, start: int) -> tuple[Value, int] | None:
        (value,) = unpack(data, start)
        return (value, start + size) if letter != "Q" or value <= BIGINT_MAX else None

    return read


def _text(codec: str) -> Read:
    def read(data: bytes, start: int) -> tuple[Value, int] | None:
        length = data[start]
        start += 1
        stop = start + length
        return (data[start:stop].decode(codec), stop) if length <= TEXT_BYTES_MAX and stop <= len(data) else None

    return read


def _datetime(kind: Kind) -> Read:
    def read(data: bytes, start: int) -> tuple[Value, int] | None:
        start += 1
        stop = start + data[start - 1]
        packed = packed_datetime(data[start:stop], kind) if stop <= len(data) else None
        return None if packed is None or packed & FRACTION else (packed, stop)

    return read
