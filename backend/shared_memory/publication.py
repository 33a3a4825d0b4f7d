"""The publications of a worker's views in shared memory.

A view is shared once it has been looked up a few times. From then on every key that somebody
asks the worker for is there as well; a change of such a key is published with the epoch that
makes it, before its writers are answered, and an evicted key is removed. A large result is
not encoded again with every change: it is removed, and comes back when it is asked for.
A full view with few keys is shared as a whole, so that keys without rows are known too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from backend.shared_memory.amendment import amender
from backend.shared_memory.entry import EntryLayout
from backend.shared_memory.key_group import is_group
from backend.shared_memory.key_groups import GroupSource, KeyGroups
from backend.shared_memory.ordered_publication import OrderedPublication
from backend.shared_memory.probing import Array
from backend.shared_memory.reader import SharedViewReader
from backend.shared_memory.segment import SegmentNames, is_possible
from backend.shared_memory.shared_key import KeyNaming
from backend.shared_memory.writer import SharedViewWriter
from dataflow.expressions.source import Key
from dataflow.plan.node import Columns
from dataflow.runtime.engine import Engine, View
from dataflow.state.arrangement import Hit
from dataflow.state.delta import Delta
from dataflow.values.types import Row

LOOKUPS_BEFORE_SHARING = 4
LARGE_BYTES = 1 << 14
COMPLETE_KEYS_MAX = 10_000
NONE: Mapping[Key, Row] = {}
NO_DELTAS: Mapping[int, Delta] = {}
AT_ONCE_MIN = 16
"""From so many keys on numpy is quicker."""

log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode


class Publication:
    """One view's shared copy."""

    def __init__(self, names: SegmentNames, view: View, source: GroupSource | None = None) -> None:
        """With `source`, keys that have no rows are known by their groups."""
        self.view = view
        self._naming = KeyNaming(view.node.types, view.key)
        keys = view.arrangement.index if view.is_full else ()
        complete = view.is_full and len(keys) <= COMPLETE_KEYS_MAX
        layout = EntryLayout(view.node.types)
        self._codes = layout.codes
        self.writer = SharedViewWriter(names.new(), layout, self._naming.is_exact, complete)
        self._reader: SharedViewReader | None = None
        self.groups = None if source is None else KeyGroups(view, self._naming, source, self.writer)

    def show(self, key: Key, rows: Sequence[Row], payload: bytes) -> None:
        """Have this key, with the rows it has now."""
        name = self._naming.name_of_index_key(key)
        if name is not None:
            self.writer.put(name, rows, payload)
        elif self.writer.complete:
            self.writer.give_up_completeness()

    def lookup(self, keys: Sequence[Row]) -> list[bytes] | None:
        """The encoded rows of these keys if all are here: quicker than computing them."""
        reader, names = self._find_reader(), self._naming.names(keys)
        found = None if reader is None or names is None else reader.get_many(names)
        return None if found is None or None in found else found  # type: ignore[return-value]

    def absent(self, keys: Sequence[Row]) -> list[Row]:
        """Those of these keys that are not here."""
        reader, names = self._find_reader(), self._naming.names(keys)
        found = None if reader is None or names is None else reader.get_many(names)
        return [] if found is None else [key for key, rows in zip(keys, found) if rows is None]

    def lookup_numbers(self, numbers: Array) -> Any | None:
        """The same of keys of one integer column, the rows of one after those of the other."""
        reader = self._find_reader()
        return None if reader is None else reader.get_together(numbers)

    def _find_reader(self) -> SharedViewReader | None:
        if self._reader is None:
            self._reader = SharedViewReader.open(self.writer.file_name)
        return self._reader

    def show_new(self, keys: Sequence[Row], found: Sequence[Hit], payloads: Sequence[bytes]) -> None:
        """Have these keys, too. Those that are there already are as they should be: see `follow`."""
        writer, naming, view = self.writer, self._naming, self.view
        for values, hit, payload in zip(keys, found, payloads):
            name = naming.name(values)
            if name is not None and name not in writer:
                writer.put(name, hit.rows, payload)
                view.arrangement.touched.discard(view.index_key(values))

    def follow(self, engine: Engine, keys: Iterable[Key], amended: Mapping[Key, Row] = NONE) -> None:
        """These keys were filled, changed, amended or evicted; those that are shown are to be shown as they are now."""
        writer = self.writer
        if amended:
            keys = [*keys, *self._amend(amended)]
        if self._naming.is_exact and not writer.complete:
            keys = self._follow_at_once(engine, list(keys))
        for key in keys:
            name = self._naming.name_of_index_key(key)
            size = None if name is None else writer.size_of(name)
            if size is None and not writer.complete:
                continue
            rows = engine.rows(self.view, key)
            if name is not None and rows == [] and writer.complete:
                writer.remove(name)
            elif rows is not None and (size or 0) <= LARGE_BYTES:
                self.show(key, rows, _encode(rows))
            elif name is not None:
                if writer.complete:
                    writer.give_up_completeness()
                writer.remove(name)

    def _amend(self, amended: Mapping[Key, Row]) -> list[Key]:
        """Change the numbers of keys that are the same otherwise; those that have to be shown anew."""
        keys, writer, arrangement = list(amended), self.writer, self.view.arrangement
        columns = arrangement.amended_columns
        made = amender(self._codes, columns) if self._naming.is_exact and not writer.complete else None
        if made is None or len(keys) < AT_ONCE_MIN:
            return keys
        names = np.array(keys)
        values = [np.array([row[column] for row in amended.values()]) for column in sorted(columns)]
        if any(each.dtype != np.int64 for each in (names, *values)):  # NULL, or more than 64 bits
            return keys
        slots, lengths = writer.find_many(names)
        shown = lengths.nonzero()[0]
        if len(shown) < len(keys):
            slots, values = slots[shown], [each[shown] for each in values]
        done = writer.amend_many(slots, made, values)
        return [] if done.all() else [keys[number] for number in shown[~done].tolist()]

    def _follow_at_once(self, engine: Engine, keys: list[Key]) -> list[Key]:
        """Show many keys as they are now; those that have to be looked at one by one."""
        if len(keys) < AT_ONCE_MIN or set(map(type, keys)) != {int}:
            return keys
        try:
            slots, lengths = self.writer.find_many(np.array(keys, np.int64))
        except OverflowError:
            return keys
        shown = np.flatnonzero(lengths)
        if len(shown) < len(keys):
            keys, slots, lengths = [keys[place] for place in shown], slots[shown], lengths[shown]
        rows, left = engine.all_rows(self.view, keys), list[Key]()
        if None in rows or (len(keys) and lengths.max() > LARGE_BYTES):
            is_small = [some is not None and length <= LARGE_BYTES for some, length in zip(rows, lengths.tolist())]
            left = [key for key, small in zip(keys, is_small) if not small]
            keys, slots = [key for key, small in zip(keys, is_small) if small], slots[is_small]
            rows = [some for some, small in zip(rows, is_small) if small]
        unplaced = self.writer.replace_many(slots, rows, list(map(_encode, rows)))  # type: ignore[arg-type]
        return left + [keys[number] for number in unplaced]

    def read_keys(self) -> list[Key]:
        """The keys that were read here since last asked."""
        touched = self.writer.take_touched()
        if self.groups is not None and self.groups.is_any:
            touched = (name for name in touched if not is_group(name))
        return [self._naming.index_key(name) for name in touched]

    def without_rows(self, keys: Sequence[Row]) -> set[int]:
        """The places of those of these keys that are known to have no rows."""
        names = self._naming.names(keys) if self.groups else None
        return set() if names is None or self.groups is None else self.groups.absent(names)


Edited = Publication | OrderedPublication | None


class Publisher:
    """The publications of one worker. Without names nothing is shared."""

    def __init__(self, names: SegmentNames | None) -> None:
        self._names = names if is_possible() else None
        self._publications: dict[int, Publication | OrderedPublication] = {}
        self._lookups: dict[int, int] = {}
        self.watched: dict[int, set[Key]] = {}
        """For views that somebody follows, by number: the keys that have changed since they were last taken."""

    @property
    def memory_bytes(self) -> int:
        return sum(each.writer.memory_bytes for each in self._publications.values())

    def looked_up(
        self, engine: Engine, view: View, keys: Sequence[Row], found: Sequence[Hit], payloads: Sequence[bytes]
    ) -> str:
        """These keys were asked for, which now have these rows; the name of the file that has them, or ''."""
        if self._names is None or view.order:
            return ""
        publication = self._publications.get(view.number)
        assert not isinstance(publication, OrderedPublication)
        try:
            if publication is None:
                publication = self._begun(engine, view, len(keys))
                if publication is None:
                    return ""
            publication.show_new(keys, found, payloads)
            publication.writer.publish()
        except Exception as error:
            self._fail(view, error)
            return ""
        return publication.writer.file_name

    def lookup(self, view: View, keys: Sequence[Row]) -> tuple[list[bytes], str] | None:
        """The encoded rows of these keys and the file that has them, if all are in shared memory."""
        publication = self._publications.get(view.number)
        if not isinstance(publication, Publication):
            return None
        found = publication.lookup(keys)
        return None if found is None else (found, publication.writer.file_name)

    def absent(self, view: View, keys: Sequence[Row]) -> list[Row]:
        """Those of these keys that are not in shared memory, if the view is."""
        publication = self._publications.get(view.number)
        return publication.absent(keys) if isinstance(publication, Publication) else []

    def lookup_numbers(self, view: View, numbers: Array) -> tuple[Any, str] | None:
        """The same of keys of one integer column, the rows of one after those of the other."""
        publication = self._publications.get(view.number)
        if not isinstance(publication, Publication):
            return None
        found = publication.lookup_numbers(numbers)
        return None if found is None else (found, publication.writer.file_name)

    def ranged(self, view: View, keys: Sequence[Row]) -> str:
        """Ranges of these keys of an ordered view were asked for; the name of the file that has them, or ''."""
        if self._names is None or not self._is_wanted(view, len(keys)):
            return ""
        publication = self._publications.get(view.number)
        try:
            if publication is None:
                publication = self._publications[view.number] = OrderedPublication(self._names, view)
            assert isinstance(publication, OrderedPublication)
            publication.show_new(keys)
            publication.writer.publish()
        except Exception as error:
            self._fail(view, error)
            return ""
        return publication.writer.file_name

    def _is_wanted(self, view: View, key_count: int) -> bool:
        """Whether the view is asked for often enough."""
        lookups = self._lookups[view.number] = self._lookups.get(view.number, 0) + key_count
        return lookups >= LOOKUPS_BEFORE_SHARING

    def _begun(self, engine: Engine, view: View, key_count: int) -> Publication | None:
        """The new publication of a view that is asked for often enough."""
        assert self._names is not None
        if not self._is_wanted(view, key_count):
            return None
        source = None if engine.graph.distributed else engine.graph.source
        publication = self._publications[view.number] = Publication(self._names, view, source)  # type: ignore[arg-type]
        if publication.writer.complete:
            for key in view.arrangement.index:
                rows = engine.rows(view, key) or []
                publication.show(key, rows, _encode(rows))
        return publication

    def publish(self, engine: Engine) -> None:
        """Show what has changed since the last time, in all views at once but for a moment."""
        self.show(self.edit(engine))

    def edit(self, engine: Engine, deltas: Mapping[int, Delta] = NO_DELTAS) -> list[Edited]:
        """The first step of `publish`, which takes long if much has changed. `deltas` are what has changed in tables."""
        edited = [self._edit(engine, *each) for each in engine.take_touched()]
        if deltas:
            grouped = [each for each in self._publications.values() if isinstance(each, Publication) and each.groups]
            edited += [self._follow_groups(each, deltas) for each in grouped]
        return edited

    def _follow_groups(self, publication: Publication, deltas: Mapping[int, Delta]) -> Publication | None:
        try:
            if publication.groups is not None:
                publication.groups.follow(deltas.get(publication.groups.table, ()))
        except Exception as error:
            self._fail(publication.view, error)
            return None
        return publication

    def groups(self, view: View) -> tuple[Columns, int]:
        """The columns that the keys of a group are alike in, and how many groups are shown."""
        publication = self._publications.get(view.number)
        is_grouped = isinstance(publication, Publication) and bool(publication.groups)
        return publication.groups.shown if is_grouped else ((), 0)  # type: ignore[union-attr]

    def without_rows(self, view: View, keys: Sequence[Row]) -> tuple[set[int], str]:
        """The places of those of these keys that are known to have no rows, and the file that says so."""
        publication = self._publications.get(view.number)
        if not isinstance(publication, Publication) or not publication.groups:
            return set(), ""
        try:
            found = publication.without_rows(keys)
            publication.writer.publish()
        except Exception as error:
            self._fail(view, error)
            return set(), ""
        return found, publication.writer.file_name

    def show(self, edited: list[Edited]) -> None:
        """The second step."""
        for publication in edited:
            self._show(publication)

    def follow(self, engine: Engine, view: View, keys: Iterable[Key]) -> None:
        """Show what has become of these keys, as far as they are shown."""
        self._show(self._edit(engine, view, keys, NONE))

    def _edit(
        self, engine: Engine, view: View, keys: Iterable[Key], amended: Mapping[Key, Row]
    ) -> Publication | OrderedPublication | None:
        if view.number in self.watched:
            self.watched[view.number].update(keys, amended)
        publication = self._publications.get(view.number)
        if publication is None:
            return None
        try:
            publication.follow(engine, keys, amended)
        except Exception as error:
            self._fail(view, error)
            return None
        return publication

    def _show(self, publication: Publication | OrderedPublication | None) -> None:
        if publication is not None:
            try:
                publication.writer.publish()
            except Exception as error:
                self._fail(publication.view, error)

    def _fail(self, view: View, error: Exception) -> None:
        """Memory has run out, or worse: the view is not shared for a good while, and no epoch is held up."""
        log.warning("view %d cannot be shared: %s", view.number, error, exc_info=not isinstance(error, OSError))
        self.end(view)
        self._lookups[view.number] = -1_000_000

    def end(self, view: View) -> None:
        publication = self._publications.pop(view.number, None)
        self._lookups.pop(view.number, None)
        if publication is not None:
            if isinstance(publication, OrderedPublication):
                publication.close()
            publication.writer.close()

    def close(self) -> None:
        for publication in list(self._publications.values()):
            self.end(publication.view)
        self._lookups.clear()
        self.watched.clear()

    # --- memory

    def reference(self, engine: Engine) -> None:
        """Tell the engine what was read here, so that it goes last."""
        for publication in self._publications.values():
            engine.reference(publication.view, publication.read_keys())

    def is_read(self, view: View) -> bool:
        """Whether the view was read here since `reference` or `forget_reads`."""
        publication = self._publications.get(view.number)
        return publication is not None and publication.writer.is_touched

    def forget_reads(self) -> None:
        for publication in self._publications.values():
            publication.writer.forget_touched()

    def compact(self, pressed: bool = False) -> None:
        """Give memory back that nothing needs any more; sooner if it is short."""
        for publication in list(self._publications.values()):
            try:
                if pressed and isinstance(publication, Publication) and publication.groups:
                    publication.groups.shrink()
                    publication.writer.publish()
                if publication.writer.compact(pressed):
                    publication.writer.publish()
            except Exception as error:
                self._fail(publication.view, error)
