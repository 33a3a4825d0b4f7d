"""A scope: the tables in sight at one place of a statement, each at its place in the row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions import expression
from dataflow.schema import ROW_ID_NAME, Table

FIELD_LIST = "field list"
WHERE_CLAUSE = "where clause"
GROUP_CLAUSE = "group statement"
HAVING_CLAUSE = "having clause"
ORDER_CLAUSE = "order clause"


@dataclass(frozen=True, slots=True)
class TableInSight:
    """A table under the name it has here; its columns begin at `offset` of the row.

    `names` are other names for its columns (INSERT … AS new (a, b)). An `exact` source is
    only found when its name is given.
    """

    alias: str
    table: Table
    offset: int = 0
    database: str = ""
    names: tuple[str, ...] = ()
    exact: bool = False

    def positions(self, name: str) -> Iterator[int]:
        lowered = name.lower()
        for position, column in enumerate(self.table.columns):
            known = self.names[position] if position < len(self.names) else column.name
            if known.lower() == lowered and column.name != ROW_ID_NAME:
                yield position


@dataclass(frozen=True, slots=True)
class Scope:
    sources: tuple[TableInSight, ...] = ()

    def find(self, name: str, table: str = "", database: str = "") -> list[tuple[TableInSight, int]]:
        found: list[tuple[TableInSight, int]] = []
        for source in self.sources:
            if table and (source.alias != table or (database and source.database != database)):
                continue
            if not table and source.exact:
                continue
            found += [(source, position) for position in source.positions(name)]
        return found

    def resolve(self, name: str, table: str, database: str, clause: str) -> tuple[TableInSight, int]:
        found = self.find(name, table, database)
        if len(found) == 1:
            return found[0]
        written = ".".join(part for part in (database, table, name) if part)
        if found:
            raise InvalidStatement(Condition.AMBIGUOUS_COLUMN, written, clause)
        raise InvalidStatement(Condition.UNKNOWN_COLUMN, written, clause)


def read(source: TableInSight, position: int) -> expression.Column:
    return expression.Column(source.offset + position, source.table.columns[position].type)
