"""The program: which queries are maintained, in ZooKeeper, so that they are again after a restart.

    /<root>/program/<name>        one query: what is needed to maintain it, and the versions of its tables
    /<root>/program/<name>.<n>    more of the same, where it does not fit into one znode

A query is recorded once, by whoever first got an answer from it, and forgotten when it has
retired or its tables lack what it uses; using it writes nothing. The first znode of a query comes
last and goes first, so a query is there as a whole or not at all.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import msgspec
from kazoo.exceptions import NodeExistsError, NoNodeError

from controller.catalog import Catalog, decode_node
from controller.registry import Registry, answered
from controller.seal import Forged
from dataflow.plan.column_use import fits

NODE_BYTES_MAX = 512 << 10
QUERIES_MAX = 5_000
"""More than this is not recorded: names of all of them are read at once, within 1 MB."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MaintainedQuery:
    """`node` is narrowed (`dataflow.plan.column_use`); `names` are the named views that it reads; `tables` (id, version when it was recorded), of
    named views, too. `since` is in seconds of Unix time.
    """

    name: bytes
    node: bytes
    key: tuple[int, ...]
    order: tuple[int, ...]
    tables: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    since: float

    def is_current(self, catalog: Catalog) -> bool:
        """Whether its tables have what it uses, and the named views are what it was made for."""
        named = {each for each, _ in self.tables if each < 0}
        if any(each not in catalog.tables for each, _ in self.tables if each >= 0) or not fits(_node(self.node), catalog.tables):
            return False
        return not named or named <= {view.id for view in catalog.views.values()}


_encode = msgspec.msgpack.Encoder().encode
_node = lru_cache(maxsize=QUERIES_MAX)(decode_node)


class Program:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._path = registry.path("program")
        self._loaded: dict[str, MaintainedQuery] = {}

    @answered
    def names(self) -> set[bytes]:
        return {bytes.fromhex(name) for name in self._children() if "." not in name}

    @answered
    def load(self) -> list[MaintainedQuery]:
        """All of it. What a name stands for never changes, so only what is new is read."""
        client = self._registry.client
        heads = [name for name in self._children() if "." not in name]
        requests = [(name, client.get_async(f"{self._path}/{name}")) for name in heads if name not in self._loaded]
        found = {name: self._loaded[name] for name in heads if name in self._loaded}
        for name, request in requests:
            try:
                data = self._opened(name, request.get()[0])
                more = int.from_bytes(data[:4], "big")
                for number in range(1, more + 1):
                    part = f"{name}.{number}"
                    data += self._opened(part, client.get(f"{self._path}/{part}")[0])
                found[name] = _decode_query(data[4:])
            except NoNodeError:  # forgotten meanwhile
                continue
            except (msgspec.DecodeError, Forged) as error:
                log.error("query %s of the program cannot be read: %s", name, error)
        self._loaded = found
        return list(found.values())

    @answered
    def record(self, query: MaintainedQuery) -> None:
        """Have a query in the program; nothing changes if it is there already."""
        client = self._registry.client
        client.ensure_path(self._path)
        name, data = query.name.hex(), _encode(query)
        if client.exists(f"{self._path}/{name}") is not None:
            return
        if len(self._children()) >= QUERIES_MAX:
            log.warning("the program has %d queries; another one will not survive a restart", QUERIES_MAX)
            return
        parts = [data[start : start + NODE_BYTES_MAX] for start in range(0, len(data), NODE_BYTES_MAX)]
        for number, part in enumerate(parts[1:], 1):
            self._create(f"{name}.{number}", part)
        self._create(name, (len(parts) - 1).to_bytes(4, "big") + parts[0])

    @answered
    def forget(self, names: Iterable[bytes]) -> None:
        gone = {name.hex() for name in names}
        for each in sorted(self._children(), key=lambda each: "." in each):
            if each.partition(".")[0] in gone:
                with contextlib.suppress(NoNodeError):
                    self._registry.client.delete(f"{self._path}/{each}")

    def _create(self, name: str, content: bytes) -> None:
        with contextlib.suppress(NodeExistsError):
            sealed = self._registry.seal.close(f"program/{name}", content)
            self._registry.client.create(f"{self._path}/{name}", sealed)

    def _opened(self, name: str, stored: bytes) -> bytes:
        return self._registry.seal.open(f"program/{name}", stored)

    def _children(self) -> list[str]:
        try:
            found: list[str] = self._registry.client.get_children(self._path)
            return found
        except NoNodeError:
            return []


_decode_query = msgspec.msgpack.Decoder(MaintainedQuery).decode
