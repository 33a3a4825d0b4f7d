"""The catalog as nodes: how it is stored under one path, and a process's copy of what is there.

    .                         the head: its version, which nodes changed last, and the last change itself if it is small
    d…, t…, v…, a…            one database, table, view or account each

A process keeps a copy. Whoever has the version before needs only the head; the copy never is a mixture
of two versions.

Every node is sealed, and the head has a digest of all nodes' MACs: a node that was written, put back to what it
had been, or removed by anybody else makes the whole version unusable; one that was added is ignored. The version never goes back.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from controller.accounts import Account
from controller.catalog import (
    Catalog,
    CatalogChange,
    CatalogDatabase,
    CatalogView,
    decode_account,
    decode_database,
    decode_table,
    decode_view,
    encode_account,
    encode_database,
    encode_table,
    encode_view,
)
from controller.seal import Forged, Seal, mac_of
from dataflow.errors import CorruptState
from dataflow.schema import Table

CHANGES_MAX = 50
CHANGED_NODES_MAX = 2_000
LATEST_BYTES_MAX = 100_000

HEAD = "catalog"

Node = CatalogDatabase | Table | CatalogView | Account

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CatalogHead:
    """`changes` are (version, nodes changed or gone) of the latest changes, the newest last.

    `latest` are the nodes of the newest one, None if they are gone; it is None itself if that would be much.
    `digest` is that of all nodes.
    """

    version: int = 0
    next_table_id: int = 1
    changes: list[tuple[int, list[str]]] = field(default_factory=list)
    latest: dict[str, bytes | None] | None = None
    digest: bytes = b""

    def changed_since(self, version: int) -> set[str] | None:
        """The nodes that are not what they were at `version`; None if that is not known any more."""
        changes = [names for changed, names in self.changes if changed > version]
        if not version or len(changes) != self.version - version:
            return None
        return {name for names in changes for name in names}


@dataclass(frozen=True, slots=True)
class StoredHead:
    """The head as it is stored, and the version of its znode."""

    data: bytes
    znode_version: int


@dataclass(frozen=True, slots=True)
class StoredNode:
    mac: bytes
    content: Node


_encode_head = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(CatalogHead).decode


def encode_head(head: CatalogHead, seal: Seal) -> bytes:
    return seal.close(HEAD, _encode_head(head))


def decode_head(stored: bytes, seal: Seal) -> CatalogHead:
    return _decode_head(seal.open(HEAD, stored))


def sealed_catalog(open_head: bytes, open_nodes: Mapping[str, bytes], seal: Seal) -> tuple[bytes, dict[str, bytes]]:
    """The head and the nodes of a catalog that was stored before anything was sealed."""
    head = _decode_head(open_head) if open_head else CatalogHead()
    nodes = {name: seal.close(f"{HEAD}/{name}", content) for name, content in open_nodes.items()}
    digest = _digest({name: mac_of(stored) for name, stored in nodes.items()})
    return encode_head(CatalogHead(head.version, head.next_table_id, digest=digest), seal), nodes


def _digest(macs: Mapping[str, bytes]) -> bytes:
    return hashlib.sha256(b"".join(name.encode() + b"\0" + mac for name, mac in sorted(macs.items()))).digest()


EMPTY_HEAD = CatalogHead(digest=_digest({}))


class CatalogCopy:
    """A version of the catalog with the nodes that it is made of."""

    def __init__(self, seal: Seal, head: CatalogHead, znode_version: int, nodes: Mapping[str, StoredNode]) -> None:
        self._seal = seal
        self.head = head
        self.znode_version = znode_version
        self.nodes = nodes
        found = [node.content for node in nodes.values()]
        self.catalog = Catalog.of(
            tuple(each for each in found if isinstance(each, CatalogDatabase)),
            tuple(each for each in found if isinstance(each, Table)),
            head.version,
            head.next_table_id,
            tuple(each for each in found if isinstance(each, CatalogView)),
            tuple(each for each in found if isinstance(each, Account)),
        )

    def with_nodes(
        self, head: CatalogHead, znode_version: int, changed: Mapping[str, bytes | None]
    ) -> CatalogCopy:
        """Raises CorruptState if these are not the nodes that the head is of."""
        nodes = dict(self.nodes)
        for name, data in changed.items():
            nodes.pop(name, None)
            if data is not None:
                try:
                    content = _decode_node(name, self._seal.open(f"{HEAD}/{name}", data))
                except Forged as error:
                    log.error("%s", error)
                else:
                    nodes[name] = StoredNode(mac_of(data), content)
        if _digest({name: node.mac for name, node in nodes.items()}) != head.digest:
            raise CorruptState(
                f"nodes of version {head.version} of the catalog in ZooKeeper were changed or removed, not by this cluster"
            )
        return CatalogCopy(self._seal, head, znode_version, nodes)

    def with_head(self, head: CatalogHead, znode_version: int) -> CatalogCopy | None:
        """What the head alone tells; None if nodes have to be read, too."""
        if head.version == self.head.version:
            return self if znode_version == self.znode_version else self.with_nodes(head, znode_version, {})
        if head.version != self.head.version + 1 or head.latest is None:
            return None
        return self.with_nodes(head, znode_version, head.latest)

    def changed(self, change: CatalogChange) -> tuple[CatalogHead, dict[str, bytes | None]]:
        """The head and the nodes that are to be stored for `change`."""
        after = self.catalog.apply(change)
        nodes: dict[str, bytes | None] = {}

        def put(name: str, content: bytes) -> None:
            nodes[name] = self._seal.close(f"{HEAD}/{name}", content)

        nodes |= dict.fromkeys(map(_database_node, change.databases_dropped))
        nodes |= dict.fromkeys(f"t{table_id}" for table_id in change.tables_dropped)
        nodes |= dict.fromkeys(map(_view_node, self.catalog.views.keys() - after.views.keys()))
        nodes |= dict.fromkeys(map(_account_node, change.accounts_dropped))
        for database in change.databases_put:
            put(_database_node(database.name), encode_database(database))
        for table in change.tables_put:
            put(f"t{table.id}", encode_table(table))
        for view in change.views_put:
            put(_view_node((view.database, view.name)), encode_view(view))
        for account in change.accounts_put:
            put(_account_node(account.name), encode_account(account))
        changes = [*self.head.changes, (after.version, list(nodes))][-CHANGES_MAX:]
        if sum(len(names) for _, names in changes) > CHANGED_NODES_MAX:
            changes = []  # everyone reads everything
        is_small = sum(len(data or b"") for data in nodes.values()) <= LATEST_BYTES_MAX
        macs = {name: node.mac for name, node in self.nodes.items() if name not in nodes}
        digest = _digest(macs | {name: mac_of(data) for name, data in nodes.items() if data is not None})
        return CatalogHead(after.version, after.next_table_id, changes, nodes if is_small else None, digest), nodes


def _escape(name: str) -> str:
    """A name as part of a znode's: any character may stand in it."""
    return name.encode().hex()


def _database_node(name: str) -> str:
    return f"d{_escape(name)}"


def _view_node(name: tuple[str, str]) -> str:
    return f"v{_escape(name[0])}.{_escape(name[1])}"


def _account_node(name: tuple[str, str]) -> str:
    return f"a{_escape(chr(0).join(name))}"


def _decode_node(name: str, data: bytes) -> Node:
    match name[0]:
        case "d":
            return decode_database(data)
        case "v":
            return decode_view(data)
        case "a":
            return decode_account(data)
        case _:
            return decode_table(data)
