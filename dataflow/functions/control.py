"""CASE, IF, IFNULL, NULLIF, COALESCE, GREATEST, LEAST, INTERVAL: choosing among arguments.

`case` is the searched form: condition, value, …, [else]. Each branch is brought to the type of
the whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

from dataflow.expressions.expression import Call, Expression
from dataflow.functions.casts import coerced
from dataflow.functions.registry import Arguments, Fragment, function, special
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.collation.keys import collation_key
from dataflow.values.comparison import basis, operands
from dataflow.values.conversion import Domain
from dataflow.values.inference import merged_type
from dataflow.values.temporal import read_datetime
from dataflow.values.types import BIGINT, BLOBS, DATES, STRINGS, TEMPORALS, Kind, SqlType, text

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter


def _branches(arguments: Arguments) -> tuple[Expression, ...]:
    values = arguments[1::2]
    return (*values, arguments[-1]) if len(arguments) % 2 else values


@special("case", least=2, most=None, result=lambda arguments: merged_type(_branches(arguments)))
def case(emitter: Emitter, call: Call) -> Fragment:
    pieces = []
    nullable = not len(call.arguments) % 2
    for condition, value in zip(call.arguments[0:-1:2], call.arguments[1::2]):
        branch = coerced(emitter, value, call.type)
        nullable = nullable or branch.nullable
        pieces.append(f"{branch.source} if {emitter.truth(condition)} else ")
    last = coerced(emitter, call.arguments[-1], call.type) if len(call.arguments) % 2 else emitter.literal(None)
    return Fragment(f"({''.join(pieces)}{last.source})", nullable or last.nullable)


@special("if", least=3, most=3, result=lambda arguments: merged_type(arguments[1:]))
def if_(emitter: Emitter, call: Call) -> Fragment:
    return case(emitter, call)


def _first_known(emitter: Emitter, call: Call) -> Fragment:
    pieces: list[str] = []
    for argument in call.arguments[:-1]:
        branch = coerced(emitter, argument, call.type)
        if not branch.nullable:
            return Fragment(f"({''.join(pieces)}{branch.source})", nullable=False)
        name = branch.source if branch.atomic else emitter.temporary()
        bound = name if branch.atomic else f"({name} := {branch.source})"
        pieces.append(f"{name} if {bound} is not None else ")
    last = coerced(emitter, call.arguments[-1], call.type)
    return Fragment(f"({''.join(pieces)}{last.source})", last.nullable)


special("ifnull", least=2, most=2, result=merged_type)(_first_known)
special("coalesce", least=1, most=None, result=merged_type)(_first_known)


def _nullif_type(arguments: Arguments) -> SqlType:
    first = arguments[0].type
    basis(first, arguments[1].type)
    return merged_type(arguments[:1]) if first.kind in STRINGS else first


@special("nullif", least=2, most=2, result=_nullif_type)
def nullif(emitter: Emitter, call: Call) -> Fragment:
    first = call.arguments[0]
    value = emitter.settled(first)
    name, bind = value.source, ""
    if not value.atomic:  # computed once, however deep they are nested
        name = emitter.bound[id(first)] = emitter.temporary()
        bind = f"(({name} := {value.source}),) and "
    left, right = operands(emitter, *call.arguments, operation="nullif")
    emitter.bound.pop(id(first), None)
    if left.source == "None" or right.source == "None":
        return value
    return Fragment(f"(None if {bind}({left.source}) == ({right.source}) else {name})")


def _extreme_type(arguments: Arguments) -> SqlType:
    kinds = {argument.type.kind for argument in arguments if argument.type.kind is not Kind.NULL}
    texts = kinds & (STRINGS | BLOBS)
    if texts and kinds - texts and not kinds & BLOBS and not kinds & TEMPORALS:
        return text(collation=merged_collation(arguments, "greatest"))
    return merged_type(arguments)


def _moment_or_zero(value: str) -> int:
    """How a text compares beside a date."""
    return read_datetime(value)[0] or 0


def _extreme(name: str, pick: str) -> None:
    @special(name, least=2, most=None, result=_extreme_type)
    def emit(emitter: Emitter, call: Call) -> Fragment:
        values = [coerced(emitter, argument, call.type) for argument in call.arguments]
        key: Callable[[str], object] | None = None
        if call.type.collation and call.type.kind in STRINGS:
            of_dates = any(argument.type.kind in DATES for argument in call.arguments)
            key = _moment_or_zero if of_dates else collation_key(call.type.collation)
        option = f", key={emitter.constant(key)}" if key is not None else ""
        return emitter.propagate(values, lambda *names: f"{pick}({', '.join(names)}{option})")


_extreme("greatest", "max")
_extreme("least", "min")


@function("interval", arguments=(Domain.NUMBER, Domain.NUMBER), rest=Domain.NUMBER, nulls=True, result=BIGINT)
def interval(value: float | None, *bounds: float | None) -> int:
    """How many of the ascending `bounds` are no larger than `value`; -1 for NULL."""
    if value is None:
        return -1
    return bisect_right([bound if bound is not None else float("-inf") for bound in bounds], value)




@function("benchmark", arguments=(Domain.INTEGER, Domain.ANY), result=BIGINT, nulls=True)
def benchmark(count: int | None, _: object) -> int | None:
    """How long a server takes is its own affair: 0, however often."""
    return None if count is None or count < 0 else 0
