"""The grammar inside CREATE TABLE (…) and ALTER TABLE: columns, keys, constraints, options.

Reading makes plain values that say what was written; `table_building` decides what it means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from controller.sql.definitions.column_types import TypeDeclaration, read_type
from controller.sql.settings import Settings
from controller.sql.text.cursor import TokenReader
from dataflow.errors import Condition, InvalidStatement
from dataflow.values.types import Value


@dataclass(frozen=True, slots=True)
class LiteralDefault:
    value: Value


@dataclass(frozen=True, slots=True)
class NowDefault:
    """CURRENT_TIMESTAMP and its synonyms."""

    digits: int


@dataclass(frozen=True, slots=True)
class ExpressionDefault:
    sql: str


Default = LiteralDefault | NowDefault | ExpressionDefault


@dataclass(frozen=True, slots=True)
class PartElement:
    column: str
    prefix: int | None = None
    descending: bool = False
    expression: str = ""


@dataclass(frozen=True, slots=True)
class KeyElement:
    """`kind` is PRIMARY, UNIQUE, KEY, FULLTEXT or SPATIAL."""

    kind: str
    name: str
    parts: tuple[PartElement, ...]
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ForeignKeyElement:
    name: str
    index_name: str
    columns: tuple[str, ...]
    parent: tuple[str | None, str]
    parent_columns: tuple[str, ...]
    on_delete: str
    on_update: str


@dataclass(frozen=True, slots=True)
class CheckElement:
    name: str
    sql: str
    enforced: bool = True


@dataclass(frozen=True, slots=True)
class ColumnElement:
    name: str
    declared: TypeDeclaration
    nullable: bool | None = None
    default: Default | None = None
    on_update_now: bool = False
    auto_increment: bool = False
    generated: str = ""
    generated_stored: bool = False
    comment: str = ""
    invisible: bool = False
    key: str = ""
    checks: tuple[CheckElement, ...] = ()


Element = ColumnElement | KeyElement | ForeignKeyElement | CheckElement

_NOW = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_KEY_STARTS = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "CONSTRAINT"})


def read_elements(cursor: TokenReader, settings: Settings) -> list[Element]:
    """The parenthesised list of CREATE TABLE."""
    cursor.expect("(")
    elements: list[Element] = [read_element(cursor, settings)]
    while cursor.accept(","):
        elements.append(read_element(cursor, settings))
    cursor.expect(")")
    return elements


def read_element(cursor: TokenReader, settings: Settings) -> Element:
    return read_constraint(cursor) if at_constraint(cursor) else read_column(cursor, settings)


def at_constraint(cursor: TokenReader) -> bool:
    return cursor.token.upper in _KEY_STARTS


def read_constraint(cursor: TokenReader) -> KeyElement | ForeignKeyElement | CheckElement:
    name = ""
    if cursor.accept("CONSTRAINT") and cursor.at_identifier():
        name = cursor.identifier()
    if cursor.accept("CHECK"):
        return _check(cursor, name)
    if cursor.accept("FOREIGN", "KEY"):
        return _foreign_key(cursor, name)
    kind = cursor.next().upper
    if kind == "PRIMARY":
        cursor.expect("KEY")
    elif kind in ("UNIQUE", "FULLTEXT", "SPATIAL"):
        cursor.accept_any("KEY", "INDEX")
    elif kind in ("KEY", "INDEX"):
        kind = "KEY"
    else:
        cursor.back()
        raise cursor.error()
    if not cursor.at_identifier() or cursor.at("USING"):
        return read_key(cursor, kind, name)
    given = cursor.identifier()
    if not given:
        raise InvalidStatement(Condition.WRONG_INDEX_NAME, "")
    return read_key(cursor, kind, given)


def read_key(cursor: TokenReader, kind: str, name: str) -> KeyElement:
    """From an index's name on: USING, its parts, its options."""
    if kind not in ("FULLTEXT", "SPATIAL") and (cursor.accept("USING") or cursor.accept("TYPE")):
        cursor.word_or_string()
    cursor.expect("(")
    parts = [_part(cursor)]
    while cursor.accept(","):
        parts.append(_part(cursor))
    cursor.expect(")")
    comment = ""
    while True:
        if cursor.accept("USING"):
            cursor.word_or_string()
        elif cursor.accept("COMMENT"):
            comment = cursor.string()
        elif cursor.accept("KEY_BLOCK_SIZE"):
            cursor.accept("=")
            cursor.integer()
        elif cursor.accept("WITH", "PARSER"):
            cursor.identifier()
        elif not cursor.accept_any("VISIBLE", "INVISIBLE"):
            return KeyElement(kind, name, tuple(parts), comment)


def _part(cursor: TokenReader) -> PartElement:
    if cursor.at("("):
        expression = cursor.parenthesised()
        return PartElement("", None, cursor.accept_any("ASC", "DESC") == "DESC", expression)
    name = cursor.identifier()
    prefix = None
    if cursor.accept("("):
        prefix = cursor.integer()
        cursor.expect(")")
    direction = cursor.accept_any("ASC", "DESC")
    return PartElement(name, prefix, direction == "DESC")


def _check(cursor: TokenReader, name: str) -> CheckElement:
    sql = cursor.parenthesised()
    enforced = True
    if cursor.accept("NOT", "ENFORCED"):
        enforced = False
    else:
        cursor.accept("ENFORCED")
    return CheckElement(name, sql, enforced)


def _names(cursor: TokenReader) -> tuple[str, ...]:
    cursor.expect("(")
    names = [_part(cursor).column]
    while cursor.accept(","):
        names.append(_part(cursor).column)
    cursor.expect(")")
    return tuple(names)


def _foreign_key(cursor: TokenReader, name: str) -> ForeignKeyElement:
    index_name = cursor.identifier() if cursor.at_identifier() else ""
    columns = _names(cursor)
    parent, parent_columns, on_delete, on_update = _references(cursor)
    return ForeignKeyElement(name, index_name, columns, parent, parent_columns, on_delete, on_update)


def _references(cursor: TokenReader) -> tuple[tuple[str | None, str], tuple[str, ...], str, str]:
    cursor.expect("REFERENCES")
    parent = cursor.qualified_name()
    columns = _names(cursor)
    if cursor.accept("MATCH"):
        cursor.next()
    actions = {"DELETE": "NO ACTION", "UPDATE": "NO ACTION"}
    while cursor.at("ON", "DELETE") or cursor.at("ON", "UPDATE"):
        cursor.next()
        event = cursor.next().upper
        for action in ("RESTRICT", "CASCADE", "SET NULL", "NO ACTION", "SET DEFAULT"):
            if cursor.accept(*action.split()):
                actions[event] = action
                break
        else:
            raise cursor.error()
    return parent, columns, actions["DELETE"], actions["UPDATE"]


def read_column(cursor: TokenReader, settings: Settings) -> ColumnElement:
    return read_definition(cursor, cursor.identifier(), settings)


def read_definition(cursor: TokenReader, name: str, settings: Settings) -> ColumnElement:
    """A column's type and attributes, up to what is not one."""
    column = ColumnElement(name, read_type(cursor, name, settings))
    if column.declared.serial:
        column = replace(column, nullable=False, auto_increment=True, key="UNIQUE")
    while (changed := _attribute(cursor, column, settings)) is not None:
        column = changed
    return column


def _attribute(cursor: TokenReader, column: ColumnElement, settings: Settings) -> ColumnElement | None:
    """`column` with the attribute that comes next, or None if none does."""
    word = cursor.token.upper
    match word:
        case "NOT" if cursor.accept("NOT", "NULL"):
            return replace(column, nullable=False)
        case "NULL":
            cursor.next()
            return replace(column, nullable=True)
        case "DEFAULT":
            cursor.next()
            return replace(column, default=read_default(cursor))
        case "ON" if cursor.accept("ON", "UPDATE"):
            if _now_digits(cursor) is None:
                raise InvalidStatement(Condition.INVALID_ON_UPDATE, column.name)
            return replace(column, on_update_now=True)
        case "AUTO_INCREMENT":
            cursor.next()
            return replace(column, auto_increment=True)
        case "SERIAL" if cursor.accept("SERIAL", "DEFAULT", "VALUE"):
            return replace(column, nullable=False, auto_increment=True, key="UNIQUE")
        case "PRIMARY" | "KEY":
            cursor.accept("PRIMARY")
            cursor.expect("KEY")
            return replace(column, key="PRIMARY")
        case "UNIQUE":
            cursor.next()
            cursor.accept("KEY")
            return replace(column, key=column.key or "UNIQUE")
        case "COMMENT":
            cursor.next()
            return replace(column, comment=cursor.string())
        case "COLLATE":
            cursor.next()
            return replace(column, declared=replace(column.declared, collation=cursor.word_or_string()))
        case "CHARACTER" if cursor.accept("CHARACTER", "SET"):
            return replace(column, declared=replace(column.declared, charset=cursor.word_or_string()))
        case "GENERATED" | "AS":
            return _generated(cursor, column)
        case "VISIBLE" | "INVISIBLE":
            cursor.next()
            return replace(column, invisible=word == "INVISIBLE")
        case "CHECK":
            cursor.next()
            return replace(column, checks=(*column.checks, _check(cursor, "")))
        case "CONSTRAINT":
            cursor.next()
            name = "" if cursor.at("CHECK") else cursor.identifier()
            cursor.expect("CHECK")
            return replace(column, checks=(*column.checks, _check(cursor, name)))
        case "REFERENCES":
            _references(cursor)  # MySQL reads it and ignores it
            return column
        case "COLUMN_FORMAT" | "STORAGE":
            cursor.next()
            cursor.next()
            return column
    return None


def _generated(cursor: TokenReader, column: ColumnElement) -> ColumnElement:
    if cursor.accept("GENERATED"):
        cursor.expect("ALWAYS")
    cursor.expect("AS")
    sql = cursor.parenthesised()
    stored = cursor.accept_any("STORED", "PERSISTENT", "VIRTUAL") in ("STORED", "PERSISTENT")
    return replace(column, generated=sql, generated_stored=stored)


def read_default(cursor: TokenReader) -> Default:
    digits = _now_digits(cursor)
    if digits is not None:
        return NowDefault(digits)
    if cursor.at("("):
        return ExpressionDefault(cursor.parenthesised())
    if cursor.accept("NULL"):
        return LiteralDefault(None)
    if word := cursor.accept_any("TRUE", "FALSE"):
        return LiteralDefault(int(word == "TRUE"))
    negative = cursor.accept("-")
    if not negative:
        cursor.accept("+")
    value = cursor.literal()
    if negative:
        if value is None or isinstance(value, str | bytes):
            raise cursor.error()
        return LiteralDefault(value.copy_negate() if isinstance(value, Decimal) else -value)
    return LiteralDefault(value)


def _now_digits(cursor: TokenReader) -> int | None:
    """The digits of a CURRENT_TIMESTAMP that comes next, or None if none does."""
    if cursor.token.upper not in _NOW:
        return None
    cursor.next()
    digits = 0
    if cursor.accept("("):
        if not cursor.at(")"):
            digits = cursor.integer()
        cursor.expect(")")
    return digits
