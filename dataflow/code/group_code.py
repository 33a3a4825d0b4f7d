"""Generated code of aggregates: accumulators by group, and the row that changes with them.

A change of a group that is not held is dropped before anything else is done with it, which
is what makes writes to unread keys cheap. All rows of a step are absorbed first; then each
changed group retracts its old output row and emits its new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dataflow.aggregates.accumulator import Accumulator, accumulator
from dataflow.code.lookup_code import Output, input_columns
from dataflow.expressions.expression import Column, columns_of
from dataflow.expressions.source import Function, FunctionSource, Key, text_key
from dataflow.plan.node import Aggregate, AggregateFunction, Columns, expressions_of
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement, ArrangementKind
from dataflow.state.ordered_bag import OrderedBag

States = dict[Key, list[Any]]


class GroupWriter:
    """The parts of a group's code: its key, its slots, absorbing a row, the output row."""

    def __init__(self, code: FunctionSource, node: Aggregate, flat: Columns | None = None, only_grows: bool = False) -> None:
        """The rows of a delta are pairs of row and weight; with `flat`, these columns and the weight.

        `only_grows`: no row is ever taken away again.
        """
        self.code, self.node = code, node
        self.columns = input_columns(["row"], [len(node.input.types)])
        self.change = "row, w"
        if flat is not None:
            self.columns = {column: f"v{column}" for column in flat}
            self.change = ", ".join([*self.columns.values(), "w"]) if flat else "w,"
        shown = [c for c in node.group if text_key(node.input.types[c]) is not None]
        representatives = tuple(
            AggregateFunction("any_value", (Column(c, node.input.types[c]),), node.input.types[c]) for c in shown
        )
        self.accumulators: list[tuple[Accumulator, list[str]]] = []
        initial = ["0"]
        for function in (*representatives, *node.functions):
            made = accumulator(code, function, only_grows)
            slots = [f"s[{len(initial) + i}]" for i in range(len(made.initial))]
            initial.extend(made.initial)
            self.accumulators.append((made, slots))
        self.shown = {column: self.accumulators[i] for i, column in enumerate(shown)}
        self.fresh = f"[{', '.join(initial)}, ()]".replace("OrderedBag", code.constant(OrderedBag))

    @property
    def is_cheap(self) -> bool:
        """Whether the output row takes constant time: nothing but counts and sums."""
        return all(first.isdigit() for made, _ in self.accumulators for first in made.initial)

    @property
    def is_count(self) -> bool:
        """Whether nothing of a row matters but its group."""
        return not any(made.initial for made, _ in self.accumulators)

    @property
    def counts_rows(self) -> bool:
        """Whether a row more or less always changes what goes out."""
        return any(each.function == "count_star" for each in self.node.functions)

    def group_key(self) -> str:
        group = self.node.group
        return self.code.key([self.columns[c] for c in group], [self.node.input.types[c] for c in group])

    def absorb(self, weight: str) -> None:
        """Take `row` into the state `s`."""
        depth = self.code.depth
        self.code.line(f"s[0] += {weight}")
        for made, slots in self.accumulators:
            made.absorb(self.code, slots, self.columns, weight)
            self.code.close(depth)

    def output_row(self, key: str) -> str:
        """The row of the state `s` of group `key`; `()` if it has no rows."""
        group = []
        for number, column in enumerate(self.node.group):
            if column in self.shown:
                made, slots = self.shown[column]
                group.append(made.result(self.code, slots))
            else:
                group.append(key if len(self.node.group) == 1 else f"{key}[{number}]")
        values = [made.result(self.code, slots) for made, slots in self.accumulators[len(self.shown) :]]
        row = f"({', '.join([*group, *values])},)" if group or values else "()"
        return row if not self.node.group else f"({row} if s[0] else ())"


def group_loader(operator: Operator) -> Callable[..., States]:
    """input rows → the state of each of their groups, put into the dict `states` if one is given.

    Where rows come in several pieces, the groups have their own rows when it `ends`.
    """
    node = operator.node
    assert isinstance(node, Aggregate)
    code = FunctionSource(f"group_{operator.number}_load", "bag, states=None, ends=True")
    writer = GroupWriter(code, node)
    code.line("if states is None: states = {}")
    if not node.group:
        code.line(f"if () not in states: states[()] = {writer.fresh}")
    with code.block("for row, w in bag.items():"):
        code.line(f"g = {writer.group_key()}")
        code.line("s = states.get(g)")
        with code.block("if s is None:"):
            code.line(f"s = states[g] = {writer.fresh}")
        writer.absorb("w")
    with code.block("for g, s in states.items() if ends else ():"):
        code.line(f"s[-1] = {writer.output_row('g')}")
    code.line("return states")
    return code.build()


def fresh_state(operator: Operator) -> Callable[[], list[Any]]:
    node = operator.node
    assert isinstance(node, Aggregate)
    code = FunctionSource(f"group_{operator.number}_fresh", "")
    code.line(f"return {GroupWriter(code, node).fresh}")
    return code.build()


def columns_used(node: Aggregate) -> Columns:
    """The columns of its input that an aggregate looks at."""
    return tuple(sorted({*node.group, *(column for each in expressions_of(node) for column in columns_of(each))}))


def group_update(operator: Operator, state: Arrangement) -> Function:
    """delta of the input → delta of the aggregate."""
    assert isinstance(operator.node, Aggregate)
    code = FunctionSource(f"group_{operator.number}", "delta")
    write_update(GroupWriter(code, operator.node), state, Output(code, operator))
    return code.build()


class RowOutput(Protocol):
    """Where the rows that an operator gives out go."""

    def begin(self) -> None: ...

    def row(self, row: str, weight: str) -> None: ...

    def end(self) -> None: ...


def write_update(writer: GroupWriter, state: Arrangement, output: RowOutput) -> None:
    """The code that takes `delta` into the state, and what changes by it out."""
    code, node = writer.code, writer.node
    index = code.constant(state.index)
    parts = state.kind is ArrangementKind.PARTS
    held = "p" if parts else "g"
    output.begin()
    top = code.depth
    absorb_delta(code, writer, state)
    code.open(f"for g, {'(p, part, s)' if parts else 's'} in changed.items():")
    code.line("old = s[-1]")
    code.line(f"new = {writer.output_row('g')}")
    if parts:
        code.line("if not s[0]: del part[g]")
    elif state.full and node.group:
        code.line(f"if not s[0]: del {index}[g]")
    code.open("if new != old:")
    code.line("s[-1] = new")
    if state.views:
        code.line(f"{code.constant(state.touched.add)}({held})")
    with code.block("if old:"):
        output.row("old", "-1")
    with code.block("if new:"):
        output.row("new", "1")
    code.close(top)
    output.end()


def absorb_delta(code: FunctionSource, writer: GroupWriter, state: Arrangement, delta: str = "delta") -> None:
    """Take the rows of `delta` into the groups that are held; `changed` has those afterwards."""
    parts = state.kind is ArrangementKind.PARTS
    code.line("changed = {}")
    top = code.depth
    code.open(f"for {writer.change} in {delta}:")
    find_state(code, writer, state)
    code.line("changed[g] = s" if not parts else "changed[g] = (p, part, s)")
    writer.absorb("w")
    code.close(top)


def find_state(code: FunctionSource, writer: GroupWriter, state: Arrangement, known: bool = False) -> None:
    """Open a block in which `s` is the state of the group `g` of `row`, if that is held; `g` may be known."""
    index = code.constant(state.index)
    parts = state.kind is ArrangementKind.PARTS
    held = "p" if parts else "g"
    if not known:
        code.line(f"g = {writer.group_key()}")
    if parts:
        # A part of the group's key decides whether it is held; the rest finds it in there.
        picked = [f"g[{column}]" for column in state.columns]
        code.line(f"p = {picked[0] if len(picked) == 1 else '(' + ', '.join(picked) + ')'}")
        code.line(f"part = {index}.get(p)")
        code.open("if part is not None:")
        code.line("s = part.get(g)")
    else:
        code.line(f"s = {index}.get(g)")
        if not state.full:
            code.open("if s is not None:")
    if state.recorders:
        with code.block(f"if {held} not in {code.constant(state.before)}:"):
            code.line(f"{code.constant(state.record)}({held}, {index}.get({held}))")
    if parts or state.full:
        with code.block("if s is None:"):
            code.line(f"s = {'part' if parts else index}[g] = {writer.fresh}")
