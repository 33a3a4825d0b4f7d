"""CALL millrace.…: what reads much as of one epoch, as Arrow record batches, over an ordinary connection.

| procedure                                  | answers                                                              |
|--------------------------------------------|----------------------------------------------------------------------|
| `keep_epoch(seconds)`                      | `epoch`, which can be read until so long after its last use, `lease` |
| `keep_epoch_again(lease, epoch, seconds)`  | the same, after a worker's restart; an error if the epoch is gone    |
| `forget_epoch(lease)`                      | nothing: the job is done                                             |
| `describe_scan(query)`                     | `fields`: the Arrow schema of a SELECT, as an IPC message            |
| `partition_scan(query, count)`             | `part`: its parts, each to be scanned by itself                      |
| `verify_view(name, sample)`                | a maintained view against the base tables: a row for each difference |
| `scan(query, part, epoch)`                 | `batch`: the part's record batches, each as an IPC message           |
| `load_rows(file, insert, with)`            | how many rows were stored: see `mysql_adapter.statements.uploads`    |
| `changes(name, since)` and its family      | what has changed: see `mysql_adapter.statements.changes`             |

A SELECT is planned and its privileges are checked as those of any other. Parts name the versions of the tables that they
were made for: of a table that has changed since, nothing is read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from backend.clustering.cluster import Cluster
from backend.execution.evaluation.column_scan import batches_of, column_scan, schema_of
from backend.execution.outcome import Answer, Done, ResultSet, RowStream
from backend.execution.pace import aside
from backend.execution.transaction import Transaction
from backend.execution.verification import verify_view
from backend.network.scan_messages import ScanColumns
from backend.scans.scan_jobs import forget_epoch, keep_again, keep_epoch, parts_of
from controller.catalog import Catalog
from controller.privileges import check_global, check_plan, check_text
from controller.sql.plan import OutputColumn, Plan, Query
from controller.sql.planner import tables_of
from dataflow.errors import Condition, InvalidStatement, Retryable, Unsupported
from dataflow.values.types import BIGINT, BLOB, Row, Value, text
from mysql_adapter.sessions.facts import fact
from mysql_adapter.sessions.planned import evaluate_list
from mysql_adapter.statements.changes import PROCEDURES as CHANGES
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.statements.uploads import load_rows

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

PARTS_MAX = 10_000
SEPARATOR = ":"

Procedure = Callable[["Session", Cluster, Row], Awaitable[Answer]]


async def call(session: Session, cursor: TokenCursor) -> Answer:
    """CALL millrace.name(arguments)"""
    cursor.expect("CALL")
    schema = cursor.identifier()
    if schema.lower() != "millrace" or not cursor.accept("."):
        raise Unsupported("CALL " + schema)
    name = cursor.identifier().lower()
    cursor.expect("(")
    arguments = "" if cursor.at(")") else cursor.expression(")")
    cursor.expect(")")
    cursor.expect_end()
    found: tuple[Procedure | None, tuple[type, ...], int] | None
    found = (None, (str, str, str), 3) if name == "load_rows" else CHANGES.get(name) or _PROCEDURES.get(name)
    if found is None:
        raise InvalidStatement(Condition.UNKNOWN_PROCEDURE, f"millrace.{name}")
    procedure, kinds, required = found
    values = await evaluate_list(session, arguments) if arguments else ()
    if not required <= len(values) <= len(kinds) or not all(isinstance(value, kind) for value, kind in zip(values, kinds)):
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, f"millrace.{name}")
    if procedure is None:
        return await load_rows(session, values)
    store = session.environment.database.store
    if not isinstance(store, Cluster):
        raise Unsupported("CALL where there is no cluster")
    return await procedure(session, store, values)


async def _keep_epoch(session: Session, cluster: Cluster, arguments: Row) -> ResultSet:
    epoch, name = await keep_epoch(cluster, float(_integer(arguments[0])))
    return ResultSet((OutputColumn("epoch", BIGINT), OutputColumn("lease", text(32))), [(epoch, name.hex())])


async def _keep_again(session: Session, cluster: Cluster, arguments: Row) -> ResultSet:
    lease, epoch, seconds = arguments
    await keep_again(cluster, _name(lease), _integer(epoch), float(_integer(seconds)))
    return ResultSet((OutputColumn("epoch", BIGINT), OutputColumn("lease", text(32))), [(epoch, lease)])


async def _forget_epoch(session: Session, cluster: Cluster, arguments: Row) -> Done:
    await forget_epoch(cluster, _name(arguments[0]))
    return Done()


async def _describe(session: Session, cluster: Cluster, arguments: Row) -> ResultSet:
    query, _, _ = await _planned(session, str(arguments[0]))
    return ResultSet((OutputColumn("fields", BLOB),), [(schema_of(query.columns).serialize().to_pybytes(),)])


async def _partition(session: Session, cluster: Cluster, arguments: Row) -> ResultSet:
    query, plan, values = await _planned(session, str(arguments[0]))
    count = min(max(1, _integer(arguments[1])), PARTS_MAX)
    scan = column_scan(query, values)
    versions = _versions(plan, query)
    if scan is None:
        parts = [f"{versions}{SEPARATOR}"]
    else:
        found = await parts_of(cluster, scan.range, count)
        parts = [SEPARATOR.join((versions, str(shard), start.hex(), stop.hex())) for shard, start, stop in found]
    return ResultSet((OutputColumn("part", text(4096)),), [(part,) for part in parts])


async def _scan(session: Session, cluster: Cluster, arguments: Row) -> RowStream:
    sql, part, epoch = str(arguments[0]), str(arguments[1]), _integer(arguments[2])
    query, plan, values = await _planned(session, sql)
    versions, _, rest = part.partition(SEPARATOR)
    if versions != _versions(plan, query):
        raise InvalidStatement(Condition.TABLE_DEFINITION_CHANGED)
    scan = column_scan(query, values)
    if (scan is None) != (not rest) or epoch < 0:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "millrace.scan")
    if scan is None:
        batches = _evaluated(session, cluster, plan, values, epoch)
    else:
        shard, start, stop = _place(rest, cluster.shard_count)
        batches = cluster.scan_columns(shard, ScanColumns(0, scan.node, scan.table, *scan.within(start, stop), epoch))
    schema = schema_of(query.columns).serialize().to_pybytes()
    return RowStream((OutputColumn("batch", BLOB),), _as_rows(schema, batches), tuple)


async def _as_rows(schema: bytes, batches: AsyncGenerator[bytes, None]) -> AsyncGenerator[list[Row], None]:
    try:
        yield [(schema,)]
        async for batch in batches:
            yield [(batch,)]
    finally:
        await batches.aclose()


async def _evaluated(
    session: Session, cluster: Cluster, plan: Plan, values: Sequence[Value], epoch: int
) -> AsyncGenerator[bytes, None]:
    """The rows of a SELECT that is no scan, evaluated as of the epoch."""
    environment = session.environment
    memory = {each.id: await environment.virtual_rows(session, each) for each in tables_of(plan) if each.id < 0}
    await cluster.hold_on_all(epoch)
    transaction = Transaction(cluster, repeatable=True, epoch=epoch)
    try:
        answer = await environment.database.stream(plan, values, transaction, session.modes, memory)
        async for batch in batches_of(answer):
            yield batch
    finally:
        transaction.rollback()


async def _planned(session: Session, sql: str) -> tuple[Query, Plan, list[Value]]:
    """The plan of a SELECT that the session may run, and all that its expressions are evaluated with."""
    plans, settings = session.environment.plans, session.settings

    def planned(catalog: Catalog) -> tuple[Plan, Sequence[Value]]:
        try:
            plan, values = aside(len(sql), lambda: plans.plan_text(sql, catalog, session.database, settings))
        except InvalidStatement:
            check_text(session, sql)
            raise
        check_plan(session, plan, sql)
        return plan, values

    await session.environment.refresh()
    plan, values = await session.environment.with_catalog(planned)
    query = plan.statement
    if not isinstance(query, Query) or plan.first or "waiting_calls" in plan.facts:
        raise Unsupported("scans of anything but a SELECT")
    return query, plan, [*values, *(fact(session, name) for name in plan.facts)]


async def _verify(session: Session, cluster: Cluster, arguments: Row) -> ResultSet:
    """One row if there is no difference. It shows rows of any table, so it is for who may read them all."""
    check_global(session, "SUPER", "SELECT")
    found = await verify_view(cluster, _name(arguments[0]), session.catalog.tables, max(0, _integer(arguments[1])))
    counts = (found.epoch, found.keys, found.compared, found.unchecked, found.engine)
    rows: list[Row] = [(*counts, repr(each.key), repr(each.maintained), repr(each.evaluated)) for each in found.differences]
    names = [OutputColumn(name, BIGINT) for name in ("epoch", "keys", "compared", "unchecked")]
    names += [OutputColumn(name, text()) for name in ("engine", "key", "maintained", "evaluated")]
    return ResultSet(tuple(names), rows or [(*counts, None, None, None)])


def _versions(plan: Plan, query: Query) -> str:
    stored = [f"{each.id}.{each.version}" for each in tables_of(plan) if each.id >= 0]
    return ",".join(sorted(stored + [f"v{each.id}" for each in query.views]))


def _place(part: str, shard_count: int) -> tuple[int, bytes, bytes]:
    try:
        shard, start, stop = part.split(SEPARATOR)
        found = int(shard), bytes.fromhex(start), bytes.fromhex(stop)
    except ValueError:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "millrace.scan") from None
    if found[0] not in range(shard_count):
        raise Retryable(Condition.UNKNOWN_ERROR, f"there is no shard {shard}")
    return found


def _integer(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _name(value: Value) -> bytes:
    try:
        return bytes.fromhex(str(value))
    except ValueError:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "a name in hexadecimal") from None


_PROCEDURES: dict[str, tuple[Procedure, tuple[type, ...], int]] = {
    "keep_epoch": (_keep_epoch, (int,), 1),
    "keep_epoch_again": (_keep_again, (str, int, int), 3),
    "forget_epoch": (_forget_epoch, (str,), 1),
    "describe_scan": (_describe, (str,), 1),
    "partition_scan": (_partition, (str, int), 2),
    "verify_view": (_verify, (str, int), 2),
    "scan": (_scan, (str, str, int), 3),
}
