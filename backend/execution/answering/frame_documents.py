"""JSON_ARRAYAGG and JSON_OBJECTAGG over the frame of a window, whose rows have an order: arrays show it.

Of members of one name the last in that order stays. A group has no order, and other code: `dataflow.aggregates.accumulator`.
"""

from __future__ import annotations

from backend.execution.pace import breathe, parts
from dataflow.aggregates import group_concat
from dataflow.errors import Condition, InvalidStatement
from dataflow.plan.node import AggregateFunction
from dataflow.values import documents
from dataflow.values.conversion import Domain, conversion
from dataflow.values.types import Row, Value

COLLECTING = frozenset({"json_arrayagg", "json_objectagg"})


class FrameDocuments:
    def __init__(self, function: AggregateFunction) -> None:
        *names, value = function.arguments
        self._to_text = (conversion(names[0].type, Domain.TEXT).function or str) if names else None
        self._to_json = conversion(value.type, Domain.JSON_VALUE).function or str
        self._bytes_max = function.bytes_max

    def values(self, rows: list[Row], starts: list[int], ends: list[int]) -> list[Value]:
        """The document of each frame, which is a slice of `rows`, the values of the arguments."""
        made = [self._entry(row) for part in parts(rows) for row in part]
        out: list[Value] = []
        for start, end in zip(starts, ends):
            breathe()
            out.append(self._document(made[start:end]))
        return out

    def _entry(self, row: Row) -> tuple[str, str]:
        document = "null" if row[-1] is None else str(self._to_json(row[-1]))
        if self._to_text is None:
            return "", document
        if row[0] is None:
            raise InvalidStatement(Condition.JSON_NULL_KEY)
        return str(self._to_text(row[0])), document

    def _document(self, entries: list[tuple[str, str]]) -> Value:
        if self._to_text is None:
            return group_concat.json_array([document for _, document in entries], self._bytes_max)
        members = [f"{documents.dumps(name)}: {document}" for name, document in dict(entries).items()]
        found = group_concat.json_object(members, self._bytes_max)
        return None if found is None else documents.normalise(found)
