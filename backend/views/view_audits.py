"""Audits of a view: a worker sends its keys and rows as of one epoch, in slices, to be compared with the base tables.

A handle keeps the view's rows of that epoch readable while later epochs change them, so nobody waits. With several workers the code that maintains
views is the same on all of them, so one of them alone has no handles: the rows are copied instead, `COPIED_KEYS_MAX` keys at most, chosen by chance.
While views are being changed, those who read them wait for a moment. Audits belong to the connection that began them and go with it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from backend.network.messages import UnknownView
from backend.network.scan_messages import AuditedKeys, AuditOpened, EndAudit, OpenAudit, ReadAudit
from backend.network.transport import Peer, failure
from backend.views.hosted_view import HostedView
from backend.views.worker_views import ShownViews, WorkerViews
from dataflow.errors import Condition, Retryable
from dataflow.expressions.source import Key
from dataflow.runtime.engine import Engine
from dataflow.state.arrangement import Handle, Hit
from dataflow.values.types import Row

SLICE_KEYS = 250
AUDITS_MAX = 16
AGAIN_S = 0.001
COPIED_KEYS_MAX = 50_000
"""So many take less than a tenth of a second."""

_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class _Audit:
    """Its rows are those of the handle, or copied if there is none."""

    peer: Peer
    view: bytes
    hosted: HostedView
    engine: Engine
    keys: Iterator[Key]
    handle: Handle | None
    copied: dict[Key, list[Row]]

    def rows(self, key: Key) -> Sequence[Row] | None:
        """None if the key has been evicted."""
        if self.handle is None:
            return self.copied.pop(key)
        found = self.handle.lookup(key)
        return found.rows if isinstance(found, Hit) else None

    def is_of(self, shown: ShownViews) -> bool:
        """Whether the views have not begun anew since."""
        return shown.engine is self.engine and shown.views.get(self.view) is self.hosted


class ViewAudits:
    def __init__(self, views: WorkerViews) -> None:
        self._views = views
        self._audits: dict[int, _Audit] = {}
        self._next_audit = 1
        self.handlers: dict[type, Callable[[Peer, int, Any], None]] = {OpenAudit: self.open, ReadAudit: self.read, EndAudit: self.end}

    def open(self, peer: Peer, request: int, message: OpenAudit) -> None:
        for number in [number for number, audit in self._audits.items() if audit.peer.lost]:
            self._close(number)
        shown = self._views.shown()
        if shown is None or shown.epoch > message.epoch or len(self._audits) >= AUDITS_MAX:
            raise Retryable(Condition.UNKNOWN_ERROR, f"views cannot be read as of epoch {message.epoch}")
        hosted = shown.views.get(message.view)
        if hosted is None:
            peer.send(UnknownView(), request)
            return
        arrangement = hosted.view.arrangement
        engine, view = shown.engine, hosted.view
        keys = list(arrangement.index)
        count = len(keys)
        wanted = min(message.sample or count, COPIED_KEYS_MAX if engine.graph.distributed else count)
        if wanted < count:
            keys = random.sample(keys, wanted)
        number, self._next_audit = self._next_audit, self._next_audit + 1
        handle = None if engine.graph.distributed else engine.open_handle(view)
        copied = {key: engine.rows(view, key) or [] for key in keys} if handle is None else {}
        self._audits[number] = _Audit(peer, message.view, hosted, engine, iter(keys), handle, copied)
        peer.send(AuditOpened(number, hosted.known.message.node, arrangement.columns, count, view.is_full and wanted == count), request)

    def read(self, peer: Peer, request: int, message: ReadAudit) -> None:
        audit, shown = self._audits.get(message.audit), self._views.shown()
        if audit is not None and audit.handle is not None and shown is None:
            asyncio.get_running_loop().call_later(AGAIN_S, self._read_again, peer, request, message)
            return
        if audit is None or audit.peer is not peer or (audit.handle is not None and (shown is None or not audit.is_of(shown))):
            raise Retryable(Condition.UNKNOWN_ERROR, "the audit is not open any more")
        slice_ = list(islice(audit.keys, SLICE_KEYS))
        found = [(key, rows) for key in slice_ if (rows := audit.rows(key)) is not None]
        ended = len(slice_) < SLICE_KEYS
        if ended:
            self._close(message.audit)
        peer.send(AuditedKeys(0 if ended else message.audit, [_encode(key) for key, _ in found], [_encode(list(rows)) for _, rows in found]), request)

    def _read_again(self, peer: Peer, request: int, message: ReadAudit) -> None:
        try:
            self.read(peer, request, message)
        except Exception as error:
            peer.send(failure(error), request)

    def end(self, peer: Peer, request: int, message: EndAudit) -> None:
        audit = self._audits.get(message.audit)
        if audit is not None and audit.peer is peer:
            self._close(message.audit)

    def _close(self, number: int) -> None:
        self._release(self._audits.pop(number))

    def _release(self, audit: _Audit) -> None:
        """Close the handle between two epochs; when views have begun anew since, it has gone with them."""
        shown = self._views.shown()
        if audit.handle is None:
            return
        if shown is None:
            asyncio.get_running_loop().call_later(AGAIN_S, self._release, audit)
        elif audit.is_of(shown):
            audit.engine.close_handle(audit.hosted.view, audit.handle)
