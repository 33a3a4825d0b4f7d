"""Functions that look for texts in texts, or choose among texts, and what a text's collation is.

Texts are equal as their collation says. As in MySQL, a part of a text matches only if it has
as many bytes as what is looked for, so INSTR('é', 'e') is 0 although 'é' = 'e'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, AnyStr

from dataflow.breath import breathe
from dataflow.expressions.expression import Call, Column, Expression, Literal, Parameter
from dataflow.functions.registry import Domain, Fragment, function, special
from dataflow.functions.strings import Arguments, Infer, display_length, string_function, string_type
from dataflow.values.collation.coercion import coercibility, collation_of, merged_collation
from dataflow.values.collation.keys import character_key, collation_key
from dataflow.values.collation.names import charset_of
from dataflow.values.collation.names import collation as collation_named
from dataflow.values.numerals import UINT64_MAX
from dataflow.values.result_limits import total
from dataflow.values.types import (
    BIGINT,
    BLOBS,
    INT,
    INTEGERS,
    NUMBERS,
    STRINGS,
    TEMPORALS,
    Kind,
    SqlType,
    text,
)

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

Finder = Callable[[Any, Any, int], int]
Key = Callable[[Any], bytes]


def _key(arguments: Arguments, name: str, inside: bool = False) -> tuple[Domain, Key]:
    """The domain in which texts are compared and the key that is equal for equal ones."""
    if any(argument.type.kind in BLOBS for argument in arguments):
        return Domain.BYTES, bytes
    collation = merged_collation(arguments, name)
    return Domain.TEXT, character_key(collation) if inside else collation_key(collation)


def _is_single(arguments: Arguments) -> bool:
    """Whether all characters have one byte in the character set in which the texts are compared."""
    return charset_of(merged_collation(arguments, "locate")).bytes_max == 1


def finder(key: Key, is_single: bool) -> Finder:
    """A function like `str.find` in which texts are equal if their keys are, and they have as many bytes."""

    def find(whole: str, part: str, start: int) -> int:
        wanted = key(part)
        if whole.isascii() and part.isascii():
            keys = key(whole)
            if len(keys) == len(whole) and len(wanted) == len(part):  # no character is ignored
                return keys.find(wanted, start)
        width = (lambda character: 1) if is_single else _width
        missing, last = sum(map(width, part)), start  # so many bytes before whole[first:last] has as many as part
        for first in range(start, len(whole)):
            while missing > 0 and last < len(whole):
                missing -= width(whole[last])
                last += 1
            if not missing and key(whole[first:last]) == wanted:
                return first
            missing += width(whole[first])
            breathe()
        return -1

    return find


def _width(character: str) -> int:
    """Its bytes in UTF-8."""
    return 1 if character < "\x80" else 2 if character < "\u0800" else 3 if character < "\U00010000" else 4


def _locate(find: Finder, part: Any, whole: Any, position: int | None = None) -> int:
    """Without a position, '' is found at 1 even in ''."""
    if position is None:
        return find(whole, part, 0) + 1 if part else 1
    if not 1 <= position <= len(whole):
        return 0
    return find(whole, part, position - 1) + 1 if part else position


def _emit_locate(emitter: Emitter, part: Expression, whole: Expression, *position: Expression) -> Fragment:
    domain, key = _key((part, whole), "locate", inside=True)
    find: Finder = bytes.find if domain is Domain.BYTES else finder(key, _is_single((part, whole)))
    fragments = [emitter.convert(part, domain), emitter.convert(whole, domain)]
    if position:
        fragments.append(emitter.convert(position[0], Domain.INTEGER))
    return emitter.apply(lambda *arguments: _locate(find, *arguments), fragments, nulls=False)


@special("locate", "position", least=2, most=3, result=BIGINT)
def locate(emitter: Emitter, node: Call) -> Fragment:
    return _emit_locate(emitter, *node.arguments)


@special("instr", least=2, most=2, result=BIGINT)
def instr(emitter: Emitter, node: Call) -> Fragment:
    return _emit_locate(emitter, node.arguments[1], node.arguments[0])


@special("strcmp", least=2, most=2, result=INT)
def strcmp(emitter: Emitter, node: Call) -> Fragment:
    domain, key = _key(node.arguments, "strcmp")

    def compare(left: Any, right: Any) -> int:
        first, second = key(left), key(right)
        return (first > second) - (first < second)

    return emitter.apply(compare, [emitter.convert(argument, domain) for argument in node.arguments], nulls=False)


@special("find_in_set", least=2, most=2, result=INT)
def find_in_set(emitter: Emitter, node: Call) -> Fragment:
    domain, key = _key(node.arguments, "find_in_set")
    constant, column = node.arguments
    if column.type.kind is Kind.SET and isinstance(column, Column) and isinstance(constant, Literal | Parameter):
        return _find_member(emitter, constant, column, key)
    comma: str | bytes = b"," if domain is Domain.BYTES else ","

    def find(wanted: Any, members: Any) -> int:
        if not members or comma in wanted:
            return 0
        wanted_key, start, position = key(wanted), 0, 0
        while start <= len(members):  # not split: there may be millions
            end = members.find(comma, start)
            position, member = position + 1, members[start : end if end >= 0 else len(members)]
            if key(member) == wanted_key:
                return position
            start += len(member) + 1
            breathe()
        return 0

    return emitter.apply(find, [emitter.convert(argument, domain) for argument in node.arguments], nulls=False)


def _find_member(emitter: Emitter, constant: Expression, column: Column, key: Key) -> Fragment:
    """The number of a constant among all members of a SET column, where the column has it."""
    numbers = {key(member): number for number, member in reversed(list(enumerate(column.type.members, 1)))}

    def find(wanted: Any, bits: int) -> int:
        number = numbers.get(key(wanted), 0)
        return number if number and bits >> number - 1 & 1 else 0

    return emitter.apply(find, [emitter.convert(constant, Domain.TEXT), emitter.convert(column, Domain.INTEGER)], nulls=False)


@special("field", least=2, most=None, result=INT)
def field(emitter: Emitter, node: Call) -> Fragment:
    """Compares texts if all arguments are (dates and times count as such), numbers if all are, else doubles."""
    kinds = {argument.type.kind for argument in node.arguments} - {Kind.NULL}
    key: Callable[[Any], Any]
    if kinds <= STRINGS | BLOBS | TEMPORALS:
        domain, key = _key(node.arguments, "field")
    elif kinds <= INTEGERS:
        domain, key = Domain.INTEGER, lambda number: number & UINT64_MAX  # -1 is 18446744073709551615 here
    else:
        domain, key = Domain.NUMBER if kinds <= NUMBERS else Domain.REAL, lambda number: number

    def position_of(wanted: Any, *choices: Any) -> int:
        if wanted is None:
            return 0
        wanted_key = key(wanted)
        for position, choice in enumerate(choices, 1):
            if choice is not None and key(choice) == wanted_key:
                return position
        return 0

    return emitter.apply(position_of, [emitter.convert(argument, domain) for argument in node.arguments], nulls=True)


def _longest(start: int) -> Infer:
    def infer(arguments: Arguments) -> SqlType:
        lengths = [display_length(argument.type) for argument in arguments[start:]]
        known = [length for length in lengths if length is not None]
        return string_type(arguments[start:], max(known) if len(known) == len(lengths) else None)

    return infer


@string_function("elt", arguments=(Domain.INTEGER, Domain.TEXT), rest=Domain.TEXT, nulls=True, result=_longest(1))
def elt(number: int | None, *choices: AnyStr | None) -> AnyStr | None:
    return choices[number - 1] if number is not None and 1 <= number <= len(choices) else None


@special("make_set", least=2, most=None, result=lambda arguments: string_type(arguments[1:], None), grows=True)
def make_set(emitter: Emitter, node: Call) -> Fragment:
    binary = node.type.kind in BLOBS
    comma: Any = b"," if binary else ","

    def chosen(bits: int, *choices: Any) -> list[Any]:
        return [choice for at, choice in enumerate(choices) if choice is not None and bits >> at & 1]

    def choose(bits: int | None, *choices: Any) -> Any:
        return None if bits is None else comma.join(chosen(bits, *choices))

    domains = [Domain.INTEGER] + [Domain.BYTES if binary else Domain.TEXT] * (len(node.arguments) - 1)
    target = emitter.bounded(node, choose, lambda bits, *choices: 0 if bits is None else total(*chosen(bits, *choices)))
    return emitter.apply(target, list(map(emitter.convert, node.arguments, domains)), nulls=True)


def _exported_size(bits: int, on: AnyStr, off: AnyStr, separator: AnyStr | None = None, count: int = 64) -> int:
    count = count if 0 <= count <= 64 else 64
    set_bits = (bits & ((1 << count) - 1)).bit_count()
    between = 1 if separator is None else len(separator)
    return set_bits * len(on) + (count - set_bits) * len(off) + (count - 1) * between


@string_function(
    "export_set",
    arguments=(Domain.INTEGER, Domain.TEXT, Domain.TEXT, Domain.TEXT, Domain.INTEGER),
    optional=2,
    result=lambda arguments: string_type(arguments[1:4], None),
    size=_exported_size,
)
def export_set(bits: int, on: AnyStr, off: AnyStr, separator: AnyStr | None = None, count: int = 64) -> AnyStr:
    if not 0 <= count <= 64:
        count = 64
    between = (b"," if isinstance(on, bytes) else ",") if separator is None else separator
    return between.join([on if bits >> at & 1 else off for at in range(count)])


def _effective_collation(expression: Expression) -> str:
    return collation_of(expression) if expression.type.kind in STRINGS else "binary"


@function("charset", arguments=(Domain.ANY,), nulls=True, result=text(64, "utf8mb3_general_ci"), specialise=True)
def charset(arguments: Arguments) -> Callable[[object], str]:
    name = collation_named(_effective_collation(arguments[0])).charset
    return lambda value: name


@function("collation", arguments=(Domain.ANY,), nulls=True, result=text(64, "utf8mb3_general_ci"), specialise=True)
def collation(arguments: Arguments) -> Callable[[object], str]:
    name = _effective_collation(arguments[0])
    return lambda value: name


@function("coercibility", arguments=(Domain.ANY,), nulls=True, result=INT, specialise=True)
def coercibility_(arguments: Arguments) -> Callable[[object], int]:
    rank = coercibility(arguments[0])
    return lambda value: rank
