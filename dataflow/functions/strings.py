"""Common parts of the string functions: functions over characters or bytes, and the types of results.

A string function works on characters of text and on bytes of binary strings, and where a
call mixes the two, everything is bytes. `string_function` registers such a function: it is
given either str for all its `Domain.TEXT` arguments or bytes for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from dataflow.expressions.expression import Call, Expression
from dataflow.functions.registry import Domain, Fragment, Function, inference, register
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.result_limits import Size
from dataflow.values.types import BLOB, BLOBS, STRINGS, TEMPORALS, Kind, SqlType, text

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

VARCHAR_LENGTH_MAX = 16383
"""Longer results are LONGTEXT, as a VARCHAR of four-byte characters cannot hold them."""

Arguments = tuple[Expression, ...]
Infer = Callable[[Arguments], SqlType]
Body = TypeVar("Body", bound=Callable[..., Any])


def string_function(
    *names: str,
    arguments: tuple[Domain, ...],
    result: SqlType | Infer,
    optional: int = 0,
    rest: Domain | None = None,
    nulls: bool = False,
    size: Size | None = None,
) -> Callable[[Body], Body]:
    """Like `registry.function`; Domain.TEXT means str, or bytes if any such argument is binary."""

    def decorate(body: Body) -> Body:
        def emit(emitter: Emitter, node: Call) -> Fragment:
            domains = [arguments[i] if i < len(arguments) else rest for i in range(len(node.arguments))]
            pairs = [(argument, domain) for argument, domain in zip(node.arguments, domains) if domain is not None]
            binary = any(is_binary(argument) and domain is Domain.TEXT for argument, domain in pairs)
            string = Domain.BYTES if binary else Domain.TEXT
            fragments = [
                emitter.convert(argument, string if domain is Domain.TEXT else domain) for argument, domain in pairs
            ]
            target = body if size is None else emitter.bounded(node, body, size)
            return emitter.apply(target, fragments, nulls=nulls)

        most = len(arguments) if rest is None else None
        infer = inference(result, *names)
        register(Function(names[0], len(arguments) - optional, most, infer, emit, grows=size is not None), *names[1:])
        return body

    return decorate


def is_binary(argument: Expression) -> bool:
    return argument.type.kind in BLOBS or argument.type.kind is Kind.BIT


def display_length(kind: SqlType) -> int | None:
    """How many characters a value of this type has as text, at most; None if unbounded."""
    if kind.kind is Kind.ENUM:
        return max(map(len, kind.members), default=0)
    if kind.kind is Kind.SET:
        return len(",".join(kind.members))
    if kind.kind in STRINGS or kind.kind in BLOBS or kind.kind is Kind.NULL:
        return kind.length
    if kind.kind is Kind.DECIMAL:
        return (kind.length or 10) + 3
    if kind.kind in TEMPORALS:
        return 26
    return 23


def string_type(arguments: Arguments, length: int | None) -> SqlType:
    """A string of at most `length` in the collation of `arguments`; binary if one of them is."""
    if any(map(is_binary, arguments)):
        return SqlType(Kind.VARBINARY, length=length) if length is not None and length <= 65535 else BLOB
    collation = merged_collation(arguments, "function")
    return text(length if length is not None and length <= VARCHAR_LENGTH_MAX else None, collation)


def like_first(arguments: Arguments) -> SqlType:
    """A string no longer than the first argument."""
    return string_type(arguments[:1], display_length(arguments[0].type))


def joined_type(arguments: Arguments) -> SqlType:
    """A string as long as all the arguments together."""
    lengths = [display_length(argument.type) for argument in arguments]
    known = [length for length in lengths if length is not None]
    return string_type(arguments, sum(known) if len(known) == len(lengths) else None)


def unbounded(*positions: int) -> Infer:
    """A string of any length, in the collation of the arguments at `positions` (all if none)."""

    def infer(arguments: Arguments) -> SqlType:
        chosen = tuple(arguments[i] for i in positions if i < len(arguments)) if positions else arguments
        return string_type(chosen, None)

    return infer
