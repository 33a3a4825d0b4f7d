"""CALL millrace.…: the changes of a table or view, as they are kept in its change feed.

| procedure                             | answers                                                                                  |
|---------------------------------------|------------------------------------------------------------------------------------------|
| `keep_changes(name, seconds, bytes)`  | `oldest`, `latest`: from now on changes are kept so long, and so many bytes on each shard |
| `forget_changes(name)`                | nothing: changes are not kept any more                                                   |
| `changes(name, since, wait)`          | what has changed after epoch `since`: `millrace_epoch`, `millrace_weight`, the columns    |
| `changes_position(name, since, rows)` | `oldest`, `latest`, `next`: where who wants about so many changes stops                  |
| `scan_changes(name, since, until)`    | `batch`: as `changes` up to an epoch, as Arrow record batches, each as an IPC message     |
| `describe_changes(name)`              | `fields`: the Arrow schema of those                                                      |

A weight is how many times the row came, or went if it is negative: an UPDATE takes the old row away and adds the new one. With
`wait`, `changes` waits so many seconds for something to change. To read changes takes the right to SELECT from the table or
view; to have them kept, or not any more, also that to ALTER it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from backend.clustering.cluster import Cluster
from backend.execution.evaluation.column_scan import batches_of, schema_of
from backend.execution.outcome import Answer, Done, ResultSet, RowStream
from backend.feeds.feed_reading import (
    BYTES_MAX,
    SECONDS,
    Bounds,
    EpochChanges,
    awaited_changes,
    bounds,
    changes,
    forget_changes,
    keep_changes,
    next_position,
)
from backend.feeds.feed_source import FeedSource, feed_source, select_of
from controller.catalog import Catalog
from controller.privileges import check_needs, check_plan, check_text
from controller.sql.plan import OutputColumn
from controller.sql.references import Need
from dataflow.errors import Condition, InvalidStatement
from dataflow.values.types import BIGINT, BLOB, INT, Row, Value

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

WAIT_S_MAX = 3600

POSITION = (OutputColumn("millrace_epoch", BIGINT, False), OutputColumn("millrace_weight", INT, False))
BATCH = (OutputColumn("batch", BLOB),)

Procedure = Callable[["Session", Cluster, Row], Awaitable[Answer]]


async def _keep(session: Session, cluster: Cluster, arguments: Row) -> ResultSet:
    source = await _source(session, arguments, is_changed=True)
    seconds, bytes_max = (_number(arguments, 1, SECONDS), _number(arguments, 2, BYTES_MAX))
    return _bounds(await keep_changes(cluster, source, seconds, bytes_max))


async def _forget(session: Session, cluster: Cluster, arguments: Row) -> Done:
    source = await _source(session, arguments, is_changed=True)
    await forget_changes(cluster, source.feed)
    return Done()


async def _changes(session: Session, cluster: Cluster, arguments: Row) -> RowStream:
    source = await _source(session, arguments)
    since, wait_s = _number(arguments, 1, 0), min(_number(arguments, 2, 0), WAIT_S_MAX)
    return RowStream((*POSITION, *source.columns), _rows(awaited_changes(cluster, source, since, wait_s)), tuple)


async def _position(session: Session, cluster: Cluster, arguments: Row) -> ResultSet:
    source = await _source(session, arguments)
    since, rows_max = _number(arguments, 1, 0), _number(arguments, 2, 0)
    found = await bounds(cluster, source)
    following_one = await next_position(cluster, source, since, rows_max) if rows_max > 0 else found
    return _bounds(found, following_one.latest)


async def _describe(session: Session, cluster: Cluster, arguments: Row) -> ResultSet:
    source = await _source(session, arguments)
    return ResultSet((OutputColumn("fields", BLOB),), [(schema_of((*POSITION, *source.columns)).serialize().to_pybytes(),)])


async def _scan(session: Session, cluster: Cluster, arguments: Row) -> RowStream:
    source = await _source(session, arguments)
    columns = (*POSITION, *source.columns)
    rows = RowStream(columns, _rows(changes(cluster, source, _number(arguments, 1, 0), _number(arguments, 2, 0))), tuple)
    return RowStream(BATCH, _batches(rows), tuple)


async def _batches(rows: RowStream) -> AsyncGenerator[list[Row], None]:
    yield [(schema_of(rows.columns).serialize().to_pybytes(),)]
    async for batch in batches_of(rows):
        yield [(batch,)]


async def _rows(found: AsyncGenerator[EpochChanges, None]) -> AsyncGenerator[list[Row], None]:
    async with aclosing(found):
        async for each in found:
            yield [(each.epoch, weight, *row) for row, weight in each.changes]


async def _source(session: Session, arguments: Row, is_changed: bool = False) -> FeedSource:
    """What the session may read, or also change."""
    name = str(arguments[0])
    sql, plans = select_of(name), session.environment.plans

    def planned(catalog: Catalog) -> FeedSource:
        try:
            plan, _ = plans.plan_text(sql, catalog, session.database, session.settings)
        except InvalidStatement:
            check_text(session, sql)
            raise
        check_plan(session, plan, sql)
        source = feed_source(catalog, session.database, name)
        if is_changed:
            _check_alter(session, source)
        return source

    await session.environment.refresh()
    return await session.environment.with_catalog(planned)


def _check_alter(session: Session, source: FeedSource) -> None:
    if not session.rights.everything:
        database, _, table = source.name.partition(".")
        check_needs(session, [Need("ALTER", database, table)])


def _bounds(found: Bounds, following: int | None = None) -> ResultSet:
    names = ("oldest", "latest", "next")[: 2 if following is None else 3]
    values = (found.floor, found.latest, following)[: len(names)]
    return ResultSet(tuple([OutputColumn(each, BIGINT, False) for each in names]), [values])


def _number(arguments: Row, place: int, default: int) -> int:
    value: Value = arguments[place] if place < len(arguments) else default
    assert isinstance(value, int)
    if value < 0:
        raise InvalidStatement(Condition.WRONG_ARGUMENTS, "a number that is negative")
    return value


PROCEDURES: dict[str, tuple[Procedure, tuple[type, ...], int]] = {
    "keep_changes": (_keep, (str, int, int), 1),
    "forget_changes": (_forget, (str,), 1),
    "changes": (_changes, (str, int, int), 2),
    "changes_position": (_position, (str, int, int), 2),
    "scan_changes": (_scan, (str, int, int), 3),
    "describe_changes": (_describe, (str,), 1),
}
"""By name: what kinds of arguments they take, and how many of them have to be given."""
