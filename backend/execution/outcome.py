"""The outcome of a successful statement: rows, or counts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass

from controller.sql.plan import OutputColumn
from dataflow.expressions.notices import Said
from dataflow.values.types import Row


@dataclass(frozen=True, slots=True)
class Warning:
    """A line of SHOW WARNINGS; `level` is Note, Warning or Error."""

    level: str
    code: int
    message: str


def warnings_of(heard: Iterable[Said]) -> list[Warning]:
    return [Warning("Warning", condition.code, condition.template.format(*values)) for condition, values in heard]


@dataclass(frozen=True, slots=True)
class ResultSet:
    """`found_rows` is what FOUND_ROWS() becomes; None: the number of rows. `from_view`: a maintained view has answered."""

    columns: tuple[OutputColumn, ...]
    rows: list[Row]
    warnings: tuple[Warning, ...] = ()
    found_rows: int | None = None
    from_view: bool = False


@dataclass(slots=True)
class RowStream:
    """A large result whose rows are read as they are taken; what it reads from is held until `chunks` is closed.

    `warnings`, `count`, the number of rows so far, and `skipped`, those before them that OFFSET leaves
    out, are final once the last chunk was taken.
    """

    columns: tuple[OutputColumn, ...]
    chunks: AsyncGenerator[list[Row], None]
    warnings: Callable[[], tuple[Warning, ...]]
    skipped: Callable[[], int] = int
    count: int = 0

    async def next(self) -> list[Row] | None:
        """The next rows; None at the end."""
        chunk = await anext(self.chunks, None)
        self.count += 0 if chunk is None else len(chunk)
        return chunk

    def limit(self, count: int) -> None:
        """Give no more rows than that."""
        self.chunks = _limited(self.chunks, count)


async def _limited(chunks: AsyncGenerator[list[Row], None], count: int) -> AsyncGenerator[list[Row], None]:
    async with aclosing(chunks):
        async for chunk in chunks:
            yield chunk[:count]
            count -= len(chunk)
            if count <= 0:
                return


@dataclass(frozen=True, slots=True)
class Done:
    """`affected` counts changed rows and `matched` the rows found (CLIENT_FOUND_ROWS wants those).

    `last_insert_id` is what the OK packet carries: the first generated number, else the last
    explicit one. `generated_id` is what LAST_INSERT_ID() becomes, None if it stays.
    """

    affected: int = 0
    matched: int = 0
    last_insert_id: int = 0
    generated_id: int | None = None
    info: str = ""
    warnings: tuple[Warning, ...] = ()


Outcome = ResultSet | Done
Answer = Outcome | RowStream
