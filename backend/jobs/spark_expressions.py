"""Expressions as Spark SQL (ANSI), where it gives exactly what MySQL gives, or an error where MySQL would give one.

Numbers are computed as BIGINT or DECIMAL; dates and times are only compared, and counted, as the numbers they are packed in. Texts
are handed on, never compared: Spark knows nothing of collations. All else is `NoForm`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from backend.jobs.spark_types import DIGITS_MAX, NoForm, digits_of, is_wide, spark_type
from dataflow.expressions.expression import Call, Column, Expression, Literal
from dataflow.plan.node import AggregateFunction
from dataflow.values.inference import is_unsettled
from dataflow.values.types import BLOBS, INTEGERS, Kind, SqlType

Names = Callable[[int], str]
"""What a column of the input row is called."""

AVERAGE_SCALE_MAX = 8
"""MySQL computes quotients in words of nine digits and cuts the rest: up to here that is to round."""
_COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_MOMENTS = (Kind.DATE, Kind.DATETIME)


def is_exact(kind: SqlType) -> bool:
    """Whether it is a number that Spark computes with exactly."""
    return kind.kind in INTEGERS or kind.kind is Kind.DECIMAL


def is_groupable(kind: SqlType) -> bool:
    """Whether Spark calls the same values equal as MySQL does."""
    return is_exact(kind) or kind.kind in (*_MOMENTS, Kind.TIMESTAMP, Kind.TIME, Kind.YEAR, Kind.BIT) or kind.kind in BLOBS


def require_comparable(left: SqlType, right: SqlType) -> None:
    if is_exact(left) and is_exact(right):
        before, behind = (max(each) for each in zip(digits_of(left), digits_of(right)))
        is_same = before + behind <= DIGITS_MAX
    else:
        is_same = any(left.kind in kinds and right.kind in kinds for kinds in (_MOMENTS, BLOBS)) or (left.kind is right.kind and is_groupable(left))
    if not is_same:
        raise NoForm(f"{left.kind.value} compared with {right.kind.value}")


def value(expression: Expression, names: Names) -> str:
    """The expression's value, of its type's `spark_type`."""
    match expression:
        case Column(index):
            return names(index)
        case Literal(found, kind):
            return _literal(found, kind)
        case Call(function, arguments) if function in ("+", "-", "*"):
            return _computed(expression, names)
        case Call("unsettled", (inner,)):
            found = value(inner, names)
            if is_unsettled(inner):
                raise NoForm("a decimal with other digits than its type")
            return found
        case Call("case", arguments):
            pieces = [f"WHEN {condition(when, names)} THEN {_branch(then, expression, names)}" for when, then in zip(arguments[0:-1:2], arguments[1::2])]
            last = f" ELSE {_branch(arguments[-1], expression, names)}" if len(arguments) % 2 else ""
            return f"(CASE {' '.join(pieces)}{last} END)"
        case Call("if", (when, then, otherwise)):
            return f"(CASE WHEN {condition(when, names)} THEN {_branch(then, expression, names)} ELSE {_branch(otherwise, expression, names)} END)"
        case Call("ifnull" | "coalesce", arguments):
            return f"COALESCE({', '.join(_branch(each, expression, names) for each in arguments)})"
        case _:
            return f"CAST({condition(expression, names)} AS BIGINT)"


def _branch(expression: Expression, whole: Call, names: Names) -> str:
    """One of several expressions that give the value of `whole`."""
    if isinstance(expression, Literal) and expression.value is None:
        return f"CAST(NULL AS {spark_type(whole.type)})"
    if spark_type(expression.type) != spark_type(whole.type) and not (is_exact(expression.type) and is_exact(whole.type)):
        raise NoForm(f"{expression.type.kind.value} as {whole.type.kind.value}")
    return f"CAST({value(expression, names)} AS {spark_type(whole.type)})"


def condition(expression: Expression, names: Names) -> str:
    """The expression as a truth value of Spark's."""
    if isinstance(expression, Call):
        arguments = expression.arguments
        match expression.function:
            case "and" | "&&":
                return f"({' AND '.join(condition(each, names) for each in arguments)})"
            case "or":
                return f"({' OR '.join(condition(each, names) for each in arguments)})"
            case "not" | "!":
                return f"(NOT {condition(arguments[0], names)})"
            case "is null" | "isnull" | "is unknown":
                return f"({value(arguments[0], names)} IS NULL)"
            case "is not null" | "is not unknown":
                return f"({value(arguments[0], names)} IS NOT NULL)"
            case "is true" | "is not true" | "is false" | "is not false" as test:
                return f"({condition(arguments[0], names)} {test.upper()})"
            case "between" | "not between":
                first, low, high = arguments
                found = f"{_compared('>=', first, low, names)} AND {_compared('<=', first, high, names)}"
                return f"(NOT ({found}))" if expression.function.startswith("not") else f"({found})"
            case "in" | "not in":
                first, *items = arguments
                found = " OR ".join(_compared("=", first, each, names) for each in items)
                return f"(NOT ({found}))" if expression.function.startswith("not") else f"({found})"
            case operator if operator in _COMPARISONS:
                return _compared(_COMPARISONS[operator], arguments[0], arguments[1], names)
            case "+" | "-" | "*" | "case" | "if" | "ifnull" | "coalesce":
                pass
            case other:
                raise NoForm(f"function {other}")
    if not is_exact(expression.type):
        raise NoForm(f"{expression.type.kind.value} as a condition")
    return f"({value(expression, names)} <> 0)"


def _compared(operator: str, left: Expression, right: Expression, names: Names) -> str:
    nulls = [isinstance(each, Literal) and each.value is None for each in (left, right)]
    if not any(nulls):
        require_comparable(left.type, right.type)
    return f"({value(left, names)} {operator} {value(right, names)})"


def _literal(found: object, kind: SqlType) -> str:
    if found is None:
        return "NULL"
    if isinstance(found, int):
        return f"CAST({found} AS {spark_type(kind)})"
    if isinstance(found, Decimal):
        return f"CAST('{found:f}' AS {spark_type(kind)})"
    raise NoForm(f"a literal of type {kind.kind.value}")


def _computed(expression: Call, names: Names) -> str:
    kinds = [each.type for each in expression.arguments]
    if not all(is_exact(each) and not is_wide(each) for each in kinds) or expression.type.unsigned:
        raise NoForm(f"{kinds[0].kind.value} {expression.function} {kinds[-1].kind.value}")
    left, right = (value(each, names) for each in expression.arguments)
    if expression.type.kind is Kind.BIGINT:
        return f"({left} {expression.function} {right})"
    before = [digits_of(each) for each in kinds]
    digits = sum(map(sum, before)) + 1 if expression.function == "*" else max(each[0] for each in before) + max(each[1] for each in before) + 1
    if expression.type.kind is not Kind.DECIMAL or digits > DIGITS_MAX:
        raise NoForm(f"{expression.function} of many digits")
    return f"CAST({left} {expression.function} {right} AS {spark_type(expression.type)})"


def aggregate(function: AggregateFunction, names: Names) -> str:
    """An aggregate function's value, of its type's `spark_type`."""
    arguments, name = function.arguments, function.function
    if name == "count_star" or (name == "count" and not arguments):
        return "COUNT(*)"
    given = [value(each, names) for each in arguments]
    if name == "count":
        if function.distinct and not all(is_groupable(each.type) for each in arguments):
            raise NoForm("COUNT(DISTINCT) of texts or floating-point numbers")
        return f"COUNT({'DISTINCT ' if function.distinct else ''}{', '.join(given)})"
    kind = arguments[0].type if arguments else function.type
    if name in ("min", "max") and is_groupable(kind) and kind.kind not in BLOBS:
        return f"CAST({name.upper()}({given[0]}) AS {spark_type(function.type)})"
    if name in ("sum", "avg") and is_exact(kind) and function.type.kind is Kind.DECIMAL:
        added = f"{'DISTINCT ' if function.distinct else ''}{given[0]}"
        if name == "sum":
            return f"CAST(SUM({added}) AS {spark_type(function.type)})"
        if function.type.scale <= AVERAGE_SCALE_MAX:
            return _average(added, kind, function.type)
    raise NoForm(f"aggregate function {name} of {kind.kind.value}")


def _average(added: str, kind: SqlType, result: SqlType) -> str:
    """The quotient of two whole numbers, rounded half up: Spark's own is rounded twice."""
    whole = f"CAST(SUM({added}) * CAST('1{'0' * digits_of(kind)[1]}' AS DECIMAL({digits_of(kind)[1] + 1}, 0)) AS DECIMAL(28, 0))"
    shift = 10 ** (result.scale - digits_of(kind)[1])
    count = f"CAST(COUNT({added}) AS DECIMAL(18, 0))"
    rounded = f"CAST((ABS({whole}) * {2 * shift}BD + {count}) DIV NULLIF({count} * 2BD, 0BD) AS DECIMAL(19, 0))"
    unit = f"CAST('{Decimal(1).scaleb(-result.scale):f}' AS DECIMAL({result.scale + 1}, {result.scale}))"
    return f"CAST(SIGN({whole}) * {rounded} * {unit} AS {spark_type(result)})"
