"""= <> < <= > >= <=>, also of rows, BETWEEN and IN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dataflow.breath import breathe
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Column, Expression, Literal, Parameter
from dataflow.functions.registry import Arguments, Fragment, call, special
from dataflow.values.collation.coercion import merged_collation
from dataflow.values.comparison import Basis, basis, common_basis, comparand, operands
from dataflow.values.types import BOOLEAN, NULL, TEXTS, SqlType, Value

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

_PYTHON = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TUPLE_MAX = 8
"""Longer lists are looked up in a set."""
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def is_row(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function == "row"


def _one_of_each(arguments: Sequence[Expression]) -> list[Expression]:
    """Of parameters of one type, the first: lists of thousands are common."""
    known: dict[SqlType, Expression] = {}
    return [each for each in arguments if not isinstance(each, Parameter) or known.setdefault(each.type, each) is each]


def _checked(operator: str, arguments: Arguments) -> SqlType:
    """BOOLEAN, after looking at what can only be wrong: rows of other sizes, collations that clash."""
    first = arguments[0]
    texts = [each for each in arguments[1:] if isinstance(each, Column | Call) and each.type.kind in TEXTS]
    if len(texts) > 1 and first.type.kind in TEXTS:  # IN compares all of them alike
        merged_collation((first, *texts), operator)
    for other in _one_of_each(arguments[1:]):
        if is_row(first) or is_row(other):
            width = len(first.arguments) if isinstance(first, Call) and is_row(first) else 1
            if not isinstance(other, Call) or not is_row(other) or len(other.arguments) != width:
                raise InvalidStatement(Condition.OPERAND_COLUMNS, width)
            assert isinstance(first, Call)
            for pair in zip(first.arguments, other.arguments):
                _checked(operator, pair)
        elif basis(first.type, other.type) is Basis.TEXT:  # also says if the two cannot be compared
            merged_collation((first, other), operator)
    return BOOLEAN


@special("row", least=1, most=None, result=NULL)
def row(emitter: Emitter, node: Call) -> Fragment:
    values = [emitter.settled(argument).source for argument in node.arguments]
    return Fragment(f"({', '.join(values)},)", nullable=False)


def _row_comparison(operator: str, node: Call) -> Call:
    """A comparison of rows as one of its parts."""
    left, right = node.arguments
    assert isinstance(left, Call) and isinstance(right, Call)
    pairs = list(zip(left.arguments, right.arguments))
    if len(pairs) == 1:
        return call(operator, *pairs[0])
    if operator in ("=", "<=>"):
        return call("and", *(call(operator, one, two) for one, two in pairs))
    if operator == "<>":
        return call("or", *(call(operator, one, two) for one, two in pairs))
    strict = operator[0]
    found = call(operator, *pairs[-1])
    for one, two in reversed(pairs[:-1]):
        found = call("or", call(strict, one, two), call("and", call("=", one, two), found))
    return found


def _comparison(operator: str, *aliases: str) -> None:
    def condition(emitter: Emitter, node: Call, chosen: str) -> str:
        left, right = operands(emitter, *node.arguments, operation=operator)
        if chosen == "=" and left.source != "None" and right.source != "None" and not (left.nullable and right.nullable):
            return f"({left.source} == {right.source})"
        checked, names = emitter.guarded([left, right])
        if checked is None:
            return "False"
        tests = [f"{name} is not None" for name in checked] + [f"{names[0]} {_PYTHON[chosen]} {names[1]}"]
        return f"({' and '.join(tests)})"

    def truth(emitter: Emitter, node: Call) -> str:
        if is_row(node.arguments[0]):
            return emitter.truth(_row_comparison(operator, node))
        return condition(emitter, node, operator)

    def falsity(emitter: Emitter, node: Call) -> str:
        if is_row(node.arguments[0]):
            return emitter.falsity(_row_comparison(operator, node))
        return condition(emitter, node, _OPPOSITE[operator])

    @special(
        operator, *aliases, least=2, most=2, result=lambda arguments: _checked(operator, arguments),
        truth=truth, falsity=falsity,
    )  # fmt: skip
    def emit(emitter: Emitter, node: Call) -> Fragment:
        if is_row(node.arguments[0]):
            return emitter.emit(_row_comparison(operator, node))
        sides = operands(emitter, *node.arguments, operation=operator)
        return emitter.propagate(sides, lambda left, right: f"+({left} {_PYTHON[operator]} {right})")


_comparison("=")
_comparison("<>", "!=")
_comparison("<")
_comparison("<=")
_comparison(">")
_comparison(">=")


def _safe_truth(emitter: Emitter, node: Call) -> str:
    if is_row(node.arguments[0]):
        return emitter.truth(_row_comparison("<=>", node))
    left, right = operands(emitter, *node.arguments, operation="<=>")
    return f"({left.source} == {right.source})"


@special(
    "<=>", least=2, most=2, result=lambda arguments: _checked("<=>", arguments), truth=_safe_truth,
    falsity=lambda emitter, node: f"(not {_safe_truth(emitter, node)})",
)  # fmt: skip
def null_safe_equal(emitter: Emitter, node: Call) -> Fragment:
    return Fragment(f"(1 if {_safe_truth(emitter, node)} else 0)", nullable=False)


def _as_comparisons(node: Call) -> Call:
    value, low, high = node.arguments
    return call("and", call(">=", value, low), call("<=", value, high))


def _between_parts(emitter: Emitter, node: Call) -> list[Fragment] | None:
    """The three values in their common basis; None if it is known at execution only."""
    chosen = common_basis([argument.type for argument in node.arguments])
    if chosen is Basis.DYNAMIC or is_row(node.arguments[0]):
        return None
    collation = merged_collation(node.arguments, "between")
    return [comparand(emitter, argument, chosen, collation) for argument in node.arguments]


def _between_truth(emitter: Emitter, node: Call) -> str:
    parts = _between_parts(emitter, node)
    if parts is None:
        return emitter.truth(_as_comparisons(node))
    checked, names = emitter.guarded(parts)
    if checked is None:
        return "False"
    tests = [f"{name} is not None" for name in checked] + [f"{names[1]} <= {names[0]} <= {names[2]}"]
    return f"({' and '.join(tests)})"


def _between(emitter: Emitter, node: Call) -> Fragment:
    """1, 0 or NULL; a bound that is NULL does not matter if the other one is not kept."""
    parts = _between_parts(emitter, node)
    if parts is None:
        return emitter.emit(_as_comparisons(node))
    _, low, high = parts
    if not low.nullable and not high.nullable:
        return emitter.propagate(parts, lambda v, a, b: f"+({a} <= {v} <= {b})")
    return emitter.apply(_between_nullable, parts, nulls=True)


def _between_nullable(value: Any, low: Any, high: Any) -> int | None:
    if value is None:
        return None
    if (low is not None and value < low) or (high is not None and value > high):
        return 0
    return None if low is None or high is None else 1


def _between_type(arguments: Arguments) -> SqlType:
    common_basis([argument.type for argument in arguments])
    return BOOLEAN


@special("between", least=3, most=3, result=_between_type, truth=_between_truth)
def between(emitter: Emitter, node: Call) -> Fragment:
    return _between(emitter, node)


@special("not between", least=3, most=3, result=_between_type, falsity=_between_truth)
def not_between(emitter: Emitter, node: Call) -> Fragment:
    return emitter.propagate([_between(emitter, node)], lambda value: f"1 - {value}")


def _uniform(node: Call) -> bool:
    """Whether the list can be compared as one set of keys."""
    value, *items = node.arguments
    if is_row(value) or _is_null(value):
        return False
    bases = {basis(value.type, kind) for kind in {item.type for item in items if not _is_null(item)}}
    if len(bases) != 1 or Basis.DYNAMIC in bases:
        return False
    if bases == {Basis.TEXT}:
        return len({merged_collation((value, item), "in") for item in _one_of_each(items) if not _is_null(item)}) == 1
    return True


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _members(emitter: Emitter, node: Call) -> tuple[Fragment, str, bool]:
    """The value, source of the collection its key is looked up in, and whether NULL may be in there."""
    value, *items = node.arguments
    known = [item for item in items if not _is_null(item)]
    chosen = basis(value.type, known[0].type)
    collation = merged_collation((value, known[0]), "in")
    left = comparand(emitter, value, chosen, collation)
    are_literals = all(isinstance(item, Literal) for item in known)
    if len(known) > _TUPLE_MAX and not are_literals and all(isinstance(item, Literal) or _given(item) is not None for item in known):
        members = _Members(type(emitter)(), known, chosen, collation)
        return left, f"{emitter.constant(members)}({emitter.parameters})", members.is_nullable
    keys = [comparand(emitter, item, chosen, collation) for item in known]
    is_nullable = any(key.nullable for key in keys)
    if not is_nullable and all(isinstance(item, Literal) for item in items):
        constants = frozenset(eval(key.source, emitter.namespace) for key in keys)
        return left, emitter.constant(constants), is_nullable
    return left, f"({', '.join(key.source for key in keys)},)", is_nullable


def _given(item: Expression) -> tuple[int, Expression] | None:
    """The number of a parameter, and what is made of it as if it were the first; None for anything else."""
    match item:
        case Parameter(index=index, type=type_):
            return index, Parameter(0, type_)
        case Call("as compared", (Parameter(index=index, type=type_), target), made):
            return index, Call("as compared", (Parameter(0, type_), target), made)
    return None


class _Members:
    """The keys of a long list of parameters and literals, computed once for the same parameters."""

    def __init__(self, emitter: Emitter, items: Sequence[Expression], chosen: Basis, collation: str) -> None:
        def key_of(item: Expression) -> Callable[[tuple[Value]], Any]:
            source = comparand(emitter, item, chosen, collation).source
            key: Callable[[tuple[Value]], Any] = eval(f"lambda {emitter.parameters}: {source}", emitter.namespace)
            return key

        given = [found for item in items if (found := _given(item)) is not None]
        keys = {alike: key_of(alike) for alike in {alike for _, alike in given}}
        self.is_nullable = bool(given)
        self._keys = [(index, keys[alike]) for index, alike in given]
        self._constants = [key_of(item)((None,)) for item in items if isinstance(item, Literal)]
        self._known: tuple[Sequence[Value], frozenset[Any]] | None = None

    def __call__(self, parameters: Sequence[Value]) -> frozenset[Any]:
        known = self._known
        if known is not None and known[0] is parameters:
            return known[1]
        found = set(self._constants)
        for index, key in self._keys:
            breathe()
            found.add(key((parameters[index],)))
        members = frozenset(found)
        if isinstance(parameters, tuple):  # else they may change
            self._known = parameters, members
        return members


def _in_as_or(node: Call) -> Call:
    value, *items = node.arguments
    tests = [call("=", value, item) for item in items]
    return tests[0] if len(tests) == 1 else call("or", *tests)


def _in_truth(emitter: Emitter, node: Call) -> str:
    if all(_is_null(item) for item in node.arguments[1:]):
        return "False"
    if not _uniform(node):
        return emitter.truth(_in_as_or(node))
    value, members, nullable = _members(emitter, node)
    if value.source == "None":
        return "False"
    if not value.nullable or not nullable:
        return f"({value.source} in {members})"
    name = value.source if value.atomic else emitter.temporary()
    bound = name if value.atomic else f"({name} := {value.source})"
    return f"({bound} is not None and {name} in {members})"


def _in_falsity(emitter: Emitter, node: Call) -> str:
    if any(_is_null(item) for item in node.arguments[1:]):
        return "False"
    if not _uniform(node):
        return emitter.falsity(_in_as_or(node))
    value, members, nullable = _members(emitter, node)
    checked, names = emitter.guarded([value])
    if checked is None:
        return "False"
    tests = [f"{name} is not None" for name in checked]
    if nullable:
        name = emitter.temporary()
        tests.append(f"None not in ({name} := {members})")
        members = name
    return f"({' and '.join([*tests, f'{names[0]} not in {members}'])})"


@special(
    "in", least=2, most=None, result=lambda arguments: _checked("in", arguments), truth=_in_truth, falsity=_in_falsity
)
def member(emitter: Emitter, node: Call) -> Fragment:
    items = node.arguments[1:]
    if all(_is_null(item) for item in items):
        return emitter.literal(None)
    if not _uniform(node):
        return emitter.emit(_in_as_or(node))
    value, members, nullable = _members(emitter, node)
    has_null = any(_is_null(item) for item in items)
    if has_null:
        return emitter.propagate([value], lambda key: f"1 if {key} in {members} else None", result_nullable=True)
    if not nullable:
        return emitter.propagate([value], lambda key: f"+({key} in {members})")
    name = emitter.temporary()
    return emitter.propagate(
        [value],
        lambda key: f"1 if {key} in ({name} := {members}) else None if None in {name} else 0",
        result_nullable=True,
    )


@special(
    "not in", least=2, most=None, result=lambda arguments: _checked("in", arguments),
    truth=lambda emitter, node: _in_falsity(emitter, node),
    falsity=lambda emitter, node: _in_truth(emitter, node),
)  # fmt: skip
def not_member(emitter: Emitter, node: Call) -> Fragment:
    return emitter.emit(call("not", call("in", *node.arguments)))
