"""A table's own expressions in a session whose time zone is not UTC.

Generated columns, defaults and CHECK constraints are bound in UTC, whoever defines them. A session of another zone writes
STORED columns and defaults, and checks rows, in its own zone. VIRTUAL columns are kept as UTC has them; where they have
another value in the zone of who reads them, that is computed from the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.sql.expressions.zone import in_utc, is_utc, localised
from dataflow.expressions.expression import Call, Column, Expression, Literal
from dataflow.functions import call
from dataflow.functions.casts import cast
from dataflow.schema import Table, TableColumn
from dataflow.values.types import Kind, text

_UNCAST = frozenset({Kind.ENUM, Kind.SET, Kind.BIT})


def in_zone(table: Table, zone: str) -> Table:
    """The table as a session of the zone writes it; the same object if nothing in it depends on the zone."""
    if is_utc(zone) or (not any(each.generated_sql or each.default_sql for each in table.columns) and not table.checks):
        return table
    columns = [_written(each, table.columns, zone) for each in table.columns]
    checks = [replace(each, expression=_local(each.expression, table.columns, zone)) for each in table.checks]
    found = replace(table, columns=tuple(columns), checks=tuple(checks))
    return table if found == table else found


def _written(column: TableColumn, columns: Sequence[TableColumn], zone: str) -> TableColumn:
    if column.default_expression is not None:
        return replace(column, default_expression=_local(column.default_expression, columns, zone))
    if column.generated is not None and (column.generated_stored or column.type.kind is Kind.TIMESTAMP):
        return replace(column, generated=_local(column.generated, columns, zone))
    return column


def local_values(table: Table, zone: str) -> dict[int, Expression]:
    """The VIRTUAL columns that may have another value in the zone than is stored, by position, over the table's row."""
    if is_utc(zone):
        return {}
    found = {place: _virtual(column, table.columns, zone) for place, column in enumerate(table.columns) if column.generated_sql}
    return {place: value for place, value in found.items() if value is not None}


def _virtual(column: TableColumn, columns: Sequence[TableColumn], zone: str) -> Expression | None:
    if column.generated is None or column.generated_stored or column.type.kind in _UNCAST:
        return None
    found = _local(column.generated, columns, zone)
    if found == column.generated:
        return None
    if column.type.kind is Kind.TIMESTAMP:
        return in_utc(found, zone)
    return found if found.type == column.type else cast(found, column.type)


def _local(expression: Expression, columns: Sequence[TableColumn], zone: str, is_whole: bool = True) -> Expression:
    """An expression that was bound in UTC. A TIMESTAMP that is the whole of it stays in UTC."""
    match expression:
        case Column(index=index):
            found = _virtual(columns[index], columns, zone) or expression
            return found if is_whole else localised(found, zone)
        case Call(function="unix_timestamp", arguments=(moment,)):
            return call("unix_timestamp", in_utc(_local(moment, columns, zone), zone))
        case Call(function=function, arguments=arguments):
            local = [_local(each, columns, zone, False) for each in arguments]
            if function == "from_unixtime":
                moment = call("from_utc", call(function, local[0]), Literal(zone, text(len(zone))))
                return call("date_format", moment, local[1]) if len(local) > 1 else moment
            return expression if tuple(local) == arguments else call(function, *local)
        case _:
            return expression
