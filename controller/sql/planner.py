"""From a template to a plan, and a cache of plans.

A plan depends on the template, the default database, the session's settings, the types of the
parameter values, and the version of the one table it names. The cache checks the last when a
plan is asked for, so DDL needs to invalidate nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from controller.catalog import Catalog
from controller.sql.parse import parse, syntax_error
from controller.sql.plan import Plan, Statement
from controller.sql.select import SelectPlanner
from controller.sql.settings import Settings
from controller.sql.translate import Parameters, decimal_type
from controller.sql.writes import WritePlanner
from dataflow.errors import Unsupported
from dataflow.types import BIGINT, BIGINT_UNSIGNED, DOUBLE, NULL, Kind, SqlType, Value, text

PLANS_MAX = 10_000

_VERBS = frozenset({"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "VALUES", "TABLE"})


def plan(
    sql: str,
    catalog: Catalog,
    database: str | None,
    settings: Settings,
    types: Sequence[SqlType | None] | None = None,
    batch: tuple[int, int] | None = None,
) -> Plan:
    """Plan a statement whose parameters are `?`.

    `types` are those of the values, one for each `?`; without them (PREPARE) they are inferred
    from where each parameter stands.
    """
    words = sql.split(None, 1)
    if words and words[0].isalpha() and words[0].upper() not in _VERBS:
        raise syntax_error(sql, 0)
    tree = parse(sql)
    count = sum(1 for _ in tree.find_all(exp.Placeholder))
    assert types is None or len(types) == count, "one type for each parameter"
    parameters = Parameters(types if types is not None else [None] * count)
    statement = _statement(tree, catalog, database, settings, parameters)
    return Plan(statement, tuple([each or text() for each in parameters.types]), tuple(parameters.facts), batch)


def _statement(
    tree: Any, catalog: Catalog, database: str | None, settings: Settings, parameters: Parameters
) -> Statement:
    writes = WritePlanner(catalog, database, settings, parameters)
    match tree:
        case exp.Insert():
            return writes.insert(tree)
        case exp.Update():
            return writes.update(tree)
        case exp.Delete():
            return writes.delete(tree)
        case exp.Query():
            return SelectPlanner(catalog, database, settings, parameters).plan(tree)
        case _:
            raise Unsupported(f"{type(tree).__name__} statements")


# --- types of values ------------------------------------------------------------------------
# A value's type code is short and quick to hash; equal codes have equal types.


def code_of(value: Value) -> str:
    """The type code of a parameter value, for one that is not a date or time."""
    kind = type(value)
    if kind is int:
        assert isinstance(value, int)
        return "i" if -0x8000_0000_0000_0000 <= value < 0x8000_0000_0000_0000 else "u"
    if kind is str:
        assert isinstance(value, str)
        return f"s{len(value).bit_length()}"
    if kind is Decimal:
        assert isinstance(value, Decimal)
        found = decimal_type(value)
        return f"d{found.length},{found.scale}"
    if kind is float:
        return "f"
    return "n" if value is None else "b"


def type_of(code: str, settings: Settings) -> SqlType:
    """The type a code stands for. "date", "datetime:N" and "time:N" are for packed values."""
    match code[:1]:
        case "i":
            return BIGINT
        case "u":
            return BIGINT_UNSIGNED
        case "s":
            length = (1 << int(code[1:])) - 1
            return text(length if length <= 16383 else None, settings.collation)
        case "d" if code[1:2].isdigit():
            precision, _, scale = code[1:].partition(",")
            return SqlType(Kind.DECIMAL, length=int(precision), scale=int(scale))
        case "f":
            return DOUBLE
        case "n":
            return NULL
        case "b":
            return SqlType(Kind.LONGBLOB)
    name, _, digits = code.partition(":")
    return SqlType(Kind(name), scale=int(digits or 0))


def codes_of(values: Sequence[Value], batch: tuple[int, int] | None) -> tuple[str, ...] | None:
    """The type codes of a reading's values, one for each parameter of its template.

    None if the rows of a batch hold values of different kinds in one column; such a
    statement has to be planned with all its rows.
    """
    if batch is None:
        return tuple([code_of(value) for value in values])
    start, width = batch
    tail = (len(values) - start) % width if width else 0
    raise NotImplementedError(tail)
