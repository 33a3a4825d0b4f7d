"""A copy of the catalog: what a head tells whoever has the version before, and when nodes have to be read."""

from __future__ import annotations

import pytest

from controller.catalog import Catalog, CatalogChange, CatalogDatabase
from controller.catalog_nodes import (
    LATEST_BYTES_MAX,
    CatalogCopy,
    CatalogHead,
    decode_head,
    encode_head,
    sealed_catalog,
)
from controller.seal import MAC_BYTES, Forged, Seal
from controller.sql.definitions.program import plan_program
from controller.sql.settings import Settings
from dataflow.errors import CorruptState

SEAL = Seal(b"the cluster's secret")
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
    copy, found = CatalogCopy(SEAL, CatalogHead(), 0, {}), []
    for program in PROGRAMS:
        change = plan_program(program, copy.catalog, "shop", Settings())
        expected = copy.catalog.apply(change)
        head, nodes = copy.changed(change)
        copy = copy.with_nodes(head, copy.znode_version + 1, nodes)
        assert copy.catalog == expected
        found.append((decode_head(encode_head(head, SEAL), SEAL), expected))
    return found


def test_each_head_tells_the_next_version() -> None:
    copy = CatalogCopy(SEAL, CatalogHead(), 0, {})
    for number, (head, expected) in enumerate(heads(), 1):
        learned = copy.with_head(head, number)
        assert learned is not None
        copy = learned
        assert copy.catalog == expected
        assert copy.with_head(head, number) is copy


def test_a_head_of_another_version_is_not_enough() -> None:
    (_, first), (second, _), (third, _) = heads()[:3]
    copy = CatalogCopy(SEAL, CatalogHead(first.version), 1, {})
    assert copy.with_head(third, 3) is None
    assert third.changed_since(first.version) == {*second.changes[-1][1], *third.changes[-1][1]}
    after = CatalogCopy(SEAL, third, 3, {})
    assert after.with_head(second, 2) is None


def test_a_large_change_has_to_be_read() -> None:
    databases = tuple(
        CatalogDatabase(f"{number:>0200}", "utf8mb4_0900_ai_ci") for number in range(LATEST_BYTES_MAX // 200)
    )
    head, nodes = CatalogCopy(SEAL, CatalogHead(), 0, {}).changed(CatalogChange(databases_put=databases))
    assert head.latest is None and len(nodes) == len(databases)
    assert CatalogCopy(SEAL, CatalogHead(), 0, {}).with_head(head, 1) is None


def stored() -> tuple[CatalogHead, dict[str, bytes], CatalogHead, dict[str, bytes]]:
    """A catalog of two databases and what it becomes when one of them changes, as heads and nodes."""
    copy = CatalogCopy(SEAL, CatalogHead(), 0, {})
    databases = CatalogDatabase("a", "utf8mb4_bin"), CatalogDatabase("b", "utf8mb4_bin")
    first, nodes = copy.changed(CatalogChange(databases_put=databases))
    before = {name: data for name, data in nodes.items() if data is not None}
    copy = copy.with_nodes(first, 1, nodes)
    second, changed = copy.changed(CatalogChange(databases_put=(CatalogDatabase("a", "utf8mb4_general_ci"),)))
    return first, before, second, before | {name: data for name, data in changed.items() if data is not None}


def test_nodes_that_the_cluster_did_not_write_are_ignored() -> None:
    _, _, head, nodes = stored()
    [a, b] = sorted(nodes)
    content = nodes[a][1 + MAC_BYTES :]
    stranger = Seal(b"another secret")
    for forged in (b"", content, nodes[a], nodes[a][: 1 + MAC_BYTES] + content + b" ", stranger.close("catalog/dx", content)):
        copy = CatalogCopy(SEAL, head, 2, {}).with_nodes(head, 2, nodes | {"dx": forged})
        assert sorted(copy.nodes) == [a, b]


def test_a_catalog_with_a_node_changed_moved_removed_or_put_back_is_refused() -> None:
    _, before, head, nodes = stored()
    [a, b] = sorted(nodes)
    forged = nodes[a].replace(b"general", b"unicode")
    assert forged != nodes[a] != before[a]
    for wrong in ({a: forged}, {a: nodes[b]}, {a: None}, {a: before[a]}):
        with pytest.raises(CorruptState):
            CatalogCopy(SEAL, head, 2, {}).with_nodes(head, 2, nodes | wrong)


def test_a_head_that_the_cluster_did_not_write_is_refused() -> None:
    head, *_ = stored()
    for forged in (b"", encode_head(head, Seal(b"another secret")), SEAL.close("program/catalog", encode_head(head, SEAL)[33:])):
        with pytest.raises(Forged):
            decode_head(forged, SEAL)


def test_a_catalog_from_before_is_sealed_as_it_is() -> None:
    _, before, _, _ = stored()
    opened = {name: data[1 + MAC_BYTES :] for name, data in before.items()}
    head_data, nodes = sealed_catalog(b'{"version":7,"next_table_id":3}', opened, SEAL)
    head = decode_head(head_data, SEAL)
    copy = CatalogCopy(SEAL, head, 2, {}).with_nodes(head, 2, nodes)
    assert (copy.catalog.version, copy.catalog.next_table_id, sorted(copy.catalog.databases)) == (7, 3, ["a", "b"])
