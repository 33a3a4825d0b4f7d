"""TIMESTAMP columns hold UTC; these two move their values into a session's time zone and back.

The planner wraps a TIMESTAMP column in `from_utc(column, zone)` where the session's zone is
not UTC; a comparison is better turned around, `column = to_utc(value, zone)`, as an index on
the column then still serves.
"""

from __future__ import annotations

from dataflow.functions.date_parts import fraction_digits
from dataflow.functions.registry import Arguments, Domain, function
from dataflow.values import temporal
from dataflow.values.types import Kind, SqlType


@function(
    "from_utc",
    arguments=(Domain.DATETIME, Domain.TEXT),
    result=lambda arguments: _scaled(Kind.DATETIME, arguments),
)
def from_utc(value: int, zone: str) -> int:
    return temporal.from_utc(value, zone)


@function(
    "to_utc",
    arguments=(Domain.DATETIME, Domain.TEXT),
    result=lambda arguments: _scaled(Kind.TIMESTAMP, arguments),
)
def to_utc(value: int, zone: str) -> int:
    return temporal.to_utc(value, zone)


def _scaled(kind: Kind, arguments: Arguments) -> SqlType:
    """As many fractional digits as the argument has."""
    return SqlType(kind, scale=fraction_digits(arguments[0]))
