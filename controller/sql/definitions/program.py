"""Several definition statements as one change of the catalog: all of them or none.

Each is planned against the catalog that those before it would leave behind; what the last one
leaves is compared with the catalog as it is, and the difference is the change. A table that
the program itself makes has no rows, so its indexes need no building and its foreign keys no
check.

What changes stored values has to be a program of its own, and rows that are dropped cannot
come back if an index over stored rows turns out to be impossible: both are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.catalog import Catalog, CatalogChange, Note
from controller.sql.definitions.definition import plan_definition
from controller.sql.settings import Settings
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.schema import Table
from dataflow.values.result_limits import planning_for


def plan_program(
    statements: Sequence[str], catalog: Catalog, database: str | None, settings: Settings
) -> CatalogChange:
    """What these definition statements change together."""
    with planning_for(settings.results):
        return _planned(statements, catalog, database, settings)


def _planned(statements: Sequence[str], catalog: Catalog, database: str | None, settings: Settings) -> CatalogChange:
    if not statements:
        raise InvalidStatement(Condition.EMPTY_QUERY)
    if len(statements) == 1:
        return plan_definition(statements[0], catalog, database, settings)
    after, notes = catalog, list[Note]()
    builds, checks, counters = set[tuple[int, int]](), set[tuple[int, str]](), set[int]()
    for sql in statements:
        change = plan_definition(sql, after, database, settings)
        if change.copies:
            raise Unsupported("a change of stored values together with other definition statements")
        after = after.apply(change)
        notes += change.notes
        builds.update(change.builds)
        checks.update(change.checks)
        counters.update(change.counters)
    together = _difference(catalog, after)
    stored = {table.id: table for table in together.tables_put if table.id in catalog.tables}
    together = replace(
        together,
        tables_put=tuple(table if table.id in stored else _built(table) for table in together.tables_put),
        builds=tuple(sorted(each for each in builds if _has_index(stored.get(each[0]), each[1]))),
        checks=tuple(sorted(each for each in checks if _has_key(stored.get(each[0]), each[1]))),
        counters=tuple(sorted(each for each in counters if each in stored)),
        notes=tuple(notes),
    )
    if together.tables_dropped and (together.builds or together.checks):
        raise Unsupported("a dropped table together with an index or foreign key over stored rows")
    return together


def _difference(before: Catalog, after: Catalog) -> CatalogChange:
    """The change that makes `after` of `before`, but for what has to be done with stored rows."""
    return CatalogChange(
        databases_put=tuple(
            each for name, each in after.databases.items() if before.databases.get(name) != each
        ),
        databases_dropped=tuple(name for name in before.databases if name not in after.databases),
        tables_put=tuple(each for number, each in after.tables.items() if before.tables.get(number) != each),
        tables_dropped=tuple(number for number in before.tables if number not in after.tables),
        views_put=tuple(each for name, each in after.views.items() if before.views.get(name) != each),
        views_dropped=tuple(name for name in before.views if name not in after.views),
    )


def _built(table: Table) -> Table:
    return replace(table, indexes=tuple(replace(index, building=False) for index in table.indexes))


def _has_index(table: Table | None, index_id: int) -> bool:
    return table is not None and any(index.id == index_id for index in table.indexes)


def _has_key(table: Table | None, name: str) -> bool:
    return table is not None and any(key.name == name for key in table.foreign_keys)
