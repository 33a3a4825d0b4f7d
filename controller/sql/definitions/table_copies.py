"""Tables made from others: with other rows, the same rows stored anew, or keys that follow a name."""

from __future__ import annotations

from dataclasses import replace

from controller.catalog import Catalog, CatalogChange, Copy
from controller.sql.settings import Settings
from dataflow.expressions.expression import Expression
from dataflow.schema import Table


def emptied(table: Table, table_id: int) -> Table:
    """The same definition for a table of its own, which has no rows yet."""
    columns = tuple(replace(column, missing=None) for column in table.columns)
    indexes = tuple(replace(index, building=False) for index in table.indexes)
    return replace(
        table, id=table_id, columns=columns, indexes=indexes, formats=(tuple(c.id for c in columns),), version=1
    )


def repointed(catalog: Catalog, renamed: tuple[Table, ...]) -> list[Table]:
    """Tables whose foreign keys follow a renamed parent."""
    moved = {(catalog.tables[table.id].database, catalog.tables[table.id].name): table for table in renamed}
    skipped = {table.id for table in renamed}
    changed: list[Table] = []
    for table in catalog.tables.values():
        keys = tuple(
            replace(key, parent_database=target.database, parent_table=target.name)
            if (target := moved.get((key.parent_database, key.parent_table))) is not None
            else key
            for key in table.foreign_keys
        )
        if keys != table.foreign_keys and table.id not in skipped:
            changed.append(replace(table, foreign_keys=keys, version=table.version + 1))
    return changed


def copied(old: Table, new: Table, catalog: Catalog, settings: Settings, left_out: Expression | None = None) -> CatalogChange:
    """The change that stores all rows of `old` anew, as `new`, but those that fulfil `left_out`."""
    columns = tuple(replace(column, missing=None) for column in new.columns)
    table = replace(
        new,
        id=catalog.next_table_id,
        version=1,
        columns=columns,
        indexes=tuple(replace(index, building=False) for index in new.indexes),
        formats=(tuple(column.id for column in columns),),
    )
    return CatalogChange(copies=(Copy(old.id, table, settings.sql_mode, settings.time_zone, left_out),))
