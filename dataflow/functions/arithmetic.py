"""+ - * / DIV % and unary minus, with MySQL's types: BIGINT, DECIMAL or DOUBLE.

Integers that leave 64 bits are error 1690. Where the operands' types are too narrow for that,
no check is emitted. Division by zero is NULL.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Expression, Literal
from dataflow.expressions.notices import say
from dataflow.functions.registry import Arguments, Fragment, Infer, special
from dataflow.values.conversion import Domain, number_type
from dataflow.values.inference import DECIMAL_DIGITS_MAX, DECIMAL_SCALE_MAX, integer_digits, literal_value
from dataflow.values.numerals import EXACT, INT64_MAX, INT64_MIN, UINT64_MAX
from dataflow.values.result_limits import DIVISION_DIGITS, planned
from dataflow.values.types import (
    BIGINT,
    BIGINT_UNSIGNED,
    DOUBLE,
    INTEGER_BYTES,
    INTEGERS,
    Kind,
    SqlType,
    decimal,
)

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter


def operand_type(expression: Expression) -> SqlType:
    """The type an operand is computed in; NULL and what is not known count as DOUBLE."""
    found = number_type(expression.type)
    return DOUBLE if found.kind is Kind.NULL else found


def _class_of(arguments: Arguments) -> Kind:
    """BIGINT, DECIMAL or DOUBLE."""
    kinds = {operand_type(argument).kind for argument in arguments}
    if kinds & {Kind.DOUBLE, Kind.FLOAT}:
        return Kind.DOUBLE
    return Kind.DECIMAL if Kind.DECIMAL in kinds else Kind.BIGINT


def _unsigned(argument: Expression) -> bool:
    return operand_type(argument).unsigned


def _real_type(arguments: Arguments) -> SqlType:
    """DOUBLE; with a scale only where both operands have one."""
    return DOUBLE


def _whole(argument: Expression) -> int:
    return integer_digits(operand_type(argument), literal_value(argument))


def _arithmetic_type(scale_of: str) -> Infer:
    def infer(arguments: Arguments) -> SqlType:
        kind = _class_of(arguments)
        if kind is Kind.DOUBLE:
            return _real_type(arguments)
        unsigned = any(_unsigned(argument) for argument in arguments)
        if kind is Kind.BIGINT:
            return BIGINT_UNSIGNED if unsigned else BIGINT
        scales = [operand_type(argument).scale for argument in arguments]
        both = all(_unsigned(argument) for argument in arguments)
        if scale_of == "sum":
            scale = min(sum(scales), DECIMAL_SCALE_MAX)
            return decimal(min(sum(map(_whole, arguments)) + scale, DECIMAL_DIGITS_MAX), scale, both)
        scale = min(max(scales), DECIMAL_SCALE_MAX)
        return decimal(min(max(map(_whole, arguments)) + 1 + scale, DECIMAL_DIGITS_MAX), scale, both)

    return infer


def _out_of_range(kind: str, operator: str, *values: object) -> NoReturn:
    text = f"({f' {operator} '.join(str(value) for value in values)})" if len(values) > 1 else f"{operator}({values[0]})"
    raise InvalidStatement(Condition.VALUE_OUT_OF_RANGE, kind, text)


def _bounds(expression: Expression, levels: int = 8) -> tuple[int, int]:
    """Between what an integer expression's values lie, looking at no more levels of it."""
    match expression:
        case Literal(value=int(value)):
            return value, value
        case Call(function="+" | "-" | "*" as function, arguments=arguments) if expression.type.kind is Kind.BIGINT:
            if not levels:
                return _limits(expression.type)
            (a, b), (c, d) = (_bounds(argument, levels - 1) for argument in arguments)
            ends = {
                "+": (a + c, b + d),
                "-": (a - d, b - c),
                "*": (min(a * c, a * d, b * c, b * d), max(a * c, a * d, b * c, b * d)),
            }[function]
            low, high = _limits(expression.type)
            return max(ends[0], low), min(ends[1], high)
    source = operand_type(expression)
    if source.kind in INTEGERS and expression.type.kind in INTEGERS:
        bits = INTEGER_BYTES[source.kind] * 8
        return (0, (1 << bits) - 1) if source.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return INT64_MIN, UINT64_MAX


def _limits(result: SqlType) -> tuple[int, int]:
    return (0, UINT64_MAX) if result.unsigned else (INT64_MIN, INT64_MAX)


def _signed(infer: Infer) -> Infer:
    """As under NO_UNSIGNED_SUBTRACTION."""
    return lambda arguments: replace(infer(arguments), unsigned=False)


def _operation(symbol: str, method: str, scale_of: str, signed: bool = False) -> None:
    infer = _arithmetic_type(scale_of)

    @special(f"signed {symbol}" if signed else symbol, least=2, most=2, result=_signed(infer) if signed else infer)
    def emit(emitter: Emitter, call: Call) -> Fragment:
        kind = call.type.kind
        if kind is Kind.DOUBLE:
            sides = [emitter.convert(argument, Domain.REAL) for argument in call.arguments]
            finite = emitter.constant(_finite_function(symbol))
            return emitter.propagate(sides, lambda left, right: f"{finite}({left} {symbol} {right})")
        if kind is Kind.DECIMAL:
            sides = [emitter.convert(argument, Domain.NUMBER) for argument in call.arguments]
            name = emitter.constant(_multiply_decimal if symbol == "*" else getattr(EXACT, method))
            return emitter.propagate(sides, lambda left, right: f"{name}({left}, {right})")
        sides = [emitter.convert(argument, Domain.INTEGER) for argument in call.arguments]
        (a, b), (c, d) = (_bounds(argument) for argument in call.arguments)
        low, high = _limits(call.type)
        corners = {"+": (a + c, b + d), "-": (a - d, b - c), "*": (min(a * c, a * d, b * c, b * d), max(a * c, b * d, a * d, b * c))}
        if low <= corners[symbol][0] and corners[symbol][1] <= high:
            return emitter.propagate(sides, lambda left, right: f"{left} {symbol} {right}")
        failed = emitter.constant(_failure(symbol, call.type.unsigned))
        name = emitter.temporary()
        return emitter.propagate(
            sides,
            lambda left, right: (
                f"{name} if {low} <= ({name} := {left} {symbol} {right}) <= {high} else {failed}({left}, {right})"
            ),
            repeat=True,
        )


def _multiply_decimal(left: int | Decimal, right: int | Decimal) -> Decimal:
    product = EXACT.multiply(left, right)
    return product if product else product.copy_abs()


def _failure(symbol: str, unsigned: bool) -> object:
    kind = "BIGINT UNSIGNED" if unsigned else "BIGINT"

    def failed(*values: object) -> NoReturn:
        _out_of_range(kind, symbol, *values)

    return failed


def _finite_function(symbol: str) -> object:
    def finite(value: float) -> float:
        if not math.isfinite(value):
            _out_of_range("DOUBLE", symbol, value)
        return value

    return finite


_operation("+", "add", "max")
_operation("-", "subtract", "max")
_operation("-", "subtract", "max", signed=True)
_operation("*", "multiply", "sum")


def _division_type(arguments: Arguments) -> SqlType:
    if _class_of(arguments) is Kind.DOUBLE:
        return DOUBLE
    dividend, divisor = (operand_type(argument) for argument in arguments)
    scale = min(dividend.scale + planned().division_digits, DECIMAL_SCALE_MAX)
    digits = _whole(arguments[0]) + divisor.scale + scale
    return decimal(min(digits, DECIMAL_DIGITS_MAX), scale, dividend.unsigned and divisor.unsigned)


def _digits(value: int | Decimal) -> int:
    if isinstance(value, int):
        return 0
    exponent = value.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def divide_decimal(left: int | Decimal, right: int | Decimal, added: int = DIVISION_DIGITS) -> Decimal | None:
    """MySQL computes in words of nine digits, at least `added` more than the dividend has, and cuts the rest."""
    if not right:
        say(Condition.DIVISION_BY_ZERO)
        return None
    one, two = _digits(left), _digits(right)
    padded_one, padded_two = -(-one // 9) * 9, -(-two // 9) * 9
    more = max(0, added - (padded_one - one) - (padded_two - two))
    digits = -(-(padded_one + padded_two + more) // 9) * 9
    return EXACT.divide(Decimal(left), Decimal(right)).quantize(Decimal(1).scaleb(-digits), ROUND_DOWN, EXACT)


def divide_real(left: float, right: float) -> float | None:
    if not right:
        say(Condition.DIVISION_BY_ZERO)
        return None
    value = left / right
    if not math.isfinite(value):
        _out_of_range("DOUBLE", "/", left, right)
    return value


def _divisor(emitter: Emitter, sides: list[Fragment]) -> list[Fragment]:
    """The operands; where the emitter was told so, a divisor of zero is an error."""
    if not emitter.division_errors:
        return sides
    return [sides[0], emitter.apply(_refuse_zero, sides[1:], result_nullable=False)]


def _refuse_zero(value: int | float | Decimal) -> int | float | Decimal:
    if not value:
        raise InvalidStatement(Condition.DIVISION_BY_ZERO)
    return value


@special("/", least=2, most=2, result=_division_type)
def divide(emitter: Emitter, call: Call) -> Fragment:
    is_real = call.type.kind is Kind.DOUBLE
    sides = [emitter.convert(argument, Domain.REAL if is_real else Domain.NUMBER) for argument in call.arguments]
    if is_real:
        return emitter.apply(divide_real, _divisor(emitter, sides))
    dividend = operand_type(call.arguments[0]).scale
    if call.type.scale == min(dividend + DIVISION_DIGITS, DECIMAL_SCALE_MAX):
        return emitter.apply(divide_decimal, _divisor(emitter, sides))
    return emitter.apply(partial(divide_decimal, added=call.type.scale - dividend), _divisor(emitter, sides))


def _whole_division_type(arguments: Arguments) -> SqlType:
    return BIGINT_UNSIGNED if any(_unsigned(argument) for argument in arguments) else BIGINT


def _whole_division(unsigned: bool) -> object:
    low, high = (0, UINT64_MAX) if unsigned else (INT64_MIN, INT64_MAX)
    kind = "BIGINT UNSIGNED" if unsigned else "BIGINT"

    def divide_whole(left: int | float | Decimal, right: int | float | Decimal) -> int | None:
        if not right:
            say(Condition.DIVISION_BY_ZERO)
            return None
        if isinstance(left, int) and isinstance(right, int):
            value = abs(left) // abs(right)
            value = value if (left < 0) == (right < 0) else -value
        else:
            value = int(EXACT.divide(_exact(left), _exact(right)))
        if not low <= value <= high:
            _out_of_range(kind, "DIV", left, right)
        return value

    return divide_whole


def _exact(value: int | float | Decimal) -> Decimal:
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


@special("div", least=2, most=2, result=_whole_division_type)
def whole_division(emitter: Emitter, call: Call) -> Fragment:
    sides = _divisor(emitter, [emitter.convert(argument, Domain.NUMBER) for argument in call.arguments])
    name = emitter.constant(_whole_division(call.type.unsigned))
    return emitter.propagate(sides, lambda left, right: f"{name}({left}, {right})", result_nullable=True)


def _modulo_type(arguments: Arguments) -> SqlType:
    kind = _class_of(arguments)
    if kind is Kind.DOUBLE:
        return DOUBLE
    if kind is Kind.BIGINT:
        return BIGINT_UNSIGNED if _unsigned(arguments[0]) else BIGINT
    scale = min(max(operand_type(argument).scale for argument in arguments), DECIMAL_SCALE_MAX)
    return decimal(min(max(map(_whole, arguments)) + scale, DECIMAL_DIGITS_MAX), scale, _unsigned(arguments[0]))


def modulo_integer(left: int, right: int) -> int | None:
    if not right:
        say(Condition.DIVISION_BY_ZERO)
        return None
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def modulo_real(left: float, right: float) -> float | None:
    if not right:
        say(Condition.DIVISION_BY_ZERO)
        return None
    return math.fmod(left, right)


def modulo_decimal(left: int | Decimal, right: int | Decimal) -> Decimal | None:
    if not right:
        say(Condition.DIVISION_BY_ZERO)
        return None
    rest = EXACT.remainder(Decimal(left), Decimal(right))
    return rest if rest else rest.copy_abs()


@special("%", "mod", least=2, most=2, result=_modulo_type)
def modulo(emitter: Emitter, call: Call) -> Fragment:
    domain, function = {
        Kind.DOUBLE: (Domain.REAL, modulo_real),
        Kind.DECIMAL: (Domain.NUMBER, modulo_decimal),
    }.get(call.type.kind, (Domain.INTEGER, modulo_integer))
    sides = [emitter.convert(argument, domain) for argument in call.arguments]
    return emitter.apply(function, _divisor(emitter, sides))


def _constant(expression: Expression) -> int | None:
    """The value of an integer that was written, with any number of signs."""
    if isinstance(expression, Call) and expression.function == "negate":
        inner = _constant(expression.arguments[0])
        return None if inner is None else -inner
    value = literal_value(expression)
    return value if isinstance(value, int) else None


def _negated_type(arguments: Arguments) -> SqlType:
    source = operand_type(arguments[0])
    if source.kind in INTEGERS:
        value = _constant(arguments[0])
        if value is not None and not -INT64_MAX <= value <= INT64_MAX + 1:
            return decimal(integer_digits(source, abs(value)), 0)
        return BIGINT
    if source.kind is Kind.DECIMAL:
        return decimal(source.length or 10, source.scale)
    return DOUBLE


def negate_integer(value: int) -> int:
    if value < -INT64_MAX or value > INT64_MAX + 1:
        _out_of_range("BIGINT", "-", value)
    return -value


@special("negate", least=1, most=1, result=_negated_type)
def negate(emitter: Emitter, call: Call) -> Fragment:
    match call.type.kind:
        case Kind.DOUBLE:
            return emitter.propagate([emitter.convert(call.arguments[0], Domain.REAL)], lambda value: f"-{value}")
        case Kind.DECIMAL:
            inner = emitter.convert(call.arguments[0], Domain.DECIMAL)
            return emitter.apply(_negate_decimal, [inner], result_nullable=False)
        case _:
            inner = emitter.convert(call.arguments[0], Domain.INTEGER)
            return emitter.apply(negate_integer, [inner], result_nullable=False)


def _negate_decimal(value: Decimal) -> Decimal:
    return value.copy_negate() if value else value


@special("positive", least=1, most=1, result=lambda arguments: arguments[0].type)
def positive(emitter: Emitter, call: Call) -> Fragment:
    return emitter.emit(call.arguments[0])


@special("unsettled", least=1, most=1, result=lambda arguments: arguments[0].type)
def unsettled(emitter: Emitter, call: Call) -> Fragment:
    """A DECIMAL with all the digits that a division has given it, for an aggregate."""
    return emitter.emit(call.arguments[0])
