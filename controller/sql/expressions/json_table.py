"""The COLUMNS of JSON_TABLE(document, path COLUMNS (…)), as text and as `dataflow.functions.json_table` has them."""

from __future__ import annotations

from controller.sql.definitions.column_types import read_type
from controller.sql.settings import Settings
from controller.sql.text.cursor import TokenReader
from dataflow.errors import Condition, InvalidStatement
from dataflow.functions.json_paths import JsonPath, parse_path
from dataflow.functions.json_table import (
    ExistsColumn,
    Handling,
    JsonTable,
    OrdinalityColumn,
    Otherwise,
    PathColumn,
    leaf_columns,
)
from dataflow.values.documents import NotJson, loads


def read_json_table(clause: str, settings: Settings) -> JsonTable:
    """`clause` is what follows the document and its comma: `'$[*]' COLUMNS (…)`."""
    cursor = TokenReader(clause, settings)
    found = _level(cursor, settings)
    cursor.expect_end()
    names = [each.name.lower() for each in leaf_columns(found)]
    for name in names:
        if names.count(name) > 1:
            raise InvalidStatement(Condition.DUPLICATE_COLUMN, name)
    return found


def _level(cursor: TokenReader, settings: Settings) -> JsonTable:
    path = _path(cursor)
    cursor.expect("COLUMNS", "(")
    columns: list[PathColumn | ExistsColumn | OrdinalityColumn | JsonTable] = []
    while True:
        columns.append(_column(cursor, settings))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return JsonTable(path, tuple(columns))


def _column(cursor: TokenReader, settings: Settings) -> PathColumn | ExistsColumn | OrdinalityColumn | JsonTable:
    if cursor.at("NESTED") and (cursor.ahead(1).upper == "PATH" or cursor.ahead(1).text[:1] in "'\""):
        cursor.next()
        cursor.accept("PATH")
        return _level(cursor, settings)
    name = cursor.identifier()
    if cursor.accept("FOR"):
        cursor.expect("ORDINALITY")
        return OrdinalityColumn(name)
    declared = read_type(cursor, name, settings)
    kind = declared.resolve(name, settings.collation)
    if cursor.accept("EXISTS"):
        cursor.expect("PATH")
        return ExistsColumn(name, kind, _path(cursor))
    cursor.expect("PATH")
    path = _path(cursor)
    handlings: dict[str, Handling] = {}
    while cursor.at_any("NULL", "ERROR", "DEFAULT"):
        word = Otherwise(cursor.next().text.lower())
        default = cursor.string() if word is Otherwise.DEFAULT else ""
        cursor.expect("ON")
        when = cursor.accept_any("EMPTY", "ERROR")
        if not when or when in handlings or (when == "EMPTY" and "ERROR" in handlings):
            raise cursor.error()
        if word is Otherwise.DEFAULT:
            _check_default(default, name)
        handlings[when] = Handling(word, default)
    return PathColumn(name, kind, path, handlings.get("EMPTY", Handling()), handlings.get("ERROR", Handling()))


def _check_default(document: str, name: str) -> None:
    try:
        loads(document)
    except NotJson:
        raise InvalidStatement(Condition.INVALID_DEFAULT, name) from None


def _path(cursor: TokenReader) -> JsonPath:
    return parse_path(cursor.string())
