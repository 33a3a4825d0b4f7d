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
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import msgspec

from backend.messages import ArrangementStatus, HostedViews, ViewStatus
from backend.shared_memory.publication import Publisher
from backend.shared_memory.segment import SegmentNames
from backend.view_definition import keys_decoder
from backend.view_range import EncodedRange, Range, RangeDecoder
from controller.catalog import decode_node, decode_table
from dataflow.arrangement import Arrangement, Hit
from dataflow.clock import MemoryReport
from dataflow.delta import Delta
from dataflow.engine import Engine, View
from dataflow.explanation import does, explain
from dataflow.memory import Meter
from dataflow.node import Base, Node, inputs_of
from dataflow.operator import Operator
from dataflow.schema import Table
from dataflow.types import Row
from persistence.layout import table_ranges
from persistence.shard_store import ShardStore
from persistence.table_source import TableSource

ROW_KEY = ord("r")
ROWS_SAMPLE_KEYS = 1000
BYTES_IN_MEMORY = 20
"""What a stored byte may take in an ordered view of all rows."""
ROUNDS_REMEMBERED = 10
"""While nothing has to go, what was read longer ago than so many checks of the limit is forgotten."""

log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class HostedView:
    view: View
    tables: frozenset[int]
    keys: msgspec.msgpack.Decoder[list[Row]]
    ranges: RangeDecoder
    hits: int = 0
    misses: int = 0
    evictions: int = 0


class ViewHost:
    def __init__(self, store: ShardStore, memory_bytes: int, names: SegmentNames | None = None) -> None:
        """With `names`, views are shared with other processes of this machine."""
        self._store = store
        self._names = names
        self._publisher = Publisher(names)
        self._rounds = 0
        self._memory_bytes = memory_bytes
        self.memory = MemoryReport(0, 0, 0, False)
        """What the views took when it was last looked at."""
        self._refused: set[bytes] = set()
        self._start_anew()

    def close(self) -> None:
        """Nothing is shared any more."""
        self._publisher.close()
        if self._names is not None:
            self._names.close()

    def _start_anew(self) -> None:
        self._publisher.close()
        self._source = TableSource(self._store.view())
        self._engine = Engine(self._source)
        self.views: dict[bytes, HostedView] = {}
        self._users: dict[int, int] = {}

    # --- views come and go

    def add(
        self,
        name: bytes,
        node_bytes: bytes,
        key: tuple[int, ...],
        tables: list[bytes],
        versions: Mapping[int, int],
        order: tuple[int, ...] = (),
    ) -> bool:
        """Host a view; False if it cannot be: a table has another definition by now, or it cannot be computed.

        A node that the dataflow fails on is remembered, because trying costs all other views.
        """
        if name in self.views or name in self._refused:
            return name in self.views
        definitions = [decode_table(table) for table in tables]
        for table in definitions:
            if versions.get(table.id) != table.version:
                return False
        if order and not key and self._stored_bytes(definitions) * BYTES_IN_MEMORY > self._memory_bytes:
            return False
        if not self.views:
            self._source.advance(self._store.view())
        for table in definitions:
            self._source.learn(table)
        node = decode_node(node_bytes)
        try:
            view = self._engine.add_view(node, key, order)
        except Exception:
            log.exception("a view is refused, and the others start anew: %s", node)
            self._refused.add(name)
            self._start_anew()
            return False
        used = frozenset(base.table for base in _bases(node))
        keys = keys_decoder(tuple(node.types[column] for column in key))
        self.views[name] = HostedView(view, used, keys, RangeDecoder([node.types[column] for column in order]))
        for table_id in used:
            self._users[table_id] = self._users.get(table_id, 0) + 1
        log.info("view %s is %s, %d views", name.hex(), view.reason or "partial", len(self.views))
        return True

    def _stored_bytes(self, tables: list[Table]) -> int:
        """How much the rows of these tables take on disk, roughly."""
        return sum(self._store.approximate_bytes(*table_ranges(table.id)[0]) for table in tables)

    def remove(self, name: bytes) -> None:
        hosted = self.views.pop(name, None)
        if hosted is None:
            return
        self._publisher.end(hosted.view)
        self._engine.remove_view(hosted.view)
        for table_id in hosted.tables:
            self._users[table_id] -= 1
            if not self._users[table_id]:
                del self._users[table_id]
                self._source.forget(table_id)

    def tables_changed(self, versions: Mapping[int, int]) -> None:
        """Drop the views over tables that were changed or dropped."""
        stale = {
            table_id for table_id in self._users if versions.get(table_id) != self._source.version(table_id)
        }
        for name in [name for name, hosted in self.views.items() if hosted.tables & stale]:
            self.remove(name)

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
            return self._range(hosted, hosted.keys.decode(keys), hosted.ranges.decode(part))
        wanted = hosted.keys.decode(keys)
        kept = hosted.view.arrangement.index
        shown = self._publisher.lookup(hosted.view, wanted)
        if shown is not None:
            hosted.hits += len(wanted)
            return shown
        before = len(kept)
        found = self._engine.upquery(hosted.view, wanted)
        filled = max(len(kept) - before, 0)
        hosted.misses += filled
        hosted.hits += len(wanted) - filled
        payloads = [_encode(hit.rows) for hit in found]
        return payloads, self._publisher.looked_up(self._engine, hosted.view, wanted, found, payloads)

    def _range(self, hosted: HostedView, keys: list[Row], part: Range) -> tuple[list[bytes], str]:
        """The rows of each key that are in the range, touching no others."""
        engine, view = self._engine, hosted.view
        kept = view.arrangement.index
        before = len(kept)
        engine.fill(view, [view.index_key(values) for values in keys])
        filled = max(len(kept) - before, 0)
        hosted.misses += filled
        hosted.hits += len(keys) - filled
        payloads = []
        for values in keys:
            found = engine.range(view, values, part.low, part.high, part.limit, part.descending)
            assert isinstance(found, Hit)
            payloads.append(_encode(found.rows))
        return payloads, ""

    # --- epochs

    def changes(self, writes: Mapping[bytes, bytes | None]) -> dict[int, Delta]:
        """What the writes of an epoch, not yet stored, change in the tables that views use."""
        changes: dict[int, Delta] = {}
        if not self._users:
            return changes
        source, get = self._source, self._store.get
        for key, value in writes.items():
            if key[0] != ROW_KEY:
                continue
            table_id = int.from_bytes(key[1:5], "big")
            if table_id not in self._users:
                continue
            delta = changes.setdefault(table_id, [])
            old = get(key)
            if old is not None:
                delta.append((source.decode(table_id, old[1]), -1))
            if value is not None:
                delta.append((source.decode(table_id, value), 1))
        return changes

    def apply(self, epoch: int, changes: dict[int, Delta]) -> None:
        """The epoch is stored: bring the views up to it.

        A change that some view cannot compute (a value out of range, say) must not hold up the
        epoch: all views go, and who asks for one again is told what is wrong with it.
        """
        if not self.views:
            return
        self._source.advance(self._store.view())
        if changes:
            try:
                self._engine.apply(epoch, changes)
            except Exception:
                log.exception("the views could not follow epoch %d and start anew", epoch)
                self._start_anew()
            self._publisher.publish(self._engine)

    def enforce_limit(self) -> None:
        """Evict cold keys until the views fit the memory they may take."""
        limit_bytes = self._memory_bytes - self._publisher.memory_bytes
        self._rounds += 1
        if self._engine.measure().total_bytes > limit_bytes:
            self._publisher.reference(self._engine)
        elif self._rounds % ROUNDS_REMEMBERED == 0:
            self._publisher.forget_reads()
        kept = {name: len(hosted.view.arrangement.index) for name, hosted in self.views.items()}
        report = self.memory = self._engine.enforce(limit_bytes)
        for name, hosted in self.views.items():
            hosted.evictions += max(kept[name] - len(hosted.view.arrangement.index), 0)
        self._publisher.publish(self._engine)
        self._publisher.compact()
        if report.only_full_left:
            log.warning(
                "full views alone take %d bytes, the limit is %d", report.full_bytes, self._memory_bytes
            )


    # --- for those who want to know

    def status(self) -> HostedViews:
        """What is kept, with sizes measured on samples."""
        meter = Meter()
        views = [_view_status(name, hosted, meter) for name, hosted in self.views.items()]
        operators: dict[int, Operator] = {}
        waiting = [hosted.view.operator for hosted in self.views.values()]
        while waiting:
            operator = waiting.pop()
            if operator.number not in operators:
                operators[operator.number] = operator
                waiting.extend(operator.inputs)
        kept = [(operator, each) for _, operator in sorted(operators.items()) for each in _arrangements(operator)]
        return HostedViews(views, [_arrangement_status(operator, each, meter) for operator, each in kept])


def _arrangements(operator: Operator) -> list[Arrangement]:
    kept = [] if operator.state is None else [operator.state]
    return kept + [each for each in operator.stores.values() if each is not operator.state]


def _arrangement_status(operator: Operator, arrangement: Arrangement, meter: Meter) -> ArrangementStatus:
    return ArrangementStatus(
        operator.label,
        does(operator),
        arrangement.columns,
        arrangement.reason,
        len(arrangement.index),
        meter.bytes_of(arrangement),
        arrangement.users,
        arrangement.views,
    )


def _view_status(name: bytes, hosted: HostedView, meter: Meter) -> ViewStatus:
    view, arrangement = hosted.view, hosted.view.arrangement
    sample = list(islice(arrangement.index, ROWS_SAMPLE_KEYS))
    rows = sum(len(each.rows) for each in map(arrangement.lookup, sample) if isinstance(each, Hit))
    if sample:
        rows = rows * len(arrangement.index) // len(sample)
    definition = " <- ".join(each.does for each in reversed(explain(view)))
    return ViewStatus(
        name, definition, tuple(sorted(hosted.tables)), view.key, view.reason, len(arrangement.index), rows,
        meter.bytes_of(arrangement), hosted.hits, hosted.misses, hosted.evictions,
    )  # fmt: skip


def _bases(node: Node) -> list[Base]:
    if isinstance(node, Base):
        return [node]
    return [base for each in inputs_of(node) for base in _bases(each)]
