"""The `millrace` schema: what the workers keep up to date, as tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backend.clustering.cluster import Cluster
from backend.feeds.feed_reading import kept_feeds
from dataflow.values.temporal import from_datetime
from dataflow.values.types import Row
from mysql_adapter.information_schema.virtual import virtual

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

DATABASE = "millrace"


@virtual("views", """
    shard uint
    name 32
    definition longtext
    tables longtext
    key_columns longtext
    state 9
    reason longtext?
    key_count ubigint
    row_count ubigint
    bytes ubigint
    hits ubigint
    misses ubigint
    evictions ubigint
    named_views longtext?
    since datetime
    node 64
""", DATABASE)
async def views(session: Session) -> list[Row]:
    tables = session.environment.catalog().tables
    rows: list[Row] = []
    for shard, hosted in await session.environment.database.view_status():
        for view in hosted.views:
            names = ", ".join(f"{tables[each].database}.{tables[each].name}" for each in view.tables if each in tables)
            rows.append((
                shard, view.name.hex(), view.definition, names, ", ".join(view.key_names),
                "set aside" if view.is_set_aside else "full" if view.reason else "partial",
                view.reason or None, view.keys, view.rows, view.size_bytes, view.hits, view.misses, view.evictions,
                ", ".join(view.names) or None, from_datetime(datetime.fromtimestamp(view.since, UTC).replace(microsecond=0)),
                view.node,
            ))  # fmt: skip
    return rows


@virtual("arrangements", """
    shard uint
    node 64
    operation longtext
    key_columns longtext
    state 7
    reason longtext?
    key_count ubigint
    bytes ubigint
    users ubigint
    views ubigint
""", DATABASE)
async def arrangements(session: Session) -> list[Row]:
    return [
        (
            shard, each.node, each.operation, each.shown_columns, "full" if each.reason else "partial",
            each.reason or None, each.keys, each.size_bytes, each.users, each.views,
        )
        for shard, hosted in await session.environment.database.view_status()
        for each in hosted.arrangements
    ]  # fmt: skip


@virtual("nodes", """
    shard uint
    node 64
    operation longtext
    inputs longtext
    users longtext
    views ubigint
    rows_in ubigint
    seconds double
""", DATABASE)
async def nodes(session: Session) -> list[Row]:
    return [
        (shard, each.node, each.operation, ", ".join(each.inputs), ", ".join(each.users), each.views, each.rows, each.seconds)
        for shard, hosted in await session.environment.database.view_status()
        for each in hosted.nodes
    ]


@virtual("transitions", """
    number ubigint
    moment datetime
    views_added ubigint
    views_removed ubigint
    plan longtext
""", DATABASE)
async def transitions(session: Session) -> list[Row]:
    """How the program has changed: what each transition found that it could reuse, and what is partial or full and why."""
    planner = session.environment.database.store.planner
    return [
        (each.number, from_datetime(datetime.fromtimestamp(int(each.moment), UTC)), len(each.added), len(each.removed), each.plan)
        for each in ([] if planner is None else await planner.transitions())
    ]


@virtual("fills", """
    shard uint
    view 32
    tables longtext
    key_count ubigint
    epoch ubigint
    rows_read ubigint
    round uint
    rows_behind ubigint
""", DATABASE)
async def fills(session: Session) -> list[Row]:
    """What is being filled in the background: a view, or some of its keys."""
    tables = session.environment.catalog().tables
    return [
        (
            shard, each.view.hex(),
            ", ".join(f"{tables[table].database}.{tables[table].name}" for table in each.tables if table in tables),
            each.keys, each.epoch, each.rows, each.round, each.behind,
        )
        for shard, hosted in await session.environment.database.view_status()
        for each in hosted.fills
    ]  # fmt: skip


@virtual("jobs", """
    job 24
    purpose longtext
    epoch ubigint
    tasks ubigint
    tasks_done ubigint
""", DATABASE)
async def jobs(session: Session) -> list[Row]:
    """What Spark does for somebody; KILL of who has asked for it ends it."""
    running = session.environment.database.store.jobs
    shown = [] if running is None else await running.status()
    return [(each.job.hex(), each.purpose, each.epoch, each.tasks, each.tasks_done) for each in shown]


@virtual("feeds", """
    shard uint
    name longtext
    kind 5
    oldest ubigint
    latest ubigint
    bytes ubigint
    seconds_max ubigint
    bytes_max ubigint
    is_followed uint
""", DATABASE)
async def feeds(session: Session) -> list[Row]:
    """Whose changes are kept, and which epochs of them can be read; as far as the session may read them."""
    store, catalog = session.environment.database.store, session.environment.catalog()
    if not isinstance(store, Cluster):
        return []
    views = {view.id: view for view in catalog.views.values()}
    rows: list[Row] = []
    for shard, each in await kept_feeds(store):
        found = catalog.tables.get(each.feed) or views.get(each.feed)
        rights = session.rights
        if found is not None and (rights.everything or "SELECT" in rights.on_table(found.database, found.name)):
            kind = "view" if each.feed in views else "table"
            rows.append((
                shard, f"{found.database}.{found.name}", kind, max(0, each.floor), max(0, each.latest), each.size_bytes,
                each.seconds, each.bytes_max, int(each.is_followed),
            ))  # fmt: skip
    return rows
