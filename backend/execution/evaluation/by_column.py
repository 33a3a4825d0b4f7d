"""Nodes over one large table, evaluated column at a time by the shards that have its rows.

Rows are read one by one first; a table that has more of them than `Store.column_rows_min` is scanned by column from the beginning, if what
is asked for has an exact form by column (`backend.scans.column_programs`). Otherwise, or if a shard gives up on the way, it goes on by rows.
Rows that are locked, or that the transaction has written itself, are always read one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from operator import itemgetter
from types import NoneType

import pyarrow as pa

from backend.execution.answering.sorting import sort_rows
from backend.execution.evaluation.access import best_index, bind, choose
from backend.execution.evaluation.reader import Conditions, Keys, ManyRows, Reader, Run
from backend.execution.evaluation.reading import EPOCH_TRIES_MAX, row_decoder, table_writer
from backend.execution.pace import PARAMETER_LENGTH, aside, parts
from backend.execution.rows import Rows, Weight, held
from backend.execution.transaction import EpochLost
from backend.network.scan_messages import ScanColumns
from backend.scans.column_programs import found_rows, program_of, unpacked
from controller.catalog import encode_node, encode_table
from dataflow.columns.grouping import Grouped
from dataflow.columns.vector import GaveUp
from dataflow.errors import Condition, Retryable
from dataflow.expressions.expression import Column, Expression, Literal, walk
from dataflow.expressions.rewriting import bound_node, composed
from dataflow.functions import call, is_deterministic
from dataflow.plan.node import Aggregate, Base, Columns, Join, Node, Order, TopK, expressions_of, inputs_of
from dataflow.schema import Table
from dataflow.values.types import Row, Value
from persistence.key_range import KeyRange, comparison_range
from persistence.view import VERSION_BYTES

KEYS_MAX = 100
PARAMETERS_MAX = 1_000
"""A worker compiles a query without letting others in: 50,000 values took 160 ms."""
NO_FORM = "not all of it has an exact form by column"


class LargeScan:
    """A node over the rows of one table that fulfil `where`, which finds them in the order of the primary key."""

    def __init__(self, table: Table, where: Expression | None) -> None:
        self.table = table
        self._path = choose(table, where)
        self._encoded = encode_table(table)
        self.is_scan = self._path.index is table.primary_key and not self._path.is_complete
        self.is_large = False
        """Whether it has been found to have many rows."""

    def applies(self, run: Run) -> bool:
        return not run.locks and next(run.execution.transaction.pending_rows(self.table.id), None) is None

    def prepared(self, node: Node, parameters: Sequence[Value]) -> tuple[Node, bytes]:
        """The node with its values, and as it is sent. Raises `GaveUp`."""
        if len(parameters) > PARAMETERS_MAX:
            raise GaveUp("many values")
        made = bound_values(node, parameters)
        if made is None:
            raise GaveUp("a value that is known to the session only")
        if program_of(made, self.table) is None:
            raise GaveUp(NO_FORM)
        return made, encode_node(made)

    async def batches(self, run: Run, encoded: bytes) -> list[pa.RecordBatch]:
        """The batches of all shards, one shard after the other, of a node that is `prepared`. Raises `GaveUp`."""
        store, epoch = run.execution.transaction.store, await run.epoch()
        for attempt in range(EPOCH_TRIES_MAX):
            held_epoch = 0 if epoch or store.shard_count == 1 else await store.hold_epoch()
            try:
                return await self._scan(run, encoded, epoch or held_epoch)
            except Retryable as error:
                if error.condition is Condition.SHARD_UNREACHABLE or attempt == EPOCH_TRIES_MAX - 1:
                    raise
                if epoch:
                    raise EpochLost from error
            finally:
                if held_epoch:
                    store.release_epoch(held_epoch)
        raise AssertionError("unreachable")

    async def _scan(self, run: Run, node: bytes, epoch: int) -> list[pa.RecordBatch]:
        store = run.execution.transaction.store
        start, stop = self._range(run.parameters)
        weight = Weight()

        async def collected(shard: int) -> list[bytes]:
            found = []
            batches = store.scan_columns(shard, ScanColumns(0, node, self._encoded, start, stop, epoch))
            try:
                async for batch in batches:
                    weight.add(len(batch))
                    found.append(batch)
            finally:
                await batches.aclose()
            return found

        tasks = [asyncio.ensure_future(collected(shard)) for shard in range(store.shard_count)]
        try:
            found = await asyncio.gather(*tasks)
        finally:
            for each in tasks:
                each.cancel()
        return [unpacked(each) for batches in found for each in batches]

    def _range(self, parameters: tuple[Value, ...]) -> KeyRange:
        writer = table_writer(self.table)
        bound = bind(self._path, parameters)
        alternatives = [()] if bound is None else bound.alternatives
        if len(alternatives) != 1:
            raise GaveUp("several ranges of keys")
        return comparison_range(writer.primary_key, writer.row_prefix, alternatives[0], [] if bound is None else bound.comparisons)


class ByColumn:
    """Rows by a reader, or by column where that is exact and there are many. `node` is what the shards evaluate, over the table's rows.

    `keys` are expressions over those rows, of the columns by which the reader is asked.
    """

    def __init__(self, by_rows: Reader, scan: LargeScan, keys: Sequence[Expression]) -> None:
        self._by_rows = by_rows
        self._scan = scan
        self._keys = keys

    async def found(self, run: Run, keys: Keys | None, node: Callable[[Expression | None], Node]) -> tuple[Node, list[pa.RecordBatch]] | list[Row]:
        """Rows, or what the shards have made of the node, which is given the condition that the keys are; parameters are bound."""
        rows_min = run.execution.transaction.store.column_rows_min
        if rows_min is None or not self._scan.applies(run) or (keys is not None and not 0 < len(keys) <= KEYS_MAX):
            return await self._by_rows.rows(run, keys)
        if rows_min and not self._scan.is_large:
            try:
                return await self._by_rows.rows(replace(run, rows_max=rows_min), keys)
            except ManyRows:
                self._scan.is_large = True
        wanted = node(key_condition(self._keys, keys))
        try:
            made, encoded = aside(PARAMETER_LENGTH * len(run.parameters), lambda: self._scan.prepared(wanted, run.parameters))
            return made, await self._scan.batches(run, encoded)
        except GaveUp:
            return await self._by_rows.rows(run, keys)

    def obstacle(self, node: Node, parameters: Sequence[Value]) -> str:
        """Why the node is not evaluated by column, in words; empty if it is."""
        made = bound_values(node, parameters) if len(parameters) <= PARAMETERS_MAX else None
        return "" if made is not None and program_of(made, self._scan.table) is not None else NO_FORM


def key_condition(columns: Sequence[Expression], keys: Keys | None) -> Expression | None:
    """That the columns have one of the keys."""
    if keys is None:
        return None
    alternatives = []
    for values in keys.values():
        terms = [
            call("is null", each) if value is None else call("=", each, Literal(value, each.type))
            for each, value in zip(columns, values)
        ]  # a key's NULLs are equal
        alternatives.append(terms[0] if len(terms) == 1 else call("and", *terms))
    return alternatives[0] if len(alternatives) == 1 else call("or", *alternatives)


def all_of(conditions: Sequence[Expression | None]) -> Expression | None:
    given = [each for each in conditions if each is not None]
    return None if not given else given[0] if len(given) == 1 else call("and", *given)


def bound_values(node: Node, parameters: Sequence[Value]) -> Node | None:
    """The node with its values; None if there is one that only this process knows."""
    values = dict(enumerate(parameters))
    made = bound_node(node, values)
    literals = (each for expression in _expressions(made) for each in walk(expression) if isinstance(each, Literal))
    return made if all(isinstance(each.value, _VALUES) for each in literals) else None


def _expressions(node: Node) -> list[Expression]:
    return [*expressions_of(node), *(each for inner in inputs_of(node) for each in _expressions(inner))]


_VALUES = (int, float, str, bytes, Decimal, NoneType)


class ColumnAggregate:
    """An aggregate over the rows of a table that pass a filter."""

    def __init__(self, inner: ByColumn, node: Aggregate, conditions: Conditions) -> None:
        self._inner = inner
        self._node = node
        self._conditions = conditions

    async def rows(self, run: Run, keys: Keys | None) -> list[Row]:
        found = await self._inner.found(run, keys, self._with)
        if isinstance(found, list):
            return found
        node, batches = found
        assert isinstance(node, Aggregate)
        rows = aside(sum(each.num_rows for each in batches), lambda: _rows_of(node, batches))
        return held(parts(rows))

    def obstacle(self, parameters: Sequence[Value]) -> str:
        return self._inner.obstacle(self._with(None), parameters)

    def _with(self, condition: Expression | None) -> Node:
        source = self._node.input
        base, outputs, where = (source, None, None) if isinstance(source, Base) else (source.inputs[0], source.outputs, source.filter)  # type: ignore[union-attr]
        joined = all_of([where, *self._conditions, condition])
        if outputs is None:
            outputs = tuple(Column(place, kind) for place, kind in enumerate(base.types))
        return replace(self._node, input=Join((base,), filter=joined, outputs=outputs))


def _rows_of(node: Aggregate, batches: Sequence[pa.RecordBatch]) -> list[Row]:
    grouped = Grouped.of(node)
    assert grouped is not None
    for each in batches:
        grouped.add_batch(each)
    return grouped.rows()


def column_aggregate(by_rows: Reader, tables: Mapping[int, Table], node: Aggregate, columns: Columns, conditions: Conditions) -> Reader:
    """The aggregate by column where that may be; `columns` and `conditions` are about its group columns."""
    source = node.input
    is_one = isinstance(source, Join) and len(source.inputs) == 1 and not source.equalities
    base = source.inputs[0] if isinstance(source, Join) and is_one else source
    table = tables.get(base.table) if isinstance(base, Base) else None
    if table is None:
        return by_rows
    outputs = source.outputs if isinstance(source, Join) else None
    groups = [composed(Column(each, source.types[each]), outputs) for each in node.group]
    own = tuple(composed(each, groups) for each in conditions)
    where = all_of([source.filter if isinstance(source, Join) else None, *own])
    keys = [groups[each] for each in columns]
    named = {each.index for each in keys if isinstance(each, Column)}
    scan = LargeScan(table, where)
    if not scan.is_scan or (named and best_index(table, named) is not None):
        return by_rows
    if not all(map(is_deterministic, [*keys, *_expressions(node), *conditions])):
        return by_rows
    return ColumnAggregate(ByColumn(by_rows, scan, keys), node, own)


class ColumnFirstRows:
    """The rows of a table that may be the first ones in an order, in the order of the primary key."""

    def __init__(self, inner: ByColumn, base: Base, table: Table, where: Expression | None, order: Sequence[Order]) -> None:
        self._inner = inner
        self._base = base
        self._where = where
        self._order = tuple(order)
        self._decode = row_decoder(table)

    async def rows(self, run: Run, keys: Keys | None, stop: int) -> tuple[list[Row], int]:
        """At least the first `stop` of them, if there are so many, and how many there are."""
        found = await self._inner.found(run, keys, lambda condition: self._with(condition, stop))
        if isinstance(found, list):
            return found, len(found)
        pairs = [pair for each in found[1] for pair in zip(each.column(0).to_pylist(), each.column(1).to_pylist())]
        if run.execution.transaction.store.shard_count > 1:
            sort_rows(pairs, itemgetter(0))
        decode = self._decode
        out: Rows[Row] = Rows()
        for part in parts(pairs):
            out.add([decode(value[VERSION_BYTES:]) for _, value in part])
        return out, found_rows(found[1])

    def obstacle(self, parameters: Sequence[Value]) -> str:
        return self._inner.obstacle(self._with(None, 1), parameters)

    def _with(self, condition: Expression | None, stop: int) -> Node:
        return TopK(Join((self._base,), filter=all_of([self._where, condition])), (), self._order, stop)


def column_first_rows(
    by_rows: Reader, base: Node, table: Table, where: Expression | None, order: Sequence[Order], columns: Columns
) -> ColumnFirstRows | None:
    """None if it is read by rows, whatever it has."""
    scan = LargeScan(table, where)
    if not isinstance(base, Base) or not scan.is_scan or (columns and best_index(table, set(columns)) is not None):
        return None
    given = [*([] if where is None else [where]), *(each.expression for each in order)]
    if not all(map(is_deterministic, given)):
        return None
    keys = [Column(each, base.types[each]) for each in columns]
    return ColumnFirstRows(ByColumn(by_rows, scan, keys), base, table, where, order)
