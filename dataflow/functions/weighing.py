"""WEIGHT_STRING: the bytes by which a text is compared.

WEIGHT_STRING(text AS CHAR(n)) is the call with NULL for the length of the result, n characters, and `PAD_WITH_SPACES`;
WEIGHT_STRING(text, length, n, flags) is MySQL's own form for tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataflow.expressions.expression import Call, Expression, Literal
from dataflow.expressions.fragment import Fragment
from dataflow.functions.registry import special
from dataflow.values.collation.coercion import collation_of
from dataflow.values.collation.keys import weight_string
from dataflow.values.collation.names import charset_of, collation
from dataflow.values.conversion import Domain
from dataflow.values.types import BLOB, BLOBS, NUMBERS

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

PAD_WITH_SPACES = 0x40
PAD_TO_LENGTH = 0x80


def _number(argument: Expression) -> int | None:
    value = argument.value if isinstance(argument, Literal) else None
    return int.from_bytes(value, "big") if isinstance(value, bytes) else value if isinstance(value, int) else None


@special("weight_string", least=1, most=4, result=BLOB, grows=True)
def weigh(emitter: Emitter, node: Call) -> Fragment:
    """NULL for a number."""
    value, *options = node.arguments
    if value.type.kind in NUMBERS:
        return emitter.emit(Literal(None, node.type))
    length, count, flags = [*map(_number, options), *[None] * 3][:3]
    binary = value.type.kind in BLOBS
    show: Any = bytes if binary else weight_string(collation_of(value))
    space: Any = b"\0" if binary else " "
    pads = binary or collation(collation_of(value)).pads
    padding = show(space)
    one_byte = not binary and charset_of(collation_of(value)).bytes_max == 1

    def weights(text: Any) -> bytes:
        if count is not None:
            text = text[:count]
            if flags and flags & PAD_WITH_SPACES and pads:
                text = text.ljust(count, space)
        found: bytes = show(text)
        if count is not None and one_byte:  # as many weights as characters
            found = found[:count]
        if count is not None and flags and flags & PAD_WITH_SPACES:
            found = found.ljust(count * len(padding), b"\0")
        if length is None:
            return found
        if flags and flags & PAD_TO_LENGTH:
            found += (padding if pads else b"\0") * (length - len(found))
        return found[:length]

    target = emitter.bounded(node, weights, lambda text: 4 * max(len(text), count or 0, length or 0))
    return emitter.apply(target, [emitter.convert(value, Domain.BYTES if binary else Domain.TEXT)])
