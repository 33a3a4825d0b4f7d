"""Generated code of joins: one nested loop for each changed input, and for each key looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from dataflow.code.lookup_code import (
    Output,
    each_row,
    equal,
    fetch,
    guard,
    input_columns,
    not_null,
    row_source,
    times,
)
from dataflow.expressions.expression import Column
from dataflow.expressions.source import Function, FunctionSource
from dataflow.plan.key_tracing import column_at
from dataflow.plan.node import Columns, Join
from dataflow.plan.pipeline import Choice, Pipeline, PipelineStage, pipeline_of
from dataflow.runtime.operator import BagReader, Operator
from dataflow.state.arrangement import Arrangement, ArrangementKind
from dataflow.state.delta import Change

_Finish = Callable[[str, str], None]
"""What is done with each finished row: called with the sources of row and weight."""


def join_update(operator: Operator, number: int) -> Function:
    """delta of input `number` → delta of the join."""
    node = operator.node
    assert isinstance(node, Join)
    code = FunctionSource(f"join_{operator.number}_input_{number}", "delta")
    writer = JoinWriter(code, operator, node, number)
    output = Output(code, operator)
    output.begin()
    top = code.depth
    code.open(f"for r{number}, w in delta:")
    pipeline = pipeline_of(node, number)
    if len(node.inputs) > 1:
        guard(code, operator, number, f"r{number}")
    writer.checks(pipeline.stages[0])
    writer.extend(Pipeline(pipeline.stages[1:], pipeline.choice), ["w"], output.row)
    code.close(top)
    output.end()
    return code.build()


def join_computer(operator: Operator, columns: Columns, read: BagReader, start: int, given: Columns) -> BagReader:
    """key → the join's rows whose `columns` have it; `read` gives the rows of input `start`."""
    node = operator.node
    assert isinstance(node, Join)
    code = FunctionSource(f"join_{operator.number}_by_{'_'.join(map(str, columns))}", "key")
    code.line("out = {}")
    top = code.depth
    parts = {column: "key" if len(columns) == 1 else f"key[{i}]" for i, column in enumerate(columns)}
    at_start = {column_at(node, start, column): parts[column] for column in reversed(columns)}
    sources = [at_start[column] for column in given]
    key = sources[0] if len(sources) == 1 else f"({', '.join(sources)})"
    code.open(f"for r{start}, w in {code.constant(read)}({key}).items():")
    writer = JoinWriter(code, operator, node, None)
    pipeline = pipeline_of(node, start)
    writer.checks(pipeline.stages[0])
    # The start settles a column if its key was used there; several outputs may copy the same one.
    used = {at_start[column] for column in given}
    unsettled = [column for column in columns if parts[column] not in used]

    def collect(row: str, weight: str) -> None:
        code.line(f"x = {row}")
        for column in unsettled:
            code.open(f"if {code.part(f'x[{column}]', operator.types[column])} == {parts[column]}:")
        code.line(f"out[x] = out.get(x, 0) + {weight}")

    writer.extend(Pipeline(pipeline.stages[1:], pipeline.choice), ["w"], collect)
    code.close(top)
    code.line("return out")
    return code.build()


def join_stream(operator: Operator, start: int) -> Callable[[Iterable[Change]], Iterator[Change]]:
    """rows of input `start`, one after the other → the join's rows."""
    node = operator.node
    assert isinstance(node, Join)
    code = FunctionSource(f"join_{operator.number}_all", "changes")
    code.open(f"for r{start}, w in changes:")
    writer = JoinWriter(code, operator, node, None)
    pipeline = pipeline_of(node, start)
    writer.checks(pipeline.stages[0])
    rest = Pipeline(pipeline.stages[1:], pipeline.choice)
    writer.extend(rest, ["w"], lambda row, weight: code.line(f"yield ({row}), {weight}"))
    return code.build()


class JoinWriter:
    """Writes the stages of a pipeline. `changed` is the input whose delta is being extended."""

    def __init__(
        self, code: FunctionSource, operator: Operator, node: Join, changed: int | None, values: Mapping[int, str] | None = None
    ) -> None:
        """`values` are the positions that are known by themselves, not as part of a row."""
        self.code = code
        self.operator = operator
        self.node = node
        self.changed = changed
        self.rows = [f"r{number}" for number in range(len(node.inputs))]
        widths = [len(each.types) for each in node.inputs]
        self.columns: Mapping[int, str] = input_columns(self.rows, widths) | dict(values or {})
        offset = 0
        for number, width in enumerate(widths):
            own = range(offset, offset + width)
            offset += width
            if values is not None and all(position in values for position in own):
                self.rows[number] = f"({', '.join(values[position] for position in own)},)" if width else "()"

    def is_old(self, number: int) -> bool:
        return self.changed is not None and reads_before(self.operator, self.changed, number)

    def checks(self, stage: PipelineStage) -> None:
        types = self.node.input_types
        for left, right in stage.checks:
            self.code.open(f"if {equal(self.code, self.columns[left], self.columns[right], types[left], types[right])}:")
        for condition in stage.conditions:
            self.code.open(f"if {self.code.condition(condition, self.columns)}:")

    def arrangement(self, stage: PipelineStage) -> Arrangement:
        found = self.operator.inputs[stage.number].reader(stage.columns)
        assert found is not None, f"{self.operator.label} looks up an arrangement it does not hold"
        return found

    def key_positions(self, stage: PipelineStage) -> Columns:
        """The positions that the key of the stage's lookup is made of."""
        given = dict(zip(stage.columns, stage.sources, strict=True))
        return tuple(given[column] for column in self.arrangement(stage).columns)

    def key(self, stage: PipelineStage) -> str:
        """A variable with the stage's key; opens a block that is left out for keys with NULL."""
        positions = self.key_positions(stage)
        key = self.code.fresh("k")
        source = self.code.key([self.columns[p] for p in positions], [self.node.input_types[p] for p in positions])
        self.code.line(f"{key} = {source}")
        not_null(self.code, key, len(positions))
        return key

    def fetch(self, stage: PipelineStage) -> str:
        """Look the stage's key up; opens a block that is left out for keys with NULL."""
        return fetch(self.code, self.arrangement(stage), self.key(stage), self.is_old(stage.number))

    def open_rows(self, stage: PipelineStage, found: str) -> str:
        arrangement = self.arrangement(stage)
        weight = each_row(self.code, arrangement, found, self.rows[stage.number], self.is_old(stage.number))
        types = self.node.input_types
        offset = sum(len(each.types) for each in self.node.inputs[: stage.number])
        for column, source in zip(stage.columns, stage.sources, strict=True):
            if column not in arrangement.columns:
                position = offset + column
                condition = equal(self.code, self.columns[position], self.columns[source], types[position], types[source])
                self.code.open(f"if {condition}:")
        self.checks(stage)
        return weight

    def extend(self, pipeline: Pipeline, weights: list[str], finish: _Finish) -> None:
        for stage in pipeline.stages:
            weights = [*weights, self.open_rows(stage, self.fetch(stage))]
        if pipeline.choice is None:
            finish(self.output_row(), times(*weights))
        else:
            self.choose(pipeline.choice, weights, finish)

    def choose(self, choice: Choice, weights: list[str], finish: _Finish) -> None:
        """Of the candidates for the next input, go on with the one that has the fewest rows."""
        code = self.code
        found = [self.fetch(each.stages[0]) for each in choice.alternatives]
        sizes = []
        for each, name in zip(choice.alternatives, found, strict=True):
            unique = self.arrangement(each.stages[0]).kind in (ArrangementKind.UNIQUE, ArrangementKind.STATE)
            sizes.append("1" if unique else f"len({name} or ())")
        level = code.depth
        names = [code.fresh("c") for _ in sizes]
        for name, size in zip(names, sizes, strict=True):
            code.line(f"{name} = {size}")
        for number, each in enumerate(choice.alternatives):
            others = [f"{names[number]} <= {other}" for other in names[number + 1 :]]
            head = "if" if number == 0 else "elif"
            code.open(f"{head} {' and '.join(others)}:" if others else "else:")
            weight = self.open_rows(each.stages[0], found[number])
            self.extend(Pipeline(each.stages[1:], each.choice), [*weights, weight], finish)
            code.close(level)

    def output_row(self) -> str:
        outputs = self.node.outputs
        if outputs is not None:
            for number, each in enumerate(self.node.inputs):
                offset = sum(len(other.types) for other in self.node.inputs[:number])
                if outputs == tuple(Column(offset + c, kind) for c, kind in enumerate(each.types)):
                    return self.rows[number]
        return row_source(self.code, outputs, self.rows, self.columns)


def reads_before(operator: Operator, changed: int, number: int) -> bool:
    """Whether input `number` is read as of before the step when input `changed` changes.

    Inputs before the changed one are read after the step and those behind it before, so a
    row made by changes in both is derived once. Only matters where one step changes both.
    """
    return number > changed and bool(operator.inputs[changed].bases & operator.inputs[number].bases)
