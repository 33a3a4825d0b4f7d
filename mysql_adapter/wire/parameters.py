"""Parameters of COM_STMT_EXECUTE and query attributes: binary values with their types.

A parameter becomes a value of `dataflow.values.types` together with its SQL type, never SQL text.
The client may leave the types out when it executes again (new-params-bound = 0): they are
remembered with the statement.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from mysql_mimic.types import ColumnType

from controller.sql.text.parameter_types import code_of
from dataflow.values import temporal, types
from dataflow.values.types import Kind, SqlType, Value
from mysql_adapter.wire.packets import MalformedPacket, PayloadReader

WireType = tuple[int, bool]
"""(type number, unsigned)"""
Typed = tuple[Value, SqlType]

INTEGERS = {
    ColumnType.TINY: (1, Kind.TINYINT),
    ColumnType.BOOL: (1, Kind.TINYINT),
    ColumnType.SHORT: (2, Kind.SMALLINT),
    ColumnType.YEAR: (2, Kind.SMALLINT),
    ColumnType.LONG: (4, Kind.INT),
    ColumnType.INT24: (4, Kind.INT),
    ColumnType.LONGLONG: (8, Kind.BIGINT),
}
_BYTES = frozenset(
    {
        ColumnType.TINY_BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB,
        ColumnType.BIT,
        ColumnType.GEOMETRY,
    }
)
TEXTS = frozenset(
    {ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.STRING, ColumnType.ENUM, ColumnType.SET, ColumnType.JSON}
)
_DECIMALS = frozenset({ColumnType.DECIMAL, ColumnType.NEWDECIMAL})
DATETIMES = {
    ColumnType.DATE: Kind.DATE,
    ColumnType.NEWDATE: Kind.DATE,
    ColumnType.DATETIME: Kind.DATETIME,
    ColumnType.TIMESTAMP: Kind.DATETIME,
}

DECIMAL_DIGITS_MAX = 65
FRACTION = 0xFF_FFFF
"""Where a packed value has its microseconds."""
_DATETIME = struct.Struct("<HBBBBBI")
_CODED = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIME})


def read_parameters(
    reader: PayloadReader,
    count: int,
    remembered: Sequence[WireType],
    long_data: dict[int, bytearray],
    codec: str,
    named: bool,
) -> tuple[list[Typed], list[WireType]]:
    """The values that follow in an EXECUTE packet and the types they came with.

    With `named`, each type is followed by a name (query attributes are sent that way).
    """
    nulls = int.from_bytes(reader.fixed((count + 7) // 8), "little")
    wire_types = list(remembered)
    if reader.uint(1):
        wire_types = []
        for _ in range(count):
            number, flags = reader.uint(1), reader.uint(1)
            wire_types.append((number, bool(flags & 0x80)))
            if named:
                reader.counted()
    if len(wire_types) < count:
        raise MalformedPacket("parameters without types")
    values: list[Typed] = []
    for index in range(count):
        wire_type = wire_types[index]
        if index in long_data:
            values.append(_string(wire_type[0], bytes(long_data[index]), codec))
        elif nulls >> index & 1:
            values.append((None, types.NULL))
        else:
            values.append(read_value(reader, wire_type, codec))
    return values, wire_types


def type_code(typed: Typed) -> str:
    """The planner's short name for a parameter's type."""
    value, type = typed
    if value is not None and type.kind in _CODED:
        return type.kind.value if type.kind is Kind.DATE else f"{type.kind.value}:{type.scale}"
    return code_of(value)


def read_value(reader: PayloadReader, wire_type: WireType, codec: str) -> Typed:
    number, unsigned = wire_type
    integer = INTEGERS.get(number)
    if integer is not None:
        size, kind = integer
        return int.from_bytes(reader.fixed(size), "little", signed=not unsigned), SqlType(kind, unsigned=unsigned)
    if number == ColumnType.FLOAT:
        return struct.unpack("<f", reader.fixed(4))[0], SqlType(Kind.FLOAT, scale=-1)
    if number == ColumnType.DOUBLE:
        return struct.unpack("<d", reader.fixed(8))[0], types.DOUBLE
    if number == ColumnType.NULL:
        return None, types.NULL
    if number in DATETIMES:
        return _datetime(reader, DATETIMES[ColumnType(number)])
    if number == ColumnType.TIME:
        return _time(reader)
    if number in _DECIMALS:
        return _decimal(reader.counted())
    if number in _BYTES or number in TEXTS:
        return _string(number, reader.counted(), codec)
    raise MalformedPacket("unknown parameter type")


def _string(number: int, data: bytes, codec: str) -> Typed:
    if number in _BYTES:
        return data, SqlType(Kind.VARBINARY, length=len(data))
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        # Some drivers send bytes under the type of text.
        return data, SqlType(Kind.VARBINARY, length=len(data))
    return text, types.text(len(text))


def _decimal(data: bytes) -> Typed:
    try:
        value = Decimal(data.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        raise MalformedPacket("not a decimal") from None
    if not value.is_finite() or value.adjusted() > DECIMAL_DIGITS_MAX:
        raise MalformedPacket("not a decimal")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if exponent > 0:
        value, digits, exponent = Decimal(int(value)), digits + (0,) * exponent, 0
    return value, types.decimal(max(len(digits), -exponent, 1), -exponent)


def _datetime(reader: PayloadReader, kind: Kind) -> Typed:
    length = reader.uint(1)
    packed = packed_datetime(reader.fixed(length), kind)
    if packed is None:
        raise MalformedPacket("not a datetime")
    return packed, SqlType(kind, scale=6 if packed & FRACTION else 0)


def packed_datetime(data: bytes, kind: Kind) -> int | None:
    """A value as it was sent, behind its length; None if it is none."""
    if len(data) not in (0, 4, 7, 11):
        return None
    year, month, day, hour, minute, second, microsecond = _DATETIME.unpack(data + bytes(11 - len(data)))
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59 or microsecond > 999_999 or year > 9999:
        return None
    if kind is Kind.DATE:
        hour = minute = second = microsecond = 0
    return temporal.pack(year, month, day, hour, minute, second, microsecond)


def _time(reader: PayloadReader) -> Typed:
    length = reader.uint(1)
    if length not in (0, 8, 12):
        raise MalformedPacket("not a time")
    part = PayloadReader(reader.fixed(length) + bytes(12 - length))
    negative, days = part.uint(1), part.uint(4)
    hours, minutes, seconds, microseconds = part.uint(1), part.uint(1), part.uint(1), part.uint(4)
    if minutes > 59 or seconds > 59 or microseconds > 999_999:
        raise MalformedPacket("not a time")
    total = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000 + microseconds
    total = min(total, temporal.TIME_MAX)
    return -total if negative else total, SqlType(Kind.TIME, scale=6 if microseconds else 0)
