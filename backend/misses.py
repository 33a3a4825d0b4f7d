"""Keys that statements have missed in shared memory, asked for together.

Everything that is asked for in one turn of the event loop is one message for each view. Who asked is called back with
the rows of its keys; with None if the statement has to be executed as any other: the worker is lost, does
not have the view, or would take long to fill a key. The general path then waits, asks again and reports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from backend.miss_messages import FoundEach, LookupEach
from backend.transport import Peer
from dataflow.types import Row

Arrived = Callable[[list[bytes] | None], None]
Learn = Callable[[bytes, str], None]

_encode = msgspec.msgpack.Encoder().encode


class Misses:
    """Of the views of one worker, which `find_peer` gives the connection to, if there is one."""

    def __init__(self, find_peer: Callable[[], Peer | None], learn: Learn) -> None:
        """`learn` is told in which file a view is."""
        self._find_peer = find_peer
        self._learn = learn
        self._asked: dict[bytes, tuple[list[Row], list[tuple[int, Arrived]]]] = {}

    def ask(self, view: bytes, keys: Sequence[Row], then: Arrived) -> None:
        """The rows of each of these keys, as of one epoch."""
        asked = self._asked
        if not asked:
            asyncio.get_running_loop().call_soon(self._send)
        found = asked.get(view)
        if found is None:
            asked[view] = (list(keys), [(len(keys), then)])
        else:
            found[0].extend(keys)
            found[1].append((len(keys), then))

    def _send(self) -> None:
        asked, self._asked = self._asked, {}
        peer = self._find_peer()
        for view, (keys, askers) in asked.items():
            if peer is None or peer.lost:
                _answer(askers, None)
            else:
                peer.ask_later(LookupEach(view, _encode(keys)), _Asked(view, askers, self._learn))


class _Asked:
    """One message under way."""

    __slots__ = ("_askers", "_learn", "_view")

    def __init__(self, view: bytes, askers: list[tuple[int, Arrived]], learn: Learn) -> None:
        self._view = view
        self._askers = askers
        self._learn = learn

    def __call__(self, answer: object) -> None:
        if type(answer) is not FoundEach:
            _answer(self._askers, None)
            return
        if answer.file:
            self._learn(self._view, answer.file)
        _answer(self._askers, answer.rows)


def _answer(askers: list[tuple[int, Arrived]], rows: list[bytes | None] | None) -> None:
    position = 0
    for count, then in askers:
        found = None if rows is None else rows[position : position + count]
        then(None if found is None or None in found else found)  # type: ignore[arg-type]
        position += count
