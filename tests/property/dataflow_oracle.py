"""What a plan means, twice and without the engine's code: naively in Python, and as SQL in SQLite.

Expressions are evaluated here for the few functions that the generated plans use. Texts are
ASCII and compare case-insensitively.
"""

from __future__ import annotations

import itertools
import math
import sqlite3
from collections import Counter
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from dataflow.aggregates.group_concat import concatenated
from dataflow.expressions.expression import Call, Column, Expression, Literal
from dataflow.plan.node import (
    Aggregate,
    AggregateFunction,
    Base,
    Join,
    LeftJoin,
    Node,
    Order,
    SemiJoin,
    TopK,
    Union,
)
from dataflow.values.types import Kind, Row, SqlType, Value

Tables = Mapping[int, Counter[Row]]


def compared(value: Value) -> Value:
    return value.lower() if isinstance(value, str) else value


def value_of(expression: Expression, row: Row) -> Value:
    match expression:
        case Column(index=index):
            return row[index]
        case Literal(value=value):
            return value
        case Call(function=function, arguments=arguments):
            values = [value_of(each, row) for each in arguments]
            if function == "and":
                if 0 in values:
                    return 0
                return None if None in values else 1
            if None in values:
                return None
            left, right = (compared(each) for each in values)
            return {
                "=": lambda: int(left == right),
                "<": lambda: int(left < right),  # type: ignore[operator]
                "+": lambda: left + right,  # type: ignore[operator]
            }[function]()
        case _:
            raise AssertionError(expression)


def is_true(expression: Expression | None, row: Row) -> bool:
    return expression is None or bool(value_of(expression, row))


def equal(left: Value, right: Value) -> bool:
    return left is not None and right is not None and compared(left) == compared(right)


def projected(outputs: tuple[Expression, ...] | None, row: Row) -> Row:
    return row if outputs is None else tuple(value_of(each, row) for each in outputs)


def evaluate(node: Node, tables: Tables) -> Counter[Row]:
    """All rows of the node, from scratch."""
    result: Counter[Row] = Counter()
    match node:
        case Base():
            return Counter(tables[node.table])
        case Join():
            for combination in itertools.product(*(evaluate(each, tables).items() for each in node.inputs)):
                row = tuple(value for part, _ in combination for value in part)
                if all(equal(row[a], row[b]) for a, b in node.equalities) and is_true(node.filter, row):
                    result[projected(node.outputs, row)] += math.prod(weight for _, weight in combination)
        case LeftJoin() | SemiJoin():
            right_rows = evaluate(node.right, tables)
            for left, weight in evaluate(node.left, tables).items():
                matches = {
                    right: n
                    for right, n in right_rows.items()
                    if all(equal(left[a], right[b]) for a, b in node.equalities) and is_true(node.filter, left + right)
                }
                if isinstance(node, SemiJoin):
                    if bool(matches) != node.negated:
                        result[left] += weight
                    continue
                for right, n in (matches or {(None,) * len(node.right.types): 1}).items():
                    result[projected(node.outputs, left + right)] += weight * n
        case Union():
            for each in node.inputs:
                result += evaluate(each, tables)
        case Aggregate():
            groups: dict[Row, list[Row]] = {} if node.group else {(): []}
            for row in evaluate(node.input, tables).elements():
                groups.setdefault(tuple(compared(row[c]) for c in node.group), []).append(row)
            for rows in groups.values():
                shown = tuple(
                    min((row[c] for row in rows), key=lambda value: (value is not None, value or 0 if not isinstance(value, str) else value))
                    for c in node.group
                )
                result[shown + tuple(aggregate(each, rows) for each in node.functions)] += 1
        case TopK():
            partitions: dict[Row, list[Row]] = {}
            for row in evaluate(node.input, tables).elements():
                partitions.setdefault(tuple(compared(row[c]) for c in node.partition), []).append(row)
            for rows in partitions.values():
                rows.sort(key=whole_key)
                for order in reversed(node.order):
                    rows.sort(key=lambda row, order=order: key_of(value_of(order.expression, row)), reverse=order.descending)  # type: ignore[misc]
                result.update(rows[node.offset : node.offset + node.limit])
    return result


def key_of(value: Value) -> tuple[bool, Value]:
    return (value is not None, 0 if value is None else compared(value))


def whole_key(row: Row) -> tuple[tuple[bool, Value], ...]:
    return tuple((value is not None, 0 if value is None else value) for value in row)


def stable_order(rows: list[Row], order: tuple[Order, ...]) -> list[Row]:
    for each in reversed(order):
        rows = sorted(rows, key=lambda row, each=each: key_of(value_of(each.expression, row)), reverse=each.descending)  # type: ignore[misc]
    return rows


def aggregate(function: AggregateFunction, rows: list[Row]) -> Value:
    if function.function == "count_star":
        return len(rows)
    pairs = [(tuple(value_of(each, row) for each in function.arguments), row) for row in rows]
    pairs = [(values, row) for values, row in pairs if None not in values]
    if function.distinct and function.function != "group_concat":
        pairs = list({tuple(compared(v) for v in values): (values, row) for values, row in pairs}.values())
    values = [each[0] for each, _ in pairs]
    match function.function:
        case "count":
            return len(values)
        case "sum" | "avg":
            if not values:
                return None
            total = sum(Fraction(value) for value in values)  # type: ignore[arg-type]
            if function.function == "avg":
                total /= len(values)
            if function.type.kind is Kind.DOUBLE:
                return float(total)
            exact = Decimal(total.numerator) / Decimal(total.denominator)
            return exact.quantize(Decimal(1).scaleb(-function.type.scale), ROUND_HALF_UP)
        case "min":
            return min(values, key=lambda v: (compared(v), v), default=None)
        case "max":
            return max(values, key=lambda v: (compared(v), v), default=None)
        case "bit_and" | "bit_or" | "bit_xor":
            result = (1 << 64) - 1 if function.function == "bit_and" else 0
            for value in values:
                whole = int(value) % (1 << 64)  # type: ignore[arg-type]
                result = {"bit_and": result & whole, "bit_or": result | whole, "bit_xor": result ^ whole}[function.function]
            return result
        case "var_pop":
            if not values:
                return None
            numbers = [Fraction(value) for value in values]  # type: ignore[arg-type]
            mean = sum(numbers) / len(numbers)
            return float(sum((each - mean) ** 2 for each in numbers) / len(numbers))
        case "group_concat":
            texts = sorted(values, key=lambda v: (compared(v), v))
            by_text = {}
            for given, row in pairs:
                by_text.setdefault(given[0], []).append(row)
            listed = [(text, row) for text in dict.fromkeys(texts) for row in by_text[text]]
            for each in reversed(function.order):
                listed.sort(key=lambda pair, each=each: key_of(value_of(each.expression, pair[1])), reverse=each.descending)  # type: ignore[misc]
            shown = [text for text, _ in listed]
            if function.distinct:
                shown = list({compared(text): text for text in reversed(shown)}.values())[::-1]
            return concatenated(shown, function.separator, function.bytes_max) if shown else None  # type: ignore[arg-type]
    raise AssertionError(function)


# -- SQLite


def sql_type(kind: SqlType) -> str:
    return "TEXT COLLATE NOCASE" if kind.kind is Kind.VARCHAR else "INTEGER"


def sql_of_expression(expression: Expression, columns: list[str]) -> str:
    match expression:
        case Column(index=index):
            return columns[index]
        case Literal(value=value):
            return "NULL" if value is None else repr(value)
        case Call(function=function, arguments=arguments):
            left, right = (sql_of_expression(each, columns) for each in arguments)
            return f"({left} {function} {right})"
        case _:
            raise AssertionError(expression)


class Sqlite:
    """The same tables in SQLite, and nodes as nested SELECTs."""

    def __init__(self, bases: Mapping[int, Base]) -> None:
        self.connection = sqlite3.connect(":memory:")
        for table, base in bases.items():
            columns = ", ".join(f"c{i} {sql_type(kind)}" for i, kind in enumerate(base.types))
            self.connection.execute(f"CREATE TABLE t{table} ({columns})")

    def set(self, tables: Tables) -> None:
        for table, rows in tables.items():
            self.connection.execute(f"DELETE FROM t{table}")
            for row in rows.elements():
                self.connection.execute(f"INSERT INTO t{table} VALUES ({','.join('?' * len(row))})", row)

    def evaluate(self, node: Node) -> Counter[Row]:
        return Counter(tuple(row) for row in self.connection.execute(self.select(node)))

    def select(self, node: Node) -> str:
        match node:
            case Base():
                return f"SELECT * FROM t{node.table}"
            case Join():
                columns = [f"i{n}.c{c}" for n, each in enumerate(node.inputs) for c in range(len(each.types))]
                sources = ", ".join(f"({self.select(each)}) i{n}" for n, each in enumerate(node.inputs))
                where = [f"{columns[a]} = {columns[b]}" for a, b in node.equalities]
                if node.filter is not None:
                    where.append(sql_of_expression(node.filter, columns))
                outputs = node.outputs or tuple(Column(i, kind) for i, kind in enumerate(node.types))
                return f"SELECT {self.named(outputs, columns)} FROM {sources} WHERE {' AND '.join(['1', *where])}"
            case LeftJoin() | SemiJoin():
                left = [f"l.c{c}" for c in range(len(node.left.types))]
                right = [f"r.c{c}" for c in range(len(node.right.types))]
                on = [f"{left[a]} = {right[b]}" for a, b in node.equalities]
                if node.filter is not None:
                    on.append(sql_of_expression(node.filter, left + right))
                condition = " AND ".join(["1", *on])
                first, second = f"({self.select(node.left)}) l", f"({self.select(node.right)}) r"
                if isinstance(node, LeftJoin):
                    outputs = node.outputs or tuple(Column(i, kind) for i, kind in enumerate(node.types))
                    return f"SELECT {self.named(outputs, left + right)} FROM {first} LEFT JOIN {second} ON {condition}"
                negation = "NOT " if node.negated else ""
                return f"SELECT {self.listed(left)} FROM {first} WHERE {negation}EXISTS (SELECT 1 FROM {second} WHERE {condition})"
            case Union():
                return " UNION ALL ".join(f"SELECT * FROM ({self.select(each)})" for each in node.inputs)
            case Aggregate():
                columns = [f"i.c{c}" for c in range(len(node.input.types))]
                shown = [f"MIN({columns[c]} COLLATE BINARY) COLLATE NOCASE" if node.input.types[c].kind is Kind.VARCHAR else columns[c] for c in node.group]
                values = [self.aggregate(each, columns) for each in node.functions]
                groups = ", ".join(columns[c] for c in node.group)
                by = f" GROUP BY {groups}" if groups else ""
                return f"SELECT {self.listed([*shown, *values])} FROM ({self.select(node.input)}) i{by}"
            case TopK():
                columns = [f"i.c{c}" for c in range(len(node.types))]
                order = [
                    sql_of_expression(each.expression, columns) + (" DESC NULLS LAST" if each.descending else " ASC NULLS FIRST")
                    for each in node.order
                ] + [f"{column} COLLATE BINARY ASC NULLS FIRST" for column in columns]
                by = f"PARTITION BY {', '.join(columns[c] for c in node.partition)} " if node.partition else ""
                window = f"ROW_NUMBER() OVER ({by}ORDER BY {', '.join(order)})"
                inner = f"SELECT i.*, {window} AS n FROM ({self.select(node.input)}) i"
                limits = f"n > {node.offset} AND n <= {node.offset + node.limit}"
                return f"SELECT {self.listed([f'c{c}' for c in range(len(node.types))])} FROM ({inner}) WHERE {limits}"

    def listed(self, sources: list[str]) -> str:
        return ", ".join(f"{source} AS c{i}" for i, source in enumerate(sources))

    def named(self, outputs: tuple[Expression, ...], columns: list[str]) -> str:
        return self.listed([sql_of_expression(each, columns) for each in outputs])

    def aggregate(self, function: AggregateFunction, columns: list[str]) -> str:
        if function.function == "count_star":
            return "COUNT(*)"
        argument = sql_of_expression(function.arguments[0], columns)
        return f"{function.function.upper()}({'DISTINCT ' if function.distinct else ''}{argument})"
