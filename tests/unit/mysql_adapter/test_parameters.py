"""Parameters of EXECUTE: every type, and bytes that are none."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mysql_mimic.types import ColumnType as Type

from dataflow.values import temporal
from dataflow.values.types import Kind
from mysql_adapter.wire.packets import MalformedPacket, PayloadReader
from mysql_adapter.wire.parameters import read_parameters, read_value, type_code

CASES: list[tuple[int, bool, bytes, Any, Kind, str]] = [
    (Type.TINY, False, b"\xff", -1, Kind.TINYINT, "i"),
    (Type.TINY, True, b"\xff", 255, Kind.TINYINT, "i"),
    (Type.SHORT, False, b"\x00\x80", -32768, Kind.SMALLINT, "i"),
    (Type.YEAR, True, b"\xe8\x07", 2024, Kind.SMALLINT, "i"),
    (Type.LONG, False, b"\xfe\xff\xff\xff", -2, Kind.INT, "i"),
    (Type.INT24, True, b"\xff\xff\xff\x00", 16777215, Kind.INT, "i"),
    (Type.LONGLONG, True, b"\xff" * 8, 2**64 - 1, Kind.BIGINT, "u"),
    (Type.FLOAT, False, struct.pack("<f", 0.5), 0.5, Kind.FLOAT, "f"),
    (Type.DOUBLE, False, struct.pack("<d", -1.5), -1.5, Kind.DOUBLE, "f"),
    (Type.NULL, False, b"", None, Kind.NULL, "n"),
    (Type.NEWDECIMAL, False, b"\x06-12.50", Decimal("-12.50"), Kind.DECIMAL, "d"),
    (Type.DECIMAL, False, b"\x031E2", Decimal("100"), Kind.DECIMAL, "d"),
    (Type.DECIMAL, False, b"\x041E40", Decimal(10**40), Kind.DECIMAL, "d"),
    (Type.STRING, False, b"\x03a\xc3\xa4", "aä", Kind.VARCHAR, "s"),
    (Type.VAR_STRING, False, b"\x01\xff", b"\xff", Kind.VARBINARY, "b"),
    (Type.BLOB, False, b"\x02\x00\x01", b"\x00\x01", Kind.VARBINARY, "b"),
    (Type.JSON, False, b"\x02{}", "{}", Kind.VARCHAR, "s"),
    (Type.DATE, False, b"\x04\xe8\x07\x02\x1d", temporal.pack(2024, 2, 29), Kind.DATE, "date"),
    (Type.DATETIME, False, b"\x00", 0, Kind.DATETIME, "datetime:0"),
    (Type.DATETIME, False, b"\x07\xe8\x07\x01\x02\x03\x04\x05", temporal.pack(2024, 1, 2, 3, 4, 5), Kind.DATETIME, "datetime:0"),
    (
        Type.TIMESTAMP, False, b"\x0b\xe8\x07\x01\x02\x03\x04\x05\x07\x00\x00\x00",
        temporal.pack(2024, 1, 2, 3, 4, 5, 7), Kind.DATETIME, "datetime:6",
    ),
    (Type.TIME, False, b"\x00", 0, Kind.TIME, "time:0"),
    (Type.TIME, False, b"\x08\x01\x01\x00\x00\x00\x02\x03\x04", -((26 * 60 + 3) * 60 + 4) * 1_000_000, Kind.TIME, "time:0"),
    (Type.TIME, False, b"\x0c\x00\x00\x00\x00\x00\x00\x00\x01\x05\x00\x00\x00", 1_000_005, Kind.TIME, "time:6"),
    (Type.TIME, False, b"\x08\x01\xff\xff\x00\x00\x00\x00\x00", -temporal.TIME_MAX, Kind.TIME, "time:0"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "unsigned", "data", "value", "kind", "code"), CASES)
def test_every_type(number: int, unsigned: bool, data: bytes, value: Any, kind: Kind, code: str) -> None:
    reader = PayloadReader(data)
    found = read_value(reader, (number, unsigned), "utf-8")
    assert found[0] == value and type(found[0]) is type(value)
    assert found[1].kind is kind
    assert type_code(found).startswith(code)
    assert reader.at_end


@given(st.binary(max_size=60), st.integers(0, 5), st.booleans())
def test_any_bytes_give_values_or_are_malformed(data: bytes, count: int, named: bool) -> None:
    try:
        values, wire_types = read_parameters(PayloadReader(data), count, [(8, False)] * 2, {}, "utf-8", named)
    except MalformedPacket:
        return
    assert len(values) == count
    assert len(wire_types) >= count


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (Type.DATETIME, b"\x05abcde"),
        (Type.DATETIME, b"\x04\xe8\x07\x0d\x01"),
        (Type.DATETIME, b"\x04\xff\xff\x01\x01"),
        (Type.TIME, b"\x03abc"),
        (Type.TIME, b"\x08\x00\x00\x00\x00\x00\x00\x3c\x00"),
        (Type.NEWDECIMAL, b"\x03abc"),
        (Type.NEWDECIMAL, b"\x03NaN"),
        (Type.NEWDECIMAL, b"\x0a1E99999999"),
        (Type.LONG, b"\x00\x00\x00"),
        (Type.STRING, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"),
        (Type.STRING, b"\xfb"),
        (0x77, b"\x00"),
    ],
)
def test_broken_values_are_malformed(number: int, data: bytes) -> None:
    with pytest.raises(MalformedPacket):
        read_value(PayloadReader(data), (number, False), "utf-8")
