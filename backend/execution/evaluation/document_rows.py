"""JSON_TABLE: the documents that a query finds, and the rows of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backend.execution.evaluation.recursion import Asked
from backend.execution.execution import Execution
from backend.execution.pace import breathe
from backend.execution.rows import Rows
from controller.sql.plan import DocumentRows
from dataflow.functions.json_table import expand
from dataflow.values.types import Row


class CompiledDocuments:
    def __init__(self, prior: DocumentRows, documents: Asked) -> None:
        self._prior, self._documents = prior, documents

    async def rows(self, execution: Execution, memory: Mapping[int, Sequence[Row]]) -> tuple[list[Row], int]:
        found: Rows[Row] = Rows()
        for (document,) in (await self._documents.rows(execution, memory))[0]:
            breathe()
            if document is not None:
                assert isinstance(document, bytes)
                found.add([(document, *row) for row in expand(document.decode("utf-8", "surrogateescape"), self._prior.table)])
        return found, len(found)
