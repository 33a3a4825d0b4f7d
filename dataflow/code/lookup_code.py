"""Code shared by all operators: reading an arrangement, changing one, passing rows on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dataflow.expressions.source import FunctionSource
from dataflow.plan.key_tracing import column_at
from dataflow.plan.node import Aggregate, Columns, Join, LeftJoin, Node, SemiJoin, TopK, source_column
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement, ArrangementKind
from dataflow.values.types import SqlType


def not_null(code: FunctionSource, key: str, width: int) -> None:
    """Open a block for keys without NULL: an equality never holds for it."""
    if width == 1:
        code.open(f"if {key} is not None:")
    elif width:
        code.open(f"if None not in {key}:")


def fetch(code: FunctionSource, arrangement: Arrangement, key: str, old: bool = False, missing: Sequence[str] = ()) -> str:
    """A variable with what the arrangement has for `key`; what is done about a hole are the lines `missing`, or it is computed.

    With `old` it is the state before the running step, as a bag except for UNIQUE kinds.
    """
    now = code.fresh("f")
    code.line(f"{now} = {code.constant(arrangement.index)}.get({key})")
    if not arrangement.full:
        with code.block(f"if {now} is None:"):
            for line in missing or [f"{now} = {code.constant(arrangement.fill)}({key})"]:
                code.line(line)
    if not old:
        return now
    # What was before the step, if it changed the key, is known only after a hole is filled.
    found = code.fresh("f")
    code.line(f"{found} = {code.constant(arrangement.before)}.get({key})")
    with code.block(f"if {found} is None:"):
        is_state = arrangement.kind in (ArrangementKind.STATE, ArrangementKind.PARTS, ArrangementKind.WINDOWS)
        bag = f"({now} if {now} is None else {code.constant(arrangement.bag)}({now}))"
        code.line(f"{found} = {bag if is_state else now}")
    return found


def each_row(code: FunctionSource, arrangement: Arrangement, found: str, row: str, old: bool = False) -> str:
    """Open a block that runs for each row of what `fetch` gave; returns the row's weight."""
    kind = arrangement.kind
    if kind is ArrangementKind.UNIQUE:
        code.open(f"if {found}:")
        code.line(f"{row} = {found}")
        return "1"
    if kind is ArrangementKind.BAG or old:
        weight = code.fresh("m")
        code.open(f"if {found}:")
        code.open(f"for {row}, {weight} in {found}.items():")
        return weight
    if kind is ArrangementKind.STATE:
        code.open(f"if {found} is not None and {found}[-1]:")
        code.line(f"{row} = {found}[-1]")
        return "1"
    code.open(f"if {found}:")
    state = code.fresh("s")
    code.open(f"for {state} in {found}.values():")
    if kind is ArrangementKind.WINDOWS:
        weight = code.fresh("m")
        code.open(f"for {row}, {weight} in {state}[-1].items():")
        return weight
    code.line(f"{row} = {state}[-1]")
    code.open(f"if {row}:")
    return "1"


def loops(arrangement: Arrangement, old: bool) -> bool:
    """Whether `each_row` opens one loop; two nested ones (of windows) cannot be left by one break."""
    return arrangement.kind in (ArrangementKind.BAG, ArrangementKind.PARTS) or (old and arrangement.kind is not ArrangementKind.UNIQUE)


def times(*weights: str) -> str:
    factors = [weight for weight in weights if weight != "1"]
    return " * ".join(factors) or "1"


def equal(code: FunctionSource, left: str, right: str, kind: SqlType, other: SqlType) -> str:
    """A condition: two values are equal as SQL has it, which NULL never is."""
    return f"{left} is not None and {code.part(left, kind)} == {code.part(right, other)}"


def store_row(code: FunctionSource, store: Arrangement, row: str, weight: str, types: Sequence[SqlType]) -> None:
    """Apply one row of a delta to an arrangement; holes stay holes."""
    key = code.fresh("k")
    index = code.constant(store.index)
    start = code.depth
    code.line(f"{key} = {code.row_key(row, store.columns, types)}")
    if not store.full:
        code.open(f"if {key} in {index}:")
    if store.recorders:
        with code.block(f"if {key} not in {code.constant(store.before)}:"):
            code.line(f"{code.constant(store.record)}({key}, {index}.get({key}))")
    if store.kind is ArrangementKind.UNIQUE:
        gone = f"del {index}[{key}]" if store.full else f"{index}[{key}] = ()"
        with code.block(f"if {weight} > 0:"):
            code.line(f"{index}[{key}] = {row}")
        with code.block(f"elif {index}.get({key}) == {row}:"):
            code.line(gone)
    else:
        bag, count = code.fresh("b"), code.fresh("n")
        if store.full:
            code.line(f"{bag} = {index}.get({key})")
            with code.block(f"if {bag} is None:"):
                code.line(f"{bag} = {index}[{key}] = {code.constant(store.store) + '({})' if store.orders else '{}'}")
        else:
            code.line(f"{bag} = {index}[{key}]")
        code.line(f"{count} = {bag}.get({row}, 0) + {weight}")
        with code.block(f"if {count}:"):
            if store.orders:
                with code.block(f"if {row} not in {bag}:"):
                    code.line(f"{bag}.place({row})")
                with code.block("else:"):
                    code.line(f"{bag}.count_again({row})")
            code.line(f"{bag}[{row}] = {count}")
        with code.block("else:"):
            if store.orders:
                with code.block(f"if {row} in {bag}:"):
                    code.line(f"{bag}.displace({row})")
            code.line(f"{bag}.pop({row}, None)")
            if store.full:
                with code.block(f"if not {bag}:"):
                    code.line(f"del {index}[{key}]")
    if store.views:
        code.line(f"{code.constant(store.touched.add)}({key})")
    code.close(start)


class Output:
    """Where an operator's rows go: its arrangements, and its consumers if it has any."""

    def __init__(self, code: FunctionSource, operator: Operator) -> None:
        self.code = code
        self.operator = operator
        self.passes_on = bool(operator.consumers)
        self.stores = list(operator.stores.values())

    def begin(self) -> None:
        if self.passes_on:
            self.code.line("out = []")
            self.code.line("emit = out.append")

    def row(self, row: str, weight: str) -> None:
        if self.stores and not row.isidentifier():
            name = self.code.fresh("x")
            self.code.line(f"{name} = {row}")
            row = name
        for store in self.stores:
            store_row(self.code, store, row, weight, self.operator.types)
        if self.passes_on:
            self.code.line(f"emit(({row}, {weight}))")

    def end(self) -> None:
        self.code.line("return out" if self.passes_on else "return ()")


def row_source(code: FunctionSource, outputs: tuple[object, ...] | None, rows: Sequence[str], columns: Mapping[int, str]) -> str:
    """Source of the output row made of the input rows' variables."""
    if outputs is None:
        return " + ".join(rows)
    values = [code.value(each, columns) for each in outputs]  # type: ignore[arg-type]
    return f"({', '.join(values)},)" if values else "()"


def input_columns(rows: Sequence[str], widths: Sequence[int]) -> dict[int, str]:
    """Where each position of the concatenated row is read."""
    result: dict[int, str] = {}
    for row, width in zip(rows, widths, strict=True):
        for column in range(width):
            result[len(result)] = f"{row}[{column}]"
    return result


def interest(operator: Operator) -> list[tuple[Arrangement, Columns]] | None:
    """Who wants the operator's rows: for each, the index of keys it holds and the output columns of its key.

    None if someone wants every row.
    """
    wanted: list[tuple[Arrangement, Columns]] = []
    for store in operator.stores.values():
        if store.full:
            return None
        wanted.append((store, store.columns))
    for consumer, _ in operator.consumers:
        state = consumer.state
        if not consumer.is_partial or state is None:
            return None
        node = consumer.node
        assert isinstance(node, Aggregate | TopK)
        inner = node.group if isinstance(node, Aggregate) else range(len(node.types))
        wanted.append((state, tuple(inner[c] for c in state.columns)))
    return wanted


def guard(code: FunctionSource, operator: Operator, number: int, row: str, width: int | None = None) -> None:
    """Skip rows of an input that can only lead to holes, where their own columns tell.

    With `width`, only that many of the row's columns may be read.
    """
    node = operator.node
    wanted = interest(operator)
    if wanted is None:
        return
    conditions = []
    for arrangement, columns in wanted:
        inner = [_column_of_input(node, number, column) for column in columns]
        if any(c is None or (width is not None and c >= width) for c in inner):
            return
        key = code.row_key(row, tuple(c for c in inner if c is not None), operator.inputs[number].types)
        conditions.append(f"{key} in {code.constant(arrangement.index)}")
    if conditions:
        code.open(f"if {' or '.join(conditions)}:")


def _column_of_input(node: Node, number: int, column: int) -> int | None:
    """The column of input `number` that always equals an output column."""
    match node:
        case Join():
            return column_at(node, number, column)
        case LeftJoin():
            position = source_column(node.outputs, column)
            return position if number == 0 and position is not None and position < len(node.left.types) else None
        case SemiJoin():
            return column if number == 0 else None
        case _:
            return None
