"""Which collation an operation on several texts uses: MySQL's coercibility rules.

The explicit COLLATE wins, then a column's, then a literal's. Among equals a binary string
wins over text, Unicode over other character sets, and a `_bin` collation over the others of its
character set; two different collations that both have a claim are error 1267.
"""

from __future__ import annotations

from dataflow.collation.names import collation
from dataflow.errors import Condition, InvalidStatement
from dataflow.expression import Call, Column, Expression
from dataflow.types import BLOBS, DEFAULT_COLLATION, STRINGS

_WIDTHS = {"ascii": 0, "utf8mb3": 2, "utf8mb4": 3}
"""Every character set has the characters of those with a lower number; all others have 1."""
EXPLICIT, NONE, IMPLICIT, COERCIBLE, IGNORABLE = 0, 1, 2, 4, 6
_NAMES = {EXPLICIT: "EXPLICIT", NONE: "NONE", IMPLICIT: "IMPLICIT", COERCIBLE: "COERCIBLE"}


def coercibility(expression: Expression) -> int:
    """How weakly `expression` holds on to its collation; lower wins."""
    if expression.type.kind not in STRINGS and expression.type.kind not in BLOBS:
        return IGNORABLE
    match expression:
        case Column():
            return IMPLICIT
        case Call(function="collate"):
            return EXPLICIT
        case Call(function="cast") if expression.type.kind in BLOBS:
            return IMPLICIT  # BINARY 'x' is as strong as a column, and among equals binary wins
        case Call(arguments=arguments):
            return min((coercibility(argument) for argument in arguments), default=COERCIBLE) if arguments else COERCIBLE
        case _:
            return COERCIBLE


def collation_of(expression: Expression) -> str:
    if expression.type.kind in BLOBS:
        return "binary"
    return expression.type.collation or DEFAULT_COLLATION


def merged_collation(arguments: tuple[Expression, ...], operation: str) -> str:
    """The collation in which `operation` handles `arguments`; those that are no text don't count."""
    best, strength = DEFAULT_COLLATION, IGNORABLE
    for argument in arguments:
        rank = coercibility(argument)
        if rank == IGNORABLE:
            continue
        name = collation_of(argument)
        if rank < strength:
            best, strength = name, rank
        elif rank == strength and name != best:
            best = _stronger(best, name, rank, operation)
    return best


def wider_charset(left: str, right: str) -> str | None:
    """Of collations of two character sets, that of the one which has all characters of the other."""
    ranks = [_WIDTHS.get(collation(name).charset, 1) for name in (left, right)]
    if ranks[0] == ranks[1]:
        return None
    return left if ranks[0] > ranks[1] else right


def _stronger(left: str, right: str, rank: int, operation: str) -> str:
    if "binary" in (left, right):
        return "binary"
    if rank != EXPLICIT:
        wider = wider_charset(left, right)
        if wider is not None:
            return wider
        if left.endswith("_bin") != right.endswith("_bin"):
            return left if left.endswith("_bin") else right
        if rank == COERCIBLE:
            return left
    raise InvalidStatement(
        Condition.ILLEGAL_COLLATION_MIX, f"{left},{_NAMES[rank]}", f"{right},{_NAMES[rank]}", operation
    )
