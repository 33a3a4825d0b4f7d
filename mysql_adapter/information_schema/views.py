"""Views as clients look at them: as tables with columns, and as the statement that makes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from controller.catalog import Catalog, CatalogView
from controller.sql.definitions.view_definition import view_columns
from controller.sql.writing.updatable_views import is_updatable
from dataflow.errors import Condition, InvalidStatement, MillraceError
from dataflow.schema import Index, Table, TableColumn
from dataflow.values.types import Row
from mysql_adapter.information_schema.virtual import virtual

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session


def table_or_view(session: Session, catalog: Catalog, database: str | None, name: str) -> Table:
    """A table, or a view as if it were one."""
    view = catalog.views.get((database, name)) if database else None
    return catalog.table(database, name) if view is None else view_table(session, catalog, view)


def view_table(session: Session, catalog: Catalog, view: CatalogView) -> Table:
    described = session.environment.described
    found = described.get(view)
    if found is None:
        columns = tuple(
            TableColumn(number, column.name, column.type, column.nullable)
            for number, column in enumerate(view_columns(view, catalog, session.settings), 1)
        )
        found = described[view] = Table(0, view.database, view.name, columns, Index(0, "PRIMARY", ()), comment="VIEW")
    return found


def view_tables(session: Session) -> Iterator[Table]:
    """Every view whose tables are still there, as a table."""
    catalog = session.environment.visible_catalog(session)
    for _, view in sorted(catalog.views.items()):
        try:
            yield view_table(session, catalog, view)
        except MillraceError:
            continue


def find_view(catalog: Catalog, database: str | None, name: str) -> CatalogView:
    view = catalog.views.get((database, name)) if database else None
    if view is None:
        table = catalog.table(database, name)
        raise InvalidStatement(Condition.WRONG_OBJECT, table.database, table.name, "VIEW")
    return view


def show_create_view(view: CatalogView) -> str:
    columns = f" ({','.join(f'`{name}`' for name in view.columns)})" if view.columns else ""
    definer = "@".join(f"`{each}`" for each in view.definer)
    return (
        f"CREATE ALGORITHM={view.algorithm or 'UNDEFINED'} DEFINER={definer} SQL SECURITY {_security(view)}"
        f" VIEW `{view.name}`{columns} AS {view.select}"
    ) + (f" WITH {view.check} CHECK OPTION" if view.check else "")


@virtual("VIEWS", """
    TABLE_CATALOG 64
    TABLE_SCHEMA 64
    TABLE_NAME 64
    VIEW_DEFINITION longtext?
    CHECK_OPTION 8?
    IS_UPDATABLE 3?
    DEFINER 288?
    SECURITY_TYPE 7?
    CHARACTER_SET_CLIENT 64
    COLLATION_CONNECTION 64
""")
def views(session: Session) -> Iterator[Row]:
    catalog = session.environment.visible_catalog(session)
    for _, view in sorted(catalog.views.items()):
        definer = "@".join(view.definer)
        yield (
            "def", view.database, view.name, view.select, view.check or "NONE", "YES" if is_updatable(view, catalog) else "NO",
            definer, _security(view), "utf8mb4", view.collation,
        )  # fmt: skip


def _security(view: CatalogView) -> str:
    return "INVOKER" if view.invoker else "DEFINER"
