"""Aggregates that keep all their values until the end: GROUP_CONCAT, JSON arrays and objects, distinct rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from controller.sql.plan import Aggregate
from dataflow import documents
from dataflow.comparison import equality_key, sort_key
from dataflow.conversion import Domain, conversion
from dataflow.errors import Condition, InvalidStatement
from dataflow.group_concat import concatenated, concatenated_bytes
from dataflow.group_concat import json_array as json_array_of
from dataflow.group_concat import json_object as json_object_of
from dataflow.types import BLOBS, Row, SqlType, Value


class CountDistinctRows:
    """COUNT(DISTINCT a, b): rows without a NULL among the values."""

    def __init__(self, keys: Sequence[Callable[[Any], Any] | None]) -> None:
        self.keys = keys
        self.seen: set[tuple[object, ...]] = set()

    def add(self, values: Row) -> None:
        if None not in values:
            self.seen.add(tuple([value if key is None else key(value) for key, value in zip(self.keys, values)]))

    def result(self) -> Value:
        return len(self.seen)


class GroupConcat:
    """The texts of the values that are not NULL, in the order asked for."""

    def __init__(
        self,
        to_text: Callable[[Any], str] | None,
        distinct: Callable[[Any], Any] | None,
        order: Sequence[tuple[Callable[[Any], Any], bool]],
        separator: str,
        bytes_max: int,
        is_binary: bool,
    ) -> None:
        self.is_binary = is_binary
        self.to_text = to_text
        self.distinct = distinct
        self.order = order
        self.separator = separator
        self.bytes_max = bytes_max
        self.rows: list[Row] = []

    def add(self, values: Any) -> None:
        row = values if self.order else (values,)
        if row[0] is not None:
            self.rows.append(row)

    def result(self) -> Value:
        if not self.rows:
            return None
        rows = self.rows
        if self.distinct is not None:
            unique: dict[object, Row] = {}
            for row in rows:
                unique.setdefault(self.distinct(row[0]), row)
            rows = list(unique.values())
        for position in range(len(self.order), 0, -1):
            key, descending = self.order[position - 1]
            rows.sort(key=lambda row: key(row[position]), reverse=descending)
        if self.is_binary:
            values = (row[0] for row in rows if isinstance(row[0], bytes))
            return concatenated_bytes(values, self.separator, self.bytes_max)
        texts = (str(row[0]) if self.to_text is None else self.to_text(row[0]) for row in rows)
        return concatenated(texts, self.separator, self.bytes_max)


class JsonArray:
    def __init__(self, to_json: Callable[[Any], str] | None, bytes_max: int) -> None:
        self.to_json = to_json
        self.bytes_max = bytes_max
        self.documents: list[str] = []

    def add(self, value: Value) -> None:
        self.documents.append(_document(value, self.to_json))

    def result(self) -> Value:
        return json_array_of(self.documents, self.bytes_max)


class JsonObject:
    """Of several members with the same name the last one stays."""

    def __init__(
        self, to_text: Callable[[Any], str] | None, to_json: Callable[[Any], str] | None, bytes_max: int
    ) -> None:
        self.to_text = to_text
        self.bytes_max = bytes_max
        self.to_json = to_json
        self.members: dict[str, str] = {}

    def add(self, values: Row) -> None:
        name, value = values
        if name is None:
            raise InvalidStatement(Condition.JSON_NULL_KEY)
        text = name if self.to_text is None else self.to_text(name)
        self.members[str(text)] = _document(value, self.to_json)

    def result(self) -> Value:
        members = [f"{documents.dumps(name)}: {document}" for name, document in self.members.items()]
        found = json_object_of(members, self.bytes_max)
        return None if found is None else documents.normalise(found)


def _document(value: Value, to_json: Callable[[Any], str] | None) -> str:
    if value is None:
        return "null"
    return str(value) if to_json is None else to_json(value)


def count_distinct_rows(types: Sequence[SqlType]) -> Callable[[], CountDistinctRows]:
    keys = [equality_key(type_) for type_ in types]
    return lambda: CountDistinctRows(keys)


def group_concat(aggregate: Aggregate) -> Callable[[], GroupConcat]:
    assert aggregate.argument is not None
    to_text = conversion(aggregate.argument.type, Domain.TEXT).function
    order = [(sort_key(item.expression.type), item.descending) for item in aggregate.order_by]
    distinct = None
    if aggregate.distinct:
        distinct = equality_key(aggregate.argument.type) or (lambda value: value)
    is_binary = aggregate.type.kind in BLOBS
    return lambda: GroupConcat(to_text, distinct, order, aggregate.separator, aggregate.bytes_max, is_binary)


def json_array(type_: SqlType, bytes_max: int) -> Callable[[], JsonArray]:
    to_json = conversion(type_, Domain.JSON_VALUE).function
    return lambda: JsonArray(to_json, bytes_max)


def json_object(key: SqlType, value: SqlType, bytes_max: int) -> Callable[[], JsonObject]:
    to_text = conversion(key, Domain.TEXT).function
    to_json = conversion(value, Domain.JSON_VALUE).function
    return lambda: JsonObject(to_text, to_json, bytes_max)
