"""MySQL's coercibility rules: the collation of an operation on several texts.

The explicit COLLATE wins, then a column's, then a literal's. Texts of another character set are converted where nothing can
be lost: to Unicode, from ASCII, and literals. Among equals a binary string wins over text, and a `_bin` collation over the
others of its character set; if neither is, the result has none, which an operation that compares refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Column, Expression, Literal, walk
from dataflow.values.collation.names import CHARSETS, UNICODE, collation
from dataflow.values.result_limits import planned
from dataflow.values.types import BLOBS, DEFAULT_COLLATION, STRINGS, Kind

EXPLICIT, NONE, IMPLICIT, SYSCONST, COERCIBLE, NUMERIC, IGNORABLE = range(7)
_NAMES = ("EXPLICIT", "NONE", "IMPLICIT", "SYSCONST", "COERCIBLE", "NUMERIC", "IGNORABLE")
JOINING = frozenset({"function", "case", "greatest"})
"""Operations that give a text: it may have no collation."""
OF_THEIR_OWN: set[str] = set()
"""Functions whose result has the connection's collation, whatever their arguments have."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A collation, how weakly it is held on to (lower wins), and whether all characters are ASCII's."""

    name: str
    rank: int
    is_ascii: bool = False

    @property
    def charset(self) -> str:
        return collation(self.name).charset

    def __str__(self) -> str:
        return f"{self.name},{_NAMES[self.rank]}"


class _Clash(Exception):
    """Two claims that cannot be brought together."""


def claim_of(expression: Expression) -> Claim:
    kind = expression.type.kind
    if kind is Kind.NULL:
        return Claim("binary", IGNORABLE, True)
    if kind not in STRINGS and kind not in BLOBS:
        return Claim(planned().collation, NUMERIC, True)
    name = collation_of(expression)
    is_ascii = collation(name).charset == "ascii"
    match expression:
        case Column():
            return Claim(name, IMPLICIT, is_ascii)
        case Literal(value=value):
            return Claim(name, COERCIBLE, is_ascii or (isinstance(value, str) and value.isascii()))
        case Call(function="collate", arguments=arguments):
            return Claim(name, EXPLICIT, is_ascii or claim_of(arguments[0]).is_ascii)
        case Call(function="cast" | "binary", arguments=arguments):
            return Claim(name, IMPLICIT, is_ascii or (kind not in BLOBS and claim_of(arguments[0]).is_ascii))
        case Call(function=function, arguments=arguments) if arguments and function not in OF_THEIR_OWN:
            claims = [claim_of(argument) for argument in (arguments[1:] if function == "if" else arguments)]
            try:
                found = _together(claims)
            except _Clash:
                found = min(claims, key=lambda claim: claim.rank)
            rank = COERCIBLE if found.rank >= NUMERIC else found.rank
            return Claim(name, rank, is_ascii or all(claim.is_ascii for claim in claims))
        case _:
            return Claim(name, COERCIBLE, is_ascii)


def coercibility(expression: Expression) -> int:
    """How weakly `expression` holds on to its collation; lower wins."""
    return claim_of(expression).rank


def collation_of(expression: Expression) -> str:
    if expression.type.kind in BLOBS:
        return "binary"
    return expression.type.collation or DEFAULT_COLLATION


def merged_collation(arguments: tuple[Expression, ...], operation: str) -> str:
    """The collation in which `operation` handles `arguments`; those that are no text count only if all are none."""
    claims = [claim for claim in map(claim_of, arguments) if claim.rank < NUMERIC]
    if not claims:
        return planned().collation
    try:
        found = _together(claims)
        if found.rank == NONE and operation not in JOINING:
            raise _Clash
        if any(not _converts(claim, found) for claim in claims):
            raise _Clash
        if any(not _converts(replace(claim_of(each), rank=IMPLICIT), found) for each in arguments if _varies(each)):
            raise _Clash
    except _Clash:
        raise _illegal_mix(claims, operation) from None
    return found.name


def _varies(expression: Expression) -> bool:
    """Whether it is a text that is made of literals row by row: it cannot be converted ahead, as a constant is."""
    inside = list(walk(expression)) if isinstance(expression, Call) and claim_of(expression).rank == COERCIBLE else []
    is_wide = any(isinstance(each, Literal) and isinstance(each.value, str) and not each.value.isascii() for each in inside)
    return is_wide and any(isinstance(each, Column) for each in inside)


def prevailing_collation(arguments: Sequence[Expression]) -> str | None:
    """The collation that wins among strings; None if none does."""
    try:
        return _together([claim_of(each) for each in arguments]).name
    except _Clash:
        return None


def _together(claims: list[Claim]) -> Claim:
    """The claim that wins over all others; one that is explicit does, even if others cannot be brought together."""
    found = claims[0]
    clash = False
    for claim in claims[1:]:
        try:
            found = _stronger(found, claim)
        except _Clash:
            if found.rank == EXPLICIT and claim.rank == EXPLICIT:
                raise
            clash, found = True, Claim("binary", NONE)
    if clash and found.rank != EXPLICIT:
        raise _Clash
    return found


def _stronger(left: Claim, right: Claim) -> Claim:
    if left.charset != right.charset:
        if "binary" in (left.name, right.name):
            binary, text = (left, right) if left.name == "binary" else (right, left)
            return binary if binary.rank <= text.rank else text
        if _includes(left, right):
            return left
        if _includes(right, left):
            return right
        weaker = max(left, right, key=lambda claim: claim.rank)
        if left.rank != right.rank and weaker.rank >= SYSCONST:
            return right if weaker is left else left
        raise _Clash
    if left.rank != right.rank:
        return left if left.rank < right.rank else right
    if left.name == right.name:
        return left if not left.is_ascii else right
    if left.rank == EXPLICIT:
        raise _Clash
    for claim in (left, right):
        if claim.name.endswith("_bin"):
            return claim
    if left.rank == COERCIBLE:
        return left  # MySQL has none then; but a parameter's collation may only be known when it is executed
    return Claim(f"{left.charset}_bin", NONE, left.is_ascii and right.is_ascii)


def _includes(wider: Claim, other: Claim) -> bool:
    """Whether what `other` claims can be converted to the character set of `wider`, and should be."""
    if wider.charset in UNICODE and (wider.rank < other.rank or (wider.rank == other.rank and _is_wider(wider, other))):
        return True
    return other.is_ascii and (wider.rank < other.rank or (wider.rank == other.rank and not wider.is_ascii))


def _is_wider(wider: Claim, other: Claim) -> bool:
    if other.charset not in UNICODE:
        return True
    left, right = CHARSETS[wider.charset], CHARSETS[other.charset]
    return left.point_max > right.point_max and left.bytes_max > right.bytes_max and left.bytes_min == right.bytes_min


def _converts(claim: Claim, target: Claim) -> bool:
    """Whether nothing is lost by bringing a text to the character set that was chosen."""
    return (
        claim.rank >= SYSCONST or claim.is_ascii or claim.charset == target.charset
        or "binary" in (claim.name, target.name) or target.charset in UNICODE
    )  # fmt: skip


def _illegal_mix(claims: list[Claim], operation: str) -> InvalidStatement:
    if operation == "UNION" and len({claim.charset for claim in claims}) == 1:
        return InvalidStatement(Condition.ILLEGAL_MIX_OF_MANY, operation)
    if len(claims) == 2:
        return InvalidStatement(Condition.ILLEGAL_COLLATION_MIX, claims[0], claims[1], operation)
    if len(claims) == 3:
        return InvalidStatement(Condition.ILLEGAL_MIX_OF_3, *claims, operation)
    return InvalidStatement(Condition.ILLEGAL_MIX_OF_MANY, operation)
