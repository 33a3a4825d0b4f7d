"""A maintained view compared with its query evaluated from the base tables, key by key, as of one epoch.

The evaluation is that of a query that is asked once: it shares no state and no generated code with the dataflow. Nothing waits for it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from backend.clustering.cluster import Cluster
from backend.execution.evaluation.reader import Run
from backend.execution.evaluation.readers import Readers
from backend.execution.execution import Execution
from backend.execution.transaction import Transaction
from backend.execution.writes.numbers import Numbers
from backend.network.messages import UnknownView
from backend.network.scan_messages import AuditedKeys, AuditOpened, EndAudit, OpenAudit, ReadAudit
from backend.scans.scan_jobs import forget_epoch
from backend.views.view_definition import rows_decoder
from controller.catalog import decode_node
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.source import Key, key_function
from dataflow.plan.node import Node
from dataflow.schema import Table
from dataflow.values.modes import DEFAULT_MODES
from dataflow.values.types import Row

HOLD_S = 600.0
DIFFERENCES_MAX = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """What the view has for the key, and what it should have."""

    key: Key
    maintained: tuple[Row, ...]
    evaluated: tuple[Row, ...]


@dataclass(slots=True)
class Verification:
    """`unchecked` are keys without rows of which only what they compare by is known."""

    epoch: int
    compared: int = 0
    unchecked: int = 0
    differences: list[Difference] = field(default_factory=list)


async def verify_view(cluster: Cluster, name: bytes, tables: Mapping[int, Table], sample: int = 0) -> Verification:
    if cluster.shard_count > 1:
        raise Unsupported("verify with several workers")
    lease = os.urandom(12)
    opened = await cluster.ask(0, OpenAudit(name, sample, lease, HOLD_S))
    if isinstance(opened, UnknownView):
        raise InvalidStatement(Condition.UNKNOWN_ERROR, f"view {name.hex()} is not maintained")
    assert isinstance(opened, AuditOpened)
    audit = opened.audit
    transaction = Transaction(cluster, repeatable=True, epoch=await cluster.hold_on_all(opened.epoch))
    try:
        comparison = _Comparison(decode_node(opened.node), opened.columns, tables, Run(_execution(transaction), {}))
        found = Verification(opened.epoch)
        while audit and len(found.differences) < DIFFERENCES_MAX:
            keys: AuditedKeys = await cluster.ask(0, ReadAudit(audit))
            audit = keys.audit
            await comparison.compare(keys, found)
        return found
    finally:
        if audit:
            (await cluster.peer(0)).send(EndAudit(audit))
        transaction.rollback()
        await forget_epoch(cluster, lease)


def _execution(transaction: Transaction) -> Execution:
    return Execution(transaction, (), DEFAULT_MODES, 0, Numbers(transaction.store))


class _Comparison:
    def __init__(self, node: Node, columns: tuple[int, ...], tables: Mapping[int, Table], run: Run) -> None:
        self._columns = columns
        self._decode = rows_decoder(node.types).decode
        self._key_of = key_function(columns, node.types)
        self._reader = Readers(tables).reader(node, columns, ())
        self._run = run

    async def compare(self, keys: AuditedKeys, found: Verification) -> None:
        maintained: dict[Key, list[Row]] = {}
        wanted: dict[Key, Row] = {}
        for encoded, payload in zip(keys.keys, keys.rows):
            key, has = _as_key(msgspec.msgpack.decode(encoded)), self._decode(payload)
            values = tuple([has[0][column] for column in self._columns]) if has else self._values(key)
            if values is None:
                found.unchecked += 1
                continue
            key = self._key_of(has[0]) if has else key
            maintained[key], wanted[key] = has, values
        evaluated: dict[Key, list[Row]] = {}
        for row in await self._reader.rows(self._run, wanted if self._columns else None) if wanted else ():
            evaluated.setdefault(self._key_of(row), []).append(row)
        for key, rows in maintained.items():
            found.compared += 1
            expected = evaluated.get(key, [])
            if Counter(map(_comparable, rows)) != Counter(map(_comparable, expected)):
                found.differences.append(Difference(key, tuple(rows), tuple(expected)))

    def _values(self, key: Any) -> Row | None:
        """The values that a key without rows stands for; None if it is made of what texts compare by."""
        parts = key if len(self._columns) != 1 else (key,)
        return None if any(isinstance(each, bytes | str) for each in parts) else tuple(parts)


def _as_key(value: Any) -> Key:
    return tuple(_as_key(each) for each in value) if isinstance(value, list) else value


def _comparable(row: Sequence[Any]) -> tuple[Any, ...]:
    """Sums of floating-point numbers depend on their order."""
    return tuple([f"{each:.12g}" if isinstance(each, float) else each for each in row])
