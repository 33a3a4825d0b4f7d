"""One column's definition as a `Column`: its type, its default as stored, what is missing."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from controller.sql.definitions.stored_expressions import normalised
from controller.sql.definitions.table_elements import (
    ColumnElement,
    Default,
    ExpressionDefault,
    LiteralDefault,
    NowDefault,
)
from controller.sql.settings import Settings
from controller.sql.text.lexer import Digits
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import TableColumn
from dataflow.values.modes import Modes
from dataflow.values.storing import WARNING, Report, store
from dataflow.values.temporal import round_datetime
from dataflow.values.types import BLOBS, INTEGERS, NULL, NUMBERS, REALS, TEMPORALS, Kind, SqlType, Value

_NO_LITERAL_DEFAULT = frozenset(
    {Kind.TINYTEXT, Kind.TEXT, Kind.MEDIUMTEXT, Kind.LONGTEXT, Kind.JSON} | (BLOBS - {Kind.BINARY, Kind.VARBINARY})
)
_MOMENTS = frozenset({Kind.DATETIME, Kind.TIMESTAMP})
_NOW = frozenset({"now", "current_timestamp", "localtime", "localtimestamp"})


def column_of(element: ColumnElement, column_id: int, collation: str, settings: Settings) -> TableColumn:
    found = element.declared.resolve(element.name, collation, Modes.parse(",".join(settings.sql_mode)).strict)
    if not element.name or element.name != element.name.rstrip(" "):
        raise InvalidStatement(Condition.WRONG_COLUMN_NAME, element.name)
    column = TableColumn(
        column_id,
        element.name,
        found,
        nullable=element.nullable is not False,
        on_update_now=element.on_update_now,
        auto_increment=element.auto_increment,
        generated_stored=element.generated_stored,
        generated_sql=element.generated,
        comment=element.comment,
        invisible=element.invisible,
    )
    if element.generated:
        if element.default is not None or element.auto_increment:
            raise InvalidStatement(Condition.WRONG_USAGE, "DEFAULT", "generated column")
        return column
    if element.on_update_now and found.kind not in _MOMENTS:
        raise InvalidStatement(Condition.INVALID_ON_UPDATE, element.name)
    if element.auto_increment:
        if found.kind not in INTEGERS | REALS:
            raise InvalidStatement(Condition.WRONG_COLUMN_SPECIFIER, element.name)
        if element.default is not None and element.default != LiteralDefault(None):
            raise InvalidStatement(Condition.INVALID_DEFAULT, element.name)
        return replace(column, nullable=False)
    return with_default(column, element.default, settings)


def with_default(column: TableColumn, default: Default | None, settings: Settings) -> TableColumn:
    """`column` with that DEFAULT and no other; without one, what can be NULL defaults to it."""
    plain = replace(
        column, has_default=False, default=None, default_now=False, default_expression=None, default_sql=""
    )
    match default:
        case None:
            return replace(plain, has_default=column.nullable)
        case LiteralDefault(value=None):
            if not column.nullable:
                raise InvalidStatement(Condition.INVALID_DEFAULT, column.name)
            return replace(plain, has_default=True)
        case LiteralDefault(value=value):
            return replace(plain, has_default=True, default=_stored(column, value, settings))
        case NowDefault(digits=digits):
            if column.type.kind not in _MOMENTS or digits != column.type.scale:
                raise InvalidStatement(Condition.INVALID_DEFAULT, column.name)
            return replace(plain, default_now=True)
        case ExpressionDefault(sql=sql) if column.type.kind in _MOMENTS and sql.lower().strip("( )") in _NOW:
            return replace(plain, default_now=True)
        case ExpressionDefault(sql=sql):
            return replace(plain, default_sql=normalised(sql, settings, {}))


def _stored(column: TableColumn, value: Value, settings: Settings) -> Value:
    """A literal default as a row would hold it; error 1067 if it does not fit as it is."""
    if column.type.kind in _NO_LITERAL_DEFAULT:
        raise InvalidStatement(Condition.BLOB_DEFAULT, column.name)
    if isinstance(value, bytes):
        number = column.type.kind in NUMBERS and type(value) is Digits
        value = int.from_bytes(value, "big") if number else bytes(value)
    if column.type.kind is Kind.SET and not isinstance(value, str | bytes) and str(value) not in column.type.members:
        raise InvalidStatement(Condition.INVALID_DEFAULT, column.name)  # numbers of members are none here
    given = Modes.parse(",".join(settings.sql_mode), settings.time_zone)
    modes = replace(
        given,
        strict=True,
        no_zero_date=given.strict and given.no_zero_date,
        no_zero_in_date=given.strict and given.no_zero_in_date,
    )
    report = Report()
    try:
        found = store(column.type, value, NULL, column.name, report, modes)
    except InvalidStatement:
        raise InvalidStatement(Condition.INVALID_DEFAULT, column.name) from None
    if any(notice.level == WARNING for notice in report.notices):
        raise InvalidStatement(Condition.INVALID_DEFAULT, column.name)
    return found


def missing_value(column: TableColumn, now: int) -> Value:
    """What rows stored before the column was added read as; `now` is the packed time in UTC."""
    if column.default_now:
        return round_datetime(now, column.type.scale)
    if column.has_default or column.nullable:
        return column.default
    return implicit_default(column.type)


def implicit_default(found: SqlType) -> Value:
    """The value of a NOT NULL column that has no DEFAULT where one is needed all the same."""
    kind = found.kind
    if kind is Kind.DECIMAL:
        return Decimal(0).scaleb(-found.scale)
    if kind in REALS:
        return 0.0
    if kind in NUMBERS or kind in TEMPORALS:
        return 0
    if kind in BLOBS:
        return bytes(found.length or 0) if kind is Kind.BINARY else b""
    if kind is Kind.ENUM:
        return found.members[0]
    return "null" if kind is Kind.JSON else ""
