"""Expressions that belong to a table: generated columns, CHECK constraints, DEFAULT (…).

They are kept as text with every column in backquotes, and bound to positions whenever the
columns change. Binding is the same as in a statement, except that nothing outside the row may
be asked for.
"""

from __future__ import annotations

from dataclasses import replace

from controller.sql.expressions.scope import Scope, TableInSight
from controller.sql.expressions.translate import Translator
from controller.sql.parameters import Parameters
from controller.sql.settings import Settings
from controller.sql.text.cursor import identifier_name
from controller.sql.text.lexer import TokenKind, quoted, tokens
from controller.sql.text.long_strings import syntax_error
from controller.sql.text.parse import parse_expression, without_modes
from controller.sql.text.template import canonical_text
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Call, Expression, walk
from dataflow.functions import lookup
from dataflow.schema import Table

CHECK = "check constraint"
_SETTLED = {
    "functional index": Condition.INDEX_FUNCTION,
    "generated column function": Condition.GENERATED_FUNCTION,
}
"""What must have the same value each time it is computed, and the error otherwise."""


def normalised(sql: str, settings: Settings, names: dict[str, str]) -> str:
    """`sql` with columns in backquotes; `names` has the name to write for each, by lower case."""
    text = _unwrapped(without_modes("SELECT " + canonical_text(sql, settings), settings.sql_mode).removeprefix("SELECT "))
    found = list(tokens(text))
    pieces: list[str] = []
    position = 0
    for index, token in enumerate(found):
        pieces.append(text[position : token.start])
        position = token.end
        following = found[index + 1].text if index + 1 < len(found) else ""
        name = identifier_name(token)
        is_name = token.kind is TokenKind.QUOTED or (token.kind is TokenKind.WORD and following != "(")
        pieces.append(quoted(names[name.lower()]) if is_name and name.lower() in names else token.text)
    pieces.append(text[position:])
    return "".join(pieces).strip()


def _unwrapped(sql: str) -> str:
    """`sql` without parentheses around the whole of it."""
    while sql.startswith("(") and _closing(sql, 0) == len(sql) - 1:
        sql = sql[1:-1].strip()
    return sql


def _closing(sql: str, opening: int) -> int:
    """Where the parenthesis at `opening` is closed, or -1."""
    depth = 0
    for token in tokens(sql):
        if token.start >= opening:
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                return token.start
    return -1


def shown(sql: str) -> str:
    """As MySQL shows it: an operation has parentheses of its own, a column or a call has none."""
    first = next(tokens(sql))
    if first.end == len(sql):
        return sql
    is_call = first.kind is TokenKind.WORD and sql[first.end : first.end + 1] == "("
    return sql if is_call and _closing(sql, first.end) == len(sql) - 1 else f"({sql})"


def columns_in(sql: str) -> set[str]:
    """The names in backquotes, in lower case."""
    return {identifier_name(token).lower() for token in tokens(sql) if token.kind is TokenKind.QUOTED}


CLOCKS = frozenset({"now", "utc_now", "today", "utc_today", "time", "utc_time", "sysdate", "unix_timestamp"})
"""The facts that whoever writes a row can tell: see `controller.sql.expressions.facts`."""


def bind_default(sql: str, table: Table, settings: Settings) -> tuple[Expression, tuple[str, ...]]:
    """A default over the table's row, and the facts about the moment that its parameters are."""
    facts: list[str] = []
    return bind(sql, table, settings, "default value expression", facts), tuple(facts)


def bind(sql: str, table: Table, settings: Settings, clause: str, facts: list[str] | None = None) -> Expression:
    """The expression over the table's row. `facts` takes what it asks of the clock, which nothing else may."""
    if any(token.text == "?" for token in tokens(sql)):
        raise syntax_error(sql, sql.index("?"))
    parameters = Parameters(())
    source = TableInSight(table.name, table, 0, table.database)
    everywhere = replace(settings, time_zone="UTC")  # it must not depend on who defines it
    found = Translator(Scope((source,)), clause, parameters, everywhere).translate(parse_expression(sql))
    if facts is not None and all(each.partition(":")[0] in CLOCKS for each in parameters.facts):
        facts += parameters.facts
    elif parameters.facts:
        raise Unsupported(f"{parameters.facts[0].partition(':')[0].upper()} in a column's or table's expression")
    chance = next((each for each in walk(found) if isinstance(each, Call) and not lookup(each.function).deterministic), None)
    if chance is not None and clause in _SETTLED:
        raise InvalidStatement(_SETTLED[clause], chance.function)
    if chance is not None and clause.startswith(CHECK):
        raise InvalidStatement(Condition.CHECK_FUNCTION, clause.split()[2], chance.function)
    return found
