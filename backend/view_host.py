"""The maintained views of one worker: the dataflow engine over the shard's base tables.

Views are known by a name that whoever asks for them makes from their definition, so the same
query from any adapter is the same view. They come when first asked for, live in memory
only, and go when a table below them changes its definition or a restart empties the worker:
whoever misses one sends its definition again.

The engine is always at the epoch of `source`: an epoch's changes and the state that contains
them are handed over together, after the epoch is durable and before its writers hear of it.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from backend.hosted_view import HostedView, status_of
from backend.shared_memory.publication import Publisher
from backend.shared_memory.segment import SegmentNames
from backend.table_use import TableChanges, TableUse
from backend.view_definition import Array, is_packed, keys_decoder, together, unpacked
from backend.view_filling import PARTIAL, Fill, Fills, OutOfMemory, Runner, StillFilling
from backend.view_messages import HostedViews
from backend.view_range import EncodedRange, Range, RangeDecoder
from controller.catalog import decode_node, decode_table
from dataflow.arrangement import Hit
from dataflow.clock import MemoryReport
from dataflow.delta import Delta
from dataflow.engine import Engine, View
from dataflow.epoch_effects import PersistEpoch
from dataflow.loading import Budget, OverBudget
from dataflow.node import Columns, Node, tables_of
from dataflow.schema import Table
from dataflow.source import Key
from dataflow.types import Row
from persistence.layout import table_ranges
from persistence.shard_store import ShardStore
from persistence.view import View as StoredView

BYTES_IN_MEMORY = 20
"""What a stored byte may take in an ordered view of all rows."""
ROWS_AT_ONCE_MAX = 20_000
"""What needs more rows than this to be read is filled in the background."""
MANY_KEYS = 64
NEARLY, ROUNDS_REMEMBERED = 0.9, 10
"""While less than this part of the memory is taken, what was read longer ago than so many checks is forgotten."""

log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode


class ViewHost:
    def __init__(
        self,
        store: ShardStore,
        memory_bytes: int,
        names: SegmentNames | None = None,
        runner: Runner | None = None,
    ) -> None:
        """With `names`, views are shared with other processes of this machine.

        With `runner`, what takes long to fill is filled there, else at once.
        """
        self._fills = None if runner is None else Fills(runner, self._state, self._finish, self._fail)
        self._store = store
        self._names = names
        self._publisher = Publisher(names)
        self._rounds = 0
        self._memory_bytes = memory_bytes
        self.memory = MemoryReport(0, 0, 0, False)
        """What the views took when it was last looked at."""
        self._refused: set[bytes] = set()
        self._origins: dict[bytes, tuple[tuple[str, ...], float]] = {}
        """(named views, since) of those that are being added."""
        self.idle_s = math.inf
        """Views that nobody has used for so long go, unless they read named ones."""
        self._is_writing = False
        self._start_anew()

    def close(self) -> None:
        """Nothing is shared any more."""
        if self._fills is not None:
            self._fills.close()
        self._publisher.close()
        if self._names is not None:
            self._names.close()

    def _start_anew(self) -> None:
        for fill in self._under_way():
            self._fills.abandon(fill)  # type: ignore[union-attr]
        self._publisher.close()
        self._use = TableUse(self._store, is_all=True)
        self._source = self._use.source
        self._engine = Engine(self._source, partial=PARTIAL)
        self.views: dict[bytes, HostedView] = {}

    # --- views come and go

    def add(
        self,
        name: bytes,
        node_bytes: bytes,
        key: tuple[int, ...],
        tables: list[bytes],
        versions: Mapping[int, int],
        order: tuple[int, ...] = (),
        names: tuple[str, ...] = (),
        since: float = 0.0,
    ) -> bool:
        """Host a view; False if it cannot be: a table has another definition by now, or it cannot be computed.

        Or not yet: a view that takes long to fill is there once it is asked for again after that.
        """
        if name in self.views or name in self._refused or self._filling(name) is not None:
            return name in self.views
        definitions = [decode_table(table) for table in tables]
        for table in definitions:
            if versions.get(table.id) != table.version:
                return False
        if order and not key and self._stored_bytes(definitions) * BYTES_IN_MEMORY > self._memory_bytes:
            return False
        if not self._use:
            self._source.advance(self._store.view())
        for table in definitions:
            self._source.learn(table)
        self._origins[name] = (names, since)
        node = decode_node(node_bytes)
        used = tables_of(node)
        try:
            with self._engine.spending(self._budget()):
                view = self._engine.add_view(node, key, order)
        except OverBudget:
            self._begin(name, (node, key, order), (), used)
        except Exception:
            log.exception("a view is refused: %s", node)
            self._refused.add(name)
            return False
        else:
            self._host(name, view, used)
        self._use.begin(used)
        return name in self.views

    def _host(self, name: bytes, view: View, tables: frozenset[int]) -> None:
        types = view.node.types
        keys = keys_decoder(tuple(types[column] for column in view.key))
        hosted = HostedView(view, tables, keys, RangeDecoder([types[column] for column in view.order]))
        names, since = self._origins.pop(name, ((), 0.0))
        hosted.names, hosted.since = names, since or hosted.since
        self.views[name] = hosted
        log.info("view %s is %s, %d views", name.hex(), view.reason or "partial", len(self.views))

    def _stored_bytes(self, tables: list[Table]) -> int:
        """How much the rows of these tables take on disk, roughly."""
        return sum(self._store.approximate_bytes(*table_ranges(table.id)[0]) for table in tables)

    def remove(self, name: bytes) -> None:
        hosted = self.views.pop(name, None)
        if hosted is not None:
            self._publisher.end(hosted.view)
            self._engine.remove_view(hosted.view)
            self._use.end(hosted.tables)
        for fill in [fill for fill in self._under_way() if fill.name == name]:
            self._fills.abandon(fill)  # type: ignore[union-attr]
            if not fill.keys:
                self._use.end(fill.tables)

    def tables_changed(self, versions: Mapping[int, int]) -> None:
        """Drop the views over tables that were changed or dropped."""
        stale = {
            table_id for table_id in self._use if versions.get(table_id) != self._source.version(table_id)
        }
        names = {name for name, hosted in self.views.items() if hosted.tables & stale}
        for name in names | {fill.name for fill in self._under_way() if fill.tables & stale}:
            self.remove(name)

    # --- fills that take long

    def _under_way(self) -> list[Fill]:
        return [] if self._fills is None else list(self._fills.under_way)

    def _filling(self, name: bytes) -> Fill | None:
        """The fill of a view that is not there yet."""
        return None if self._fills is None else self._fills.find(name)

    def _budget(self) -> Callable[[int], None]:
        return Budget(ROWS_AT_ONCE_MAX if self._fills is not None else sys.maxsize)

    def _begin(
        self, name: bytes, view: tuple[Node, Columns, Columns], keys: Sequence[Key], tables: frozenset[int]
    ) -> Fill:
        assert self._fills is not None
        limit_bytes = self._memory_bytes - self._engine.measure().full_bytes
        fill = Fill(name, view, keys, tables, self._source.copy(tables), limit_bytes)
        log.info("view %s is filled from epoch %d%s", name.hex(), self._source.state.epoch, ", some keys" if keys else "")
        self._fills.begin(fill)
        return fill

    def _state(self) -> tuple[int, StoredView]:
        return self._engine.epoch, self._source.state

    def _finish(self, fill: Fill) -> None:
        """What was filled is at the engine's epoch."""
        if fill.keys:
            self._engine.take_over(fill.engine)
            self.views[fill.name].misses += len(fill.keys)
        else:
            view = self._engine.add_view(*fill.view, prepared=fill.engine)
            self._host(fill.name, view, fill.tables)

    def _fail(self, fill: Fill, error: Exception) -> None:
        log.warning("view %s cannot be filled: %r", fill.name.hex(), error)
        if not fill.keys:
            self._refused.add(fill.name)
            self._use.end(fill.tables)
        elif isinstance(error, OutOfMemory):
            self.views[fill.name].too_large.update(fill.keys)

    def _fill(self, name: bytes, hosted: HostedView, keys: Sequence[Row]) -> list[Key] | None:
        """Have these keys, as index keys; None if there is no room for them. Raises StillFilling if it takes longer."""
        view, kept = hosted.view, hosted.view.arrangement.index
        wanted = [view.index_key(values) for values in keys]
        for fill in self._under_way():
            if fill.name == name and not fill.keys.isdisjoint(wanted):
                raise StillFilling(fill)
        if not hosted.too_large.isdisjoint(wanted):
            return None
        before = len(kept)
        try:
            with self._engine.spending(self._budget()):
                self._engine.fill(view, wanted)
        except OverBudget:
            missing = [key for key in wanted if key not in kept]
            fill = self._begin(name, (view.node, view.key, view.order), missing, hosted.tables)
            raise StillFilling(fill) from None
        finally:
            filled = max(len(kept) - before, 0)
            hosted.misses += filled
        hosted.hits += len(wanted) - filled
        return wanted

    # --- reading

    def lookup(self, name: bytes, keys: bytes) -> list[bytes] | None:
        """The rows of each key, encoded, as of now; None if there is no such view."""
        found = self.lookup_shared(name, keys)
        return None if found is None else found[0]

    def lookup_shared(
        self, name: bytes, keys: bytes, part: EncodedRange | None = None
    ) -> tuple[list[bytes], str] | None:
        """As `lookup`, with the name of the file where these keys can be read from now on, or ''.

        With `part`, only the rows in that range.
        """
        hosted = self.views.get(name)
        if hosted is None:
            return None
        if part is not None:
            return self._range(name, hosted, hosted.keys.decode(keys), hosted.ranges.decode(part))
        if is_packed(keys):
            return self._lookup_numbers(name, hosted, unpacked(keys))
        return self._lookup(name, hosted, hosted.keys.decode(keys))

    def _lookup_numbers(self, name: bytes, hosted: HostedView, numbers: Array) -> tuple[list[bytes], str] | None:
        """The rows of all these keys in one list of lists."""
        shown = self._publisher.lookup_numbers(hosted.view, numbers)
        if shown is not None:
            hosted.hits += len(numbers)
            return [together(len(numbers), [shown[0]])], shown[1]
        found = self._lookup(name, hosted, list(zip(numbers.tolist())))
        return None if found is None else ([together(len(numbers), found[0])], found[1])

    def _lookup(self, name: bytes, hosted: HostedView, wanted: list[Row]) -> tuple[list[bytes], str] | None:
        shown, few = self._publisher.lookup(hosted.view, wanted), list[Row]()
        if shown is None and len(wanted) >= MANY_KEYS:
            # That a few of them are not in shared memory must not make the others slow.
            few = self._publisher.absent(hosted.view, wanted)
            if 0 < 2 * len(few) <= len(wanted) and self._show(name, hosted, few) is not None:
                shown = self._publisher.lookup(hosted.view, wanted)
        if shown is not None:
            hosted.hits += len(wanted) - len(few)
            return shown
        return self._show(name, hosted, wanted)

    def _show(self, name: bytes, hosted: HostedView, wanted: list[Row]) -> tuple[list[bytes], str] | None:
        """The rows of these keys, which are from now on in shared memory, if the view is."""
        filled = self._fill(name, hosted, wanted)
        if filled is None:
            return None
        arrangement = hosted.view.arrangement
        self._engine.reference(hosted.view, filled)
        found = [hit for key in filled if isinstance(hit := arrangement.lookup(key), Hit)]
        payloads = [_encode(hit.rows) for hit in found]
        return payloads, self._publisher.looked_up(self._engine, hosted.view, wanted, found, payloads)

    def _range(
        self, name: bytes, hosted: HostedView, keys: list[Row], part: Range
    ) -> tuple[list[bytes], str] | None:
        """The rows of each key that are in the range, touching no others."""
        engine, view = self._engine, hosted.view
        if self._fill(name, hosted, keys) is None:
            return None
        payloads = []
        for values in keys:
            found = engine.range(view, values, part.low, part.high, part.limit, part.descending)
            assert isinstance(found, Hit)
            payloads.append(_encode(found.rows))
        return payloads, self._publisher.ranged(view, keys)

    # --- epochs

    def changes(self, epoch: PersistEpoch) -> TableChanges:
        """What the writes of an epoch, not yet stored, change in the tables that views use."""
        self._is_writing = True
        return self._use.changes(epoch)

    def apply(self, changes: TableChanges, wait: Callable[[], None] = lambda: None) -> int:
        """The epoch is stored, or is after `wait`: bring the views up to it. Returns how many rows have gone through them.

        A change that some view cannot compute (a value out of range, say) must not hold up the
        epoch: all views go, and who asks for one again is told what is wrong with it.
        """
        self._is_writing = False
        if not changes or not self._use:
            wait()
            if self._use:
                self._source.advance(self._store.view())
            return 0
        self._source.advance(lambda: self._stored(wait))
        deltas: dict[int, Delta] = {}
        try:
            if self._under_way():  # what is being filled may look at more
                deltas = self._use.deltas(changes)
                self._fills.collect(deltas)  # type: ignore[union-attr]
            else:
                deltas = self._use.deltas(changes, self._engine.graph.seen_columns)
            self._engine.apply(changes.epoch, deltas)
        except Exception:
            wait()
            log.exception("the views could not follow epoch %d and start anew", changes.epoch)
            broken = self._engine
            self._start_anew()
            broken.close()
        stored = self._source.state
        assert stored.epoch == changes.epoch, "views are shown before their epoch is stored"
        self._publisher.publish(self._engine)
        return sum(map(len, deltas.values()))

    def _stored(self, wait: Callable[[], None]) -> StoredView:
        wait()
        return self._store.view()

    def enforce_limit(self) -> None:
        """Evict cold keys until the views fit the memory they may take. Views that nobody uses go as a whole."""
        self._retire()
        limit_bytes = self._memory_bytes - self._publisher.memory_bytes
        self._rounds += 1
        taken_bytes = self._engine.measure().total_bytes
        if taken_bytes > limit_bytes:  # no key has to go for what nobody needs
            self._publisher.compact(pressed=True)
            limit_bytes = self._memory_bytes - self._publisher.memory_bytes
        if taken_bytes > NEARLY * limit_bytes:
            self._publisher.reference(self._engine)
        elif self._rounds % ROUNDS_REMEMBERED == 0:
            self._publisher.forget_reads()
        kept = {name: len(hosted.view.arrangement.index) for name, hosted in self.views.items()}
        report = self.memory = self._engine.enforce(limit_bytes)
        for name, hosted in self.views.items():
            hosted.evictions += max(kept[name] - len(hosted.view.arrangement.index), 0)
        self._publisher.publish(self._engine)
        self._publisher.compact(pressed=report.evicted_keys > 0)
        if report.only_full_left:
            shared_bytes = self._publisher.memory_bytes
            log.warning("full views take %d bytes, what is shared %d, the limit is %d", report.full_bytes, shared_bytes, self._memory_bytes)

    def _retire(self) -> None:
        now = time.monotonic()
        idle = []
        for name, hosted in self.views.items():
            uses = hosted.hits + hosted.misses
            if uses != hosted.uses_seen or self._publisher.is_read(hosted.view):
                hosted.uses_seen, hosted.used_at = uses, now
            elif not hosted.names and now - hosted.used_at > self.idle_s:
                idle.append(name)
        if not self._is_writing:  # else changes were collected for these views, too
            for name in idle:
                log.info("view %s retires", name.hex())
                self.remove(name)

    # --- for those who want to know

    def status(self) -> HostedViews:
        """What is kept, with sizes measured on samples."""
        return status_of(self.views, [fill.status() for fill in self._under_way()])
