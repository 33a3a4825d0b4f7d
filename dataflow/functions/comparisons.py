"""= <> < <= > >= <=>, also of rows, BETWEEN and IN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.collation.coercion import merged_collation
from dataflow.comparison import Basis, basis, operands
from dataflow.errors import Condition, InvalidStatement
from dataflow.expression import Call, Expression, Literal
from dataflow.functions.registry import Arguments, Fragment, call, special
from dataflow.types import BOOLEAN, NULL, SqlType

if TYPE_CHECKING:
    from dataflow.compile import Emitter

_PYTHON = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def is_row(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function == "row"


def _checked(operator: str, arguments: Arguments) -> SqlType:
    """BOOLEAN, after looking at what can only be wrong: rows of other sizes, collations that clash."""
    first = arguments[0]
    for other in arguments[1:]:
        if is_row(first) or is_row(other):
            width = len(first.arguments) if isinstance(first, Call) and is_row(first) else 1
            if not isinstance(other, Call) or not is_row(other) or len(other.arguments) != width:
                raise InvalidStatement(Condition.OPERAND_COLUMNS, width)
        elif basis(first.type, other.type) is Basis.TEXT:
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


def _between(node: Call) -> Call:
    value, low, high = node.arguments
    return call("and", call(">=", value, low), call("<=", value, high))


@special(
    "between", least=3, most=3, result=BOOLEAN,
    truth=lambda emitter, node: emitter.truth(_between(node)),
    falsity=lambda emitter, node: emitter.falsity(_between(node)),
)  # fmt: skip
def between(emitter: Emitter, node: Call) -> Fragment:
    return emitter.emit(_between(node))


@special(
    "not between", least=3, most=3, result=BOOLEAN,
    truth=lambda emitter, node: emitter.falsity(_between(node)),
    falsity=lambda emitter, node: emitter.truth(_between(node)),
)  # fmt: skip
def not_between(emitter: Emitter, node: Call) -> Fragment:
    return emitter.emit(call("not", _between(node)))


def _uniform(node: Call) -> bool:
    """Whether the list can be compared as one set of keys."""
    value, *items = node.arguments
    if is_row(value):
        return False
    bases = {basis(value.type, item.type) for item in items if not _is_null(item)}
    if len(bases) != 1 or Basis.DYNAMIC in bases:
        return False
    if bases == {Basis.TEXT}:
        return len({merged_collation((value, item), "in") for item in items if not _is_null(item)}) == 1
    return True


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _members(emitter: Emitter, node: Call) -> tuple[Fragment, str, list[Fragment]]:
    """The value, source of the collection its key is looked up in, and the members that may be NULL."""
    value, *items = node.arguments
    left: Fragment | None = None
    keys: list[Fragment] = []
    for item in items:
        if not _is_null(item):
            first, key = operands(emitter, value, item, operation="in")
            left = left or first
            keys.append(key)
    assert left is not None
    nullable = [key for key in keys if key.nullable]
    if not nullable and all(isinstance(item, Literal) for item in items):
        constants = frozenset(eval(key.source, emitter.namespace) for key in keys)
        return left, emitter.constant(constants), nullable
    return left, f"({', '.join(key.source for key in keys)},)", nullable


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
