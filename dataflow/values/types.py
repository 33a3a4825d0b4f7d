"""The SQL types and the Python value that stands for each.

| SQL                                  | Python value                                             |
|--------------------------------------|----------------------------------------------------------|
| integers, BIT, YEAR, BOOL            | int                                                      |
| DECIMAL                              | decimal.Decimal with exactly `scale` digits              |
| FLOAT, DOUBLE                        | float (FLOAT already rounded to single precision)        |
| DATE, DATETIME, TIMESTAMP            | int, packed as in `dataflow.values.temporal` (0 = the zero date)|
| TIME                                 | int, microseconds, negative below zero                   |
| CHAR … LONGTEXT, ENUM, SET, JSON     | str                                                      |
| BINARY … LONGBLOB                    | bytes                                                    |
| NULL of any type                     | None                                                     |

Rows are tuples of these. Packed dates compare like the dates they stand for, so a DATE, a
DATETIME and an index over either need no conversion, and zero dates are ordinary values.
TIMESTAMP values are packed in UTC. ENUM and SET values are their text; what orders them is
their position in `members`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

Value = None | int | float | Decimal | str | bytes
Row = tuple[Value, ...]


class Kind(Enum):
    NULL = "null"
    TINYINT = "tinyint"
    SMALLINT = "smallint"
    MEDIUMINT = "mediumint"
    INT = "int"
    BIGINT = "bigint"
    DECIMAL = "decimal"
    FLOAT = "float"
    DOUBLE = "double"
    BIT = "bit"
    YEAR = "year"
    DATE = "date"
    DATETIME = "datetime"
    TIMESTAMP = "timestamp"
    TIME = "time"
    CHAR = "char"
    VARCHAR = "varchar"
    TINYTEXT = "tinytext"
    TEXT = "text"
    MEDIUMTEXT = "mediumtext"
    LONGTEXT = "longtext"
    BINARY = "binary"
    VARBINARY = "varbinary"
    TINYBLOB = "tinyblob"
    BLOB = "blob"
    MEDIUMBLOB = "mediumblob"
    LONGBLOB = "longblob"
    ENUM = "enum"
    SET = "set"
    JSON = "json"


INTEGER_BYTES = {Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.MEDIUMINT: 3, Kind.INT: 4, Kind.BIGINT: 8}
INTEGERS = frozenset(INTEGER_BYTES)
REALS = frozenset({Kind.FLOAT, Kind.DOUBLE})
NUMBERS = INTEGERS | REALS | {Kind.DECIMAL, Kind.BIT, Kind.YEAR}
DATES = frozenset({Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP})
TEMPORALS = DATES | {Kind.TIME}
TEXTS = frozenset({Kind.CHAR, Kind.VARCHAR, Kind.TINYTEXT, Kind.TEXT, Kind.MEDIUMTEXT, Kind.LONGTEXT})
BLOBS = frozenset({Kind.BINARY, Kind.VARBINARY, Kind.TINYBLOB, Kind.BLOB, Kind.MEDIUMBLOB, Kind.LONGBLOB})
STRINGS = TEXTS | {Kind.ENUM, Kind.SET, Kind.JSON}

DEFAULT_COLLATION = "utf8mb4_0900_ai_ci"


@dataclass(frozen=True, slots=True)
class SqlType:
    """A column's or an expression's type.

    `length` is the M of the declaration: characters, bytes, bits, or DECIMAL's precision
    (None where none was given). `scale` is DECIMAL's scale, or the fractional digits of a
    time; -1 marks a FLOAT/DOUBLE without a declared scale. `collation` is set for texts.
    """

    kind: Kind
    length: int | None = None
    scale: int = 0
    unsigned: bool = False
    zerofill: bool = False
    collation: str | None = None
    members: tuple[str, ...] = ()


NULL = SqlType(Kind.NULL)
BOOLEAN = SqlType(Kind.TINYINT, length=1)
INT = SqlType(Kind.INT)
BIGINT = SqlType(Kind.BIGINT)
BIGINT_UNSIGNED = SqlType(Kind.BIGINT, unsigned=True)
DOUBLE = SqlType(Kind.DOUBLE, scale=-1)
DATE = SqlType(Kind.DATE)
DATETIME = SqlType(Kind.DATETIME)
TIME = SqlType(Kind.TIME)
JSON = SqlType(Kind.JSON, collation="utf8mb4_bin")
BLOB = SqlType(Kind.LONGBLOB)


def text(length: int | None = None, collation: str = DEFAULT_COLLATION) -> SqlType:
    """VARCHAR(length), or LONGTEXT where no bound is known."""
    return SqlType(Kind.LONGTEXT if length is None else Kind.VARCHAR, length=length, collation=collation)


def decimal(precision: int, scale: int, unsigned: bool = False) -> SqlType:
    return SqlType(Kind.DECIMAL, length=precision, scale=scale, unsigned=unsigned)
