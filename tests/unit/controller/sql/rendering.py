"""Plans as short text, for tests to compare."""

from __future__ import annotations

from controller.sql.plan import Aggregate, Assignment, Delete, Insert, OrderItem, Plan, Select, Update
from dataflow.expression import Call, Column, Expression, Literal, Parameter


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


def order(items: tuple[OrderItem, ...]) -> str:
    return ", ".join(expression(each.expression) + (" desc" if each.descending else "") for each in items)


def aggregate(value: Aggregate) -> str:
    inner = "" if value.argument is None else many((value.argument, *value.rest))
    text = f"{value.function}({'distinct ' if value.distinct else ''}{inner}"
    if value.order_by:
        text += f" order by {order(value.order_by)}"
    if value.separator != ",":
        text += f" separator {value.separator!r}"
    return text + ")"


def assignments(values: tuple[Assignment, ...]) -> str:
    return ", ".join(f"#{each.column} = {'default' if each.is_default else expression(each.expression)}" for each in values)


def rendered(plan: Plan) -> str:
    statement = plan.statement
    match statement:
        case Select():
            text = select(statement)
        case Insert():
            columns = ", ".join(f"#{position}" for position in statement.columns)
            text = f"insert {statement.table.name} ({columns})"
            text += "".join(f" ({many(row)})" for row in statement.rows)
            if statement.select is not None:
                assert isinstance(statement.select, Select)
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


def select(statement: Select) -> str:
    text = f"select {'distinct ' if statement.distinct else ''}{many(statement.outputs)}"
    if statement.table is not None:
        text += f" from {statement.table.name}"
    if statement.where is not None:
        text += f" where {expression(statement.where)}"
    if statement.group_by:
        text += f" group by {many(statement.group_by)}"
    if statement.aggregates:
        text += f" aggregates {', '.join(aggregate(each) for each in statement.aggregates)}"
    if statement.having is not None:
        text += f" having {expression(statement.having)}"
    if statement.order_by:
        text += f" order by {order(statement.order_by)}"
    if statement.limit is not None:
        text += f" limit {expression(statement.limit)}"
    if statement.offset is not None:
        text += f" offset {expression(statement.offset)}"
    for locking in statement.locking:
        text += " for share" if locking.shared else " for update"
    return text + (" counted" if statement.count_found_rows else "")
