"""Queries answered from maintained views.

A query is evaluated from the base tables at first. When it comes again with the same
constants inside its node, the node with those constants in place becomes a view in the
worker, and from then on its keys are looked up there; at once, if another query has made the
same view, a list of another length, say, or if it reads named views and has no such constants. ORDER BY
with a small LIMIT is part of the view, so that it keeps no more rows than are asked for.

A query is not looked up but evaluated
- inside a transaction that has written something, because no view shows uncommitted rows,
- without a key and a small LIMIT, if its result is large,
- without a key, if it is ordered for ranges and its tables are too large to be kept in memory,
- without a key, if evaluating it takes long and there are several shards: they would compute the
  view in one go, and answer nothing else meanwhile; a worker alone fills it in the background.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from backend.clustering.store import Store
from backend.execution.answering.alternatives import alternatives_of
from backend.execution.answering.decision.decision import USES_BEFORE_VIEW
from backend.execution.answering.decision.maintained import expressions_in, obstacle
from backend.execution.answering.ranges import range_of
from backend.execution.evaluation.reader import Keys, Run, fulfilling
from backend.execution.pace import parts
from backend.views.view_definition import ViewDefinition
from backend.views.view_range import Range
from controller.sql.plan import Query
from dataflow.expressions.compile import compile_predicate, compile_scalar
from dataflow.expressions.expression import parameters_of
from dataflow.expressions.rewriting import bound, bound_node
from dataflow.plan.node import Base, Join, Node, Order, TopK
from dataflow.values.types import Row, Value

CONSTANTS_MAX = 1_000
"""A query about more values, not counting keys, has no view: it hardly comes again with the same ones."""
BINDINGS_MAX = 200
LIMITS = (16, 64, 256, 1024)
KEYLESS_ROWS_MAX = 100_000
"""More would keep a worker too long from other work each time they are sent."""
ORDERED_ROWS_MAX = 200_000
"""As many rows of a result without a key may be kept where only parts of it are read."""
REFUSED_USES = 5
"""A view that the worker has no room for, or not yet, is not asked for again so many times, where it saves reading the table."""

_encode_keys = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class _Binding:
    uses: int = 0
    definition: ViewDefinition | None = None


class QueryViews:
    """The views of one planned query: one for each set of constants that repeats."""

    def __init__(
        self,
        query: Query,
        key_columns: tuple[int, ...],
        uses_before_view: int = USES_BEFORE_VIEW,
        is_scan: bool = False,
    ) -> None:
        """`is_scan`: of one table by an index, or in its own order."""
        self._query = query
        self._key_columns = key_columns
        # With a default, whether there is a row at all counts first: its reader applies the filter.
        filter_ = query.filter if query.default is None else None
        filter_parameters = set() if filter_ is None else set(parameters_of(filter_))
        self.folds_filter = filter_ is not None and not filter_parameters
        self._filter = None if filter_ is None or self.folds_filter else compile_predicate(filter_)
        self._limit = None if query.limit is None else compile_scalar(query.limit)
        self._offset = None if query.offset is None else compile_scalar(query.offset)
        inside = {parameter for each in expressions_in(query.node) for parameter in parameters_of(each)}
        # At most one row has a table's primary key: there is nothing to cut off or to leave out.
        single = isinstance(query.node, Base) and set(query.node.primary_key) <= set(key_columns)
        self._ends = not single and self._may_end(filter_parameters)
        if self._ends:
            inside |= {parameter for item in query.order_by for parameter in parameters_of(item.expression)}
        self._inside = tuple(sorted(inside))
        self._alternatives = None if key_columns or self.folds_filter else alternatives_of(query, filter_)
        self._range = None
        if self._alternatives is None and not single:
            self._range = range_of(query, key_columns, None if self.folds_filter else filter_)
        elif self._alternatives is not None:
            self._key_columns = (self._alternatives.key,)
        self._views = query.views
        self._bindings: OrderedDict[tuple[object, ...], _Binding] = OrderedDict()
        self._rows_seen = 0
        self._rows_max = KEYLESS_ROWS_MAX if self._range is None else ORDERED_ROWS_MAX
        self._refused = 0
        self._uses_before_view = uses_before_view
        is_small = bool(key_columns) or self._ends or _has_end(query.node)
        self._is_declared = bool(query.views) and not self._inside and is_small
        """Somebody has named what it reads because it repeats, and it has few rows at a time."""
        self._is_scan = is_scan
        self.is_one = not self._inside and not self._ends and bool(key_columns) and self._range is None
        """The same view serves all parameters, by nothing but a key."""
        self.obstacle = obstacle(query)
        self.possible = not self.obstacle

    @property
    def choices(self) -> tuple[int, ...]:
        """The columns of which one has to have its key, where that is how the view is looked up."""
        return () if self._alternatives is None else self._alternatives.columns

    def _may_end(self, filter_parameters: set[int]) -> bool:
        """Whether ORDER BY … LIMIT can be part of the view."""
        query = self._query
        plain = (
            not query.windows and not query.distinct and query.default is None and not query.count_found_rows
        )
        return plain and bool(query.order_by) and query.limit is not None and not filter_parameters

    def evaluated(self, rows: int) -> None:
        """The query was evaluated from the base tables: so many rows its node gave."""
        self._rows_seen = rows

    async def rows(self, run: Run, keys: Keys | None) -> list[Row] | None:
        """The node's rows that have one of the keys and pass the filter; None if no view serves them.

        Rows that ORDER BY and LIMIT would cut off may be missing.
        """
        transaction = run.execution.transaction
        if not transaction.may_use_views:
            return None
        definition = self._definition(run.parameters, transaction.store)
        if definition is None:
            return None
        wanted = self.keys(keys, run.parameters)
        if not wanted:
            return []
        part = self.part(definition, run.parameters)
        if definition.order and part is None and keys is None:
            return None
        if part is not None and part.is_empty:
            return []
        while True:
            found = await transaction.store.lookup_view(definition, _encode_keys(wanted), part)
            if found is None:
                self._refused = REFUSED_USES if definition.order or self._is_scan else 0
                return None
            more = self.more(definition, found, part, run.parameters)
            if more is None:
                return self.decoded(definition, found, run.parameters)
            part = more

    def keys(self, keys: Keys | None, parameters: tuple[Value, ...]) -> list[Row]:
        """The keys to look up in the view, where `keys` are those of the query."""
        if self._alternatives is not None:
            return self._alternatives.keys(parameters)
        return [()] if keys is None else list(keys.values())

    def part(self, definition: ViewDefinition, parameters: tuple[Value, ...]) -> Range | None:
        """The range of an ordered view that is to be read; None for all of a key's rows."""
        return self._range.bind(parameters) if definition.order and self._range is not None else None

    def more(
        self, definition: ViewDefinition, found: Sequence[bytes], part: Range | None, parameters: tuple[Value, ...]
    ) -> Range | None:
        """The range to read if too few of the first rows of some key pass the filter, and there may be more."""
        if part is None or part.limit is None:
            return None
        assert self._range is not None
        enough = self._range.wanted(parameters)
        if self._range.exact or enough is None:
            return None
        for each in found:
            is_cut = len(definition.decode(each)) >= part.limit
            if is_cut and len(self.decoded(definition, (each,), parameters)) < enough:
                return replace(part, limit=part.limit * 8)
        return None

    def decoded(
        self, definition: ViewDefinition, found: Sequence[bytes], parameters: tuple[Value, ...]
    ) -> list[Row]:
        """The rows of several keys that pass the filter."""
        rows = [row for part in parts(found) for each in part for row in definition.decode(each)]
        if self._alternatives is not None:
            rows = self._alternatives.rows(rows, parameters)
        return fulfilling(rows, self._filter, parameters)

    def definition(self, order: tuple[int, ...] = ()) -> ViewDefinition | None:
        """The view that answers the query for every key; None if it needs more than its keys to be asked."""
        limits = [each for each in (self._query.limit, self._query.offset) if each is not None]
        if not self.possible or self._inside or self._filter is not None:
            return None
        if any(True for each in limits for _ in parameters_of(each)):
            return None
        return ViewDefinition(self._node((), self._end(())), self._key_columns, self._query.tables, order, self._views)

    def explained(
        self, parameters: tuple[Value, ...], fleeting: frozenset[int]
    ) -> tuple[ViewDefinition | None, Node, str]:
        """The view that answers the query once it repeats, its node, and why there is none.

        `fleeting` are the parameters that have another value each time.
        """
        reason = self.obstacle
        if not reason and len(self._inside) > CONSTANTS_MAX:
            reason = f"it is about more than {CONSTANTS_MAX} values"
        if not reason and not fleeting.isdisjoint(self._inside):
            reason = "it depends on the moment it is asked"
        end = self._end(parameters)
        if not reason and not self._key_columns and end is None and self._rows_seen > self._rows_max:
            reason = f"it has no key and gives more than {self._rows_max} rows"
        if reason:
            return None, self._query.node, reason
        node = self._node(parameters, end)
        return ViewDefinition(node, self._key_columns, self._query.tables, self._order(end), self._views), node, ""

    def names(self) -> list[bytes]:
        """Those of the views that have been asked for."""
        return [each.definition.name for each in self._bindings.values() if each.definition is not None]

    def known(self, parameters: tuple[Value, ...]) -> ViewDefinition | None:
        """The view for these parameters, if they have been seen often enough before."""
        constants = self._constants(parameters)
        binding = None if constants is None else self._bindings.get(constants)
        if constants is None or binding is None:
            return None
        self._bindings.move_to_end(constants)
        return binding.definition

    def _constants(self, parameters: tuple[Value, ...]) -> tuple[Any, ...] | None:
        """What tells the view for these parameters from others; None if there is to be none."""
        end = self._end(parameters)
        if self._refused:
            self._refused -= 1
            return None
        if not self._key_columns and end is None and self._rows_seen > self._rows_max:
            return None
        if len(self._inside) > CONSTANTS_MAX:
            return None
        return (end, *[(type(parameters[each]), parameters[each]) for each in self._inside])

    def _definition(self, parameters: tuple[Value, ...], store: Store) -> ViewDefinition | None:
        """The view for these parameters, once they have been seen often enough, by whomever, here or before a restart."""
        constants = self._constants(parameters)
        if constants is None:
            return None
        binding = self._bindings.get(constants)
        if binding is None:
            binding = self._bindings[constants] = _Binding()
            if len(self._bindings) > BINDINGS_MAX:
                self._bindings.popitem(last=False)
        else:
            self._bindings.move_to_end(constants)
        binding.uses += 1
        is_new = binding.uses < self._uses_before_view and not self._is_declared
        familiar = store.inherited if self._inside or not self._key_columns else store.known_views
        if is_new and not familiar:
            return None
        if binding.definition is None:
            node = self._node(parameters, constants[0])
            order = self._order(constants[0])
            found = ViewDefinition(node, self._key_columns, self._query.tables, order, self._views)
            if is_new and found.name not in familiar:
                return None
            store.inherited.discard(found.name)
            binding.definition = found
        return binding.definition

    def _order(self, end: int | None) -> tuple[int, ...]:
        """What the view of all rows of a key is ordered by, for ranges; one that ends has no need of it."""
        return () if self._range is None or end is not None else self._range.order

    def _end(self, parameters: tuple[Value, ...]) -> int | None:
        """How many rows of each key the view has to keep, rounded up; None for all."""
        if not self._ends or self._limit is None:
            return None
        limit, offset = self._limit((), parameters), self._offset((), parameters) if self._offset else 0
        if not isinstance(limit, int) or not isinstance(offset, int):
            return None
        return next((each for each in LIMITS if each >= limit + offset), None)

    def _node(self, parameters: tuple[Value, ...], end: int | None) -> Node:
        values = {each: parameters[each] for each in self._inside}
        node = bound_node(self._query.node, values)
        if self.folds_filter:
            node = Join((node,), filter=self._query.filter)
        if self._alternatives is not None:
            return self._alternatives.node(node)
        if end is not None:
            order = tuple(
                Order(bound(item.expression, values), item.descending) for item in self._query.order_by
            )
            node = TopK(node, self._key_columns, order, end)
        return node


def _has_end(node: Node) -> bool:
    """Whether all of its rows together are no more than some LIMIT."""
    match node:
        case TopK(partition=()):
            return True
        case Join(inputs=(source,)):
            return _has_end(source)
        case _:
            return False
