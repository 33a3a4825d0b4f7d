"""Domains: the kinds of values that functions take."""

from __future__ import annotations

from enum import Enum


class Domain(Enum):
    """What a function wants an argument to be (or None, where it asked to see NULLs)."""

    TEXT = "text"
    """str. Numbers and dates are formatted, bytes are decoded as UTF-8."""
    BYTES = "bytes"
    """bytes. Text is encoded as UTF-8."""
    INTEGER = "integer"
    """int. Decimals are rounded half away from zero, floats half to even; text gives its integer prefix."""
    REAL = "real"
    """float. Text gives its longest numeric prefix, or 0."""
    DECIMAL = "decimal"
    """decimal.Decimal."""
    NUMBER = "number"
    """int, float or Decimal as MySQL computes: text is float, a date is 20200102."""
    DATETIME = "datetime"
    """int, packed as in `dataflow.values.temporal`; NULL where no date can be made of it."""
    DAY = "day"
    """As DATETIME, of a day in the calendar: a text without a month or a day is none."""
    TIME = "time"
    """int, microseconds; NULL where no time can be made of it."""
    JSON = "json"
    """str, normalised JSON text; text is parsed as JSON (3141 where it is not)."""
    JSON_VALUE = "json_value"
    """str, normalised JSON text; an SQL value becomes a JSON value: abc is "abc"."""
    ANY = "any"
    """The value as it is, whatever its type."""
