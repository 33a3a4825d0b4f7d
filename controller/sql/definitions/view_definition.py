"""CREATE, ALTER and DROP VIEW: a SELECT that is planned once to see that it is one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from sqlglot import exp

from controller.catalog import Catalog, CatalogChange, CatalogView, Note
from controller.sql.definitions.temporary import PREFIX
from controller.sql.expressions.full_text import with_matches
from controller.sql.expressions.operators import calls_aggregate
from controller.sql.parameters import Parameters
from controller.sql.plan import OutputColumn
from controller.sql.query import plan_query
from controller.sql.query.selects import COLUMNS
from controller.sql.settings import Settings
from controller.sql.text.cursor import TokenReader
from controller.sql.text.lexer import TokenKind, quoted
from controller.sql.text.parse import parse_view, without_modes
from controller.sql.text.template import canonical_text
from dataflow.errors import Condition, InvalidStatement

_CHECK_OPTION = re.compile(r"(.*\S)\s+WITH(?:\s+(LOCAL|CASCADED))?\s+CHECK\s+OPTION\s*", re.IGNORECASE | re.DOTALL)


def at_view(cursor: TokenReader) -> bool:
    """Whether what follows CREATE or ALTER defines a view."""
    distance = 0
    while cursor.ahead(distance).text and distance < 24:
        word = cursor.ahead(distance).upper
        if word == "VIEW":
            return True
        if word in ("TABLE", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "INDEX", "DATABASE", "SCHEMA", "AS", "SELECT"):
            return False
        distance += 1
    return False


def define_view(cursor: TokenReader, catalog: Catalog, database: str | None, settings: Settings, alter: bool) -> CatalogChange:
    replaces = cursor.accept("OR", "REPLACE") or alter
    definer, invoker, algorithm = ("root", "localhost"), False, ""
    while not cursor.accept("VIEW"):
        if cursor.accept("DEFINER", "="):
            definer = _definer(cursor)
        elif cursor.accept("SQL", "SECURITY"):
            invoker = cursor.next().upper == "INVOKER"
        elif cursor.accept("ALGORITHM", "="):
            algorithm = cursor.next().upper.replace("UNDEFINED", "")
        else:
            cursor.next()
    given, name = cursor.qualified_name()
    owner = given or database
    catalog.database(owner)
    assert owner is not None
    columns: list[str] = []
    if cursor.accept("("):
        columns.append(cursor.identifier())
        while cursor.accept(","):
            columns.append(cursor.identifier())
        cursor.expect(")")
    cursor.expect("AS")
    text, check = _without_check_option(canonical_text(cursor.rest(), settings))
    select = without_modes(text, settings.sql_mode)
    stored = catalog.stored or catalog  # a temporary table of that name does not matter
    known = stored.views.get((owner, name))
    if stored.find_table(owner, name) is not None:
        if replaces:
            raise InvalidStatement(Condition.WRONG_OBJECT, owner, name, "VIEW")
        raise InvalidStatement(Condition.TABLE_EXISTS, name)
    if known is not None and not replaces:
        raise InvalidStatement(Condition.TABLE_EXISTS, name)
    if known is None and alter:
        raise InvalidStatement(Condition.UNKNOWN_TABLE, f"{owner}.{name}")
    view = CatalogView(owner, name, select, tuple(columns), database or "", settings.collation, definer, invoker, check, algorithm)
    return CatalogChange(views_put=(_checked(view, catalog, settings),))


def with_definer(cursor: TokenReader, definer: tuple[str, str]) -> tuple[str, tuple[str, str]]:
    """The statement with a DEFINER in it, and who that is: `definer`, unless it names another.

    The cursor is at what follows CREATE or ALTER, and stays there.
    """
    mark = cursor.mark()
    start = stop = cursor.token.start
    while not cursor.at_any("VIEW", "SQL"):
        stop = cursor.token.start
        if cursor.accept("DEFINER", "="):
            start = stop
            if not cursor.at("CURRENT_USER"):
                definer = _definer(cursor)
            else:
                cursor.next()
                if cursor.accept("("):
                    cursor.expect(")")
            stop = cursor.token.start
            break
        cursor.next()
        start = stop = cursor.token.start
    quoted = "@".join("`" + each.replace("`", "``") + "`" for each in definer)
    sql = f"{cursor.sql[:start]}DEFINER={quoted} {cursor.sql[stop:]}"
    cursor.back_to(mark)
    return sql, definer


def _definer(cursor: TokenReader) -> tuple[str, str]:
    user = cursor.word_or_string()
    token = cursor.token
    host = "%"
    if token.kind is TokenKind.VARIABLE and token.text.startswith("@"):
        cursor.next()
        host = token.text[1:].strip("`'\"")
    elif cursor.accept("@"):
        host = cursor.word_or_string()
    return user, host


def drop_views(cursor: TokenReader, catalog: Catalog, database: str | None) -> CatalogChange:
    optional = cursor.accept("IF", "EXISTS")
    names: list[tuple[str, str]] = []
    while True:
        given, name = cursor.qualified_name()
        owner = given or database
        if not owner:
            raise InvalidStatement(Condition.NO_DB_SELECTED)
        names.append((owner, name))
        if not cursor.accept(","):
            break
    cursor.accept_any("RESTRICT", "CASCADE")
    cursor.expect_end()
    missing = [".".join(name) for name in names if name not in catalog.views]
    if missing and not optional:
        raise InvalidStatement(Condition.UNKNOWN_TABLE_DROP, ",".join(missing))
    condition = Condition.UNKNOWN_TABLE_DROP
    notes = tuple(Note("Note", condition, condition.template.format(name)) for name in missing)
    return CatalogChange(views_dropped=tuple(name for name in names if name in catalog.views), notes=notes)


def view_columns(view: CatalogView, catalog: Catalog, settings: Settings) -> tuple[OutputColumn, ...]:
    """The columns that a SELECT of everything in the view has."""
    everything = exp.select("*").from_(exp.table_(view.name, view.database, quoted=True))
    return plan_query(everything, catalog, view.database, settings, Parameters([])).columns


def _checked(view: CatalogView, catalog: Catalog, settings: Settings) -> CatalogView:
    """Plan the view's SELECT, and see that its columns have names of their own. It then has a name for each of them, whatever
    columns its tables get later."""
    tree = parse_view(view.select)
    if next(tree.find_all(exp.Placeholder), None) is not None:
        raise InvalidStatement(Condition.VIEW_PARAMETER)
    parameters = Parameters([])
    tree = with_matches(tree, catalog, view.default_database or None)
    query = plan_query(tree, catalog, view.default_database or None, settings, parameters)
    if any(fact.startswith(("user_variable:", "system_variable:")) for fact in parameters.facts):
        raise InvalidStatement(Condition.VIEW_PARAMETER)
    if (view.database, view.name) in {(each.database, each.name) for each in query.views}:
        raise InvalidStatement(Condition.UNKNOWN_TABLE, f"{view.database}.{view.name}")
    stored = catalog.stored or catalog
    for table in query.tables:
        if table.id in stored.tables and stored.tables[table.id].name.startswith(PREFIX):
            raise InvalidStatement(Condition.VIEW_OF_TEMPORARY, table.name)
    if len(view.columns or query.columns) != len(query.columns):
        raise InvalidStatement(Condition.COLUMN_COUNT_IN_VIEW)
    own = [column.name for column in query.columns]
    names = _distinct(list(view.columns or own), [] if view.columns else _automatic(tree))
    if view.check and not _may_be_checked(tree):
        raise InvalidStatement(Condition.VIEW_NOT_CHECKED, view.database, view.name)
    view = replace(view, columns=view.columns if view.columns or names == own else tuple(names))
    return replace(view, select=_without_stars(view.select, tree))


def _automatic(tree: Any) -> list[bool]:
    """Of each column whether its name is the text of its expression."""
    while not isinstance(tree, exp.Select):
        tree = tree.this
    found: list[bool] = []
    for item in tree.expressions:
        found += [False] * len(item.meta[COLUMNS]()) if COLUMNS in item.meta else [not isinstance(item, exp.Alias | exp.Column)]
    return found


def _distinct(names: list[str], automatic: list[bool]) -> list[str]:
    """The columns' names: one that nobody has given makes way for another column's."""
    for place, name in enumerate(names):
        is_given = not automatic or not automatic[place]
        if is_given and (not name or name != name.rstrip(" ")):
            raise InvalidStatement(Condition.WRONG_COLUMN_NAME, name)
        for other in range(place):
            if names[other].lower() != name.lower():
                continue
            changed = place if not is_given else other
            if is_given and (not automatic or not automatic[other]):
                raise InvalidStatement(Condition.DUPLICATE_COLUMN, name)
            taken = {each.lower() for each in names}
            tries = (f"My_exp_{number}{name}" for number in ("", *(f"{number}_" for number in range(1, len(names) + 1))))
            names[changed] = next(each for each in tries if each.lower() not in taken)
            break
    return names


def _may_be_checked(tree: Any) -> bool:
    """Whether a view could be written through, so that WITH CHECK OPTION says something."""
    groups = ("distinct", "group", "having", "limit")
    return isinstance(tree, exp.Select) and not any(tree.args.get(each) for each in groups) and not any(map(calls_aggregate, tree.expressions))


def _without_stars(select: str, tree: Any) -> str:
    """The text of a planned query with the columns that each `*` stands for. Those of EXISTS stand for nothing."""
    stars: list[tuple[int, int, str]] = []
    for item in (each for block in tree.find_all(exp.Select) if not _exists(block) for each in block.expressions):
        if COLUMNS in item.meta:
            star = item if isinstance(item, exp.Star) else item.this
            parts = () if item is star else item.parts[:-1]
            first = min([star.meta["start"], *(part.meta["start"] for part in parts)])
            listed = ", ".join(".".join(map(quoted, each)) for each in item.meta[COLUMNS]())
            stars.append((first, star.meta["end"] + 1, listed))
    for first, end, listed in sorted(stars, reverse=True):
        select = select[:first] + listed + select[end:]
    return select


def _exists(block: Any) -> bool:
    return isinstance(block.parent, exp.Exists) or (isinstance(block.parent, exp.Subquery) and isinstance(block.parent.parent, exp.Exists))


def _without_check_option(select: str) -> tuple[str, str]:
    """The SELECT, and LOCAL or CASCADED if WITH CHECK OPTION follows it."""
    found = _CHECK_OPTION.fullmatch(select)
    return (select, "") if found is None else (found[1], (found[2] or "CASCADED").upper())
