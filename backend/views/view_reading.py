"""A worker's answers for keys of a view: from shared memory if all keys are there, else from the engine, which fills holes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from backend.shared_memory.publication import Publisher
from backend.shared_memory.reader import NO_ROWS
from backend.views.hosted_view import HostedView
from backend.views.view_definition import Array, is_packed, together, unpacked
from backend.views.view_range import EncodedRange, Range
from dataflow.expressions.source import Key
from dataflow.runtime.engine import Engine
from dataflow.state.arrangement import Hit
from dataflow.values.types import Row

MANY_KEYS = 64

Fill = Callable[[bytes, HostedView, Sequence[Row], bool], list[Key] | None]
_encode = msgspec.msgpack.Encoder().encode


class ViewReading:
    """`fill` has keys filled and gives their index keys, None if there is no room for them, or it takes long and one is not patient."""

    def __init__(self, publisher: Publisher, fill: Fill) -> None:
        self._publisher = publisher
        self._fill = fill

    def lookup(
        self, engine: Engine, name: bytes, hosted: HostedView, keys: bytes, part: EncodedRange | None
    ) -> tuple[list[bytes], str] | None:
        """The rows of each key, encoded, and the file where they are found from now on, or ''."""
        if part is not None:
            return self._range(engine, name, hosted, hosted.keys.decode(keys), hosted.ranges.decode(part))
        if is_packed(keys):
            return self._lookup_numbers(engine, name, hosted, unpacked(keys))
        return self._lookup(engine, name, hosted, hosted.keys.decode(keys))

    def lookup_each(self, engine: Engine, name: bytes, hosted: HostedView, keys: bytes) -> tuple[list[bytes | None], str]:
        """As `lookup`, of keys that have nothing to do with each other: None for one that takes long to fill."""
        return self._show_each(engine, name, hosted, hosted.keys.decode(keys))

    def _show_each(self, engine: Engine, name: bytes, hosted: HostedView, wanted: list[Row]) -> tuple[list[bytes | None], str]:
        found = self._show(engine, name, hosted, wanted, patient=False)
        if found is not None:
            return list(found[0]), found[1]
        if len(wanted) == 1:
            return [None], ""
        each = [self._show_each(engine, name, hosted, [key]) for key in wanted]
        return [rows for [rows], _ in each], max([file for _, file in each])

    def _lookup_numbers(self, engine: Engine, name: bytes, hosted: HostedView, numbers: Array) -> tuple[list[bytes], str] | None:
        """The rows of all these keys in one list of lists."""
        shown = self._publisher.lookup_numbers(hosted.view, numbers)
        if shown is not None:
            hosted.hits += len(numbers)
            return [together(len(numbers), [shown[0]])], shown[1]
        found = self._lookup(engine, name, hosted, list(zip(numbers.tolist())))
        return None if found is None else ([together(len(numbers), found[0])], found[1])

    def _lookup(self, engine: Engine, name: bytes, hosted: HostedView, wanted: list[Row]) -> tuple[list[bytes], str] | None:
        shown, few = self._publisher.lookup(hosted.view, wanted), list[Row]()
        if shown is None and len(wanted) >= MANY_KEYS:
            # That a few of them are not in shared memory must not make the others slow.
            few = self._publisher.absent(hosted.view, wanted)
            if 0 < 2 * len(few) <= len(wanted) and self._show(engine, name, hosted, few) is not None:
                shown = self._publisher.lookup(hosted.view, wanted)
        if shown is not None:
            hosted.hits += len(wanted) - len(few)
            return shown
        return self._show(engine, name, hosted, wanted)

    def _show(
        self, engine: Engine, name: bytes, hosted: HostedView, wanted: list[Row], patient: bool = True
    ) -> tuple[list[bytes], str] | None:
        """The rows of these keys, which are from now on in shared memory, if the view is."""
        empty, file = self._publisher.without_rows(hosted.view, wanted)
        if not empty:
            return self._fill_and_show(engine, name, hosted, wanted, patient)
        rest = [key for place, key in enumerate(wanted) if place not in empty]
        found = self._fill_and_show(engine, name, hosted, rest, patient) if rest else ([], file)
        if found is None:
            return None
        hosted.hits += len(empty)
        others = iter(found[0])
        return [NO_ROWS if place in empty else next(others) for place in range(len(wanted))], found[1]

    def _fill_and_show(
        self, engine: Engine, name: bytes, hosted: HostedView, wanted: list[Row], patient: bool
    ) -> tuple[list[bytes], str] | None:
        filled = self._fill(name, hosted, wanted, patient)
        if filled is None:
            return None
        arrangement = hosted.view.arrangement
        engine.reference(hosted.view, filled)
        found = [hit for key in filled if isinstance(hit := arrangement.lookup(key), Hit)]
        payloads = [_encode(hit.rows) for hit in found]
        return payloads, self._publisher.looked_up(engine, hosted.view, wanted, found, payloads)

    def _range(
        self, engine: Engine, name: bytes, hosted: HostedView, keys: list[Row], part: Range
    ) -> tuple[list[bytes], str] | None:
        """The rows of each key that are in the range, touching no others."""
        view = hosted.view
        if self._fill(name, hosted, keys, True) is None:
            return None
        payloads = []
        for values in keys:
            found = engine.range(view, values, part.low, part.high, part.limit, part.descending)
            assert isinstance(found, Hit)
            payloads.append(_encode(found.rows))
        return payloads, self._publisher.ranged(view, keys)
