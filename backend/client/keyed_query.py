"""A SELECT whose `?` are its keys, made ready to be looked up.

Each `?` has to be compared with a column by `=`, at the top of WHERE; all of the rest is the
same for every lookup. So the rows of a key can be kept as the dataflow's view of the query's
node has them, under the same name as those of the same query over the MySQL protocol; what
is left to do with them (columns to choose, ORDER BY, LIMIT) is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from sqlglot import exp

from backend.client.batch import cell_change
from backend.client.key_values import key_converter
from backend.client.ordered_query import OrderedQuery
from backend.client.values import Rows, row_converter
from backend.execution.answering.ordering import Sorter
from backend.execution.answering.ranges import order_of
from backend.execution.answering.result import count_of, row_key
from backend.execution.answering.viewing import QueryViews
from backend.views.view_definition import ViewDefinition
from controller.catalog import Catalog
from controller.sql.parameters import Parameters
from controller.sql.plan import Plan, Query
from controller.sql.planner import parse_statement
from controller.sql.query import plan_query
from controller.sql.query.product import projected
from controller.sql.settings import DEFAULT_SETTINGS
from controller.sql.text.parse import parameter_count
from controller.sql.text.template import canonical_text
from dataflow.errors import Unsupported
from dataflow.expressions.compile import compile_predicate, compile_row, compile_scalar
from dataflow.expressions.expression import Call, Column, Expression, Literal, Parameter, walk
from dataflow.functions import call
from dataflow.plan.node import Join
from dataflow.values.types import DATES, Kind, Row

Finish = Callable[[list[Row]], Rows]
NEVER_FAIL = frozenset({"coalesce", "ifnull"})


class KeyedQuery:
    """`finish` turns a key's rows in the view into those of the query; None if they are the same."""

    def __init__(self, sql: str, catalog: Catalog, schema: str | None) -> None:
        tree = parse_statement(canonical_text(sql, DEFAULT_SETTINGS))
        if not isinstance(tree, exp.Query):
            raise Unsupported("a view of anything but a SELECT")
        count = sum(map(parameter_count, tree.find_all(exp.Placeholder)))
        parameters = Parameters([None] * count)
        query = _with_outputs_kept(plan_query(tree, catalog, schema, DEFAULT_SETTINGS, parameters))
        self.sql = sql
        self.catalog_version = catalog.version
        self.columns = tuple(column.name for column in query.columns)
        self.types = tuple(each.type for each in query.outputs)
        self.cell_changes = [cell_change(each) for each in self.types]
        order = _key_order(query, count)
        self.key_length = count
        key_columns = tuple(sorted(key.column for key in query.keys))
        views = QueryViews(query, key_columns)
        definition = None if parameters.facts else views.definition()
        if definition is None:
            raise Unsupported("a view of this SELECT, which needs more than its keys")
        self.definition: ViewDefinition = definition
        self._views, self._query, self._key_columns = views, query, key_columns
        kinds = [definition.types[column] for column in key_columns]
        self._parts = list(zip(order, map(key_converter, kinds)))
        self.has_integer_key = definition.naming.is_exact and kinds[0].kind not in DATES | {Kind.TIME}
        self._evaluations: dict[frozenset[int], Plan] = {}
        self.finish = _finish(query)
        self.places = _places(query)
        """Which column of the view each output is; None if outputs are computed or rows are left out."""

    def key(self, given: Any) -> Row:
        """A key as the view has it: one value for a single `?`, else a tuple with one for each."""
        values = given if isinstance(given, tuple) else tuple(given) if isinstance(given, list) else (given,)
        if len(values) != self.key_length:
            raise ValueError(f"the view has {self.key_length} key column(s), the key has {len(values)}")
        return tuple([convert(values[place]) for place, convert in self._parts])

    def parameters(self, key: Row) -> Row:
        """The values of such a key in the order of the `?`."""
        values = {place: value for (place, _), value in zip(self._parts, key)}
        return tuple([values[place] for place in range(self.key_length)])

    def evaluation(self, key: Row) -> Plan:
        """What gives the rows of such a key as the view has them, where no view does; takes `parameters`."""
        unknown = frozenset([column for column, value in zip(self._key_columns, key) if value is None])
        found = self._evaluations.get(unknown)
        if found is None:
            found = self._evaluations[unknown] = _evaluation(self._query, unknown)
        return found

    @cached_property
    def ordered(self) -> OrderedQuery:
        """The same by range; raises Unsupported if it has no order."""
        definition = self._views.definition(order_of(self._query, self._key_columns)[0])
        assert definition is not None
        return OrderedQuery(self._query, self._key_columns, definition)

    def all_rows(self, payload: bytes) -> list[Rows]:
        """The same of many keys, from one list of all."""
        found = self.definition.decode_all(payload)
        return found if self.finish is None else [self.finish(each) for each in found]

    def rows(self, payload: bytes) -> Rows:
        """The query's rows, from the encoded ones of the view."""
        return self.finished(self.definition.decode(payload))

    def finished(self, rows: list[Row]) -> Rows:
        """The query's rows, from those of the view."""
        return rows if self.finish is None else self.finish(rows)


def _with_outputs_kept(query: Query) -> Query:
    """The query with its computed outputs in its node, so that the view has them ready.

    Only those that never fail: what fails at a lookup concerns one key, but in the view all.
    """
    plain = query.limit is None and query.offset is None and query.default is None and not query.windows
    if not plain or query.distinct or query.order_by or not all(map(_never_fails, query.outputs)):
        return query
    if all(isinstance(each, Column) for each in query.outputs):
        return query
    places = {each.index: place for place, each in enumerate(query.outputs) if isinstance(each, Column)}
    outputs = list(query.outputs)
    for key in query.keys:
        if key.column not in places:
            places[key.column] = len(outputs)
            outputs.append(Column(key.column, query.node.types[key.column]))
    return replace(
        query,
        node=projected(query.node if query.filter is None else Join((query.node,), filter=query.filter), tuple(outputs)),
        filter=None,
        outputs=tuple([Column(place, each.type) for place, each in enumerate(query.outputs)]),
        keys=tuple([replace(key, column=places[key.column]) for key in query.keys]),
    )


def _never_fails(output: Expression) -> bool:
    return all(
        isinstance(each, Column | Literal) or (isinstance(each, Call) and each.function in NEVER_FAIL)
        for each in walk(output)
    )


def _key_order(query: Query, count: int) -> list[int]:
    """For each key column, in ascending order, the `?` that it is compared with."""
    compared: dict[int, int] = {}
    for key in query.keys:
        value = key.values[0]
        if len(key.values) != 1 or not isinstance(value, Parameter) or key.column in compared:
            raise Unsupported("a view whose keys are not each one ? compared by =")
        compared[key.column] = value.index
    order = [compared[column] for column in sorted(compared)]
    if sorted(order) != list(range(count)):
        raise Unsupported("a view with a ? that is not compared with a column by =")
    return order


def _evaluation(query: Query, unknown: frozenset[int]) -> Plan:
    """All rows of the query's node with a key; those that have NULL in the columns `unknown`, where = finds nothing."""
    types = query.node.types
    conditions: list[Expression] = [call("is null", Column(column, types[column])) for column in sorted(unknown)]
    if query.filter is not None and query.default is None:  # else it comes after the default
        conditions.append(query.filter)
    rows = replace(
        query,
        keys=tuple([key for key in query.keys if key.column not in unknown]),
        filter=call("and", *conditions) if len(conditions) > 1 else conditions[0] if conditions else None,
        outputs=tuple([Column(place, kind) for place, kind in enumerate(types)]),
        columns=(),
        order_by=(),
        limit=None,
        offset=None,
        default=None,
        distinct=False,
    )
    return Plan(rows)


def _places(query: Query) -> tuple[int, ...] | None:
    outputs = [each.index for each in query.outputs if isinstance(each, Column)]
    plain = query.limit is None and query.offset is None and query.default is None
    if len(outputs) != len(query.outputs) or query.windows or query.distinct or not plain:
        return None
    return tuple(outputs)


def _finish(query: Query) -> Finish | None:
    outputs = query.outputs
    convert = row_converter([each.type for each in outputs])
    same = len(outputs) == len(query.node.types) and all(
        isinstance(each, Column) and each.index == place for place, each in enumerate(outputs)
    )
    bare = query.default is None and not query.distinct and not query.order_by
    if query.windows:
        raise Unsupported("window functions in a view of the client library")
    if same and bare and query.limit is None and query.offset is None:
        return convert
    project, default = compile_row(outputs), query.default
    having = None if default is None or query.filter is None else compile_predicate(query.filter)
    distinct = row_key([each.type for each in outputs]) if query.distinct else None
    sorter = Sorter(query.order_by) if query.order_by else None
    start = 0 if query.offset is None else count_of(compile_scalar(query.offset)((), ()))
    stop = None if query.limit is None else start + count_of(compile_scalar(query.limit)((), ()))

    def finish(rows: Sequence[Row]) -> Rows:
        if not rows and default is not None:
            rows = [default]
        if having is not None:
            rows = [row for row in rows if having(row, ())]
        pairs = [(row, project(row, ())) for row in rows]
        if distinct is not None:
            pairs = list({distinct(pair[1]): pair for pair in reversed(pairs)}.values())
        if sorter is not None:
            sorter.sort(pairs, ())
        found = [output for _, output in pairs[start:stop]]
        return found if convert is None else convert(found)

    return finish
