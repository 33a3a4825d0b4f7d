"""What a worker tells of a view to who compares it with the base tables: its keys and rows as of one epoch, in slices.

A handle keeps the view's rows of that epoch readable while later epochs change them, so nobody waits. Audits belong to the
connection that began them and go with it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from backend.network.messages import UnknownView
from backend.network.scan_messages import AuditedKeys, AuditOpened, EndAudit, KeepEpoch, OpenAudit, ReadAudit
from backend.network.transport import Peer
from backend.views.followed_views import FollowedViews
from backend.views.hosted_view import HostedView
from backend.worker.shard_reads import ShardReads
from controller.catalog import encode_node
from dataflow.errors import Condition, Retryable
from dataflow.expressions.source import Key
from dataflow.state.arrangement import Handle, Hit

SLICE_KEYS = 250
AUDITS_MAX = 16

_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class _Audit:
    peer: Peer
    hosted: HostedView
    handle: Handle
    keys: Iterator[Key]


class ViewAudits:
    def __init__(self, views: FollowedViews, reads: ShardReads) -> None:
        self._views = views
        self._reads = reads
        self._audits: dict[int, _Audit] = {}
        self._next_audit = 1
        self.handlers: dict[type, Callable[[Peer, int, Any], None]] = {OpenAudit: self.open, ReadAudit: self.read, EndAudit: self.end}

    def open(self, peer: Peer, request: int, message: OpenAudit) -> None:
        for number in [number for number, audit in self._audits.items() if audit.peer.lost]:
            self._close(number)
        hosted = self._views.views.get(message.view)
        if hosted is None:
            peer.send(UnknownView(), request)
            return
        if self._views.is_busy or len(self._audits) >= AUDITS_MAX:
            raise Retryable(Condition.UNKNOWN_ERROR, "views cannot be read now")
        epoch = self._reads.keep(peer, KeepEpoch(message.name, 0, message.seconds))
        keys = list(hosted.view.arrangement.index)
        if 0 < message.sample < len(keys):
            keys = random.sample(keys, message.sample)
        number, self._next_audit = self._next_audit, self._next_audit + 1
        self._audits[number] = _Audit(peer, hosted, self._views.open_handle(hosted), iter(keys))
        node, columns = encode_node(hosted.view.node), hosted.view.arrangement.columns
        peer.send(AuditOpened(number, epoch, len(keys), node, columns), request)

    def read(self, peer: Peer, request: int, message: ReadAudit) -> None:
        audit = self._audits.get(message.audit)
        if audit is None or audit.peer is not peer:
            raise Retryable(Condition.UNKNOWN_ERROR, "the audit is not open any more")
        slice_ = list(islice(audit.keys, SLICE_KEYS))
        found = [(key, answer.rows) for key in slice_ if isinstance(answer := audit.handle.lookup(key), Hit)]
        ended = len(slice_) < SLICE_KEYS
        if ended:
            self._close(message.audit)
        peer.send(AuditedKeys(0 if ended else message.audit, [_encode(key) for key, _ in found], [_encode(list(rows)) for _, rows in found]), request)

    def end(self, peer: Peer, request: int, message: EndAudit) -> None:
        audit = self._audits.get(message.audit)
        if audit is not None and audit.peer is peer:
            self._close(message.audit)

    def _close(self, number: int) -> None:
        audit = self._audits.pop(number)
        self._views.close_handle(audit.hosted, audit.handle)
