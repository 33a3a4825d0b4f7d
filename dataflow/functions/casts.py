"""CAST and CONVERT to every target, COLLATE, BINARY, and bringing a value to another type.

The target of a cast is the type of its second argument, a literal NULL; `cast` and `collate` build such calls.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Call, Column, Expression, Literal, Parameter, walk
from dataflow.expressions.notices import say
from dataflow.functions.registry import Arguments, Fragment, call, special
from dataflow.values import documents, numerals, temporal, types
from dataflow.values.collation import coercion
from dataflow.values.collation.names import CHARSETS, Charset, canonical, charset_of
from dataflow.values.conversion import Domain, conversion, convert, is_digits
from dataflow.values.inference import domain_of
from dataflow.values.types import BLOBS, INTEGERS, NULL, REALS, STRINGS, TEXTS, Kind, SqlType, text

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter


def cast(expression: Expression, target: SqlType) -> Call:
    return call("cast", expression, Literal(None, target))


def collate(expression: Expression, collation: str) -> Call:
    return call("collate", expression, Literal(collation, text()))


def as_texts(operands: list[Expression]) -> list[Expression]:
    """Operands that are compared or joined: binary strings are texts beside an explicit COLLATE, and if they are of no column,
    beside a column's text."""
    strings = [each for each in operands if each.type.kind in STRINGS or each.type.kind in BLOBS]
    name = coercion.prevailing_collation(strings) if any(each.type.kind in BLOBS for each in strings) else None
    if name is None or name == "binary":
        return operands
    explicit = any(coercion.coercibility(each) == coercion.EXPLICIT for each in strings)
    target = text(None, name)
    return [
        each if each.type.kind not in BLOBS
        else call("bytes as text", each, Literal(None, target)) if not any(isinstance(part, Column) for part in walk(each))
        else cast(each, target) if explicit
        else each
        for each in operands
    ]  # fmt: skip


def collated(expression: Expression, name: str, connection: str) -> Expression:
    """COLLATE of a statement; error 1253 if the text has another character set."""
    kind = expression.type.kind
    charset = charset_of(coercion.collation_of(expression) if kind in TEXTS or kind in BLOBS else connection)
    if charset_of(name) is not charset and kind is not Kind.NULL and not isinstance(expression, Parameter):
        raise InvalidStatement(Condition.COLLATION_CHARSET_MISMATCH, name, charset.name)
    return collate(expression, name)


def in_one_collation(operands: list[Expression]) -> list[Expression]:
    """The operands of IN: where they are texts, all are compared in one collation, that which wins among all of them."""
    value, *items = operands
    if not all(each.type.kind in STRINGS | BLOBS and each.type.kind is not Kind.JSON for each in operands) or len({coercion.prevailing_collation([value, each]) for each in items}) == 1:
        return operands
    name = coercion.merged_collation(tuple(operands), "in")
    if name == "binary":
        return [cast(value, SqlType(Kind.VARBINARY)), *items]
    if charset_of(name) is not charset_of(value.type.collation):
        value = cast(value, text(None, name))
    return [collate(value, name), *items]


def coerced(emitter: Emitter, expression: Expression, target: SqlType) -> Fragment:
    """The value of a branch as a value of the whole expression's type."""
    source = expression.type
    if source.kind is target.kind and (source.kind is not Kind.DECIMAL or source.scale == target.scale):
        return emitter.emit(expression)
    if source.kind in types.DATES and target.kind in types.DATES:
        return emitter.emit(expression)
    if target.kind is Kind.DECIMAL:
        unit = numerals.quantum(target.scale)
        return emitter.convert(expression, Domain.DECIMAL, lambda value: numerals.settle(value, unit))
    return emitter.convert(expression, domain_of(target))


def _cast_type(arguments: Arguments) -> SqlType:
    target = arguments[1].type
    if arguments[0].type.kind is Kind.TIME and target.kind in types.DATES:
        raise Unsupported("CAST of a TIME to a date")
    if target.kind in TEXTS and target.collation is None:
        return SqlType(target.kind, target.length, collation=text().collation)
    return target


@special("cast", "convert", least=2, most=2, result=_cast_type)
def emit_cast(emitter: Emitter, node: Call) -> Fragment:
    expression = node.arguments[0]
    function, nullable = caster(expression.type, node.type)
    inner = emitter.emit(expression) if node.type.kind in types.NUMBERS else emitter.settled(expression)
    if function is None or inner.source == "None":
        return inner
    if node.type.kind is Kind.BINARY:  # is as long as it says, whatever the value
        length = node.type.length or 0
        return emitter.apply(emitter.bounded(node, function, lambda value: length), [inner])
    return emitter.apply(function, [inner], result_nullable=nullable)


def caster(source: SqlType, target: SqlType) -> tuple[Callable[[Any], Any] | None, bool]:
    """What CAST does to a value of `source` that is not NULL, and whether the result may be NULL."""
    if target.kind in INTEGERS:
        return (_to_unsigned if target.unsigned else _to_signed)(source), False
    if target.kind is Kind.DECIMAL:
        return _then(conversion(source, Domain.DECIMAL).function, _decimal_limiter(target)), False
    if target.kind in REALS:
        function = conversion(source, Domain.REAL).function
        return (_then(function, _single) if target.kind is Kind.FLOAT else function), False
    if target.kind in TEXTS or target.kind in BLOBS:
        return _to_string(source, target), False
    match target.kind:
        case Kind.DATE:
            return _then(conversion(source, Domain.DATETIME).function, temporal.date_part), True
        case Kind.DATETIME | Kind.TIMESTAMP:
            digits = target.scale
            return _then(conversion(source, Domain.DATETIME).function, lambda v: temporal.round_datetime(v, digits)), True
        case Kind.TIME:
            digits = target.scale
            return _then(conversion(source, Domain.TIME).function, lambda v: temporal.round_time(v, digits)), True
        case Kind.YEAR:
            return _to_year(source), True
        case Kind.JSON:
            return _to_json(source), False
    raise AssertionError(f"no cast to {target.kind}")


def _single(value: float) -> float:
    found = numerals.single(value)
    if math.isinf(found):
        raise InvalidStatement(Condition.VALUE_OUT_OF_RANGE, "FLOAT", f"cast({numerals.format_double(value)} as float)")
    return found


def _then(first: Callable[[Any], Any] | None, second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if first is None:
        return second

    def both(value: Any) -> Any:
        converted = first(value)
        return None if converted is None else second(converted)

    return both


_INTEGER_TEXT = re.compile(r"[ \t\n\v\f\r]*([+-]?)([0-9]+)")


def _whole_number(source: SqlType) -> Callable[[Any], int]:
    """The integer a value is cast to, before it is fitted into 64 bits."""
    match source.kind:
        case kind if kind in REALS:
            return lambda value: int(numerals.EXACT.create_decimal_from_float(value).to_integral_value())
        case Kind.DECIMAL:
            return lambda value: int(value.to_integral_value(ROUND_HALF_UP))
        case kind if kind in STRINGS and kind not in (Kind.ENUM, Kind.SET, Kind.JSON):
            return _integer_text
        case kind if kind in BLOBS and not is_digits(source):
            return lambda value: _integer_text(value.decode("utf-8", "surrogateescape"))
        case Kind.NULL:
            return _unknown_integer
    function = conversion(source, Domain.INTEGER).function
    return function if function is not None else int


def _integer_text(value: str) -> int:
    found = _INTEGER_TEXT.match(value)
    if found is None or found.end() < len(value):
        numerals.cut("INTEGER", value, found.end() if found else 0)
    return numerals.whole_number(found[1] + found[2]) if found else 0


def _unknown_integer(value: Any) -> int:
    if isinstance(value, str | bytes):
        return _integer_text(value if isinstance(value, str) else value.decode("utf-8", "surrogateescape"))
    return round(value) if isinstance(value, float) else numerals.round_decimal(value) if isinstance(value, Decimal) else value


def _reads_text(source: SqlType) -> bool:
    return (source.kind in TEXTS or source.kind in BLOBS or source.kind is Kind.NULL) and not is_digits(source)


def _lost(source: SqlType, value: Any) -> None:
    """A number that 64 bits cannot hold was cut down to them."""
    kind = "DECIMAL" if source.kind is Kind.DECIMAL else "INTEGER"
    say(Condition.TRUNCATED_VALUE, kind, convert(value, source, Domain.TEXT)[: numerals.SHOWN_MAX])


def _to_signed(source: SqlType) -> Callable[[Any], int] | None:
    if source.kind in INTEGERS and not (source.unsigned and source.kind is Kind.BIGINT):
        return None
    whole = _whole_number(source)
    reads_text = _reads_text(source)
    wraps = reads_text or source.kind in INTEGERS or source.kind in STRINGS or source.kind in BLOBS or source.kind is Kind.BIT

    def signed(value: Any) -> int:
        number = whole(value)
        if numerals.INT64_MIN <= number <= numerals.INT64_MAX:
            return number
        if wraps and 0 < number <= numerals.UINT64_MAX:
            if reads_text:
                say(Condition.UNKNOWN_ERROR, "Cast to signed converted positive out-of-range integer to its negative complement")
            return number - (1 << 64)
        _lost(source, value)
        return numerals.INT64_MIN if number < 0 else -1 if wraps else numerals.INT64_MAX

    return signed


def _to_unsigned(source: SqlType) -> Callable[[Any], int] | None:
    if source.kind in INTEGERS and source.unsigned:
        return None
    whole = _whole_number(source)
    reads_text = _reads_text(source)
    least = 0 if source.kind is Kind.DECIMAL else numerals.INT64_MIN

    def unsigned(value: Any) -> int:
        number = whole(value)
        if 0 <= number <= numerals.UINT64_MAX:
            return number
        if not least <= number < 0:
            _lost(source, value)
        elif reads_text:
            say(Condition.UNKNOWN_ERROR, "Cast to unsigned converted negative integer to its positive complement")
        return max(number, least) % (1 << 64) if number < 0 else numerals.UINT64_MAX

    return unsigned


def _decimal_limiter(target: SqlType) -> Callable[[Decimal], Decimal]:
    digits, scale = target.length or 10, target.scale
    unit = numerals.quantum(scale)
    largest = numerals.largest_decimal(digits, scale)
    smallest = largest.copy_negate()

    def limited(value: Decimal) -> Decimal:
        found = numerals.settle(value, unit) if smallest <= value <= largest else value
        if smallest <= found <= largest:
            return found
        say(Condition.OUT_OF_RANGE, f"cast({numerals.format_decimal(value)} as decimal({digits},{scale}))", 1)
        return max(smallest, min(found, largest))

    return limited


def _to_string(source: SqlType, target: SqlType) -> Callable[[Any], Any] | None:
    binary = target.kind in BLOBS
    function = conversion(source, Domain.BYTES if binary else Domain.TEXT).function
    charset = charset_of(target.collation)
    if not binary and source.kind in BLOBS:
        function = lambda value: _read(value, charset)  # noqa: E731
    elif not binary and source.kind in STRINGS and charset is not charset_of(source.collation):
        function = _then(function, lambda value: charset.fit(value)[0])
    length = target.length
    if length is None:
        return function
    pads = target.kind is Kind.BINARY

    def shortened(value: Any) -> Any:
        if len(value) > length:
            shown = value.decode("utf-8", "surrogateescape") if binary else value
            say(Condition.TRUNCATED_VALUE, f"{'BINARY' if binary else 'CHAR'}({length})", shown[: numerals.SHOWN_MAX])
            return value[:length]
        return value.ljust(length, b"\0") if pads else value

    return _then(function, shortened)


def _read(value: bytes, charset: Charset) -> str:
    text, bad = charset.read(value)
    if bad >= 0:
        say(Condition.INVALID_STRING, charset.name, value[bad:][:6].hex().upper())
    return text


@special("bytes as text", least=2, most=2, result=lambda arguments: arguments[1].type)
def bytes_as_text(emitter: Emitter, node: Call) -> Fragment:
    """Bytes of a literal where a text is wanted; error 1300 if they were written as digits and are none of its character set."""
    charset = charset_of(node.type.collation)
    written = is_digits(node.arguments[0].type)

    def read(value: bytes) -> str:
        if charset.is_utf8 and not written:
            return value.decode("utf-8", "surrogateescape")
        found, bad = charset.read(value)
        if bad >= 0 and written:
            raise InvalidStatement(Condition.INVALID_STRING, charset.name, value[bad:][:6].hex().upper())
        return found

    return emitter.apply(read, [emitter.convert(node.arguments[0], Domain.BYTES)])


@special("valid bytes", least=2, most=2, result=lambda arguments: arguments[0].type)
def valid_bytes(emitter: Emitter, node: Call) -> Fragment:
    """CHAR(… USING charset): NULL where the bytes are no text of the character set."""
    name = node.arguments[1]
    assert isinstance(name, Literal)
    charset = CHARSETS.get("utf8mb3" if name.value == "utf8" else str(name.value))
    if charset is None:
        raise InvalidStatement(Condition.UNKNOWN_CHARACTER_SET, name.value)

    def checked(value: bytes) -> bytes | None:
        bad = -1 if charset.name == "binary" else charset.read(value)[1]
        if bad < 0:
            return value
        say(Condition.INVALID_STRING, charset.name, value[bad:][:6].hex().upper())
        return None

    return emitter.apply(checked, [emitter.convert(node.arguments[0], Domain.BYTES)])


def _to_year(source: SqlType) -> Callable[[Any], int | None]:
    if source.kind in types.DATES:
        return lambda value: temporal.unpack(value)[0]
    function = conversion(source, Domain.INTEGER).function

    def year(value: Any) -> int | None:
        number = value if function is None else function(value)
        if 1 <= number <= 69:
            return int(number) + 2000
        if 70 <= number <= 99:
            return int(number) + 1900
        return int(number) if number == 0 or 1901 <= number <= 2155 else None

    return year


def _to_json(source: SqlType) -> Callable[[Any], str] | None:
    if source.kind in TEXTS:
        return _parsed
    return conversion(source, Domain.JSON_VALUE).function


def _parsed(value: str) -> str:
    try:
        return documents.normalise(value)
    except documents.NotJson as error:
        raise InvalidStatement(
            Condition.INVALID_JSON_ARGUMENT, 1, "cast_as_json", error.reason, error.position
        ) from None


def _collated_type(arguments: Arguments) -> SqlType:
    name = arguments[1]
    assert isinstance(name, Literal) and isinstance(name.value, str)
    source = arguments[0].type
    collation = canonical(name.value)
    if source.kind in TEXTS:
        return SqlType(source.kind, source.length, collation=collation)
    return text(source.length if source.kind in STRINGS else None, collation)


@special("limited", least=2, most=2, result=lambda arguments: arguments[0].type)
def limited(emitter: Emitter, node: Call) -> Fragment:
    """The first argument under another max_allowed_packet than the default; see `dataflow.values.result_limits`."""
    value = node.arguments[1]
    assert isinstance(value, Literal) and isinstance(value.value, int)
    before, emitter.packet_bytes_max = emitter.packet_bytes_max, value.value
    try:
        return emitter.emit(node.arguments[0])
    finally:
        emitter.packet_bytes_max = before


@special("collate", least=2, most=2, result=_collated_type)
def emit_collate(emitter: Emitter, node: Call) -> Fragment:
    return emitter.convert(node.arguments[0], Domain.TEXT)


def _binary_type(arguments: Arguments) -> SqlType:
    source = arguments[0].type
    return source if source.kind in BLOBS else SqlType(Kind.LONGBLOB) if source.kind is not Kind.NULL else NULL


@special("binary", least=1, most=1, result=_binary_type)
def binary(emitter: Emitter, node: Call) -> Fragment:
    return emitter.convert(node.arguments[0], Domain.BYTES)
