"""The registry of the cluster in ZooKeeper: members, leader, catalog.

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
- Nodes are closed to everybody else (`controller/ownership.py`), and what does not carry the cluster's seal is not used.

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
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_digest_acl

from controller.catalog import Catalog, CatalogChange
from controller.catalog_nodes import HEAD, CatalogCopy, StoredHead, decode_head, encode_head
from controller.derived_keys import derived_key
from controller.seal import Forged, Seal
from dataflow.errors import Condition, CorruptState, InvalidStatement, MillraceError, Retryable

SESSION_TIMEOUT_S = 4.0
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

log = logging.getLogger(__name__)


class NotOurs(MillraceError):
    """The nodes are closed to who has this secret."""

    def __init__(self, detail: str) -> None:
        super().__init__(Condition.UNKNOWN_ERROR, detail)


def answered(call: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The call with ZooKeeper's own errors as ours: nothing happened that can't be tried again."""

    @functools.wraps(call)
    def wrapped(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        try:
            return call(*arguments, **keywords)
        except NoAuthError as error:
            raise NotOurs("ZooKeeper's nodes there belong to somebody else, or the secret is not theirs") from error
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
    damage: str = ""
    """What of the shard's files is damaged, in words: it is not served, and with it nothing can be committed."""
    needed_bytes: int = 0
    """How much room the shard's disk must have before anything can be committed, if it is too full."""
    takes_origins: bool = False
    """Whether requests may say which statement they belong to (`backend.network.origin`)."""


_decode_address = msgspec.json.Decoder(Address).decode


class Registry:
    """One process's session with ZooKeeper."""

    def __init__(self, hosts: str, root: str, secret: bytes) -> None:
        credential = derived_key(secret, "ZooKeeper's credential").hex()
        # The tick of an ensemble bounds the timeout that it grants from below.
        self._client = KazooClient(
            hosts=hosts,
            timeout=SESSION_TIMEOUT_S,
            connection_retry={"max_tries": -1, "max_delay": 1},
            auth_data=[("digest", f"millrace:{credential}")],
            default_acl=[make_digest_acl("millrace", credential, all=True)],
        )
        self.seal = Seal(secret)
        self._root = "/" + root.strip("/")
        self._registered: dict[str, Address] = {}
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

    def stop(self) -> None:
        self._is_stopped = True
        with contextlib.suppress(KazooException):
            self._client.stop()
        self._client.close()

    @property
    def client(self) -> KazooClient:
        """For what else is done in ZooKeeper, see `controller.program` and `controller.ownership`."""
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
        self._register(f"workers/{shard}", address)

    @answered
    def register_adapter(self, name: str, address: Address) -> None:
        self._register(f"adapters/{name}", address)

    @answered
    def register_launcher(self, address: Address) -> None:
        """Say where data jobs are taken."""
        self._register("launcher", address)

    @answered
    def launcher(self) -> Address | None:
        try:
            return self._address("launcher", self._client.get(self.path("launcher"))[0])
        except NoNodeError:
            return None

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
                self._client.ensure_path(f"{self._root}/workers")
                shards = self._client.get_children(f"{self._root}/workers", watch=changed)
                found: dict[int, Address] = {}
                for shard in shards:
                    with contextlib.suppress(NoNodeError):
                        data, _stat = self._client.get(f"{self._root}/workers/{shard}", watch=changed)
                        address = self._address(f"workers/{shard}", data)
                        if address is not None:
                            found[int(shard)] = address
            except (KazooException, KazooTimeoutError) as error:
                log.info("watch of the workers is broken until the session is back: %s", error)
                return
            callback(found)

        self._on_new_session.append(changed)
        changed()

    def _members(self, kind: str) -> dict[str, Address]:
        found: dict[str, Address] = {}
        for name in self._children(kind):
            with contextlib.suppress(NoNodeError):
                address = self._address(f"{kind}/{name}", self._client.get(f"{self._root}/{kind}/{name}")[0])
                if address is not None:
                    found[name] = address
        return found

    def _children(self, kind: str) -> list[str]:
        try:
            found: list[str] = self._client.get_children(f"{self._root}/{kind}")
            return found
        except NoNodeError:
            return []

    def _address(self, name: str, data: bytes) -> Address | None:
        try:
            return _decode_address(self.seal.open(name, data))
        except Forged as error:
            log.error("%s", error)
            return None

    def _register(self, name: str, address: Address) -> None:
        with self._lock:
            self._registered[name] = address
        with contextlib.suppress(NoNodeError):
            self._client.delete(self.path(name))
        try:
            self._create_ephemeral(name, address)
        except NodeExistsError:
            self._register(name, address)

    def _create_ephemeral(self, name: str, address: Address) -> None:
        sealed = self.seal.close(name, msgspec.json.encode(address))
        self._client.create(self.path(name), sealed, ephemeral=True, makepath=True)

    # --- leadership --------------------------------------------------------------------------

    @answered
    def try_to_lead(self, address: Address) -> bool:
        """Become the leader if there is none; True if this process is it now."""
        path = f"{self._root}/leader"
        try:
            self._create_ephemeral("leader", address)
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
            return self._address("leader", self._client.get(f"{self._root}/leader")[0])
        except NoNodeError:
            return None

    # --- catalog -----------------------------------------------------------------------------

    @answered
    def load_catalog(self) -> Catalog:
        """The catalog as of now (what was acknowledged to anyone before is in it).

        Only what has changed since the last time is read, as far as the head still says what that is.
        """
        path = self.path(HEAD)
        with self._loading:
            self._client.sync_async(path)  # a session's requests are answered in order
            while True:
                data, stat = self._client.get(path)
                head, copy = decode_head(data, self.seal), self._copy
                if copy is not None and head.version < copy.head.version:
                    raise CorruptState(
                        f"version {head.version} of the catalog is in ZooKeeper in place of {copy.head.version}, not by this cluster"
                    )
                known = None if copy is None else copy.with_head(head, stat.version)
                if known is not None:
                    self._copy = known
                    return known.catalog
                names = None if copy is None else head.changed_since(copy.head.version)
                if copy is None or names is None:
                    names, copy = set(self._client.get_children(path)), CatalogCopy(self.seal, head, stat.version, {})
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
            head = decode_head(stored.data, self.seal)
            copy = None if self._copy is None else self._copy.with_head(head, stored.znode_version)
            if copy is None:
                return None
            self._copy = copy
            return copy.catalog

    @answered
    def change_catalog(self, catalog: Catalog, change: CatalogChange) -> Catalog:
        """Make `change` to `catalog`, the last one loaded, durable; Retryable if it is not the newest any more."""
        path = self.path(HEAD)
        copy = self._copy
        if copy is None or copy.head.version != catalog.version:
            raise Retryable(Condition.DEADLOCK)
        head, nodes = copy.changed(change)
        stored = StoredHead(encode_head(head, self.seal), copy.znode_version + 1)
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
                data, stat = self._client.get(self.path(HEAD), watch=changed)
                catalog = self.learn(StoredHead(data, stat.version)) or self.load_catalog()
            except (KazooException, KazooTimeoutError, Retryable) as error:
                log.info("watch of the catalog is broken until the session is back: %s", error)
                return
            except CorruptState as error:
                log.error("the catalog stays as it was: %s", error)
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
            for name, address in registered.items():
                self._register(name, address)
            for callback in list(self._on_new_session):
                callback()
        except (SessionExpiredError, ConnectionClosedError, KazooException) as error:
            log.info("session lost again while restoring: %s", error)
