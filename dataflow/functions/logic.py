"""AND, OR, NOT, XOR in three values, and the tests IS [NOT] NULL, TRUE, FALSE, UNKNOWN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataflow.expressions.expression import Call, Expression
from dataflow.functions.registry import Fragment, special
from dataflow.values.types import BOOLEAN

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter


TERMS_MAX = 50
"""More terms than these become functions of so many each: Python compiles a function in one go, in which nobody else has a turn."""


def _flat(emitter: Emitter, call: Call) -> list[Expression]:
    """The arguments, with nested calls of the same associative operator unfolded; many of them in groups again."""
    found: list[Expression] = []
    pending = list(reversed(call.arguments))
    while pending:
        argument = pending.pop()
        if isinstance(argument, Call) and argument.function == call.function:
            pending.extend(reversed(argument.arguments))
        else:
            found.append(argument)
    if len(found) <= TERMS_MAX:
        return found
    groups = [Call(call.function, tuple(found[first : first + TERMS_MAX]), call.type) for first in range(0, len(found), TERMS_MAX)]
    emitter.set_apart(groups)
    return list(groups)


def _and_truth(emitter: Emitter, call: Call) -> str:
    return "(" + " and ".join(emitter.truth(argument) for argument in _flat(emitter, call)) + ")"


def _and_falsity(emitter: Emitter, call: Call) -> str:
    return "(" + " or ".join(emitter.falsity(argument) for argument in _flat(emitter, call)) + ")"


@special("and", "&&", least=2, most=None, result=BOOLEAN, truth=_and_truth, falsity=_and_falsity)
def logical_and(emitter: Emitter, call: Call) -> Fragment:
    parts = [emitter.condition(argument) for argument in _flat(emitter, call)]
    if not any(part.nullable for part in parts):
        return Fragment(f"(1 if {' and '.join(part.source for part in parts)} else 0)", nullable=False)
    false, names = [], []
    for part in parts:
        name = emitter.temporary()
        false.append(f"(({name} := {part.source}) is not None and not {name})")
        if part.nullable:
            names.append(f"{name} is None")
    return Fragment(f"(0 if {' or '.join(false)} else None if {' or '.join(names)} else 1)")


def _or_truth(emitter: Emitter, call: Call) -> str:
    return "(" + " or ".join(emitter.truth(argument) for argument in _flat(emitter, call)) + ")"


def _or_falsity(emitter: Emitter, call: Call) -> str:
    return "(" + " and ".join(emitter.falsity(argument) for argument in _flat(emitter, call)) + ")"


@special("or", least=2, most=None, result=BOOLEAN, truth=_or_truth, falsity=_or_falsity)
def logical_or(emitter: Emitter, call: Call) -> Fragment:
    parts = [emitter.condition(argument) for argument in _flat(emitter, call)]
    if not any(part.nullable for part in parts):
        return Fragment(f"(1 if {' or '.join(part.source for part in parts)} else 0)", nullable=False)
    true, names = [], []
    for part in parts:
        name = emitter.temporary()
        true.append(f"({name} := {part.source})")
        if part.nullable:
            names.append(f"{name} is None")
    return Fragment(f"(1 if {' or '.join(true)} else None if {' or '.join(names)} else 0)")


@special(
    "not", "!", least=1, most=1, result=BOOLEAN,
    truth=lambda emitter, call: emitter.falsity(call.arguments[0]),
    falsity=lambda emitter, call: emitter.truth(call.arguments[0]),
)  # fmt: skip
def logical_not(emitter: Emitter, call: Call) -> Fragment:
    return emitter.propagate([emitter.condition(call.arguments[0])], lambda value: f"0 if {value} else 1")


@special("xor", least=2, most=2, result=BOOLEAN)
def logical_xor(emitter: Emitter, call: Call) -> Fragment:
    parts = [emitter.condition(argument) for argument in call.arguments]
    return emitter.propagate(parts, lambda left, right: f"+((not {left}) != (not {right}))")


def _null_test(name: str, *aliases: str, is_null: bool) -> None:
    def test(emitter: Emitter, call: Call, wants_null: bool) -> str:
        fragment = emitter.emit(call.arguments[0])
        if not fragment.nullable:
            return "(not True)" if wants_null else "(not False)"
        return f"({fragment.source} {'is None' if wants_null else 'is not None'})"

    def truth(emitter: Emitter, call: Call) -> str:
        return test(emitter, call, is_null)

    def falsity(emitter: Emitter, call: Call) -> str:
        return test(emitter, call, not is_null)

    @special(name, *aliases, least=1, most=1, result=BOOLEAN, truth=truth, falsity=falsity)
    def emit(emitter: Emitter, call: Call) -> Fragment:
        return Fragment(f"(+{truth(emitter, call)})", nullable=False)


_null_test("is null", "isnull", "is unknown", is_null=True)
_null_test("is not null", "is not unknown", is_null=False)


def _truth_test(name: str, wanted: bool, negated: bool) -> None:
    def truth(emitter: Emitter, call: Call) -> str:
        argument = call.arguments[0]
        found = emitter.truth(argument) if wanted else emitter.falsity(argument)
        return f"(not {found})" if negated else found

    def falsity(emitter: Emitter, call: Call) -> str:
        return f"(not {truth(emitter, call)})"

    @special(name, least=1, most=1, result=BOOLEAN, truth=truth, falsity=falsity)
    def emit(emitter: Emitter, call: Call) -> Fragment:
        return Fragment(f"(1 if {truth(emitter, call)} else 0)", nullable=False)


_truth_test("is true", True, False)
_truth_test("is not true", True, True)
_truth_test("is false", False, False)
_truth_test("is not false", False, True)
