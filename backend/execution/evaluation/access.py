"""The choice of the index, and of its keys, that find the rows of a WHERE.

The choice is made once for each plan, from the conjuncts that compare a column with a
constant; their values are bound at run time. Every row that fulfils the WHERE is among those
found. The reverse is not promised: whoever reads the rows evaluates the whole WHERE again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from backend.execution.evaluation.lookup_value import UNUSABLE, Lookup, lookup_value
from backend.execution.pace import breathe
from dataflow.expressions.compile import Parameters, compile_scalar
from dataflow.expressions.expression import Call, Column, Expression, columns_of
from dataflow.functions import is_volatile
from dataflow.schema import Index, Table
from dataflow.values.comparison import basis
from dataflow.values.types import Row, Value
from persistence.key_range import Operator

KEYS_MAX = 10_000
RANGES_MAX = 200
"""Beyond so many keys or ranges of IN lists, reading everything is no worse."""

Scalar = Callable[[Row, Parameters], Value]
_MIRRORED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Term:
    """`column operator constant`; an equality may have several constants (IN)."""

    column: int
    operator: str
    constants: tuple[Scalar, ...]
    lookup: Lookup


@dataclass(frozen=True, slots=True)
class AccessPath:
    """The leading parts of `index` that equalities fix, and comparisons of the part after them.

    Without any it is a scan of the whole table by primary key.
    """

    index: Index
    equalities: tuple[Term, ...] = ()
    comparisons: tuple[Term, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the equalities name whole keys of an index without duplicates."""
        return self.index.unique and len(self.equalities) == len(self.index.parts)


@dataclass(frozen=True, slots=True)
class Bound:
    """A path with its values: alternatives for the leading parts, and comparisons common to all."""

    path: AccessPath
    alternatives: list[tuple[Value, ...]]
    comparisons: list[tuple[Operator, Value]]

    @property
    def is_complete(self) -> bool:
        """Whether the alternatives are whole keys of an index without duplicates."""
        index = self.path.index
        return index.unique and all(len(values) == len(index.parts) for values in self.alternatives)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An index that may be read: its leading columns that are fixed, and the one after them, if it has one."""

    index: Index
    fixed: tuple[int, ...]
    following: int | None

    @property
    def is_whole(self) -> bool:
        """Whether the columns fix whole keys of an index without duplicates."""
        return self.index.unique and len(self.fixed) == len(self.index.parts)


def candidates(table: Table, columns: Container[int]) -> Iterator[Candidate]:
    """The indexes of a table, where `columns` of it are fixed. A part that is a prefix of a text finds nothing."""
    places = {column.id: place for place, column in enumerate(table.columns)}
    for index in (table.primary_key, *table.indexes):
        if index.building or index.kind not in ("BTREE", "HASH"):
            continue
        fixed: list[int] = []
        following = None
        for part in index.parts:
            if part.prefix is not None:
                break
            if places[part.column_id] not in columns:
                following = places[part.column_id]
                break
            fixed.append(places[part.column_id])
        yield Candidate(index, tuple(fixed), following)


def best_index(table: Table, columns: Container[int]) -> Candidate | None:
    """The index of which the columns fix the most; None if they fix none."""
    best, best_score = None, 0
    for each in candidates(table, columns):
        score = 1000 if each.is_whole else len(each.fixed)
        if score > best_score:
            best, best_score = each, score
    return best


def choose(table: Table, where: Expression | None) -> AccessPath:
    """The most selective path by the number of parts it fixes; the primary key wins ties."""
    best, best_score = AccessPath(table.primary_key), (0, 0)
    if where is None:
        return best
    equalities: dict[int, Term] = {}
    comparisons: dict[int, list[Term]] = {}
    for term in terms(where):
        if term.operator == "=" or term.operator == "<=>":
            shorter = equalities.get(term.column)
            if shorter is None or len(term.constants) < len(shorter.constants):
                equalities[term.column] = term
        else:
            comparisons.setdefault(term.column, []).append(term)
    for each in candidates(table, equalities):
        fixed = tuple([equalities[column] for column in each.fixed])
        compared = () if each.following is None else tuple(comparisons.get(each.following, ()))
        score = (1000 if each.is_whole else 2 * len(fixed), 1 if compared else 0)
        if score > best_score:
            best, best_score = AccessPath(each.index, fixed, compared), score
    return best


def bind(path: AccessPath, parameters: Sequence[Value]) -> Bound | None:
    """The path with this execution's values; None if one of them rules the index out."""
    lists: list[list[Value]] = []
    combinations = 1
    for term in path.equalities:
        values: list[Value] = []
        for constant in term.constants:
            breathe()
            value = term.lookup(constant((), parameters))
            if value is UNUSABLE:
                return None
            if value is not None or term.operator == "<=>":
                values.append(value)  # type: ignore[arg-type]
        lists.append(values)
        combinations *= len(values)
    if combinations > (KEYS_MAX if path.is_complete else RANGES_MAX):
        return None
    compared: list[tuple[Operator, Value]] = []
    for term in path.comparisons:
        value = term.lookup(term.constants[0]((), parameters))
        if value is UNUSABLE:
            return None
        if value is None:
            return Bound(path, [], [])
        compared.append((term.operator, value))  # type: ignore[arg-type]
    return Bound(path, list(product(*lists)), compared)


def terms(where: Expression) -> Iterator[Term]:
    """The comparisons with constants that all hold where `where` does."""
    match where:
        case Call("and", arguments):
            for argument in arguments:
                yield from terms(argument)
        case Call("between", (Column() as column, low, high)):
            # All three compare in one way: neither bound says anything if the other changes how.
            found = [*_comparison(column, ">=", low), *_comparison(column, "<=", high)]
            if len(found) == 2 and basis(column.type, low.type) is basis(column.type, high.type):
                yield from found
        case Call("in", (Column() as column, *constants)):
            yield from _equality(column, "=", constants)
        case Call("is null" | "isnull", (Column() as column,)):
            yield Term(column.index, "<=>", (lambda row, parameters: None,), lambda value: value)
        case Call("=" | "<=>" as operator, (Column() as column, constant)):
            yield from _equality(column, operator, [constant])
        case Call("=" | "<=>" as operator, (constant, Column() as column)):
            yield from _equality(column, operator, [constant])
        case Call("<" | "<=" | ">" | ">=" as operator, (Column() as column, constant)):
            yield from _comparison(column, operator, constant)
        case Call("<" | "<=" | ">" | ">=" as operator, (constant, Column() as column)):
            yield from _comparison(column, _MIRRORED[operator], constant)


def _equality(column: Column, operator: str, constants: Sequence[Expression]) -> Iterator[Term]:
    lookups = [lookup_value(column, constant, equality=True) for constant in constants]
    if any(lookup is None for lookup in lookups) or not all(map(_is_constant, constants)):
        return
    first = lookups[0]
    assert first is not None
    if len(set(lookups)) == 1:
        yield Term(column.index, operator, tuple(compile_scalar(constant) for constant in constants), first)


def _comparison(column: Column, operator: str, constant: Expression) -> Iterator[Term]:
    lookup = lookup_value(column, constant, equality=False)
    if lookup is not None and _is_constant(constant):
        yield Term(column.index, operator, (compile_scalar(constant),), lookup)


def _is_constant(expression: Expression) -> bool:
    """Whether it is the same for all rows."""
    return not columns_of(expression) and not is_volatile(expression)
