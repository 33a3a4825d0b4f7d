"""Small tables for tests that need no SQL to make one."""

from __future__ import annotations

from collections.abc import Sequence

from dataflow.schema import Index, KeyPart, Table, TableColumn
from dataflow.values.types import SqlType


def table_of(
    types: Sequence[SqlType],
    primary_key: Sequence[KeyPart] = (KeyPart(1),),
    indexes: Sequence[Index] = (),
    nullable: bool = True,
) -> Table:
    """A table with columns 1, 2, …; the primary key's columns are NOT NULL."""
    keyed = {part.column_id for part in primary_key}
    columns = tuple(
        TableColumn(number, f"c{number}", kind, nullable=nullable and number not in keyed)
        for number, kind in enumerate(types, 1)
    )
    return Table(
        7,
        "d",
        "t",
        columns,
        Index(1, "PRIMARY", tuple(primary_key), unique=True),
        tuple(indexes),
        formats=(tuple(range(1, len(types) + 1)),),
    )
