"""The cluster's nodes in ZooKeeper are its own: closed to others, and made once.

`take_possession` runs when a cluster starts. New nodes are closed as they are created (`controller/registry.py`); what may
be open was made before nodes were closed, or by a stranger before the first process of a new cluster was there.
"""

from __future__ import annotations

import contextlib
import logging

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

from controller.catalog_nodes import EMPTY_HEAD, HEAD, decode_head, encode_head, sealed_catalog
from controller.registry import Registry, answered
from controller.seal import Forged, Seal
from dataflow.errors import CorruptState

_ZOOKEEPERS_OWN = ("/", "/zookeeper", "/zookeeper/quota")
"""All but its configuration, which everybody may read and nobody change."""

log = logging.getLogger(__name__)


@answered
def take_possession(registry: Registry, known_version: int | None, *, whole_ensemble: bool) -> int:
    """Close what is open, and have a catalog; its version.

    `known_version` of the catalog has been there already: 0 if it may be new, None if what is there may be from before
    anything was sealed, and is believed once. `whole_ensemble`: nobody else uses this ZooKeeper.
    Raises CorruptState if the catalog is older than that, or gone, and NotOurs if somebody else has taken the cluster's root.
    """
    client = registry.client
    if whole_ensemble:
        for path in _ZOOKEEPERS_OWN:
            _close(client, path)
    client.ensure_path(registry.path("workers"))
    if not known_version:
        _close_tree(client, registry.path("").rstrip("/"))
    if known_version is None:
        _seal_catalog(client, registry)
        _seal_program(client, registry)
    if not known_version:
        with contextlib.suppress(NodeExistsError):
            client.create(registry.path(HEAD), encode_head(EMPTY_HEAD, registry.seal))
    try:
        version = decode_head(client.get(registry.path(HEAD))[0], registry.seal).version
    except NoNodeError:
        raise CorruptState(f"the catalog, last known at version {known_version}, is gone from ZooKeeper") from None
    if version < (known_version or 0):
        raise CorruptState(f"ZooKeeper has version {version} of the catalog, but {known_version} was there before")
    return version


def _close(client: KazooClient, path: str) -> None:
    with contextlib.suppress(NoNodeError):
        if client.get_acls(path)[0] != client.default_acl:
            client.set_acls(path, client.default_acl)


def _close_tree(client: KazooClient, path: str) -> None:
    """A node first, then what is below: nobody adds to it meanwhile."""
    _close(client, path)
    with contextlib.suppress(NoNodeError):
        for name in client.get_children(path):
            _close_tree(client, f"{path}/{name}")


def _seal_catalog(client: KazooClient, registry: Registry) -> None:
    """The nodes first, the head last: to do it again after a crash changes nothing."""
    path, seal = registry.path(HEAD), registry.seal
    try:
        head = client.get(path)[0]
    except NoNodeError:
        return
    with contextlib.suppress(Forged):
        decode_head(head, seal)
        return
    found = {name: client.get(f"{path}/{name}")[0] for name in client.get_children(path)}
    opened = {name: _opened(seal, f"{HEAD}/{name}", stored) for name, stored in found.items()}
    sealed_head, nodes = sealed_catalog(head, opened, seal)
    for name, stored in nodes.items():
        client.set(f"{path}/{name}", stored)
    client.set(path, sealed_head)
    log.info("sealed the %d nodes of the catalog", len(nodes))


def _seal_program(client: KazooClient, registry: Registry) -> None:
    with contextlib.suppress(NoNodeError):
        for name in client.get_children(registry.path("program")):
            path = f"program/{name}"
            content = _opened(registry.seal, path, client.get(registry.path(path))[0])
            client.set(registry.path(path), registry.seal.close(path, content))


def _opened(seal: Seal, path: str, stored: bytes) -> bytes:
    try:
        return seal.open(path, stored)
    except Forged:
        return stored
