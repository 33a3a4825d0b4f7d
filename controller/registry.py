"""What the cluster knows about itself, in ZooKeeper: members, leader, catalog.

    /<root>/workers/<shard>     ephemeral: where the shard is served
    /<root>/adapters/<name>     ephemeral: where an adapter listens
    /<root>/leader              ephemeral: the controller that acts
    /<root>/catalog             its version; every change sets it in the same transaction
    /<root>/catalog/d…, t…, v…, a…   one database, table, view or account each
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
from dataclasses import dataclass, field
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

from controller.accounts import Account
from controller.catalog import (
    Catalog,
    CatalogChange,
    Database,
    View,
    decode_account,
    decode_database,
    decode_table,
    decode_view,
    encode_account,
    encode_database,
    encode_table,
    encode_view,
)
from dataflow.errors import Condition, InvalidStatement, Retryable
from dataflow.schema import Table

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
    host: str
    port: int
    process: int = 0


@dataclass(frozen=True, slots=True)
class _CatalogHead:
    """`changes` are (version, nodes changed or gone) of the latest changes, the newest last."""

    version: int
    next_table_id: int
    changes: list[tuple[int, list[str]]] = field(default_factory=list)


_Node = Database | Table | View | Account

CHANGES_MAX = 50
CHANGED_NODES_MAX = 2_000

_decode_address = msgspec.json.Decoder(Address).decode
_decode_head = msgspec.json.Decoder(_CatalogHead).decode


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
        self._seen: tuple[int, dict[str, _Node]] = (0, {})
        """The catalog's version and nodes as last read."""
        self._catalog: Catalog | None = None
        self._head: tuple[_CatalogHead, int] = (_CatalogHead(0, 1), 0)
        """Of that catalog, with the version of its znode."""
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
                head, stat = self._client.get(path)
                known = _decode_head(head) if head else _CatalogHead(0, 1)
                seen_version, seen = self._seen
                if self._catalog is not None and known.version == self._catalog.version:
                    return self._catalog
                changes = [names for version, names in known.changes if version > seen_version]
                if seen_version and len(changes) == known.version - seen_version:
                    names = {name for each in changes for name in each}
                else:
                    names, seen = set(self._client.get_children(path)), {}
                requests = [(name, self._client.get_async(f"{path}/{name}")) for name in sorted(names)]
                again = self._client.get_async(path)
                nodes = dict(seen)
                for name, request in requests:
                    try:
                        nodes[name] = _decode_node(name, request.get()[0])
                    except NoNodeError:
                        nodes.pop(name, None)
                if again.get()[1].version == stat.version:
                    self._seen = (known.version, nodes)
                    self._head = (known, stat.version)
                    self._catalog = _catalog_of(known, nodes)
                    return self._catalog

    @answered
    def change_catalog(self, catalog: Catalog, change: CatalogChange) -> Catalog:
        """Make `change` to `catalog`, the last one loaded, durable; Retryable if it is not the newest any more."""
        path = f"{self._root}/catalog"
        after = catalog.apply(change)
        known, znode_version = self._head
        if known.version != catalog.version:
            self.load_catalog()
            known, znode_version = self._head
            if known.version != catalog.version:
                raise Retryable(Condition.DEADLOCK)
        put: dict[str, tuple[bytes, bool]] = {}
        for database in change.databases_put:
            put[f"d{_escape(database.name)}"] = (encode_database(database), database.name in catalog.databases)
        for table in change.tables_put:
            put[f"t{table.id}"] = (encode_table(table), table.id in catalog.tables)
        for view in change.views_put:
            view_name = (view.database, view.name)
            put[_view_node(view_name)] = (encode_view(view), view_name in catalog.views)
        for account in change.accounts_put:
            put[_account_node(account.name)] = (encode_account(account), account.name in catalog.accounts)
        dropped = [f"d{_escape(name)}" for name in change.databases_dropped]
        dropped += [f"t{table_id}" for table_id in change.tables_dropped]
        dropped += [_view_node(view_name) for view_name in catalog.views.keys() - after.views.keys()]
        dropped += [_account_node(account_name) for account_name in change.accounts_dropped]
        transaction = self._client.transaction()
        changes = [*known.changes, (after.version, [*put, *dropped])][-CHANGES_MAX:]
        if sum(len(names) for _, names in changes) > CHANGED_NODES_MAX:
            changes = []  # everyone reads everything
        new_head = _CatalogHead(after.version, after.next_table_id, changes)
        transaction.set_data(path, msgspec.json.encode(new_head), version=znode_version)
        for name, (data, exists) in put.items():
            (transaction.set_data if exists else transaction.create)(f"{path}/{name}", data)
        for name in dropped:
            transaction.delete(f"{path}/{name}")
        results = transaction.commit()
        for result in results:
            if isinstance(result, BadVersionError):
                raise Retryable(Condition.DEADLOCK)
            if isinstance(result, Exception):
                raise InvalidStatement(Condition.UNKNOWN_ERROR, f"the catalog was not changed: {type(result).__name__}")
        with self._loading:  # what is known now need not be read
            if self._seen[0] == catalog.version:
                nodes = {name: node for name, node in self._seen[1].items() if name not in dropped}
                nodes |= {name: _decode_node(name, data) for name, (data, _) in put.items()}
                self._seen, self._head = (after.version, nodes), (new_head, results[0].version)
                self._catalog = _catalog_of(new_head, nodes)
        return after

    def watch_catalog(self, callback: Callable[[], None]) -> None:
        """Call back whenever the catalog may have changed."""

        def changed(_: object = None) -> None:
            try:
                self._client.get(f"{self._root}/catalog", watch=changed)
            except (KazooException, KazooTimeoutError) as error:
                log.info("watch of the catalog is broken until the session is back: %s", error)
                return
            callback()

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


def _escape(name: str) -> str:
    """A name as part of a znode's: any character may stand in it."""
    return name.encode().hex()


def _view_node(name: tuple[str, str]) -> str:
    return f"v{_escape(name[0])}.{_escape(name[1])}"


def _account_node(name: tuple[str, str]) -> str:
    return f"a{_escape(chr(0).join(name))}"


def _decode_node(name: str, data: bytes) -> _Node:
    match name[0]:
        case "d":
            return decode_database(data)
        case "v":
            return decode_view(data)
        case "a":
            return decode_account(data)
        case _:
            return decode_table(data)


def _catalog_of(head: _CatalogHead, nodes: dict[str, _Node]) -> Catalog:
    found = list(nodes.values())
    return Catalog.of(
        tuple(each for each in found if isinstance(each, Database)),
        tuple(each for each in found if isinstance(each, Table)),
        head.version,
        head.next_table_id,
        tuple(each for each in found if isinstance(each, View)),
        tuple(each for each in found if isinstance(each, Account)),
    )
