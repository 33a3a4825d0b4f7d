"""A catalog to plan against, built by the statements a user would send."""

from __future__ import annotations

from controller.catalog import Catalog, CatalogChange, CatalogDatabase
from controller.sql.definitions.definition import plan_definition
from controller.sql.settings import DEFAULT_SETTINGS, Settings
from controller.sql.text.lexer import split_statements
from dataflow.schema import Table
from dataflow.values.temporal import pack

NOW = pack(2024, 5, 6, 7, 8, 9, 123456)


class World:
    """Runs definitions one after the other, without anything behind them."""

    def __init__(self, *statements: str, settings: Settings = DEFAULT_SETTINGS) -> None:
        self.settings = settings
        self.catalog = Catalog().apply(CatalogChange(databases_put=(CatalogDatabase("db"), CatalogDatabase("other"))))
        for statement in statements:
            self.run(statement)

    def run(self, sql: str) -> CatalogChange:
        change = CatalogChange()
        for statement in split_statements(sql):
            change = plan_definition(statement, self.catalog, "db", self.settings, NOW)
            self.catalog = self.catalog.apply(change)
        return change

    def table(self, name: str, database: str = "db") -> Table:
        return self.catalog.table(database, name)
