"""The privileges for CREATE, ALTER, DROP, TRUNCATE and RENAME of databases, tables, indexes and views, by their words."""

from __future__ import annotations

from controller.privileges import Asker, check_needs, with_columns
from controller.sql.planner import plan
from controller.sql.references import Need, needs_of
from controller.sql.text.cursor import TokenReader
from controller.sql.text.lexer import TokenKind
from controller.sql.text.template import canonical_text
from dataflow.errors import Condition, InvalidStatement


def check_definition(session: Asker, cursor: TokenReader) -> None:
    """CREATE, ALTER, DROP, TRUNCATE and RENAME of databases, tables, indexes and views."""
    if not session.rights.everything:
        check_needs(session, definition_needs(session, cursor))


def definition_needs(session: Asker, cursor: TokenReader) -> list[Need]:
    """The cursor stays where it is."""
    mark = cursor.mark()
    try:
        return _definition_needs(session, cursor)
    finally:
        cursor.back_to(mark)


def _definition_needs(session: Asker, cursor: TokenReader) -> list[Need]:
    verb = cursor.next().upper
    if cursor.accept_any("DATABASE", "SCHEMA"):
        _if_exists(cursor)
        named = cursor.at_identifier() and not cursor.at_any("CHARACTER", "CHARSET", "COLLATE", "DEFAULT")
        return [Need(verb, cursor.identifier() if named else session.database or "")]
    match verb:
        case "TRUNCATE":
            cursor.accept("TABLE")
            return [Need("DROP", *_name(session, cursor))]
        case "RENAME":
            cursor.expect("TABLE")
            return _renames(session, cursor)
        case "CREATE" | "ALTER" | "DROP":
            return _object_needs(session, cursor, verb)
    raise cursor.error()


def _object_needs(session: Asker, cursor: TokenReader, verb: str) -> list[Need]:
    start = cursor.mark()
    temporary = cursor.at("TEMPORARY")
    while not cursor.at_end and not cursor.at_any("TABLE", "TABLES", "INDEX", "VIEW"):
        cursor.next()
    kind = cursor.next().upper
    if not kind:
        cursor.back_to(start)
        raise cursor.error()
    if kind == "INDEX":
        cursor.identifier()
        if cursor.accept("USING"):
            cursor.next()
        cursor.expect("ON")
        return [Need("INDEX", *_name(session, cursor))]
    _if_exists(cursor)
    if verb == "DROP":
        if temporary:
            return []  # it concerns the session's own tables alone
        needs = [Need("DROP", *_name(session, cursor))]
        while cursor.accept(","):
            needs.append(Need("DROP", *_name(session, cursor)))
        return needs
    name = _name(session, cursor)
    if kind == "VIEW":
        needs = [Need("CREATE VIEW", *name)]
        if verb == "ALTER" or name in session.catalog.views:
            needs.append(Need("DROP", *name))
        while not cursor.accept("AS"):
            if cursor.at_end:
                raise cursor.error()
            cursor.next()
        return [*needs, *_select_needs(session, cursor.rest())]
    own = Need("CREATE TEMPORARY TABLES", name[0]) if temporary else Need(verb, *name)
    return [own, *_mentioned(session, cursor, verb, name)]


def _mentioned(session: Asker, cursor: TokenReader, verb: str, name: tuple[str, str]) -> list[Need]:
    """What the rest of a CREATE or ALTER TABLE says of other tables."""
    needs: list[Need] = []
    while not cursor.at_end:
        if cursor.accept("REFERENCES"):
            name_there = _name(session, cursor)
            needs.append(Need("REFERENCES", *name_there, columns=_names_in_parentheses(cursor)))
        elif verb == "CREATE" and cursor.accept("LIKE"):
            needs.append(Need("SELECT", *_name(session, cursor)))
        elif verb == "ALTER" and cursor.accept("RENAME"):
            if not cursor.accept_any("COLUMN", "INDEX", "KEY"):
                cursor.accept_any("TO", "AS", "=")
                other = _name(session, cursor)
                needs += [Need("DROP", *name), Need("CREATE", *other), Need("INSERT", *other)]
        elif cursor.at_any("SELECT", "WITH") or (cursor.at("(") and cursor.ahead(1).upper in ("SELECT", "WITH")):
            return [*needs, *_select_needs(session, cursor.rest())]
        else:
            cursor.next()
    return needs


def _names_in_parentheses(cursor: TokenReader) -> frozenset[str] | None:
    if not cursor.accept("("):
        return None
    found = {cursor.identifier()}
    while cursor.accept(","):
        found.add(cursor.identifier())
    return frozenset(found)


def _select_needs(session: Asker, sql: str) -> list[Need]:
    """Of a SELECT that belongs to a definition."""
    needs = needs_of(sql, session.database, session.settings)
    if not any(session.rights.has_columns(need.database, need.table) for need in needs):
        return list(needs)
    uses = plan(canonical_text(sql, session.settings), session.catalog, session.database, session.settings).uses
    return [with_columns(need, uses) for need in needs]


def _renames(session: Asker, cursor: TokenReader) -> list[Need]:
    needs: list[Need] = []
    while True:
        old = _name(session, cursor)
        cursor.expect("TO")
        new = _name(session, cursor)
        needs += [Need("ALTER", *old), Need("DROP", *old), Need("CREATE", *new), Need("INSERT", *new)]
        if not cursor.accept(","):
            return needs


def _if_exists(cursor: TokenReader) -> None:
    if cursor.accept("IF"):
        cursor.accept("NOT")
        cursor.expect("EXISTS")


def _name(session: Asker, cursor: TokenReader) -> tuple[str, str]:
    if cursor.token.kind is TokenKind.STRING:
        raise cursor.error()
    database, name = cursor.qualified_name()
    owner = database or session.database
    if not owner:
        raise InvalidStatement(Condition.NO_DB_SELECTED)
    return owner, name
