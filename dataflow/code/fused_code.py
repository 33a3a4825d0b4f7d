"""An aggregate and the join that consumes it, as one function.

Each changed group is looked up in the join once and goes out as one row replaced by another,
where the general way would pass two rows through a list and look each up. Possible where the
join finds its other inputs by the group's columns alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataflow.code.group_code import GroupWriter, absorb_delta, find_state
from dataflow.code.join_code import JoinWriter
from dataflow.code.lookup_code import Output, each_row, fetch, guard, not_null, times
from dataflow.code.match_code import MatchWriter
from dataflow.expressions.expression import Column, Expression, columns_of
from dataflow.expressions.source import Function, FunctionSource
from dataflow.plan.node import Aggregate, Join, LeftJoin, source_column
from dataflow.plan.pipeline import Pipeline, PipelineStage, pipeline_of
from dataflow.runtime.operator import Operator
from dataflow.state.arrangement import Arrangement, ArrangementKind
from dataflow.state.delta import Delta
from dataflow.values.types import INTEGERS

CHUNK_ROWS, CHEAP_CHUNK_ROWS = 64, 1024
"""So many rows are merged by their groups: those that what goes out is cheap for are soon done with."""
MERGED_MIN = 32
"""Fewer rows hardly have groups in common."""


def _chunks(delta: Delta, size: int) -> list[Delta]:
    return [delta[start : start + size] for start in range(0, len(delta), size)]


def can_fuse(operator: Operator) -> bool:
    """Whether the aggregate's changes can be taken through its consumer by one function."""
    node, state = operator.node, operator.state
    if not isinstance(node, Aggregate) or state is None or state.kind is not ArrangementKind.STATE or state.recorders or state.views:
        return False
    if operator.stores or len(operator.consumers) != 1:
        return False
    consumer, number = operator.consumers[0]
    match consumer.node:
        case LeftJoin():
            right = {right for _, right in consumer.node.equalities}
            return number == 1 and consumer.node.filter is None and right == set(range(len(node.group)))
        case Join():
            return _depends_on_group_only(consumer.node, number, len(node.group))
        case _:
            return False


def _depends_on_group_only(node: Join, number: int, width: int) -> bool:
    offset = sum(len(each.types) for each in node.inputs[:number])
    values = range(offset + width, offset + len(node.inputs[number].types))

    def is_free(stage: PipelineStage) -> bool:
        used = {p for pair in stage.checks for p in pair} | set(stage.sources)
        for condition in stage.conditions:
            used |= columns_of(condition)
        return not any(position in values for position in used)

    pipeline = pipeline_of(node, number)
    return pipeline.choice is None and all(is_free(stage) for stage in pipeline.stages)


def _finds_one_row(consumer: Operator, number: int) -> bool:
    """Whether a row of input `number` meets at most one row of every other input."""
    if isinstance(consumer.node, LeftJoin):
        readers: list[Arrangement | None] = [MatchWriter(FunctionSource("", ""), consumer).reader(0)]
    else:
        assert isinstance(consumer.node, Join)
        stages = pipeline_of(consumer.node, number).stages[1:]
        readers = [consumer.inputs[stage.number].reader(stage.columns) for stage in stages]
    return all(each is not None and each.kind in (ArrangementKind.UNIQUE, ArrangementKind.STATE) for each in readers)


def amends_in_place(operator: Operator) -> bool:
    """Whether all that a changed group does is to change a row of one arrangement by the group."""
    if not can_fuse(operator) or not isinstance(operator.consumers[0][0].node, LeftJoin):
        return False
    consumer = operator.consumers[0][0]
    node = consumer.node
    assert isinstance(node, LeftJoin)
    left = MatchWriter(FunctionSource("", ""), consumer).reader(0)
    fixed = _from_left(node)
    store = _only_store(Output(FunctionSource("", ""), consumer), fixed)
    return bool(left.columns) and store is not None and _is_beside(node, left, store, fixed)


def fused_update(operator: Operator) -> Function:
    """delta of the aggregate's input → delta of its consumer."""
    assert isinstance(operator.node, Aggregate)
    code = FunctionSource(f"group_{operator.number}_into_{operator.consumers[0][0].number}", "delta")
    write_fused(GroupWriter(code, operator.node), operator, Output(code, operator.consumers[0][0]))
    return code.build()


def write_fused(group: GroupWriter, operator: Operator, output: Output) -> None:
    """The code that takes `delta` into the groups, and what changes by it through the consumer."""
    code, state = group.code, operator.state
    consumer, number = operator.consumers[0]
    assert state is not None
    output.begin()
    top = code.depth
    size = CHUNK_ROWS
    if group.is_cheap and _finds_one_row(consumer, number):
        # Each row leads to one row: merging those of a group first would cost more than it saves.
        size = CHEAP_CHUNK_ROWS
        code.open(f"if len(delta) < {MERGED_MIN}:")
        inner = code.depth
        code.open(f"for {group.change} in delta:")
        find_state(code, group, state)
        group.absorb("w")
        _change(code, group, operator, output, is_changed=group.counts_rows)
        code.close(inner)
        output.end()
        code.close(top)
    if group.is_count:
        code.line("counts = {}")
        with code.block(f"for {group.change} in delta:"):
            code.line(f"g = {group.group_key()}")
            code.line("counts[g] = counts.get(g, 0) + w")
        code.open("for g, w in counts.items():")
        if group.counts_rows:
            code.open("if w:")
        find_state(code, group, state, known=True)
        group.absorb("w")
    else:
        # A few rows at a time: what they touch is still in the processor's cache when it goes out.
        code.open(f"for part in (delta,) if len(delta) <= {size} else {code.constant(_chunks)}(delta, {size}):")
        absorb_delta(code, group, state, "part")
        code.open("for g, s in changed.items():")
    _change(code, group, operator, output, is_changed=group.is_count and group.counts_rows)
    code.close(top)
    output.end()


def _change(code: FunctionSource, group: GroupWriter, operator: Operator, output: Output, is_changed: bool) -> None:
    """The group `g`, whose state `s` has changed, goes through the consumer; if `is_changed`, its row has for certain."""
    node, state = group.node, operator.state
    consumer, number = operator.consumers[0]
    assert state is not None
    code.line("old = s[-1]")
    code.line(f"new = {group.output_row('g')}")
    if state.full and node.group:
        code.line(f"if not s[0]: del {code.constant(state.index)}[g]")
    if not is_changed:
        code.open("if new != old:")
    code.line("s[-1] = new")
    if isinstance(consumer.node, LeftJoin):
        _through_left_join(code, consumer, consumer.node, output)
    else:
        assert isinstance(consumer.node, Join)
        _through_join(code, consumer, consumer.node, number, len(node.group), output)


def _through_left_join(code: FunctionSource, consumer: Operator, node: LeftJoin, output: Output) -> None:
    writer = MatchWriter(code, consumer)
    left = writer.reader(0)
    if len(node.equalities) == 1 and left.columns:
        key = "g"
    else:
        code.line("r1 = new or old")
        key = writer.key(left, "r1", writer.right_of, writer.right_types)
    not_null(code, key, len(left.columns))
    fixed = _from_left(node)
    store = _only_store(output, fixed)
    if store is not None and key == "g" and _is_beside(node, left, store, fixed):
        _amend(code, store, node, writer, fixed)
        return
    weight = each_row(code, left, fetch(code, left, key), "r0")
    conditions = writer.conditions(frozenset((column, writer.right_of[column]) for column in left.columns))
    if conditions and key == "g":
        code.line("r1 = new or old")
    for condition in conditions:
        code.open(f"if {condition}:")
    nulls = writer.nulls()
    _replace(
        code,
        output,
        fixed,
        lambda: code.line(f"r1 = old or {nulls}"),
        lambda: code.line(f"r1 = new or {nulls}"),
        writer.output_row,
        weight,
        optional=False,
    )


def _from_left(node: LeftJoin) -> set[int]:
    """The output columns that copy one of the left input."""
    return {c for c in range(len(node.types)) if _comes_from(node, c, range(len(node.left.types)))}


def _is_beside(node: LeftJoin, left: Arrangement, store: Arrangement, fixed: set[int]) -> bool:
    """Whether a group's row is added to the one that the store has for the same key, and needs no other."""
    sources = [source_column(node.outputs, column) for column in store.columns]
    kinds = {node.left.types[column].kind for column in left.columns} | {node.right.types[0].kind}
    width = len(node.left.types)
    added = [expression for place, expression in enumerate(_expressions(node)) if place not in fixed]
    return (
        left.kind is ArrangementKind.UNIQUE
        and len(node.equalities) == 1
        and sources == list(left.columns)
        and kinds <= INTEGERS
        and all(column >= width for expression in added for column in columns_of(expression))
    )


def _expressions(node: LeftJoin) -> Sequence[Expression]:
    everything = [Column(place, kind) for place, kind in enumerate(node.types)]
    return everything if node.outputs is None else node.outputs


def _amend(code: FunctionSource, store: Arrangement, node: LeftJoin, writer: MatchWriter, fixed: set[int]) -> None:
    """The left row is in what the store has already: there is no need to look for it."""
    store.amended_columns |= frozenset(range(len(node.types))) - fixed
    index = code.constant(store.index)
    code.line(f"o = {index}.get(g)")
    code.open("if o:")
    code.line(f"r1 = new or {writer.nulls()}")
    values = [f"o[{c}]" if c in fixed else code.value(each, writer.columns) for c, each in enumerate(_expressions(node))]
    code.line(f"{index}[g] = x = ({', '.join(values)},)")
    if store.views:
        code.line(f"{code.constant(store.amended)}[g] = x")


def _only_store(output: Output, fixed: set[int]) -> Arrangement | None:
    """Where all rows go, one for each key, if a change leaves them in their place."""
    stores = output.operator.stores
    only = next(iter(stores.values())) if len(stores) == 1 and not output.passes_on else None
    in_place = only is not None and only.kind is ArrangementKind.UNIQUE and not only.recorders and set(only.columns) <= fixed
    return only if in_place else None


def _through_join(code: FunctionSource, consumer: Operator, node: Join, number: int, width: int, output: Output) -> None:
    row = f"r{number}"
    writer = JoinWriter(code, consumer, node, number)
    code.line(f"{row} = new or old")
    guard(code, consumer, number, row, width)
    pipeline = pipeline_of(node, number)
    writer.checks(pipeline.stages[0])
    offset = sum(len(each.types) for each in node.inputs[:number])
    values = range(offset + width, offset + len(node.inputs[number].types))
    others = [p for p in range(len(node.input_types)) if p not in values]
    fixed = {c for c in range(len(node.types)) if _comes_from(node, c, others)}

    def finish(_: str, weight: str) -> None:
        _replace(
            code,
            output,
            fixed,
            lambda: code.line(f"{row} = old"),
            lambda: code.line(f"{row} = new"),
            writer.output_row,
            weight,
            optional=True,
        )

    writer.extend(Pipeline(pipeline.stages[1:]), [], finish)


def _comes_from(node: Join | LeftJoin, column: int, positions: range | list[int]) -> bool:
    return source_column(node.outputs, column) in positions


def _replace(
    code: FunctionSource,
    output: Output,
    fixed: set[int],
    take_old: object,
    take_new: object,
    row: object,
    weight: str,
    *,
    optional: bool,
) -> None:
    """Retract the row of `old` and emit that of `new`; with `optional` either may not exist."""
    assert callable(take_old) and callable(take_new) and callable(row)
    only = _only_store(output, fixed)
    if only is not None and weight == "1":
        only.amended_columns |= frozenset(range(len(output.operator.types))) - fixed
        _overwrite(code, output, only, take_new, row, optional)
        return
    depth = code.depth
    if optional:
        code.open("if old:")
    take_old()
    output.row(row(), times("-1", weight))
    code.close(depth)
    if optional:
        code.open("if new:")
    take_new()
    output.row(row(), weight)
    code.close(depth)


def _overwrite(code: FunctionSource, output: Output, store: Arrangement, take_new: object, row: object, optional: bool) -> None:
    """Both rows have the same key of a unique arrangement: the new one takes the old one's place."""
    assert callable(take_new) and callable(row)
    index = code.constant(store.index)
    types = output.operator.types

    def put() -> None:
        take_new()
        code.line(f"x = {row()}")
        code.line(f"k = {code.row_key('x', store.columns, types)}")
        depth = code.depth
        if not store.full:
            code.open(f"if k in {index}:")
        code.line(f"{index}[k] = x")
        if store.views:
            code.line(f"{code.constant(store.amended)}[k] = x")
        code.close(depth)

    if not optional:
        put()
        return
    with code.block("if new:"):
        put()
    with code.block("else:"):
        output.row(row(), "-1")

