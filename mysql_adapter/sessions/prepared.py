"""A prepared statement as its connection keeps it: text, metadata, parameter types, open cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backend.execution.outcome import ResultSet, RowStream
from controller.sql.plan import OutputColumn
from dataflow.errors import Condition, InvalidStatement
from dataflow.values.types import Row, SqlType
from mysql_adapter.wire.parameters import WireType

if TYPE_CHECKING:
    from mysql_adapter.shortcuts.preparations import PreparedForm


PREPARED_MAX = 16382
"""Of one connection."""


@dataclass(slots=True)
class Cursor:
    """Rows to be fetched: those at hand, and then those of `stream`, if there is one."""

    columns: tuple[OutputColumn, ...]
    rows: list[Row]
    stream: RowStream | None = None
    position: int = 0

    async def fetch(self, count: int) -> list[Row]:
        while self.stream is not None and len(self.rows) - self.position < count:
            chunk = await self.stream.next()
            if chunk is None:
                self.stream = None
            else:
                self.rows = self.rows[self.position :] + chunk
                self.position = 0
        rows = self.rows[self.position : self.position + count]
        self.position += len(rows)
        return rows


@dataclass(slots=True)
class Prepared:
    id: int
    sql: str
    parameter_types: tuple[SqlType, ...]
    columns: tuple[OutputColumn, ...]
    planned: bool
    """False for the statements that sessions answer themselves."""
    database: str | None = None
    """Where its names are looked up, whatever the session's database is by then."""
    wire_types: Sequence[WireType] = ()
    long_data: dict[int, bytearray] = field(default_factory=dict)
    cursor: Cursor | None = None
    long_data_overflowed: bool = False
    form: PreparedForm | None = None
    """That of the packet by which it was last executed as it arrived."""

    @property
    def parameter_count(self) -> int:
        return len(self.parameter_types)

    @property
    def parameter_columns(self) -> list[OutputColumn]:
        return [OutputColumn("?", type) for type in self.parameter_types]

    def append_long_data(self, index: int, data: bytes, bytes_max: int) -> None:
        buffer = self.long_data.setdefault(index, bytearray())
        if sum(map(len, self.long_data.values())) + len(data) > bytes_max:
            # SEND_LONG_DATA has no answer; the next EXECUTE has to say it.
            self.long_data_overflowed = True
        else:
            buffer += data

    def check_long_data(self) -> None:
        if self.long_data_overflowed:
            self.long_data_overflowed = False
            self.long_data.clear()
            raise InvalidStatement(Condition.PACKET_TOO_LARGE)

    def open_cursor(self, result: ResultSet | RowStream) -> None:
        if isinstance(result, RowStream):
            self.cursor = Cursor(result.columns, [], result)
        else:
            self.cursor = Cursor(result.columns, result.rows)

    async def fetch(self, count: int) -> tuple[tuple[OutputColumn, ...], list[Row], bool]:
        """The next rows, and whether there are no more; the cursor closes with its last row."""
        cursor = self.cursor
        assert cursor is not None
        rows = await cursor.fetch(count)
        over = len(rows) < count
        if over:
            self.cursor = None
        return cursor.columns, rows, over
