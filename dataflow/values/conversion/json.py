"""Values as JSON text: parsed as a document, or taken as a JSON value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataflow.errors import Condition, InvalidStatement
from dataflow.values import documents, temporal
from dataflow.values.conversion.texts import decode, text_of, to_text
from dataflow.values.types import INTEGERS, REALS, Kind, SqlType, Value

Convert = Callable[[Any], Any]


def json_text(document: str) -> str:
    """The document as plain text: a string loses its quotes."""
    if document[:1] != '"':
        return document
    return str(documents.loads(document))


def to_document(value: Value) -> str:
    try:
        return documents.normalise(text_of(value))
    except documents.NotJson as error:
        raise InvalidStatement(Condition.INVALID_JSON_ARGUMENT, 1, "json", error.reason, error.position) from None


def to_json_value(source: SqlType) -> Convert | None:
    match source.kind:
        case Kind.JSON:
            return None
        case kind if kind in INTEGERS or kind in REALS or kind in (Kind.DECIMAL, Kind.YEAR, Kind.NULL):
            return lambda value: documents.dumps(decode(value) if isinstance(value, bytes) else value)
        case Kind.DATETIME | Kind.TIMESTAMP:
            return lambda value: f'"{temporal.format_datetime(value, 6)}"'
        case Kind.TIME:
            return lambda value: f'"{temporal.format_time(value, 6)}"'
    function = to_text(source)
    if function is None:
        return documents.dumps
    return lambda value: documents.dumps(function(value))
