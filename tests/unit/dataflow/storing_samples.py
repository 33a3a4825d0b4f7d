"""Columns of every type, and values of every kind to put into them."""

from __future__ import annotations

from decimal import Decimal

from dataflow.values.types import BIGINT, DATE, DATETIME, DOUBLE, NULL, TIME, Kind, SqlType, Value, decimal
from tests.unit.dataflow.random_expressions import COLLATION, date, time, varchar


def column(kind: Kind, length: int | None = None, scale: int = 0, unsigned: bool = False) -> SqlType:
    return SqlType(kind, length, scale, unsigned)


COLUMNS: tuple[tuple[str, SqlType], ...] = (
    ("TINYINT", column(Kind.TINYINT)),
    ("TINYINT UNSIGNED", column(Kind.TINYINT, unsigned=True)),
    ("SMALLINT", column(Kind.SMALLINT)),
    ("MEDIUMINT UNSIGNED", column(Kind.MEDIUMINT, unsigned=True)),
    ("INT", column(Kind.INT)),
    ("BIGINT", BIGINT),
    ("BIGINT UNSIGNED", column(Kind.BIGINT, unsigned=True)),
    ("DECIMAL(5,2)", decimal(5, 2)),
    ("DECIMAL(10,0)", decimal(10, 0)),
    ("DECIMAL(30,10)", decimal(30, 10)),
    ("DECIMAL(8,3) UNSIGNED", decimal(8, 3, unsigned=True)),
    ("FLOAT", column(Kind.FLOAT, scale=-1)),
    ("DOUBLE", DOUBLE),
    ("DOUBLE UNSIGNED", column(Kind.DOUBLE, scale=-1, unsigned=True)),
    ("FLOAT(5,2)", column(Kind.FLOAT, 5, 2)),
    ("DOUBLE(10,3)", column(Kind.DOUBLE, 10, 3)),
    ("BIT(4)", column(Kind.BIT, 4)),
    ("BIT(64)", column(Kind.BIT, 64)),
    ("YEAR", column(Kind.YEAR)),
    ("DATE", DATE),
    ("DATETIME", DATETIME),
    ("DATETIME(3)", column(Kind.DATETIME, scale=3)),
    ("DATETIME(6)", column(Kind.DATETIME, scale=6)),
    ("TIMESTAMP NULL", column(Kind.TIMESTAMP)),
    ("TIME", TIME),
    ("TIME(2)", column(Kind.TIME, scale=2)),
    ("CHAR(5)", SqlType(Kind.CHAR, 5, collation=COLLATION)),
    ("VARCHAR(5)", varchar(5)),
    ("VARCHAR(40)", varchar(40)),
    ("TINYTEXT", SqlType(Kind.TINYTEXT, collation=COLLATION)),
    ("TEXT", SqlType(Kind.TEXT, collation=COLLATION)),
    ("VARCHAR(10) CHARACTER SET latin1", varchar(10, "latin1_swedish_ci")),
    ("VARCHAR(10) CHARACTER SET utf8mb3", varchar(10, "utf8mb3_general_ci")),
    ("BINARY(5)", SqlType(Kind.BINARY, 5)),
    ("VARBINARY(5)", SqlType(Kind.VARBINARY, 5)),
    ("TINYBLOB", SqlType(Kind.TINYBLOB)),
    ("BLOB", SqlType(Kind.BLOB)),
    ("ENUM('red','Green','','1')", SqlType(Kind.ENUM, collation=COLLATION, members=("red", "Green", "", "1"))),
    ("SET('x','y','z')", SqlType(Kind.SET, collation=COLLATION, members=("x", "y", "z"))),
)

_TEXTS = (
    "", " ", "0", "1", "2", "-1", "12", " 12", "12 ", "12abc", "abc", "1.5", "2.5", "-2.5", "1.239", "1.235", "99999", "999.995", "1e3", "1e-3", "1e400",
    "1e", "12.6x", ".5", "5.", "+7", "--7", "127", "128", "255", "256", "-128", "-129", "65536", "2147483647", "2147483648", "9223372036854775807",
    "9223372036854775808", "18446744073709551615", "18446744073709551616", "70", "69", "1999", "2155", "2156", "1901", "1900", "00", "000", "0000",
    "2020-01-02", "2020-1-2", "20200102", "200102", "2020-01-02 03:04:05", "2020-01-02T03:04:05", "2020-01-02 03:04:05.678901", "2020-01-02 03:04:05.6789015",
    "2020-02-30", "2020-00-01", "2020-01-00", "0000-00-00", "0000-00-00 00:00:00", "2020-13-01", "2020-01-02 25:00:00", "2020-01-02 03:04", "2020-01-02x",
    "2020/01/02", "2020.01.02", "20-1-2", "70-1-2", "9999-12-31 23:59:59.999999", "1969-12-31", "1970-01-01 00:00:00", "2038-01-19 03:14:08", "2037-01-01",
    "10:11:12", "10:11", "10", "1 10:11:12", "-10:11:12.999", "838:59:59", "839:00:00", "10:60:00", "101112", "10:11:12.345", "10:11:12x", "20200102030405",
    "red", "RED", "green ", "blue", "3", "4", "5", "x", "x,y", "z,x", "x,w", "X,Y,Z", "x,,y", "7", "8", "héllo", "hello world", "hello     ", "日本語", "ß", "😀",
    "é" * 150, "a" * 300, "\x00a", "abc\n",
)  # fmt: skip
_NUMBERS = (
    0, 1, 2, -1, 3, 4, 5, 7, 8, 12, 15, 16, 69, 70, 99, 100, 127, 128, 255, 256, -128, -129, 1900, 1901, 1999, 2155, 2156, 32767, 32768, 65535, 65536,
    8388608, 16777215, 16777216, 16777217, 2147483647, 2147483648, -2147483648, -2147483649, 9223372036854775807, 18446744073709551615, -9223372036854775808,
    101, 200102, 700101, 20200102, 20200230, 20200102030405, 99991231235959, 101112, 8385959, 8390000, 106000, -101112, 123456789,
)  # fmt: skip
_DECIMALS = (
    "0.5", "1.5", "2.5", "-0.5", "-2.5", "1.005", "1.239", "999.99", "999.995", "-999.995", "99999.5", "127.5", "255.4", "0.0", "12345678901234567890.5",
    "1234567.123456789012345", "20200102.0", "20200102030405.6", "20200102030405.678951", "101112.5", "2020.6", "70.4", "3.14159265358979",
)  # fmt: skip
_REALS = (
    0.0, 0.5, 1.5, 2.5, -0.5, -2.5, 3.5, 1e3, 1e10, 1e20, -1e20, 1e40, 1e300, 1e-5, 0.1, 1 / 3, 999.995, 99999.5, 127.5, 16777217.0, 123456.789, 2020.0, 70.0,
    20200102.0, 101112.0,
)  # fmt: skip
_BYTES = (b"", b"a", b"abcdef", b"\xff\xfe", b"12", b"\x00\x01", b"red", b"2020-01-02", b"\xc3\xa9")


def _typed(number: int) -> SqlType:
    return SqlType(Kind.BIGINT, unsigned=number > 9223372036854775807)


def _decimal_type(digits: str) -> SqlType:
    scale = len(digits.partition(".")[2])
    return decimal(len(digits), scale)


VALUES: tuple[tuple[Value, SqlType], ...] = (
    *((value, varchar(len(value))) for value in _TEXTS),
    *((value, _typed(value)) for value in _NUMBERS),
    *((Decimal(value), _decimal_type(value)) for value in _DECIMALS),
    *((value, DOUBLE) for value in _REALS),
    *((value, SqlType(Kind.VARBINARY, len(value))) for value in _BYTES),
    *((date(value), DATE) for value in ("2020-01-02", "1969-12-31", "9999-12-31")),
    *((date(value), DATETIME) for value in ("2020-01-02 03:04:05", "2020-01-02 23:59:59", "1999-12-31 00:00:00")),
    *((date(value), SqlType(Kind.DATETIME, scale=6)) for value in ("2020-01-02 23:59:59.999999", "2020-01-02 03:04:05.600000")),
    *((time(value), TIME) for value in ("10:11:12", "-10:11:12", "100:00:00")),
    (None, NULL),
)
