"""& | ^ ~ << >> on unsigned integers of 64 bits."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from dataflow.expressions.expression import Call
from dataflow.functions.registry import Fragment, function, special
from dataflow.values.conversion import Domain
from dataflow.values.numerals import UINT64_MAX
from dataflow.values.types import BIGINT_UNSIGNED, decimal

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter


def _operation(symbol: str, body: str) -> None:
    @special(symbol, least=2, most=2, result=BIGINT_UNSIGNED)
    def emit(emitter: Emitter, call: Call) -> Fragment:
        sides = [emitter.convert(argument, Domain.INTEGER) for argument in call.arguments]
        return emitter.propagate(sides, lambda left, right: body.format(left, right, UINT64_MAX), repeat=True)


_operation("&", "({0} & {1}) & {2}")
_operation("|", "({0} | {1}) & {2}")
_operation("^", "({0} ^ {1}) & {2}")
_operation("<<", "({0} << ({1} & 63)) & {2} if ({1} & 0xFFFFFFFF) < 64 else 0")
_operation(">>", "({0} & {2}) >> ({1} & 63) if ({1} & 0xFFFFFFFF) < 64 else 0")


@special("~", least=1, most=1, result=BIGINT_UNSIGNED)
def invert(emitter: Emitter, call: Call) -> Fragment:
    return emitter.propagate(
        [emitter.convert(call.arguments[0], Domain.INTEGER)], lambda value: f"~{value} & {UINT64_MAX}"
    )


@special("digits number", least=1, most=1, result=BIGINT_UNSIGNED)
def digits_number(emitter: Emitter, call: Call) -> Fragment:
    """0xFF as a number, where its type has to say so."""
    return emitter.convert(call.arguments[0], Domain.INTEGER)


@function("stored digits", arguments=(Domain.BYTES,), result=decimal(20, 0))
def stored_digits(value: bytes) -> Decimal:
    """0xFF as a number that is to be stored: more than eight bytes are too many for any column."""
    return Decimal(int.from_bytes(value, "big") if len(value) <= 8 else 1 << 64)
