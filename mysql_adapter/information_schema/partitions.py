"""information_schema.PARTITIONS: a row for each partition or subpartition, and one for each table without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from controller.sql.definitions.partition_text import described
from controller.sql.text.lexer import quoted
from dataflow.schema import Partition, Partitioning
from dataflow.values.types import Row
from mysql_adapter.information_schema.tables import base_tables
from mysql_adapter.information_schema.virtual import virtual

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session


@virtual("PARTITIONS", """
    TABLE_CATALOG 64
    TABLE_SCHEMA 64
    TABLE_NAME 64
    PARTITION_NAME 64?
    SUBPARTITION_NAME 64?
    PARTITION_ORDINAL_POSITION uint?
    SUBPARTITION_ORDINAL_POSITION uint?
    PARTITION_METHOD 13?
    SUBPARTITION_METHOD 13?
    PARTITION_EXPRESSION 2048?
    SUBPARTITION_EXPRESSION 2048?
    PARTITION_DESCRIPTION longtext?
    TABLE_ROWS ubigint?
""")
def partitions(session: Session) -> Iterator[Row]:
    for table in base_tables(session):
        place = ("def", table.database, table.name)
        found = table.partitioning
        if found is None:
            yield (*place, *[None] * 10)
            continue
        listed = found.partitions or [Partition(f"p{number}") for number in range(found.count)]
        expression = found.sql or ",".join(map(quoted, found.columns)) or None
        method = f"{found.method} COLUMNS" if found.columns and found.method in ("RANGE", "LIST") else found.method
        for number, each in enumerate(listed, 1):
            value = described(each, found, False) if each.values else None
            for sub_number, sub_name in _subpartitions(each, found):
                below = (found.sub_method, found.sub_sql or ",".join(map(quoted, found.sub_columns))) if sub_name else (None, None)
                yield (*place, each.name, sub_name, number, sub_number, method, below[0], expression, below[1], value, None)


def _subpartitions(partition: Partition, found: Partitioning) -> list[tuple[int | None, str | None]]:
    if not found.sub_method:
        return [(None, None)]
    names = partition.subpartitions or [f"{partition.name}sp{number}" for number in range(found.sub_count)]
    return list(enumerate(names, 1))
