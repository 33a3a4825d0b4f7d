"""What the cluster knows about itself, in ZooKeeper: members, leader, catalog.

    /<root>/workers/<shard>     ephemeral: where the shard is served
    /<root>/adapters/<name>     ephemeral: where an adapter listens
    /<root>/leader              ephemeral: the controller that acts
    /<root>/catalog             its version; every change sets it in the same transaction
    /<root>/catalog/…           see `controller.catalog_nodes`
    /<root>/program/…           see `controller.program`

Invariants
- A catalog change happens only on the version it was planned for, so a leader that has been
  replaced without knowing can do no harm.
- What a process registered is registered again whenever its session had to be replaced.

The calls block; asyncio code runs them in threads. Callbacks come on kazoo's threads.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import msgspec
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError

from controller.catalog import Catalog, CatalogChange
from controller.catalog_nodes import CatalogCopy, StoredHead, decode_head, encode_head
from dataflow.errors import Condition, InvalidStatement, Retryable

SESSION_TIMEOUT_S = 4.0
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

log = logging.getLogger(__name__)


def answered(call: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The call with ZooKeeper's own errors as ours: nothing happened that can't be tried again."""

    @functools.wraps(call)
    def wrapped(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        try:
            return call(*arguments, **keywords)
        except (KazooException, KazooTimeoutError) as error:
            raise Retryable(
                Condition.UNKNOWN_ERROR, f"no answer from ZooKeeper ({type(error).__name__})"
            ) from error

    return wrapped


@dataclass(frozen=True, slots=True)
class Address:
    """Where a process listens; of a worker, also of how many shards it serves one."""

    host: str
    port: int
    process: int = 0
    shard_count: int = 0


_decode_address = msgspec.json.Decoder(Address).decode


class Registry:
    """One process's session with ZooKeeper."""

    def __init__(self, hosts: str, root: str = "millrace") -> None:
        # The tick of an ensemble bounds the timeout that it grants from below.
        self._client = KazooClient(
            hosts=hosts, timeout=SESSION_TIMEOUT_S, connection_retry={"max_tries": -1, "max_delay": 1}
        )
        self._root = "/" + root.strip("/")
        self._registered: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._copy: CatalogCopy | None = None
        """Of the catalog, as last read."""
        self.last_head: StoredHead | None = None
        """Of the last change that was made here."""
        self._session_lost = False
        self._on_new_session: list[Callable[[], None]] = []
        self._client.add_listener(self._state_changed)
        self._is_stopped = False

    def start(self, timeout_s: float = 20.0) -> None:
        """Until ZooKeeper answers; raises Retryable if it does not in time, or `stop` is called meanwhile."""
        deadline = time.monotonic() + timeout_s
        connected = self._client.start_async()
        while not connected.wait(0.1):
            if self._is_stopped or time.monotonic() > deadline:
                self.stop()
                raise Retryable(Condition.UNKNOWN_ERROR, "no answer from ZooKeeper")
        for path in ("workers", "adapters", "catalog"):
            self._client.ensure_path(f"{self._root}/{path}")

    def stop(self) -> None:
        self._is_stopped = True
        with contextlib.suppress(KazooException):
            self._client.stop()
        self._client.close()

    @property
    def client(self) -> KazooClient:
        """For what else is kept in ZooKeeper, see `controller.program`."""
        return self._client

    def path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @property
    def connected(self) -> bool:
        return bool(self._client.connected)

    # --- members -------------------------------------------------------------------------------

    @answered
    def register_worker(self, shard: int, address: Address) -> None:
        """Say where a shard is served, in place of whoever served it before."""
        self._register(f"{self._root}/workers/{shard}", msgspec.json.encode(address))

    @answered
    def register_adapter(self, name: str, address: Address) -> None:
        self._register(f"{self._root}/adapters/{name}", msgspec.json.encode(address))

    @answered
    def workers(self) -> dict[int, Address]:
        return {int(name): address for name, address in self._members("workers").items()}

    @answered
    def adapters(self) -> dict[str, Address]:
        return self._members("adapters")

    def watch_workers(self, callback: Callable[[dict[int, Address]], None]) -> None:
        """Call back now and whenever a worker comes, moves or goes."""

        def changed(_: object = None) -> None:
            try:
                shards = self._client.get_children(f"{self._root}/workers", watch=changed)
                found: dict[int, Address] = {}
                for shard in shards:
                    with contextlib.suppress(NoNodeError):
                        data, _stat = self._client.get(f"{self._root}/workers/{shard}", watch=changed)
                        found[int(shard)] = _decode_address(data)
            except (KazooException, KazooTimeoutError) as error:
                log.info("watch of the workers is broken until the session is back: %s", error)
                return
            callback(found)

        self._on_new_session.append(changed)
        changed()

    def _members(self, kind: str) -> dict[str, Address]:
        found: dict[str, Address] = {}
        for name in self._client.get_children(f"{self._root}/{kind}"):
            with contextlib.suppress(NoNodeError):
                found[name] = _decode_address(self._client.get(f"{self._root}/{kind}/{name}")[0])
        return found

    def _register(self, path: str, data: bytes) -> None:
        with self._lock:
            self._registered[path] = data
        with contextlib.suppress(NoNodeError):
            self._client.delete(path)
        try:
            self._client.create(path, data, ephemeral=True)
        except NodeExistsError:
            self._register(path, data)

    # --- leadership --------------------------------------------------------------------------

    @answered
    def try_to_lead(self, address: Address) -> bool:
        """Become the leader if there is none; True if this process is it now."""
        path = f"{self._root}/leader"
        try:
            self._client.create(path, msgspec.json.encode(address), ephemeral=True)
            return True
        except NodeExistsError:
            pass
        try:
            _, stat = self._client.get(path)
        except NoNodeError:
            return self.try_to_lead(address)
        return bool(stat.ephemeralOwner == self._client.client_id[0])

    @answered
    def wait_without_leader(self, callback: Callable[[], None]) -> None:
        """Call back once, when there is no leader (now, or when the present one goes)."""
        if self._client.exists(f"{self._root}/leader", watch=lambda _: callback()) is None:
            callback()

    @answered
    def leader(self) -> Address | None:
        try:
            return _decode_address(self._client.get(f"{self._root}/leader")[0])
        except NoNodeError:
            return None

    # --- catalog -----------------------------------------------------------------------------

    @answered
    def load_catalog(self) -> Catalog:
        """The catalog as of now (what was acknowledged to anyone before is in it).

        Only what has changed since the last time is read, as far as the head still says what that is.
        """
        path = f"{self._root}/catalog"
        with self._loading:
            self._client.sync_async(path)  # a session's requests are answered in order
            while True:
                data, stat = self._client.get(path)
                head, copy = decode_head(data), self._copy
                known = None if copy is None else copy.with_head(head, stat.version)
                if known is not None:
                    self._copy = known
                    return known.catalog
                names = None if copy is None else head.changed_since(copy.head.version)
                if copy is None or names is None:
                    names, copy = set(self._client.get_children(path)), CatalogCopy(head, stat.version, {})
                requests = [(name, self._client.get_async(f"{path}/{name}")) for name in sorted(names)]
                again = self._client.get_async(path)
                nodes: dict[str, bytes | None] = {}
                for name, request in requests:
                    try:
                        nodes[name] = request.get()[0]
                    except NoNodeError:
                        nodes[name] = None
                if again.get()[1].version == stat.version:
                    self._copy = copy.with_nodes(head, stat.version, nodes)
                    return self._copy.catalog

    def learn(self, stored: StoredHead) -> Catalog | None:
        """The catalog that a head was heard of; None if it is not enough to know that."""
        with self._loading:
            copy = None if self._copy is None else self._copy.with_head(decode_head(stored.data), stored.znode_version)
            if copy is None:
                return None
            self._copy = copy
            return copy.catalog

    @answered
    def change_catalog(self, catalog: Catalog, change: CatalogChange) -> Catalog:
        """Make `change` to `catalog`, the last one loaded, durable; Retryable if it is not the newest any more."""
        path = f"{self._root}/catalog"
        copy = self._copy
        if copy is None or copy.head.version != catalog.version:
            raise Retryable(Condition.DEADLOCK)
        head, nodes = copy.changed(change)
        stored = StoredHead(encode_head(head), copy.znode_version + 1)
        transaction = self._client.transaction()
        transaction.set_data(path, stored.data, version=copy.znode_version)
        for name, data in nodes.items():
            if data is None:
                transaction.delete(f"{path}/{name}")
            else:
                (transaction.set_data if name in copy.nodes else transaction.create)(f"{path}/{name}", data)
        for result in transaction.commit():
            if isinstance(result, BadVersionError):
                raise Retryable(Condition.DEADLOCK)
            if isinstance(result, Exception):
                raise InvalidStatement(Condition.UNKNOWN_ERROR, f"the catalog was not changed: {type(result).__name__}")
        self.last_head = stored
        after = copy.with_nodes(head, stored.znode_version, nodes)
        with self._loading:
            if self._copy is copy:  # what is known now need not be read
                self._copy = after
        return after.catalog

    def watch_catalog(self, callback: Callable[[Catalog], None]) -> None:
        """Call back with the catalog now and whenever it has changed."""

        def changed(_: object = None) -> None:
            try:
                data, stat = self._client.get(f"{self._root}/catalog", watch=changed)
                catalog = self.learn(StoredHead(data, stat.version)) or self.load_catalog()
            except (KazooException, KazooTimeoutError, Retryable) as error:
                log.info("watch of the catalog is broken until the session is back: %s", error)
                return
            callback(catalog)

        self._on_new_session.append(changed)
        changed()

    # --- sessions ----------------------------------------------------------------------------

    def _state_changed(self, state: str) -> None:
        if state == KazooState.LOST:
            self._session_lost = True
        elif state == KazooState.CONNECTED and self._session_lost:
            self._session_lost = False
            threading.Thread(target=self._restore, name="registry-restore", daemon=True).start()

    def _restore(self) -> None:
        """A new session: what was ephemeral and what was watched is gone."""
        with self._lock:
            registered = dict(self._registered)
        try:
            for path, data in registered.items():
                self._register(path, data)
            for callback in list(self._on_new_session):
                callback()
        except (SessionExpiredError, ConnectionClosedError, KazooException) as error:
            log.info("session lost again while restoring: %s", error)
