"""One shard's dataflow: views that come and go, epochs that change them, keys that fill and leave.

    engine = Engine(source)
    view = engine.add_view(node, key=(0,))
    engine.apply(epoch, {table: delta})        # phase one: updates
    engine.lookup(view, [(5,)])                # Hit or Hole, for each key
    engine.upquery(view, [(5,)])               # phase two: fill holes as of this epoch

Invariants, checked by `validate`:
1. A filled key equals the query evaluated from scratch on the base tables at this epoch.
2. A change of a key that an operator does not hold is dropped there and nowhere else.
3. If a stateful operator does not hold a key, no key that depends on it is filled.
4. No full state depends on a stateful operator that is partial.
5. No weight in a base table or a view is negative once an epoch has closed.

The source must already contain an epoch's changes when `apply` is called: what is missing
in memory is read from there. Knows nothing of other shards, of time, or of storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dataflow.expressions.expression import Column
from dataflow.expressions.source import Key, value_key
from dataflow.plan.join_shape import is_unique
from dataflow.plan.key_tracing import traced
from dataflow.plan.node import Base, Columns, Node, Order
from dataflow.plan.placement import COMPUTED_KEY, NO_KEY, NOT_PARTIAL, place
from dataflow.runtime.graph import Graph
from dataflow.runtime.loading import load, take_over
from dataflow.runtime.operator import Operator, below
from dataflow.runtime.prefetch import prefetch
from dataflow.runtime.upquery import BaseSource
from dataflow.runtime.validation import validate
from dataflow.state.arrangement import HOLE, Arrangement, ArrangementKind, Handle, Hit, Hole
from dataflow.state.clock import Clock, MemoryReport
from dataflow.state.delta import Delta, ordered, rows_of
from dataflow.state.eviction import Evictor
from dataflow.state.memory import Meter
from dataflow.state.sorted_rows import OrderedRows, entry_function
from dataflow.values.ordering import Bound, range_bound
from dataflow.values.types import Row, Value

KEYS_AT_ONCE = 256


class CannotFollow(Exception):
    """These views have missed changes of an epoch, each because of an error: they are to be removed. All others are at the epoch."""

    def __init__(self, views: Mapping[View, Exception]) -> None:
        super().__init__(views)
        self.views = views


class View:
    """A query kept up to date, by the columns of its key. Made by `Engine.add_view`."""

    def __init__(
        self, number: int, node: Node, key: Columns, operator: Operator, arrangement: Arrangement, reason: str
    ) -> None:
        self.number = number
        self.node = node
        self.key = key
        self.operator = operator
        self.arrangement = arrangement
        self.order: Columns = ()
        self.reason = reason or arrangement.reason
        """Why the view is full, empty if it is partial."""
        columns = arrangement.columns
        self.index_key = value_key([key.index(column) for column in columns], [node.types[column] for column in columns])
        """From values of the view's key columns to the key by which the arrangement knows them."""

    @property
    def is_full(self) -> bool:
        return self.arrangement.full

    @property
    def is_unique(self) -> bool:
        return is_unique(self.node, self.arrangement.columns)


class Engine:
    def __init__(
        self, source: BaseSource, distributed: bool = False, partial: bool = True, clock: Callable[[], float] | None = None
    ) -> None:
        """Without `partial`, every view is full: what it is good for is seen by leaving it out. `clock` tells how long operators take."""
        self.graph = Graph(source, distributed, clock)
        self._partial = partial
        self.views: dict[int, View] = {}
        self.epoch = 0
        self._count = 0
        self._clock = Clock(self.graph)
        self._views_of: dict[int, list[View]] = {}
        self._unpublished: set[int] = set()
        """Numbers of views that may have touched keys."""

    def close(self) -> None:
        """Let go of all state at once: what refers to each other in circles would stay for long."""
        self.graph.close()

    # -- transitions

    def add_view(
        self, node: Node, key: Columns, order: Columns = (), prepared: Engine | None = None, full: str = ""
    ) -> View:
        """Keep `node` by `key` from now on. A partial view starts empty; a full one is computed here.

        With `order`, the rows of each key are kept sorted by these columns: see `range`.
        `prepared` has the view already, as of the same epoch: what it holds for it is taken over
        instead of computed. `full` is why it is full even if it could be partial. If something fails, the engine is as it was.
        """
        columns = tuple(sorted(set(key)))
        lookup = traced(node, columns)
        full = full if lookup else COMPUTED_KEY if columns else NO_KEY
        if not self._partial:
            full = full or NOT_PARTIAL
        placement = place(node, frozenset({lookup}), full)
        before = frozenset(self.graph.operators)
        try:
            operator = self.graph.build(placement)
            arrangement = self._arrangement_for(operator, columns, bool(order), full)
            if not self.graph.distributed:
                load(self.graph, None if prepared is None else prepared.graph)
        except BaseException:
            self.graph.undo(before)
            raise
        finally:
            if self.graph.recorded:
                self.graph.end_step(self.epoch)
        arrangement.views += 1
        self.graph.invalidate(operator)
        view = View(self._count, node, key, operator, arrangement, full)
        self._count += 1
        self.views[view.number] = view
        if order:
            self.keep_ordered(view, order)
        for table in operator.bases:
            self._views_of.setdefault(table, []).append(view)
        if prepared is not None:
            self.take_over(prepared)
        return view

    def _arrangement_for(self, operator: Operator, columns: Columns, ordered: bool, full: str) -> Arrangement:
        """Where a view reads the operator's rows by `columns`; made if it is not there."""
        arrangement = operator.reader(columns)
        grouped = arrangement is not None and arrangement.kind in (ArrangementKind.PARTS, ArrangementKind.WINDOWS)
        if arrangement is None or arrangement.columns != columns or (ordered and grouped):
            arrangement = operator.stores.get(columns) or self.graph.new_store(operator, columns, full)
        return arrangement

    def take_over(
        self, prepared: Engine, is_wanted: Callable[[Arrangement, Key], bool] = lambda arrangement, key: True
    ) -> None:
        """Fill the holes of keys that `prepared` has filled, where that `is_wanted`; it is at the same epoch, and not used any more."""
        views = {id(view.arrangement): view for view in self.views.values()}
        for arrangement, key in take_over(self.graph, prepared.graph, is_wanted):
            arrangement.touched.add(key)
            if id(arrangement) in views:
                self._unpublished.add(views[id(arrangement)].number)
        if self.graph.recorded:
            self.graph.end_step(self.epoch)

    def remove_view(self, view: View) -> None:
        """Forget the view, and every operator and arrangement that only it used."""
        del self.views[view.number]
        self._unpublished.discard(view.number)
        for table in view.operator.bases:
            self._views_of[table].remove(view)
        view.arrangement.views -= 1
        if view.order:
            self._order_arrangement(view)
        self.graph.invalidate(view.operator)
        self.graph.release(view.operator)

    # -- epochs

    def apply(self, epoch: int, changes: Mapping[int, Delta]) -> None:
        """Bring all state to `epoch`, whose changes of each table the source already contains; if some views cannot be, raise CannotFollow."""
        graph = self.graph
        if len(changes) > 1:
            graph.pending = dict(changes)
        for table, delta in changes.items():
            if graph.pending:
                del graph.pending[table]
            if len(delta) > 1:
                delta = ordered(delta)
            graph.step(table)(delta)
            if graph.recorded:
                graph.end_step(epoch)
            for view in self._views_of.get(table, ()):
                if view.arrangement.touched or view.arrangement.amended:
                    self._unpublished.add(view.number)
        self.epoch = epoch
        if graph.failed:
            raise self._take_failed()

    def _take_failed(self) -> CannotFollow:
        failed, found = dict(self.graph.failed), dict[View, Exception]()
        self.graph.failed.clear()
        for view in self.views.values():
            made_from = below(view.operator).values()
            errors = [error for operator, error in failed.items() if operator in made_from]
            if errors:
                found[view] = errors[0]
        self._unpublished -= {view.number for view in found}
        return CannotFollow(found)

    def lookup(self, view: View, keys: Sequence[Sequence[Value]]) -> list[Hit | Hole]:
        """What the view has for each key, without computing anything."""
        arrangement = view.arrangement
        result: list[Hit | Hole] = []
        for values in keys:
            key = view.index_key(values)
            arrangement.referenced.add(key)
            result.append(arrangement.lookup(key))
        return result

    def keep_ordered(self, view: View, order: Columns) -> None:
        """Keep the view's rows of each key sorted by `order`, so that `range` need not look at them all."""
        view.order = order
        self._order_arrangement(view)

    def _order_arrangement(self, view: View) -> None:
        """Have the orders that the views of an arrangement want, and no others."""
        arrangement = view.arrangement
        if arrangement.kind is not ArrangementKind.BAG:
            return
        wanted = {each.order for each in self.views.values() if each.arrangement is arrangement and each.order}
        if wanted != arrangement.orders.keys():
            types = view.node.types
            arrangement.set_orders(
                {order: entry_function(Order(Column(c, types[c])) for c in order) for order in sorted(wanted)}
            )
            self.graph.invalidate(view.operator)

    def range(
        self,
        view: View,
        key: Sequence[Value],
        low: Bound | None = None,
        high: Bound | None = None,
        limit: int | None = None,
        descending: bool = False,
    ) -> Hit | Hole:
        """The first rows of a key between two bounds on the columns of the view's order, sorted by them."""
        arrangement = view.arrangement
        index_key = view.index_key(key)
        arrangement.referenced.add(index_key)
        value = arrangement.index.get(index_key)
        if value is None:
            return Hit(()) if arrangement.full else HOLE
        rows = arrangement.bag(value)
        if not isinstance(rows, OrderedRows):  # one row, or one for each group of an aggregate
            order = [Order(Column(c, view.node.types[c])) for c in view.order]
            rows = OrderedRows(rows, {view.order: entry_function(order)})
        return Hit(tuple(rows.between(view.order, range_bound(low), range_bound(high), limit, descending)))

    def upquery(self, view: View, keys: Sequence[Sequence[Value]]) -> list[Hit]:
        """The view's rows for each key as of this epoch; holes are filled, each once."""
        index_keys = [view.index_key(values) for values in keys]
        self.fill(view, index_keys)
        result = []
        for key in index_keys:
            found = view.arrangement.lookup(key)
            assert isinstance(found, Hit)
            result.append(found)
        return result

    def fill(self, view: View, keys: Iterable[Key]) -> None:
        """Compute those of the index keys that are holes, as of this epoch."""
        arrangement, graph = view.arrangement, self.graph
        missing = [] if arrangement.full else [key for key in dict.fromkeys(keys) if key not in arrangement.index]
        try:
            for start in range(0, len(missing), KEYS_AT_ONCE):
                together = missing[start : start + KEYS_AT_ONCE]
                if len(together) > 1:
                    prefetch(graph, view.operator, arrangement.columns, together)
                for key in together:
                    if key in arrangement.index:
                        continue
                    arrangement.fill(key)
                    arrangement.touched.add(key)
                    self._unpublished.add(view.number)
        finally:
            if len(missing) > 1:
                graph.forget_prefetched()
            if self.graph.recorded:
                self.graph.end_step(self.epoch)

    @contextmanager
    def spending(self, spend: Callable[[int], None]) -> Iterator[None]:
        """Tell `spend` how many rows are read meanwhile to fill or add something; it may raise to stop that."""
        before, self.graph.spend = self.graph.spend, spend
        try:
            yield
        finally:
            self.graph.spend = before

    def evict(self, view: View, keys: Sequence[Sequence[Value]]) -> int:
        """Make keys of a partial view holes again; returns how many keys went, dependents included."""
        return self.evict_keys(view, [view.index_key(values) for values in keys])

    def evict_keys(self, view: View, keys: Iterable[Key]) -> int:
        """As `evict`, by index keys."""
        evictor = Evictor(self.graph)
        for key in keys:
            evictor.evict(view.operator, view.arrangement, key)
        self._unpublished.update(self.views)
        return evictor.count

    @property
    def meter(self) -> Meter:
        return self._clock.meter

    def measure(self) -> MemoryReport:
        """The bytes that the arrangements take."""
        return self._clock.measure()

    def enforce(self, limit_bytes: int, evictor: Evictor | None = None) -> MemoryReport:
        """Evict cold keys until the arrangements fit; the report says if full state alone does not."""
        self._unpublished.update(self.views)
        return self._clock.enforce(limit_bytes, evictor)

    def age(self) -> None:
        """What was read since last asked is what was read last; `enforce` does this itself."""
        self._clock.age()

    def reference(self, view: View, keys: Iterable[Key]) -> None:
        """These keys were read elsewhere, e.g. in shared memory."""
        view.arrangement.referenced.update(keys)

    def validate(self) -> None:
        """Check the invariants above; see `dataflow.runtime.validation`."""
        validate(self.graph)

    def take_touched(self) -> Iterator[tuple[View, set[Key], dict[Key, Row]]]:
        """For each view, the keys filled, changed or evicted since last asked, and those amended; for publishing."""
        numbers, self._unpublished = self._unpublished, set()
        views = [view for number in sorted(numbers) if (view := self.views.get(number)) is not None]
        for view in views:
            touched, amended = view.arrangement.touched, view.arrangement.amended
            if touched and amended:
                amended = {key: row for key, row in amended.items() if key not in touched}
            if touched or amended:
                yield view, touched, amended
        for view in views:
            view.arrangement.touched.clear()
            view.arrangement.amended.clear()

    def rows(self, view: View, key: Key) -> list[Row] | None:
        """The rows of an index key, None if it is a hole."""
        arrangement = view.arrangement
        value = arrangement.index.get(key)
        if value is None:
            return [] if arrangement.full else None
        if arrangement.kind is ArrangementKind.UNIQUE:
            return [value] if value else []
        return list(rows_of(arrangement.bag(value)))

    def all_rows(self, view: View, keys: Iterable[Key]) -> list[list[Row] | None]:
        """As `rows`, of many keys."""
        arrangement = view.arrangement
        if arrangement.kind is ArrangementKind.UNIQUE and not arrangement.full:
            find = arrangement.index.get
            return [[value] if value else value if value is None else [] for value in map(find, keys)]
        return [self.rows(view, key) for key in keys]

    # -- versions

    def open_handle(self, view: View) -> Handle:
        """A reader of the view as it is now, whatever later epochs do."""
        arrangement = view.arrangement
        handle = arrangement.open_handle(self.epoch)
        self.graph.recording_changed(view.operator, arrangement)
        return handle

    def close_handle(self, view: View, handle: Handle) -> None:
        handle.close()
        self.graph.recording_changed(view.operator, view.arrangement)

    def bases(self) -> Iterator[Base]:
        for operator in self.graph.bases.values():
            assert isinstance(operator.node, Base)
            yield operator.node
