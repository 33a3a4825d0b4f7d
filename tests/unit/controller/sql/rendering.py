"""Plans as short text, for tests to compare."""

from __future__ import annotations

from controller.sql.plan import Assignment, Delete, Insert, Plan, Query, Update
from controller.sql.query.one_table import over_one_table
from dataflow.expressions.expression import Call, Column, Expression, Literal, Parameter
from dataflow.plan.node import Aggregate, AggregateFunction, Join, Order


def expression(value: Expression | None) -> str:
    match value:
        case None:
            return "default"
        case Column(index=index):
            return f"#{index}"
        case Literal(value=literal):
            return repr(literal)
        case Parameter(index=index):
            return f"?{index}"
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(expression(each) for each in arguments)})"


def many(values: tuple[Expression, ...] | tuple[Expression | None, ...]) -> str:
    return ", ".join(expression(each) for each in values)


def order(items: tuple[Order, ...]) -> str:
    return ", ".join(expression(each.expression) + (" desc" if each.descending else "") for each in items)


def assignments(values: tuple[Assignment, ...]) -> str:
    return ", ".join(f"#{each.column} = {'default' if each.is_default else expression(each.expression)}" for each in values)


def rendered(plan: Plan) -> str:
    statement = plan.statement
    match statement:
        case Query():
            text = select(statement)
        case Insert():
            columns = ", ".join(f"#{position}" for position in statement.columns)
            text = f"insert {statement.table.name} ({columns})"
            text += "".join(f" ({many(row)})" for row in statement.rows)
            if statement.select is not None:
                text += " " + select(statement.select)
            if statement.on_duplicate.value != "error":
                text += f" on duplicate {statement.on_duplicate.value}"
            if statement.on_update:
                text += f" {assignments(statement.on_update)}"
        case Update():
            text = f"update {statement.table.name} set {assignments(statement.assignments)}{restriction(statement)}"
        case Delete():
            text = f"delete {statement.table.name}{restriction(statement)}"
        case _:
            raise AssertionError("a plan over several tables is rendered elsewhere")
    if plan.facts:
        text += f" facts {' '.join(plan.facts)}"
    return text


def restriction(statement: Update | Delete) -> str:
    text = "" if statement.where is None else f" where {expression(statement.where)}"
    if statement.order_by:
        text += f" order by {order(statement.order_by)}"
    return text + ("" if statement.limit is None else f" limit {expression(statement.limit)}")


def select(query: Query) -> str:
    """Over one table: its rows, or groups of them. What reads groups reads their keys, then the functions' values."""
    one = over_one_table(query) or query
    text = f"select {'distinct ' if one.distinct else ''}{many(one.outputs)}"
    if one.table is not None:
        text += f" from {one.table.name}"
    if isinstance(one.node, Aggregate):
        text += groups(one.node)
    if one.filter is not None:
        text += f" where {expression(one.filter)}"
    if one.order_by:
        text += f" order by {order(one.order_by)}"
    if one.limit is not None:
        text += f" limit {expression(one.limit)}"
    if one.offset is not None:
        text += f" offset {expression(one.offset)}"
    for locking in one.locking:
        text += " for share" if locking.shared else " for update"
    return text + (" counted" if one.count_found_rows else "")


def groups(node: Aggregate) -> str:
    text = ""
    if isinstance(node.input, Join):
        assert node.input.outputs is not None and node.input.filter is None
        text += f" as ({many(node.input.outputs)})"
    if node.group:
        text += f" group by {', '.join(f'#{column}' for column in node.group)}"
    return text + (f" aggregates {', '.join(map(aggregate, node.functions))}" if node.functions else "")


def aggregate(value: AggregateFunction) -> str:
    text = f"{value.function}({'distinct ' if value.distinct else ''}{many(value.arguments)}"
    if value.order:
        text += f" order by {', '.join(expression(each.expression) + (' desc' if each.descending else '') for each in value.order)}"
    if value.separator != ",":
        text += f" separator {value.separator!r}"
    return text + ")"
