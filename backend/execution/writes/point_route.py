"""Where a write of one row is run, where there are several workers: on the shard of the row's primary key, if all its entries are there.

Non-unique entries live with their row. A unique one lives on the shard of its own key, so an INSERT or DELETE of a table with one is not
for a single worker. AUTO_INCREMENT values come from the shard that has the counter, before the row's shard is known: the client fetches them, all of a turn
of its event loop together, and sends each with its parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from backend.clustering.point_writes import PointRoute
from backend.execution.evaluation.access import bind, choose
from backend.execution.evaluation.reading import table_writer
from controller.sql.plan import Delete, Insert, Update
from dataflow.expressions.compile import compile_scalar
from dataflow.expressions.expression import Literal, Parameter
from dataflow.schema import ROW_ID_NAME, Table
from dataflow.values.types import INTEGER_BYTES, Value
from persistence.key_range import equal_prefix
from persistence.layout import auto_increment_counter, shard_of

Parameters = Sequence[Value]


ONLY = PointRoute(lambda parameters, number: 0)


def point_route(statement: Insert | Update | Delete, shard_count: int) -> PointRoute | None:
    """That of a statement which is a point write with one worker; None if it may be about more than one of these shards."""
    if shard_count == 1:
        return ONLY
    table = statement.table
    if not isinstance(statement, Update) and any(index.unique for index in table.indexes):
        return None
    return _insert_route(statement, shard_count) if isinstance(statement, Insert) else _change_route(statement, shard_count)


def _change_route(statement: Update | Delete, shard_count: int) -> PointRoute:
    path, writer = choose(statement.table, statement.where), table_writer(statement.table)

    def shard(parameters: Parameters, number: int) -> int | None:
        bound = bind(path, parameters)
        if bound is None or len(bound.alternatives) != 1:
            return None
        key = equal_prefix(writer.primary_key, writer.row_prefix, bound.alternatives[0])
        return None if key is None else shard_of(key, shard_count)

    return PointRoute(shard)


def _insert_route(insert: Insert, shard_count: int) -> PointRoute | None:
    """Of rows whose primary key has nothing but integers, which are stored as they are given."""
    table, writer = insert.table, table_writer(insert.table)
    given = dict(zip(insert.columns, insert.rows[0], strict=True))
    auto = next((place for place, column in enumerate(table.columns) if column.auto_increment), None)
    if auto in given or any(column.name == ROW_ID_NAME for column in table.columns):
        return None
    cells = []
    for place in _primary_key(table):
        type_ = table.columns[place].type
        width, expression = INTEGER_BYTES.get(type_.kind), given.get(place)
        if width is None or (place != auto and not isinstance(expression, Parameter | Literal)):
            return None
        if place != auto and expression is not None:
            least = 0 if type_.unsigned else -1 << (8 * width - 1)
            cells.append((place, compile_scalar(expression), least, least + (1 << 8 * width)))

    def shard(parameters: Parameters, number: int) -> int | None:
        row: list[Value] = [None] * len(table.columns)
        for place, value, least, end in cells:
            found = value((), parameters)
            if type(found) is not int or not least <= found < end:
                return None
            row[place] = found
        if auto is not None:
            row[auto] = number
        return shard_of(writer.row_key(tuple(row)), shard_count)

    if auto is None:
        return PointRoute(shard)
    return PointRoute(shard, auto_increment_counter(table.id), max(table.auto_increment_start, 1))


def _primary_key(table: Table) -> list[int]:
    places = {column.id: place for place, column in enumerate(table.columns)}
    return [places[part.column_id] for part in table.primary_key.parts]
