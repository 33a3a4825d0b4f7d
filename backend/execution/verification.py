"""A maintained view compared with its query evaluated from the base tables, key by key, as of one epoch.

Spark evaluates it, where that gives exactly the same values (`backend.jobs.spark_sql`): another engine, that has all keys at once. Otherwise,
and for a sample of keys, it is evaluated as a query that is asked once, which shares no state and no generated code with the
dataflow. Nothing waits for either.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from backend.clustering.cluster import Cluster
from backend.execution.evaluation.reader import Run
from backend.execution.evaluation.readers import Readers
from backend.execution.execution import Execution
from backend.execution.memory_account import size_of
from backend.execution.pace import parts
from backend.execution.rows import Weight
from backend.execution.transaction import Transaction
from backend.execution.writes.numbers import Numbers
from backend.jobs.data_jobs import JobFailed
from backend.jobs.spark_sql import spark_query
from backend.jobs.spark_types import NoForm
from backend.network.messages import UnknownView
from backend.network.scan_messages import AuditedKeys, AuditOpened, EndAudit, OpenAudit, ReadAudit
from backend.scans.scan_jobs import forget_epoch, keep_epoch
from backend.views.view_definition import rows_decoder
from controller.catalog import decode_node
from dataflow.errors import Condition, InvalidStatement, Retryable
from dataflow.expressions.source import Key, key_function
from dataflow.plan.column_use import fits, widened
from dataflow.plan.node import Node
from dataflow.schema import Table
from dataflow.values.modes import DEFAULT_MODES
from dataflow.values.types import Row

HOLD_S = 600.0
DIFFERENCES_MAX = 100
OPEN_TRIES_MAX = 500
OPEN_PAUSE_S = 0.002
"""While others write, it takes some tries until all shards show the epoch that is kept."""
SPARK = "Spark"


@dataclass(frozen=True, slots=True)
class Difference:
    """What the view has for the key, and what it should have."""

    key: Key
    maintained: tuple[Row, ...]
    evaluated: tuple[Row, ...]


@dataclass(slots=True)
class Verification:
    """`engine` is what has evaluated the query: Spark, or why it was not Spark. Of the view's `keys` so many were `compared`; `unchecked` are keys without rows of which only what they compare by is known."""

    epoch: int
    engine: str = SPARK
    keys: int = 0
    compared: int = 0
    unchecked: int = 0
    differences: list[Difference] = field(default_factory=list)


@dataclass(slots=True)
class _Audits:
    """The view's parts on all shards as of one epoch, which is kept under `lease`; `numbers` are the audits that are open still, by shard."""

    cluster: Cluster
    epoch: int
    lease: bytes
    node: Node
    columns: tuple[int, ...]
    is_full: bool
    keys: int
    numbers: dict[int, int]

    async def slices(self) -> AsyncIterator[AuditedKeys]:
        for shard in list(self.numbers):
            while number := self.numbers[shard]:
                keys: AuditedKeys = await self.cluster.ask(shard, ReadAudit(number))
                self.numbers[shard] = keys.audit
                yield keys

    async def close(self) -> None:
        await _end(self.cluster, self.numbers)
        await forget_epoch(self.cluster, self.lease)


async def verify_view(cluster: Cluster, name: bytes, tables: Mapping[int, Table], sample: int = 0) -> Verification:
    """With a `sample`, so many keys are compared."""
    audits = await _open(cluster, name, tables, sample)
    transaction = Transaction(cluster, repeatable=True, epoch=await cluster.hold_on_all(audits.epoch))
    try:
        found = Verification(audits.epoch, keys=audits.keys)
        evaluation = await _evaluation(audits, tables, transaction, found, sample)
        comparison = _Comparison(audits, evaluation)
        async for keys in audits.slices():
            await comparison.compare(keys, found)
            if len(found.differences) >= DIFFERENCES_MAX:
                return found
        await comparison.finish(found)
        return found
    finally:
        transaction.rollback()
        await audits.close()


async def _open(cluster: Cluster, name: bytes, tables: Mapping[int, Table], sample: int) -> _Audits:
    """Of each shard its part of the view; all of them show the same epoch, which is kept."""
    shards = range(cluster.shard_count)
    for attempt in range(OPEN_TRIES_MAX):
        epoch, lease = await keep_epoch(cluster, HOLD_S)
        requests = [cluster.ask(shard, OpenAudit(name, -(-sample // len(shards)), epoch)) for shard in shards]
        answers = await asyncio.gather(*requests, return_exceptions=True)
        opened = {shard: each for shard, each in zip(shards, answers) if isinstance(each, AuditOpened)}
        numbers = {shard: each.audit for shard, each in opened.items()}
        if len(opened) == len(shards):
            node = decode_node(opened[0].node)
            if not fits(node, tables):
                await _end(cluster, numbers)
                await forget_epoch(cluster, lease)
                raise Retryable(Condition.UNKNOWN_ERROR, f"the tables of view {name.hex()} have changed")
            return _Audits(cluster, epoch, lease, widened(node, tables), opened[0].columns, all(each.is_full for each in opened.values()), sum(each.keys for each in opened.values()), numbers)
        await _end(cluster, numbers)
        await forget_epoch(cluster, lease)
        if any(isinstance(each, UnknownView) for each in answers):
            raise InvalidStatement(Condition.UNKNOWN_ERROR, f"view {name.hex()} is not maintained")
        error = next(each for each in answers if isinstance(each, BaseException))
        if not isinstance(error, Retryable) or error.condition is Condition.SHARD_UNREACHABLE or attempt == OPEN_TRIES_MAX - 1:
            raise error
        await asyncio.sleep(OPEN_PAUSE_S)
    raise AssertionError("unreachable")


async def _end(cluster: Cluster, audits: Mapping[int, int]) -> None:
    for shard, number in audits.items():
        if number:
            (await cluster.peer(shard)).send(EndAudit(number))


class _Evaluation(Protocol):
    """What has evaluated the view's query from the base tables."""

    has_all_keys: bool
    """Whether it knows keys by what they compare by; else it needs the values that they stand for."""

    async def rows(self, wanted: Mapping[Key, Row]) -> dict[Key, list[Row]]: ...

    def left(self) -> Mapping[Key, list[Row]]:
        """Keys that nobody has wanted, as far as they are known."""


async def _evaluation(
    audits: _Audits, tables: Mapping[int, Table], transaction: Transaction, found: Verification, sample: int
) -> _Evaluation:
    try:
        jobs = audits.cluster.jobs
        if sample or jobs is None:
            raise NoForm("a sample of keys" if sample else "there is none")
        query = spark_query(audits.node)
        evaluation = _BySpark(key_function(audits.columns, audits.node.types))
        async for rows in jobs.rows(query, tables, audits.epoch, "verify"):
            evaluation.add(rows)
        return evaluation
    except (NoForm, JobFailed) as error:
        found.engine = f"rows, not Spark: {error}"
        return _ByRows(audits, tables, transaction)


class _BySpark:
    has_all_keys = True

    def __init__(self, key_of: Any) -> None:
        self._key_of = key_of
        self._rows: dict[Key, list[Row]] = {}
        self._weight = Weight()

    def add(self, rows: list[Row]) -> None:
        self._weight.add(size_of(rows))
        for part in parts(rows):
            for row in part:
                self._rows.setdefault(self._key_of(row), []).append(row)

    async def rows(self, wanted: Mapping[Key, Row]) -> dict[Key, list[Row]]:
        return {key: self._rows.pop(key, []) for key in wanted}

    def left(self) -> Mapping[Key, list[Row]]:
        return self._rows


class _ByRows:
    has_all_keys = False

    def __init__(self, audits: _Audits, tables: Mapping[int, Table], transaction: Transaction) -> None:
        execution = Execution(transaction, (), DEFAULT_MODES, 0, Numbers(transaction.store))
        self._run = Run(execution, {})
        self._is_keyed = bool(audits.columns)
        self._key_of = key_function(audits.columns, audits.node.types)
        self._reader = Readers(tables).reader(audits.node, audits.columns, ())

    async def rows(self, wanted: Mapping[Key, Row]) -> dict[Key, list[Row]]:
        evaluated: dict[Key, list[Row]] = {}
        for row in await self._reader.rows(self._run, dict(wanted) if self._is_keyed else None) if wanted else ():
            evaluated.setdefault(self._key_of(row), []).append(row)
        return evaluated

    def left(self) -> Mapping[Key, list[Row]]:
        return {}


class _Comparison:
    """Rows of a view without a key are on all shards, and are compared when all have told theirs."""

    def __init__(self, audits: _Audits, evaluation: _Evaluation) -> None:
        self._columns = audits.columns
        self._is_full = audits.is_full
        self._decode = rows_decoder(audits.node.types).decode
        self._key_of = key_function(audits.columns, audits.node.types)
        self._evaluation = evaluation
        self._whole: dict[Key, list[Row]] = {}

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
        if not self._columns:
            for key, rows in maintained.items():
                self._whole.setdefault(key, []).extend(rows)
            return
        await self._tell(maintained, wanted, found)

    async def finish(self, found: Verification) -> None:
        if not self._columns and self._whole:
            await self._tell(self._whole, dict.fromkeys(self._whole, ()), found)
        if self._is_full:  # what it does not have, it says has no rows
            left = self._evaluation.left()
            found.compared += len(left)
            found.differences += [Difference(key, (), tuple(rows)) for key, rows in list(left.items())[:DIFFERENCES_MAX]]

    async def _tell(self, maintained: Mapping[Key, list[Row]], wanted: Mapping[Key, Row], found: Verification) -> None:
        evaluated = await self._evaluation.rows(wanted)
        for key, rows in maintained.items():
            found.compared += 1
            expected = evaluated.get(key, [])
            if Counter(map(_comparable, rows)) != Counter(map(_comparable, expected)):
                found.differences.append(Difference(key, tuple(rows), tuple(expected)))

    def _values(self, key: Any) -> Row | None:
        """The values that a key without rows stands for; None if it is made of what texts compare by."""
        key_parts = key if len(self._columns) != 1 else (key,)
        if not self._evaluation.has_all_keys and any(isinstance(each, bytes | str) for each in key_parts):
            return None
        return tuple(key_parts)


def _as_key(value: Any) -> Key:
    return tuple(_as_key(each) for each in value) if isinstance(value, list) else value


def _comparable(row: Sequence[Any]) -> tuple[Any, ...]:
    """Sums of floating-point numbers depend on their order."""
    return tuple([f"{each:.12g}" if isinstance(each, float) else each for each in row])
