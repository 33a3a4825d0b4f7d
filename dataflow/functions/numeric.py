"""Arithmetic functions: signs, rounding, powers, logarithms, angles, bits.

Integers stay exact, decimals stay decimals, everything else (text too) is a double. A double
that leaves its range is error 1690; a value outside a function's domain gives NULL. The
operators and MOD are in other modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Expression, Literal
from dataflow.expressions.notices import say
from dataflow.functions.registry import Domain, Fragment, function, special
from dataflow.values import conversion
from dataflow.values.types import (
    BIGINT,
    BIGINT_UNSIGNED,
    BLOBS,
    DOUBLE,
    INTEGERS,
    Kind,
    SqlType,
    decimal,
    text,
)

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

Arguments = tuple[Expression, ...]
Number = int | float | Decimal

SIGNED_MAX = (1 << 63) - 1
UNSIGNED_MAX = (1 << 64) - 1
DECIMAL_DIGITS_MAX = 65
EXACT = Context(prec=130)
"""Wide enough that no DECIMAL loses a digit on the way."""


def number_type(arguments: Arguments) -> SqlType:
    """BIGINT, DECIMAL or DOUBLE, as the first argument is one or the other."""
    given = conversion.number_type(arguments[0].type)
    if given.kind in INTEGERS:
        return BIGINT_UNSIGNED if given.unsigned else BIGINT
    return given if given.kind is Kind.DECIMAL else DOUBLE


def in_range(number: int, unsigned: bool, source: str) -> int:
    if not (0 <= number <= UNSIGNED_MAX if unsigned else -SIGNED_MAX - 1 <= number <= SIGNED_MAX):
        raise InvalidStatement(Condition.VALUE_OUT_OF_RANGE, "BIGINT UNSIGNED" if unsigned else "BIGINT", source)
    return number


def finite(number: float, source: str) -> float:
    if math.isinf(number) or math.isnan(number):
        raise InvalidStatement(Condition.VALUE_OUT_OF_RANGE, "DOUBLE", source)
    return number


@function("abs", arguments=(Domain.NUMBER,), result=number_type, specialise=True)
def absolute(arguments: Arguments) -> Callable[[Number], Number]:
    match number_type(arguments).kind:
        case Kind.BIGINT:
            return lambda value: int(value) if value >= 0 else in_range(-int(value), False, f"abs({value})")
        case Kind.DECIMAL:
            return lambda value: Decimal(value).copy_abs()
        case _:
            return lambda value: abs(float(value))


@function("sign", arguments=(Domain.NUMBER,), result=BIGINT)
def sign(value: Number) -> int:
    return (value > 0) - (value < 0)


def _whole_type(arguments: Arguments) -> SqlType:
    given = number_type(arguments)
    if given.kind is not Kind.DECIMAL:
        return given
    digits = (given.length or 10) - given.scale
    if digits < 18:  # with the sign and a digit for rounding, it still fits a BIGINT
        return BIGINT_UNSIGNED if given.unsigned else BIGINT
    return decimal(min(digits + 1, DECIMAL_DIGITS_MAX), 0, given.unsigned)


def _whole(real: Callable[[float], int], mode: str) -> Callable[[Arguments], Callable[[Number], Number]]:
    def specialise(arguments: Arguments) -> Callable[[Number], Number]:
        result = _whole_type(arguments).kind

        def apply(value: Number) -> Number:
            if result is Kind.DOUBLE:
                return math.copysign(float(real(float(value))), value)
            rounded = Decimal(value).quantize(Decimal(1), mode, EXACT)
            return rounded if result is Kind.DECIMAL else int(rounded)

        return apply

    return specialise


function("ceiling", "ceil", arguments=(Domain.NUMBER,), result=_whole_type, specialise=True)(
    _whole(math.ceil, ROUND_CEILING)
)
function("floor", arguments=(Domain.NUMBER,), result=_whole_type, specialise=True)(_whole(math.floor, ROUND_FLOOR))


def _constant_digits(arguments: Arguments) -> int | None:
    """The second argument of ROUND or TRUNCATE if it is known when planning; 0 if missing."""
    if len(arguments) < 2:
        return 0
    digits = arguments[1]
    if isinstance(digits, Literal):
        constant = conversion.convert(digits.value, digits.type, Domain.INTEGER)
        return constant if isinstance(constant, int) else None
    if isinstance(digits, Call) and digits.function == "negate":
        inner = _constant_digits((digits, digits.arguments[0]))
        return None if inner is None else -inner
    return None


def _rounded_type(extra_digit: int) -> Callable[[Arguments], SqlType]:
    def infer(arguments: Arguments) -> SqlType:
        given = number_type(arguments)
        digits = _constant_digits(arguments)
        if given.kind is not Kind.DECIMAL or digits is None or digits >= given.scale:
            return given
        scale = max(digits, 0)
        precision = (given.length or 10) - (given.scale - scale) + extra_digit
        return decimal(min(max(precision, 1), DECIMAL_DIGITS_MAX), scale, given.unsigned)

    return infer


_round_type = _rounded_type(1)
_truncate_type = _rounded_type(0)


def round_double(value: float, digits: int, truncate: bool = False) -> float:
    """Scales, rounds half to even, scales back: the very doubles that MySQL computes."""
    if digits < -308:
        return 0.0
    scale = float(10 ** abs(digits)) if abs(digits) <= 308 else math.inf
    scaled = value / scale if digits < 0 else value * scale
    if not math.isfinite(scaled):
        return value
    whole = math.copysign(float(math.trunc(scaled) if truncate else round(scaled)), value)
    return whole * scale if digits < 0 else whole / scale


def round_integer(value: int, digits: int, truncate: bool = False) -> int:
    if digits >= 0:
        return value
    if digits < -19:
        return 0
    unit = int(10**-digits)
    size = abs(value)
    rounded = size // unit * unit if truncate else (size + unit // 2) // unit * unit
    return -rounded if value < 0 else rounded


def round_decimal(value: Decimal, digits: int, scale: int, truncate: bool = False) -> Decimal:
    """Rounds at `digits`, half away from zero; the result is written with `scale` digits."""
    mode = ROUND_DOWN if truncate else ROUND_HALF_UP
    digits = max(min(digits, scale), -DECIMAL_DIGITS_MAX - 1)
    rounded = value.quantize(Decimal(1).scaleb(-digits), mode, EXACT).quantize(Decimal(1).scaleb(-scale), context=EXACT)
    return rounded if rounded else rounded.copy_abs()


def _rounding(result: Callable[[Arguments], SqlType], truncate: bool, name: str) -> Callable[[Arguments], Callable[..., Number]]:
    def specialise(arguments: Arguments) -> Callable[..., Number]:
        kind = result(arguments)

        def apply(value: Number, digits: int = 0) -> Number:
            if kind.kind is Kind.DECIMAL:
                return round_decimal(Decimal(value), digits, kind.scale, truncate)
            if kind.kind is Kind.BIGINT:
                return in_range(round_integer(int(value), digits, truncate), kind.unsigned, f"{name}({value},{digits})")
            return round_double(float(value), digits, truncate)

        return apply

    return specialise


function("round", arguments=(Domain.NUMBER, Domain.INTEGER), optional=1, result=_round_type, specialise=True)(
    _rounding(_round_type, False, "round")
)
function("truncate", arguments=(Domain.NUMBER, Domain.INTEGER), result=_truncate_type, specialise=True)(
    _rounding(_truncate_type, True, "truncate")
)


@function("format", arguments=(Domain.NUMBER, Domain.INTEGER, Domain.TEXT), optional=1, nulls=True, result=text(65))
def format_number(value: Number | None, digits: int | None, locale: str | None = "en_US") -> str | None:
    if value is None or digits is None:
        return None
    places = min(max(digits, 0), 30)
    # Zeros follow the digits that tell a double from its neighbours, not its exact expansion.
    exact = Decimal(repr(round_double(value, places))) if isinstance(value, float) else Decimal(value)
    rounded = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, Context(prec=400)) if exact.is_finite() else Decimal(0)
    if not rounded:
        rounded = rounded.copy_abs()
    name = (locale or "en_US").lower()
    point, separator = _LOCALES.get(name, (".", ","))
    if name in _LAKHS:
        return _in_lakhs(f"{rounded:f}")
    return f"{rounded:,f}".translate({ord("."): point, ord(","): separator})


_LAKHS = frozenset({"en_in", "ta_in", "te_in"})


def _in_lakhs(digits: str) -> str:
    """1,23,45,678.9: three digits, then two at a time."""
    whole, point, rest = digits.partition(".")
    sign, whole = ("-", whole[1:]) if whole[0] == "-" else ("", whole)
    groups = [whole[-3:]]
    whole = whole[:-3]
    while whole:
        groups.insert(0, whole[-2:])
        whole = whole[:-2]
    return sign + ",".join(groups) + point + rest


_NAMES = {
    (",", "."): "de_de be_by da_dk nb_no de_be de_lu es_ar es_bo es_cl es_co es_ec es_es es_py es_uy es_ve fo_fo hu_hu "
    "id_id is_is lt_lt mn_mn no_no ro_ro ru_ua sq_al tr_tr uk_ua vi_vn",
    (",", " "): "sv_se cs_cz es_cr et_ee fi_fi lv_lv mk_mk ru_ru sk_sk",
    (",", ""): "fr_fr ca_es de_at el_gr eu_es fr_be fr_ca fr_ch fr_lu gl_es hr_hr it_it nl_be nl_nl pl_pl pt_br pt_pt sl_si",
    (".", ""): "ar_sa sr_rs",
    (".", "'"): "de_ch",
    (",", "'"): "it_ch rm_ch",
}
_LOCALES = {name: signs for signs, names in _NAMES.items() for name in names.split()}
"""The point and the separator of thousands; in the locales that are not named, those of English."""


@function("pow", "power", arguments=(Domain.REAL, Domain.REAL), result=DOUBLE)
def power(base: float, exponent: float) -> float:
    try:
        return finite(math.pow(base, exponent), f"pow({base!r},{exponent!r})")
    except (OverflowError, ValueError):
        return finite(math.inf, f"pow({base!r},{exponent!r})")


@function("exp", arguments=(Domain.REAL,), result=DOUBLE)
def exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return finite(math.inf, f"exp({value!r})")


@function("sqrt", arguments=(Domain.REAL,), result=DOUBLE)
def square_root(value: float) -> float | None:
    return math.sqrt(value) if value >= 0 else None


@function("ln", arguments=(Domain.REAL,), result=DOUBLE)
def natural_logarithm(value: float) -> float | None:
    return math.log(value) if value > 0 else _no_logarithm()


def _no_logarithm() -> float | None:
    say(Condition.NO_LOGARITHM)
    return None


@function("log", arguments=(Domain.REAL, Domain.REAL), optional=1, result=DOUBLE)
def logarithm(base: float, value: float | None = None) -> float | None:
    if value is None:
        return natural_logarithm(base)
    if base <= 0 or base == 1 or value <= 0:
        return _no_logarithm()
    return math.log(value) / math.log(base)


@function("log2", arguments=(Domain.REAL,), result=DOUBLE)
def binary_logarithm(value: float) -> float | None:
    return math.log(value) / math.log(2) if value > 0 else _no_logarithm()


@function("log10", arguments=(Domain.REAL,), result=DOUBLE)
def decimal_logarithm(value: float) -> float | None:
    return math.log10(value) if value > 0 else _no_logarithm()


@function("pi", result=SqlType(Kind.DOUBLE, scale=6))
def pi() -> float:
    return math.pi


function("sin", arguments=(Domain.REAL,), result=DOUBLE)(math.sin)
function("cos", arguments=(Domain.REAL,), result=DOUBLE)(math.cos)
function("tan", arguments=(Domain.REAL,), result=DOUBLE)(math.tan)
function("atan2", arguments=(Domain.REAL, Domain.REAL), result=DOUBLE)(math.atan2)
function("radians", arguments=(Domain.REAL,), result=DOUBLE)(lambda value: value * (math.pi / 180))


@function("degrees", arguments=(Domain.REAL,), result=DOUBLE)
def degrees(value: float) -> float:
    return finite(value * (180 / math.pi), f"degrees({value!r})")


@function("atan", arguments=(Domain.REAL, Domain.REAL), optional=1, result=DOUBLE)
def arc_tangent(value: float, across: float | None = None) -> float:
    return math.atan(value) if across is None else math.atan2(value, across)


@function("cot", arguments=(Domain.REAL,), result=DOUBLE)
def cotangent(value: float) -> float:
    tangent = math.tan(value)
    return finite(1 / tangent if tangent else math.inf, f"cot({value!r})")


@function("asin", arguments=(Domain.REAL,), result=DOUBLE)
def arc_sine(value: float) -> float | None:
    return math.asin(value) if -1 <= value <= 1 else None


@function("acos", arguments=(Domain.REAL,), result=DOUBLE)
def arc_cosine(value: float) -> float | None:
    return math.acos(value) if -1 <= value <= 1 else None


def _bits_of_integer(value: int) -> int:
    return (value & UNSIGNED_MAX).bit_count()


def _bits_of_bytes(value: bytes) -> int:
    return int.from_bytes(value, "big").bit_count()


@special("bit_count", least=1, most=1, result=BIGINT)
def bit_count(emitter: Emitter, node: Call) -> Fragment:
    """Of all bytes of a binary string, else of the argument as a 64-bit integer."""
    binary = node.arguments[0].type.kind in BLOBS
    fragment = emitter.convert(node.arguments[0], Domain.BYTES if binary else Domain.INTEGER)
    return emitter.apply(_bits_of_bytes if binary else _bits_of_integer, [fragment], nulls=False)
