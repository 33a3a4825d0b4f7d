"""User variables in a statement: read, and assigned to.

`FROM t, (SELECT @n := 0) AS start` sets a variable before the rows of t are read: such SELECTs
are taken out, to be evaluated first, and what they select is what the variables hold then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from controller.sql.expressions import facts
from controller.sql.expressions.chance import SEQUENCE
from controller.sql.parameters import Parameters
from controller.sql.settings import Settings
from controller.sql.text.parse import syntax_error
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Expression, Literal, columns_of
from dataflow.expressions.user_variables import LAST_INSERT_ID
from dataflow.functions import call
from dataflow.functions.casts import cast
from dataflow.functions.user_variables import ASSIGN, VARIABLE
from dataflow.functions.xml_documents import WITH_VARIABLES
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, BLOBS, TEMPORALS, text


def read(node: Any, parameters: Parameters, settings: Settings) -> Expression:
    """@name: known beforehand, unless the statement itself assigns to it."""
    name = node.this.name.lower()
    fact, kind = facts.user_variable(name, settings)
    if name not in parameters.assigned:
        known = parameters.fact(fact, kind)
        return call("binary", known) if kind.kind in BLOBS else known  # no literal: its collation is that of a column
    return call(VARIABLE, _variables(parameters), Literal(name, text()), Literal(None, kind))


def assigned(node: Any, value: Expression, parameters: Parameters) -> Expression:
    """@name := value; dates and times become text, as a variable has no such type."""
    if not isinstance(node.this, exp.Parameter):
        raise syntax_error(":=", 0)
    if value.type.kind in TEMPORALS:
        value = call("concat", value)
    return call(ASSIGN, _variables(parameters), Literal(node.this.this.name.lower(), text()), value)


def last_insert_id(arguments: list[Expression], parameters: Parameters) -> Expression:
    """LAST_INSERT_ID(value): what LAST_INSERT_ID() is from then on, and what the client is told."""
    if len(arguments) != 1:
        raise InvalidStatement(Condition.WRONG_ARGUMENT_COUNT, "last_insert_id")
    value = cast(arguments[0], BIGINT_UNSIGNED)
    return call(ASSIGN, _variables(parameters), Literal(LAST_INSERT_ID, text()), value)


def special(name: str, arguments: list[Expression], parameters: Parameters, settings: Settings) -> Expression | None:
    """RAND(seed) of a constant: one number after the other, from the beginning of the statement. EXTRACTVALUE or UPDATEXML of a statement
    with user variables, which its path may name (`$@name`). None for other calls."""
    if name in WITH_VARIABLES and (settings.variables or parameters.assigned):
        return call(WITH_VARIABLES[name], _variables(parameters), *arguments)
    if name != "rand" or len(arguments) != 1 or columns_of(arguments[0]):
        return None
    parameters.sequences += 1
    return call(SEQUENCE, _variables(parameters), Literal(parameters.sequences, BIGINT), arguments[0])


def begun(expression: Expression) -> Expression:
    """For a row of VALUES, whose RAND(seed) is none of another row's: the first of its numbers."""
    if not isinstance(expression, Call):
        return expression
    if expression.function == SEQUENCE:
        return call("rand", expression.arguments[2])
    return replace(expression, arguments=tuple([begun(each) for each in expression.arguments]))


def _variables(parameters: Parameters) -> Expression:
    return parameters.fact("user_variables", BIGINT)


def assignments_of(tree: Any) -> tuple[frozenset[str], list[Any]]:
    """The names that are assigned to, and the SELECTs to be evaluated first; `tree` is changed accordingly."""
    found = [each for each in tree.find_all(exp.PropertyEQ) if isinstance(each.this, exp.Parameter)]
    names = frozenset([each.this.this.name.lower() for each in found])
    initial = []
    for derived in list(tree.find_all(exp.Subquery)):
        select = derived.this
        if not isinstance(derived.parent, exp.From | exp.Join) or not isinstance(select, exp.Select):
            continue
        assigned = [each for each in select.find_all(exp.PropertyEQ) if isinstance(each.this, exp.Parameter)]
        if assigned and {name for name, value in select.args.items() if value} == {"expressions"}:
            initial.append(select.copy())
            for each in assigned:
                read = each.this.copy()
                if each is not select and "text" in each.meta:
                    read.meta["text"] = each.meta["text"]
                each.replace(read)
    return names, initial
