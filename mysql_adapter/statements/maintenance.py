"""CHECK, ANALYZE, OPTIMIZE, REPAIR and CHECKSUM TABLE, FLUSH: CHECK reads everything, for the others there is little to do."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from backend.execution.outcome import Done, ResultSet, RowStream, Warning
from controller.privileges import check_global, check_sees_table
from controller.sql.definitions.partition_changes import check_partition_names
from controller.sql.plan import OutputColumn
from dataflow.errors import Condition, CorruptState, InvalidStatement, MillraceError
from dataflow.values.types import BIGINT, Row, text
from mysql_adapter.neighbours import flush_hosts
from mysql_adapter.sessions.planned import run_planned
from mysql_adapter.sessions.table_locks import TableLocks
from mysql_adapter.statements.cursor import TokenCursor

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_MAINTENANCE = tuple(
    OutputColumn(name, text(length)) for name, length in (("Table", 128), ("Op", 10), ("Msg_type", 10), ("Msg_text", 393216))
)
_CHECKSUM = (OutputColumn("Table", text(128)), OutputColumn("Checksum", BIGINT))


def maintained_partitions(cursor: TokenCursor) -> tuple[str | None, str] | None:
    """The table of `TABLE t ANALYZE PARTITION …` and the like, with the cursor before the verb; else None, with the cursor unmoved."""
    start = cursor.mark()
    if cursor.accept("TABLE"):
        name = cursor.qualified_name()
        if cursor.ahead(1).upper == "PARTITION" and cursor.at_any("ANALYZE", "CHECK", "OPTIMIZE", "REPAIR"):
            return name
    cursor.back_to(start)
    return None


async def maintain_partitions(session: Session, cursor: TokenCursor, name: tuple[str | None, str]) -> ResultSet:
    """Partitions are stored together, so it is the whole table that is looked at."""
    operation = cursor.next().text.lower()
    database = name[0] or session.database
    catalog = await session.environment.with_catalog(lambda catalog: catalog)
    table = catalog.table(database, name[1])
    cursor.expect("PARTITION")
    check_partition_names(cursor, table)
    while operation in ("check", "repair") and cursor.accept_any("QUICK", "FAST", "MEDIUM", "EXTENDED", "CHANGED", "USE_FRM"):
        pass
    cursor.expect_end()
    rows: list[Row] = []
    shown = f"{database}.{name[1]}"
    if operation == "optimize":
        note = "Table does not support optimize on partitions. All partitions will be rebuilt and analyzed."
        rows.append((shown, operation, "note", note))
    wrong = await _check(session, database, name[1]) if operation == "check" else []
    rows += [(shown, operation, "Warning", each) for each in wrong]
    rows.append((shown, operation, "error", "Corrupt") if wrong else (shown, operation, "status", "OK"))
    return ResultSet(_MAINTENANCE, rows)


async def maintain(session: Session, cursor: TokenCursor) -> ResultSet:
    """CHECK, ANALYZE, OPTIMIZE, REPAIR TABLE. What CHECK finds is said as InnoDB does; REPAIR is not for its tables either."""
    operation = cursor.next().text.lower()
    cursor.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    if not cursor.accept_any("TABLE", "TABLES"):
        raise cursor.error()
    rows: list[Row] = []
    while True:
        database, name = cursor.qualified_name()
        database = database or session.database
        shown = f"{database}.{name}"
        try:
            check_sees_table(session, database, name)
            await session.environment.with_catalog(lambda catalog: catalog.table(database, name))  # noqa: B023
            if operation == "optimize":
                note = "Table does not support optimize, doing recreate + analyze instead"
                rows.append((shown, operation, "note", note))
            wrong = await _check(session, database, name) if operation == "check" else []
            rows += [(shown, operation, "Warning", each) for each in wrong]
            rows.append((shown, operation, "error", "Corrupt") if wrong else (shown, operation, "status", "OK"))
        except CorruptState as error:
            rows.append((shown, operation, "Error", str(error)))
            rows.append((shown, operation, "error", "Corrupt"))
        except MillraceError as error:
            rows.append((shown, operation, "Error", str(error)))
            rows.append((shown, operation, "status", "Operation failed"))
        if not cursor.accept(","):
            break
    return ResultSet(_MAINTENANCE, rows)


async def _check(session: Session, database: str | None, name: str) -> list[str]:
    """What is wrong with the table's rows and entries; once more if its definition has changed meanwhile."""
    environment = session.environment
    while True:
        table = await environment.with_catalog(lambda catalog: catalog.table(database, name))
        wrong = await environment.database.check_table(table)
        if not wrong or environment.catalog().table(database, name).version == table.version:
            return wrong


async def checksum(session: Session, cursor: TokenCursor) -> ResultSet:
    """CHECKSUM TABLE: the same for the same rows, whatever their order; not the number that MySQL has."""
    cursor.expect("CHECKSUM")
    if not cursor.accept_any("TABLE", "TABLES"):
        raise cursor.error()
    names: list[tuple[str, str]] = []
    while True:
        database, name = cursor.qualified_name()
        owner = database or session.database
        if not owner:
            raise InvalidStatement(Condition.NO_DB_SELECTED)
        names.append((owner, name))
        if not cursor.accept(","):
            break
    quick = cursor.accept_any("QUICK", "EXTENDED") == "QUICK"
    cursor.expect_end()
    rows: list[Row] = []
    warnings: list[Warning] = []
    for owner, name in names:
        try:
            found = None if quick else await _checksum(session, owner, name)
        except MillraceError as error:
            found = None
            warnings.append(Warning("Error", error.condition.code, str(error)))
        rows.append((f"{owner}.{name}", found))
    return ResultSet(_CHECKSUM, rows, tuple(warnings))


async def _checksum(session: Session, database: str, name: str) -> int:
    quoted = ".".join("`" + each.replace("`", "``") + "`" for each in (database, name))
    answer = await run_planned(session, f"SELECT * FROM {quoted}", stream=True)
    assert not isinstance(answer, Done)
    if not isinstance(answer, RowStream):
        return _sum(answer.rows)
    total = 0
    while (chunk := await answer.next()) is not None:
        total = (total + _sum(chunk)) & 0xFFFF_FFFF
    return total


def _sum(rows: list[Row]) -> int:
    return sum(zlib.crc32(repr(row).encode("utf-8", "surrogateescape")) for row in rows) & 0xFFFF_FFFF


async def flush(session: Session, cursor: TokenCursor) -> Done:
    """FLUSH HOSTS, LOGS, and STATUS, of which the longest hold is forgotten; TABLES, PRIVILEGES, …: nothing is held back that could be flushed."""
    check_global(session, "RELOAD")
    options = cursor.rest().upper().split()
    if options[-3:] == ["WITH", "READ", "LOCK"]:
        session.table_locks = TableLocks(None)
    if "HOSTS" in options:
        await flush_hosts(session)
    if "LOGS" in options:
        session.environment.query_log.flush()
    if "STATUS" in options:
        session.environment.watch.reset()
    return Done()
