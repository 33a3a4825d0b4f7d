"""Seals: the cluster's content in ZooKeeper carries a MAC, so content of anybody else is noticed.

    1 byte: the format     32 bytes: HMAC-SHA256(key, path, content)     the content

The path is the node's below the cluster's root: content can't be moved to another node. That it is the newest of that node is not
said here; for the catalog its head does (`controller/catalog_nodes.py`).
"""

from __future__ import annotations

import hmac

from controller.derived_keys import derived_key
from dataflow.errors import CorruptState

_FORMAT = b"\x01"
MAC_BYTES = 32


class Forged(CorruptState):
    """Content that was not written by a process of the cluster, or not to this node."""


class Seal:
    def __init__(self, secret: bytes) -> None:
        self._key = derived_key(secret, "content of ZooKeeper's nodes")

    def close(self, path: str, content: bytes) -> bytes:
        """The content as it is stored at `path`."""
        return _FORMAT + self._mac(path, content) + content

    def open(self, path: str, stored: bytes) -> bytes:
        """Raises Forged."""
        content = stored[1 + MAC_BYTES :]
        if stored[:1] != _FORMAT or not hmac.compare_digest(mac_of(stored), self._mac(path, content)):
            raise Forged(f"{path} in ZooKeeper was not written by this cluster; it is not used")
        return content

    def _mac(self, path: str, content: bytes) -> bytes:
        return hmac.digest(self._key, path.encode() + b"\0" + content, "sha256")


def mac_of(stored: bytes) -> bytes:
    return stored[1 : 1 + MAC_BYTES]
