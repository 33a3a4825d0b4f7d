"""Generated code of left joins and semi joins, where it counts whether a row has a match.

A changed left row looks its matches up. A change on the right is taken key by key: for each
left row of the key, the matches after the step and the step's net change tell whether there
were any before. What is retracted goes out first, so each key's output is a valid segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dataflow.code.join_code import reads_before
from dataflow.code.lookup_code import (
    Output,
    each_row,
    equal,
    fetch,
    guard,
    input_columns,
    loops,
    not_null,
    row_source,
    times,
)
from dataflow.expressions.source import Function, FunctionSource
from dataflow.plan.node import Columns, LeftJoin, SemiJoin, source_column
from dataflow.plan.pipeline import lookups_of
from dataflow.runtime.operator import BagReader, Operator
from dataflow.state.arrangement import Arrangement
from dataflow.state.delta import Change

Emit = Callable[[str, str], None]
"""What is done with each row that goes out: called with the sources of row and weight."""
Missing = Callable[[str], Sequence[str]]
"""The lines for a hole at a key, none where it is to be computed."""


def match_update(operator: Operator, number: int) -> Function:
    code = FunctionSource(f"match_{operator.number}_input_{number}", "delta")
    writer = MatchWriter(code, operator)
    output = Output(code, operator)
    output.begin()
    if number == 0:
        top = code.depth
        code.open("for r0, w in delta:")
        guard(code, operator, 0, "r0")
        writer.left_row("w", output.row, old=reads_before(operator, 0, 1))
        code.close(top)
    else:
        writer.right_delta(output)
    output.end()
    return code.build()


def match_computer(operator: Operator, columns: Columns, read: BagReader, given: Columns) -> BagReader:
    """key → rows; `read` gives the left rows by `given`, left columns that `columns` copy."""
    node = operator.node
    assert isinstance(node, LeftJoin | SemiJoin)
    code = FunctionSource(f"match_{operator.number}_by_{'_'.join(map(str, columns))}", "key")
    parts = {column: "key" if len(columns) == 1 else f"key[{i}]" for i, column in enumerate(columns)}
    outputs = node.outputs if isinstance(node, LeftJoin) else None
    at_left = {source_column(outputs, column): parts[column] for column in reversed(columns)}
    sources = [at_left[column] for column in given]
    unsettled = [column for column in columns if parts[column] not in sources]
    code.line("out = {}")
    top = code.depth
    key = sources[0] if len(sources) == 1 else f"({', '.join(sources)})"
    code.open(f"for r0, w in {code.constant(read)}({key}).items():")

    def collect(row: str, weight: str) -> None:
        start = code.depth
        code.line(f"x = {row}")
        for column in unsettled:
            code.open(f"if {code.part(f'x[{column}]', operator.types[column])} == {parts[column]}:")
        code.line(f"out[x] = out.get(x, 0) + {weight}")
        code.close(start)

    MatchWriter(code, operator).left_row("w", collect, old=False)
    code.close(top)
    code.line("return out")
    return code.build()


def match_stream(operator: Operator) -> Callable[[Iterable[Change]], Iterator[Change]]:
    """left rows, one after the other → the rows they lead to."""
    code = FunctionSource(f"match_{operator.number}_all", "changes")
    code.open("for r0, w in changes:")
    writer = MatchWriter(code, operator)
    writer.left_row("w", lambda row, weight: code.line(f"yield ({row}), {weight}"), old=False)
    return code.build()


class MatchWriter:
    def __init__(self, code: FunctionSource, operator: Operator) -> None:
        node = operator.node
        assert isinstance(node, LeftJoin | SemiJoin)
        self.code, self.operator, self.node = code, operator, node
        self.left_types, self.right_types = node.left.types, node.right.types
        self.columns = input_columns(["r0", "r1"], [len(self.left_types), len(self.right_types)])
        self.right_of = dict(reversed(node.equalities))
        self.left_of = {right: left for left, right in reversed(node.equalities)}

    def reader(self, number: int) -> Arrangement:
        columns = next(columns for each, columns in lookups_of(self.node) if each == number)
        found = self.operator.inputs[number].reader(columns)
        assert found is not None
        return found

    def conditions(self, looked_up: frozenset[tuple[int, int]]) -> list[str]:
        """What a pair of rows must fulfil beyond the looked up columns."""
        rest = [pair for pair in self.node.equalities if pair not in looked_up]
        result = [
            equal(self.code, f"r0[{left}]", f"r1[{right}]", self.left_types[left], self.right_types[right])
            for left, right in rest
        ]
        if self.node.filter is not None:
            result.append(self.code.condition(self.node.filter, self.columns))
        return result

    def key(self, arrangement: Arrangement, row: str, other: dict[int, int], types: tuple[object, ...]) -> str:
        """The key of `arrangement` made of a row of the other side."""
        columns = tuple(other[column] for column in arrangement.columns)
        name = self.code.fresh("k")
        self.code.line(f"{name} = {self.code.row_key(row, columns, types)}")  # type: ignore[arg-type]
        return name

    def output_row(self) -> str:
        if isinstance(self.node, SemiJoin):
            return "r0"
        return row_source(self.code, self.node.outputs, ["r0", "r1"], self.columns)

    def nulls(self) -> str:
        return self.code.constant((None,) * len(self.right_types))

    def left_row(self, weight: str, emit: Emit, old: bool, missing: Missing = lambda key: ()) -> None:
        """Everything that the row `r0` of the left input leads to."""
        code, right = self.code, self.reader(1)
        top = code.depth
        code.line("matched = False")
        key = self.key(right, "r0", self.left_of, self.left_types)
        not_null(code, key, len(right.columns))
        found = fetch(code, right, key, old, missing(key))
        times_found = each_row(code, right, found, "r1", old)
        looked_up = frozenset((self.left_of[column], column) for column in right.columns)
        for condition in self.conditions(looked_up):
            code.open(f"if {condition}:")
        code.line("matched = True")
        if isinstance(self.node, LeftJoin):
            emit(self.output_row(), times(weight, times_found))
            code.close(top)
            code.open("if not matched:")
            code.line(f"r1 = {self.nulls()}")
            emit(self.output_row(), weight)
        else:
            if loops(right, old):
                code.line("break")
            code.close(top)
            code.open("if not matched:" if self.node.negated else "if matched:")
            emit("r0", weight)
        code.close(top)

    def right_delta(self, output: Output) -> None:
        """For each key that changed on the right, and each left row of that key."""
        code = self.code
        top = code.depth
        self.group_changes()
        code.open("for changes in groups.values():")
        left_weight = self.left_rows()
        self.transition(left_weight, output.row)
        code.close(top)

    def group_changes(self) -> None:
        """`groups`: the changes of the right input in `delta`, by what is equal in a match."""
        code = self.code
        columns = tuple(right for _, right in sorted(self.right_of.items()))
        top = code.depth
        code.line("groups = {}")
        code.open("for r1, w in delta:")
        code.line(f"k = {code.row_key('r1', columns, self.right_types)}")
        not_null(code, "k", len(columns))
        code.line("if k in groups: groups[k].append((r1, w))")
        code.line("else: groups[k] = [(r1, w)]")
        code.close(top)

    def left_rows(self, missing: Missing = lambda key: ()) -> str:
        """Open a block for each left row `r0` that `changes` of one key concern, with those that match it as `hits`; its weight."""
        code, left = self.code, self.reader(0)
        code.line("r1 = changes[0][0]")
        left_key = self.key(left, "r1", self.right_of, self.right_types)
        found = fetch(code, left, left_key, missing=missing(left_key))
        left_weight = each_row(code, left, found, "r0")
        looked_up = frozenset((column, self.right_of[column]) for column in left.columns)
        conditions = " and ".join(f"({each})" for each in self.conditions(looked_up))
        code.line(f"hits = [(r1, w) for r1, w in changes if {conditions}]" if conditions else "hits = changes")
        return left_weight

    def transition(self, left_weight: str, emit: Emit, missing: Missing = lambda key: ()) -> None:
        """What `hits` on the right change in the output for the left row `r0`."""
        code, right = self.code, self.reader(1)
        code.line("net = 0")
        with code.block("for r1, w in hits:"):
            code.line("net += w")
        inner = code.depth
        with code.block("if net:"):
            # By the left row: changes may agree on the columns looked up there and still have other keys.
            self.count_matches(right, self.key(right, "r0", self.left_of, self.left_types), missing)
        if isinstance(self.node, LeftJoin):
            code.open("if net and total == net:")
            code.line(f"r1 = {self.nulls()}")
            emit(self.output_row(), times("-1", left_weight))
            code.close(inner)
            code.open("for r1, w in hits:")
            emit(self.output_row(), times("w", left_weight))
            code.close(inner)
            code.open("if net and not total:")
            code.line(f"r1 = {self.nulls()}")
            emit(self.output_row(), left_weight)
        else:
            code.open("if net and (total == net or not total):")
            code.line(f"sign = {'-1 if total else 1' if self.node.negated else '1 if total else -1'}")
            emit("r0", times("sign", left_weight))
        code.close(inner)

    def count_matches(self, right: Arrangement, key: str, missing: Missing) -> None:
        """`total`: the weight of the right rows that match `r0` after the step."""
        code = self.code
        top = code.depth
        code.line("total = 0")
        found = fetch(code, right, key, missing=missing(key))
        weight = each_row(code, right, found, "r1")
        looked_up = frozenset((self.left_of[column], column) for column in right.columns)
        for condition in self.conditions(looked_up):
            code.open(f"if {condition}:")
        code.line(f"total += {weight}")
        code.close(top)
