"""A copy of the catalog: what a head tells whoever has the version before, and when nodes have to be read."""

from __future__ import annotations

from controller.catalog import Catalog, CatalogChange, Database
from controller.catalog_nodes import LATEST_BYTES_MAX, CatalogCopy, CatalogHead, decode_head, encode_head
from controller.sql.program import plan_program
from controller.sql.settings import Settings

PROGRAMS = (
    ["CREATE DATABASE shop"],
    ["CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY, t TEXT)"],
    ["CREATE VIEW both_of_them AS SELECT a.id, t FROM a JOIN b ON a.id = b.id"],
    ["ALTER TABLE b ADD COLUMN n INT", "DROP TABLE a"],
    ["CREATE OR REPLACE VIEW both_of_them AS SELECT n FROM b"],
    ["DROP DATABASE shop"],
    ["CREATE DATABASE shop", "CREATE TABLE shop.a (id BIGINT)"],
)


def heads() -> list[tuple[CatalogHead, Catalog]]:
    """The head after each of the programs, with the catalog that it stands for."""
    copy, found = CatalogCopy(CatalogHead(), 0, {}), []
    for program in PROGRAMS:
        change = plan_program(program, copy.catalog, "shop", Settings())
        expected = copy.catalog.apply(change)
        head, nodes = copy.changed(change)
        copy = copy.with_nodes(head, copy.znode_version + 1, nodes)
        assert copy.catalog == expected
        found.append((decode_head(encode_head(head)), expected))
    return found


def test_each_head_tells_the_next_version() -> None:
    copy = CatalogCopy(CatalogHead(), 0, {})
    for number, (head, expected) in enumerate(heads(), 1):
        learned = copy.with_head(head, number)
        assert learned is not None
        copy = learned
        assert copy.catalog == expected
        assert copy.with_head(head, number) is copy


def test_a_head_of_another_version_is_not_enough() -> None:
    (_, first), (second, _), (third, _) = heads()[:3]
    copy = CatalogCopy(CatalogHead(first.version), 1, {})
    assert copy.with_head(third, 3) is None
    assert third.changed_since(first.version) == {*second.changes[-1][1], *third.changes[-1][1]}
    after = CatalogCopy(third, 3, {})
    assert after.with_head(second, 2) is None


def test_a_large_change_has_to_be_read() -> None:
    databases = tuple(
        Database(f"{number:>0200}", "utf8mb4_0900_ai_ci") for number in range(LATEST_BYTES_MAX // 200)
    )
    head, nodes = CatalogCopy(CatalogHead(), 0, {}).changed(CatalogChange(databases_put=databases))
    assert head.latest is None and len(nodes) == len(databases)
    assert CatalogCopy(CatalogHead(), 0, {}).with_head(head, 1) is None
