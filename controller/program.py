"""The program: which queries are maintained, as the transitions that have made it, in ZooKeeper.

    /<root>/program             the head: which entries there are, in order
    /<root>/program/<entry>     a transition, or what several have left
    /<root>/program/<entry>.<n> more of the same, where it does not fit into one znode

Only the leading controller writes. A transition is recorded by one transaction that creates the (last) znode of its entry and sets the head,
if the head is still the one that the writer knows: a leader that has been replaced records nothing, and a transition is there as a whole or not at all.
When there are many entries, the next transition is recorded with all that they have left in place of them.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import msgspec
from kazoo.exceptions import NoNodeError

from controller.catalog import Catalog, decode_node
from controller.registry import Registry, answered
from controller.seal import Forged
from dataflow.errors import Condition, Retryable
from dataflow.plan.column_use import fits

ENTRY_BYTES_MAX = 512 << 10
QUERIES_MAX = 20_000
"""More than this is not maintained."""
ENTRIES_MIN = 32
QUERIES_PER_ENTRY = 16
"""So many entries are kept, and one more for each 16 queries, before they are put together."""

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


@dataclass(frozen=True, slots=True)
class ProgramTransition:
    """Queries that are maintained from then on, and the names of those that are not any more. `moment` is in seconds of Unix time."""

    number: int
    moment: float
    added: tuple[MaintainedQuery, ...]
    removed: tuple[bytes, ...]


def queries_left(transitions: Iterable[ProgramTransition]) -> dict[bytes, MaintainedQuery]:
    """The queries that transitions leave, by their names, in the order in which they have come."""
    found: dict[bytes, MaintainedQuery] = {}
    for each in transitions:
        for name in each.removed:
            found.pop(name, None)
        for query in each.added:
            found[query.name] = query
    return found


class ProgramRecord:
    """What is recorded, as this process knows it; `load` reads what is new."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._path = registry.path("program")
        self._entries: list[tuple[str, int]] = []
        """Their names, and of how many znodes each is."""
        self._version = -1
        """That of the head's znode."""
        self._loaded: dict[str, tuple[ProgramTransition, ...]] = {}

    @answered
    def load(self) -> list[ProgramTransition]:
        """All transitions, in order. What an entry holds never changes, so only what is new is read."""
        client = self._registry.client
        client.ensure_path(self._path)
        client.sync_async(self._path)
        while True:
            data, stat = client.get(self._path)
            entries = _decode_head(self._registry.seal.open("program", data)) if data else []
            try:
                self._loaded = {name: self._loaded[name] if name in self._loaded else self._read(name, parts) for name, parts in entries}
            except NoNodeError:  # put together with others meanwhile
                continue
            self._entries, self._version = entries, stat.version
            return [each for name, _ in entries for each in self._loaded[name]]

    @answered
    def record(self, transition: ProgramTransition) -> None:
        """Have a transition in the program after all that were loaded; Retryable if others have come, or if it is not known whether this one is there."""
        before = [each for name, _ in self._entries for each in self._loaded[name]]
        queries = queries_left([*before, transition])
        replaced = self._entries if len(self._entries) >= ENTRIES_MIN + len(queries) // QUERIES_PER_ENTRY else []
        transitions = (ProgramTransition(transition.number, transition.moment, tuple(queries.values()), ()),) if replaced else (transition,)
        data = _encode(transitions)
        parts = [data[start : start + ENTRY_BYTES_MAX] for start in range(0, len(data), ENTRY_BYTES_MAX)]
        name = f"{transition.number}-{secrets.token_hex(4)}"
        entries = [*([] if replaced else self._entries), (name, len(parts))]
        client, seal = self._registry.client, self._registry.seal
        znodes = [(_part(name, number), part) for number, part in enumerate(parts)]
        for znode, part in znodes[1:]:
            client.create(f"{self._path}/{znode}", seal.close(f"program/{znode}", part))
        transaction = client.transaction()
        transaction.set_data(self._path, seal.close("program", _encode(entries)), version=self._version)
        transaction.create(f"{self._path}/{name}", seal.close(f"program/{name}", parts[0]))
        if failed := [each for each in transaction.commit() if isinstance(each, Exception)]:
            raise Retryable(Condition.UNKNOWN_ERROR, f"the program was changed by somebody else ({type(failed[0]).__name__})")
        self._entries, self._version = entries, self._version + 1
        self._loaded = {each: self._loaded.get(each, transitions) for each, _ in entries}
        if replaced:
            self.clean()

    @answered
    def clean(self) -> None:
        """Remove what no head names: left by who was replaced in the middle, or put together with others."""
        client = self._registry.client
        wanted = {_part(name, number) for name, parts in self._entries for number in range(parts)}
        for each in set(client.get_children(self._path)) - wanted:
            with contextlib.suppress(NoNodeError):
                client.delete(f"{self._path}/{each}")

    def _read(self, name: str, parts: int) -> tuple[ProgramTransition, ...]:
        client, seal = self._registry.client, self._registry.seal
        znodes = [_part(name, number) for number in range(parts)]
        requests = [client.get_async(f"{self._path}/{each}") for each in znodes]
        try:
            data = b"".join([seal.open(f"program/{each}", request.get()[0]) for each, request in zip(znodes, requests)])
            return _decode(data)
        except (msgspec.DecodeError, Forged) as error:
            log.error("entry %s of the program cannot be read: %s", name, error)
            return ()


def _part(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[ProgramTransition, ...]).decode
_decode_head = msgspec.msgpack.Decoder(list[tuple[str, int]]).decode
_node = lru_cache(maxsize=5_000)(decode_node)
