"""EXPLAIN: a plan in words, as a tree of steps, and which table is read how.

For a query that a maintained view can answer, the tree is that of the view, with the state
each step keeps: partial by which columns, or full and why. For others it says why not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from backend.execution.answering.decision import CHANGE_PASSES, PART_PASSES, decide
from backend.execution.answering.decision.maintained import obstacle
from backend.execution.answering.query import CompiledQuery
from backend.execution.evaluation.access import best_index, choose
from backend.execution.explaining.rendering import Names, expression_text, names_of
from backend.network.program_messages import ViewPlan
from backend.views.program_plan import shared_text
from backend.views.view_definition import ViewDefinition
from controller.sql.plan import Delete, Directed, DocumentRows, Insert, Plan, Query, Recursion, Update
from dataflow.errors import MillraceError
from dataflow.expressions.expression import Expression
from dataflow.plan.key_tracing import traced
from dataflow.plan.node import Aggregate, Base, Join, LeftJoin, Node, SemiJoin, TopK, Union, inputs_of
from dataflow.plan.placement import COMPUTED_KEY, NO_INDEX, NO_KEY, Placement, is_stateful, place
from dataflow.schema import Index, Table, declared_keys, has_row_id, is_clustered
from dataflow.values.types import Value

Parameters = Sequence[Value]


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """`is_operator`: of the view's dataflow."""

    text: str
    inputs: tuple[ExplainedStep, ...] = ()
    is_operator: bool = False


@dataclass(frozen=True, slots=True)
class ExplainedTable:
    """A row of the plain EXPLAIN."""

    table: str
    access: str
    key: str | None = None
    reference: str | None = None
    extra: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """`view` is the maintained view that answers the query, if one may; else `refusal` is why a SELECT has none.

    `columns` are what the columns of the query's node are called.
    """

    step: ExplainedStep
    tables: tuple[ExplainedTable, ...]
    view: ViewDefinition | None = None
    refusal: str = ""
    columns: tuple[str, ...] = ()


_FLEETING = frozenset(
    {"now", "utc_now", "sysdate", "time", "utc_time", "unix_timestamp"}
)
"""Facts that are another value each time."""


@dataclass(frozen=True, slots=True)
class _Known:
    """`fleeting` are the parameters that have another value each time; `spark_rows` is as in `DataJobs`, None without Spark."""

    fleeting: frozenset[int]
    spark_rows: int | None


def explain(
    plan: Plan, parameters: Parameters, compiled: CompiledQuery | None = None, spark_rows: int | None = None
) -> Explained:
    """`compiled` is the plan's, where that is a query: it knows how the query has behaved."""
    first = len(plan.parameter_types)
    fleeting = (first + place for place, fact in enumerate(plan.facts) if fact.partition(":")[0] in _FLEETING)
    known = _Known(frozenset(fleeting), spark_rows)
    match plan.statement:
        case Query() as query:
            return _select(compiled or CompiledQuery(decide(query)), parameters, known)
        case Insert() as insert:
            source = ExplainedStep(f"Rows: {len(insert.rows)} given")
            tables: tuple[ExplainedTable, ...] = ()
            if insert.select is not None:
                inner = _select(CompiledQuery(decide(insert.select, CHANGE_PASSES)), parameters, known)
                source, tables = inner.step, inner.tables
            return Explained(ExplainedStep(f"Insert into {insert.table.name}", (source,)), (ExplainedTable(insert.table.name, "ALL"), *tables))
        case Update() | Delete() as change:
            step, use = _access(change.table, change.where, parameters)
            verb = "Update" if isinstance(change, Update) else "Delete from"
            return Explained(ExplainedStep(f"{verb} {change.table.name}", (step,)), (use,))
        case Directed() as directed:
            inner = _select(CompiledQuery(decide(directed.query, CHANGE_PASSES)), parameters, known)
            verbs = ", ".join(
                f"{'Update' if isinstance(each, Update) else 'Delete from'} {each.table.name}"
                for each, _ in directed.changes
            )
            return Explained(ExplainedStep(verbs, (inner.step,)), inner.tables)


def tree_text(step: ExplainedStep) -> str:
    return "\n".join(_lines(step, 0)) + "\n"


def _lines(step: ExplainedStep, depth: int) -> Iterator[str]:
    yield f"{'    ' * depth}-> {step.text}"
    for each in step.inputs:
        yield from _lines(each, depth + 1)


def dot_text(step: ExplainedStep) -> str:
    """The tree for Graphviz; data flows along the arrows."""
    lines = ["digraph plan {", "  rankdir=BT;", '  node [shape=box, fontname="monospace"];']
    numbers = iter(range(1 << 30))

    def add(each: ExplainedStep) -> int:
        number = next(numbers)
        label = each.text.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  n{number} [label="{label}"];')
        for source in each.inputs:
            lines.append(f"  n{add(source)} -> n{number};")
        return number

    add(step)
    return "\n".join([*lines, "}"]) + "\n"


def with_reuse(explained: Explained, plan: ViewPlan) -> Explained:
    """What was explained, with what of it other views have, as planned against the whole program."""
    planned = iter(plan.steps)

    def shown(step: ExplainedStep) -> ExplainedStep:
        text = step.text
        if step.is_operator:
            found = next(planned)
            notes = [shared_text(found.shared_with)]
            notes += [f"looked up by {each.columns}, {each.state}, {shared_text(each.shared_with) or 'by no other view'}" for each in found.indexes]
            text += "".join([f"  [{note}]" for note in notes if note])
        return replace(step, text=text, inputs=tuple([shown(each) for each in step.inputs]))

    if len(plan.steps) != _operators(explained.step):
        return explained  # it was planned for other definitions
    return replace(explained, step=shown(explained.step))


def _operators(step: ExplainedStep) -> int:
    return step.is_operator + sum(map(_operators, step.inputs))


# --- one table, read directly


def _access(table: Table, where: Expression | None, parameters: Parameters) -> tuple[ExplainedStep, ExplainedTable]:
    names = [f"{table.name}.{column.name}" for column in table.columns]
    path = choose(table, where)
    index = _name(table, path.index)
    key: str | None = index
    if path.is_complete:
        text, access, reference = f"Single-row lookup on {table.name} using {index}", "const", "const"
    elif path.equalities:
        text, access, reference = f"Index lookup on {table.name} using {index}", "ref", "const"
    elif path.comparisons:
        text, access, reference = f"Index range scan on {table.name} using {index}", "range", ""
    else:
        text, access, reference, key = f"Table scan on {table.name}", "ALL", "", None
    step = ExplainedStep(text)
    if where is not None:
        step = ExplainedStep(f"Filter: {expression_text(where, names, parameters)}", (step,))
    return step, ExplainedTable(table.name, access, key, reference or None, "Using where" if where is not None else "")


def _select(compiled: CompiledQuery, parameters: Parameters, known: _Known) -> Explained:
    one = compiled.decision.one
    if one is None or one.table is None or compiled.decision.way == "first rows":
        return _query(compiled, parameters, known)
    step, use = _access(one.table, one.filter, parameters)
    if one.order_by:
        use = replace(use, extra=_joined(use.extra, "Using filesort"))
    if compiled.views is not None:
        viewed = _query(compiled, parameters, known)
        return replace(viewed, tables=(replace(use, extra=_joined(use.extra, viewed.tables[0].extra)),))
    step = _ended(step, one, [f"{one.table.name}.{column.name}" for column in one.table.columns], parameters)
    reason = obstacle(one) or "read from the base table directly"
    return Explained(ExplainedStep(f"Evaluated on each read: {reason}", (step,)), (use,), refusal=reason)


def _ended(step: ExplainedStep, select: Query, names: Names, parameters: Parameters) -> ExplainedStep:
    if select.distinct:
        step = ExplainedStep("Distinct", (step,))
    if select.order_by:
        items = ", ".join(
            expression_text(each.expression, names, parameters) + (" DESC" if each.descending else "")
            for each in select.order_by
        )
        step = ExplainedStep(f"Sort: {items}", (step,))
    if select.limit is not None:
        text = f"Limit: {expression_text(select.limit, names, parameters)} row(s)"
        if select.offset is not None:
            text += f" after {expression_text(select.offset, names, parameters)}"
        step = ExplainedStep(text, (step,))
    return step


# --- queries over nodes


def _prior(number: int, prior: Query | Recursion | DocumentRows, parameters: Parameters, known: _Known) -> ExplainedStep:
    if isinstance(prior, Query):
        return ExplainedStep(f"Computed first, as table {number}", (_part(prior, parameters, known),))
    if isinstance(prior, DocumentRows):
        documents = _part(prior.documents, parameters, known)
        return ExplainedStep(f"Rows of documents, computed first, as table {number}", (documents,))
    rounds = f"Again and again until no rows come, over those of the round before as table {prior.table}"
    first, following = (_part(each, parameters, known) for each in (prior.first, prior.following))
    return ExplainedStep(f"Computed first, as table {number}, recursively", (first, ExplainedStep(rounds, (following,))))


def _part(query: Query, parameters: Parameters, known: _Known) -> ExplainedStep:
    return _query(CompiledQuery(decide(query, PART_PASSES)), parameters, known).step


def _query(compiled: CompiledQuery, parameters: Parameters, known: _Known) -> Explained:
    query, views = compiled.query, compiled.views
    if isinstance(query.node, Join) and not query.node.inputs:
        return Explained(ExplainedStep("Rows fetched before execution"), ())
    tables = {table.id: table for table in query.tables}
    definition, node, refusal = None, query.node, obstacle(query)
    if views is not None:
        definition, node, refusal = views.explained(tuple(parameters), known.fleeting)
    key = compiled.key_columns if definition is None else definition.key
    names = names_of(node, tables, parameters)
    choices = () if views is None else views.choices
    shown_key = " or ".join(names[column] for column in choices) or ", ".join(names[column] for column in key)
    priors = tuple(_prior(number, each, parameters, known) for number, each in query.prior)
    placement = None
    if definition is not None:
        try:
            placement, reason = _placed(node, key)
            reason = NO_INDEX if compiled.decision.way == "column" else reason
        except MillraceError as error:
            definition, refusal = None, str(error)
    if definition is not None and placement is not None:
        kind = f"full: {reason}" if reason else f"partial by {shown_key}"
        head = f"Maintained view ({kind})" + (f", looked up by {shown_key}" if key else "")
        if definition.order:
            head += f", ordered by {', '.join(names[column] for column in definition.order)}"
        way = compiled.way(tuple(parameters), known.spark_rows)
        asked_once = () if way.startswith("by rows") else (ExplainedStep(f"Until it is filled: evaluated {way}"),)
        step = ExplainedStep(head, (_placed_step(placement, tables, parameters), *priors, *asked_once))
        extra = f"Using maintained view ({kind})"
    else:
        body = _node_step(query.node, tables, parameters)
        if shown_key:
            body = ExplainedStep(f"Only where {shown_key} is one of the values given", (body,))
        body = ExplainedStep(f"Evaluated {compiled.way(tuple(parameters), known.spark_rows)}", (body,))
        step = ExplainedStep(f"Evaluated on each read: {refusal}", (body, *priors))
        extra = ""
    if query.filter is not None:
        step = ExplainedStep(f"Filter: {expression_text(query.filter, names, parameters)}", (step,))
    for window in query.windows:
        step = ExplainedStep(f"Window: {window.function.function}", (step,))
    step = _ended(step, query, [*names, *("window" for _ in query.windows)], parameters)
    uses = tuple(_use(base, columns, tables, extra) for base, columns in _uses(query.node, frozenset(compiled.key_columns or choices)))
    return Explained(step, uses, definition, "" if definition is not None else refusal, tuple(names))


def _placed(node: Node, key: tuple[int, ...]) -> tuple[Placement, str]:
    """How the engine would keep a view of `node` by `key`, and why it is full, as it decides itself."""
    columns = tuple(sorted(set(key)))
    lookup = traced(node, columns)
    reason = "" if lookup else COMPUTED_KEY if columns else NO_KEY
    return place(node, frozenset({lookup}), reason), reason


def _placed_step(placement: Placement, tables: Mapping[int, Table], parameters: Parameters) -> ExplainedStep:
    text = _node_text(placement.node, tables, parameters)
    if is_stateful(placement.node):
        names = names_of(placement.node, tables, parameters)
        if placement.key is None:
            text += f"  [full: {placement.reason or NO_KEY}]"
        else:
            text += f"  [partial by {', '.join(names[column] for column in placement.key)}]"
    return ExplainedStep(text, tuple(_placed_step(each, tables, parameters) for each in placement.inputs), is_operator=True)


def _node_step(node: Node, tables: Mapping[int, Table], parameters: Parameters) -> ExplainedStep:
    inputs = tuple(_node_step(each, tables, parameters) for each in inputs_of(node))
    return ExplainedStep(_node_text(node, tables, parameters), inputs)


def _node_text(node: Node, tables: Mapping[int, Table], parameters: Parameters) -> str:
    match node:
        case Base():
            table = tables.get(node.table)
            return f"Table {table.name if table is not None else node.name or node.table}"
        case Join():
            names = [name for each in node.inputs for name in names_of(each, tables, parameters)]
            conditions = [f"{names[a]} = {names[b]}" for a, b in node.equalities]
            if node.filter is not None:
                conditions.append(expression_text(node.filter, names, parameters))
            shown = " and ".join(conditions)
            if len(node.inputs) > 1:
                return f"Inner join: {shown}" if shown else "Cross join"
            return f"Filter: {shown}" if shown else "Project"
        case LeftJoin() | SemiJoin():
            left, right = names_of(node.left, tables, parameters), names_of(node.right, tables, parameters)
            conditions = [f"{left[a]} = {right[b]}" for a, b in node.equalities]
            if node.filter is not None:
                conditions.append(expression_text(node.filter, [*left, *right], parameters))
            kind = "Left join" if isinstance(node, LeftJoin) else "Anti join" if node.negated else "Semi join"
            return f"{kind}: {' and '.join(conditions) or 'any row'}"
        case Aggregate():
            names = names_of(node, tables, parameters)
            group = ", ".join(names[: len(node.group)])
            functions = ", ".join(names[len(node.group) :])
            if not functions:
                return f"Distinct: {group}"
            return f"Aggregate: {functions}" + (f" by {group}" if group else "")
        case TopK():
            names = names_of(node.input, tables, parameters)
            order = ", ".join(
                expression_text(each.expression, names, parameters) + (" DESC" if each.descending else "")
                for each in node.order
            )
            per = ", ".join(names[column] for column in node.partition)
            return f"Top {node.limit}{f' after {node.offset}' if node.offset else ''} by {order}" + (f" per {per}" if per else "")
        case Union():
            return "Union all"


# --- rows of the plain EXPLAIN


def _uses(node: Node, looked_up: frozenset[int]) -> Iterator[tuple[Base, frozenset[int]]]:
    """Every base table with the columns it is looked up by."""
    match node:
        case Base():
            yield node, looked_up
        case Join(inputs=inputs):
            start = 0
            for number, each in enumerate(inputs):
                width = len(each.types)
                own = set()
                if node.outputs is None:
                    own = {column - start for column in looked_up if start <= column < start + width}
                for pair in node.equalities:
                    mine = [column - start for column in pair if start <= column < start + width]
                    if len(mine) == 1 and number:
                        own.add(mine[0])
                yield from _uses(each, frozenset(own))
                start += width
        case LeftJoin() | SemiJoin():
            yield from _uses(node.left, frozenset())
            yield from _uses(node.right, frozenset(right for _, right in node.equalities))
        case Aggregate() | TopK():
            yield from _uses(node.input, frozenset())
        case Union(inputs=inputs):
            for each in inputs:
                yield from _uses(each, frozenset())


def _use(base: Base, columns: frozenset[int], tables: Mapping[int, Table], extra: str) -> ExplainedTable:
    table = tables.get(base.table)
    if table is None:
        return ExplainedTable(base.name or str(base.table), "ALL", extra=extra)
    best = best_index(table, columns)
    if best is not None:
        return ExplainedTable(table.name, "eq_ref" if best.is_whole else "ref", _name(table, best.index), "func", extra)
    return ExplainedTable(table.name, "ALL", extra=extra)


def _name(table: Table, index: Index) -> str:
    """What the index is called; for the hidden primary key, the one that it begins with."""
    if index is table.primary_key and has_row_id(table):
        index = next((each for each in declared_keys(table) if is_clustered(table, each)), index)
    return index.name or "PRIMARY"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
