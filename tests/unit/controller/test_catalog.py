"""Snapshots of the catalog, changes to them, and their bytes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from controller.catalog import (
    Catalog,
    CatalogChange,
    CatalogDatabase,
    CatalogView,
    decode_database,
    decode_expression,
    decode_table,
    decode_view,
    encode_database,
    encode_expression,
    encode_table,
    encode_view,
)
from dataflow.errors import CorruptState, InvalidStatement
from dataflow.expressions import expression
from dataflow.schema import Check, ForeignKey, Index, KeyPart, Table, TableColumn
from dataflow.values.types import BOOLEAN, INT, Kind, SqlType, decimal, text

CONDITION = expression.Call(
    ">",
    (expression.Column(0, INT), expression.Literal(Decimal("1.50"), decimal(3, 2))),
    BOOLEAN,
)


def table(table_id: int = 1, name: str = "t", version: int = 1) -> Table:
    return Table(
        table_id,
        "db",
        name,
        (
            TableColumn(1, "id", INT, nullable=False, auto_increment=True),
            TableColumn(2, "price", decimal(10, 2), has_default=True, default=Decimal("0.10"), missing=Decimal("0.10")),
            TableColumn(3, "raw", SqlType(Kind.VARBINARY, length=5), has_default=True, default=b"\xff\x00"),
            TableColumn(4, "name", text(20), has_default=True, default=""),
        ),
        Index(1, "PRIMARY", (KeyPart(1),), unique=True),
        indexes=(Index(2, "n", (KeyPart(4, prefix=5, descending=True),)),),
        foreign_keys=(ForeignKey("fk", ("id",), "db", "p", ("id",)),),
        checks=(Check("c", "`id` > 1.50", CONDITION),),
        formats=((1, 2), (1, 2, 3, 4)),
        version=version,
    )


def test_a_table_survives_encoding() -> None:
    assert decode_table(encode_table(table())) == table()


def test_a_default_that_equals_another_type_s_default_keeps_its_type() -> None:
    for value in (0, False, 0.0, "", b"", Decimal(0)):
        found = decode_expression(encode_expression(expression.Literal(value, INT)))
        assert isinstance(found, expression.Literal)
        assert (type(found.value), found.value) == (type(value), value)


def test_expressions_and_databases_survive_encoding() -> None:
    assert decode_expression(encode_expression(CONDITION)) == CONDITION
    database = CatalogDatabase("db", "utf8mb4_bin")
    assert decode_database(encode_database(database)) == database


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x80", b"\x81\xa0\xa3abc", b"\x01"])
def test_bytes_that_are_no_table_are_corrupt_state(data: bytes) -> None:
    with pytest.raises(CorruptState):
        decode_table(data)


def test_apply_makes_a_new_snapshot_and_leaves_the_old_one() -> None:
    empty = Catalog()
    first = empty.apply(CatalogChange(databases_put=(CatalogDatabase("db"),), tables_put=(table(),)))
    assert not empty.tables
    assert first.table("db", "t").id == 1
    assert first.next_table_id == 2
    renamed = first.apply(CatalogChange(tables_put=(table(name="u", version=2),)))
    assert renamed.find_table("db", "t") is None
    assert renamed.table("db", "u").version == 2
    dropped = renamed.apply(CatalogChange(tables_dropped=(1,)))
    assert dropped.next_table_id == 2, "the id of a dropped table is not used again"
    assert [each.version for each in (empty, first, renamed, dropped)] == [0, 1, 2, 3]


def test_lookup_reports_what_is_missing() -> None:
    catalog = Catalog().apply(CatalogChange(databases_put=(CatalogDatabase("db"),)))
    for database, code in ((None, 1046), ("nope", 1049), ("db", 1146)):
        with pytest.raises(InvalidStatement) as raised:
            catalog.table(database, "t")
        assert raised.value.condition.code == code
    with pytest.raises(InvalidStatement, match=r"Table 'db\.T' doesn't exist"):
        catalog.table("db", "T")


def test_references_find_the_children_of_a_table() -> None:
    catalog = Catalog().apply(CatalogChange(databases_put=(CatalogDatabase("db"),), tables_put=(table(),)))
    assert [child.name for child, _ in catalog.references_to("db", "p")] == ["t"]


def test_views_come_back_from_bytes_and_go_with_their_database() -> None:
    view = CatalogView("db", "v", "SELECT 1 AS a", ("a",), "db")
    assert decode_view(encode_view(view)) == view
    catalog = Catalog().apply(CatalogChange(databases_put=(CatalogDatabase("db"),), views_put=(view,)))
    assert catalog.views_of("db") == [view]
    assert not catalog.apply(CatalogChange(views_dropped=(("db", "v"),))).views
    assert not catalog.apply(CatalogChange(databases_dropped=("db",))).views
