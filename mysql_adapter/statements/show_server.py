"""SHOW of the server and the session: variables, warnings, character sets, connections."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from backend.execution.outcome import ResultSet, Warning
from controller.sql.plan import OutputColumn
from controller.system_variables import VARIABLES
from dataflow.values.types import BIGINT, Row
from mysql_adapter.information_schema import server as tables
from mysql_adapter.information_schema.virtual import outputs_of
from mysql_adapter.neighbours import all_counts
from mysql_adapter.sessions.counts import LONGEST, process_counts, session_counts
from mysql_adapter.statements.cursor import TokenCursor
from mysql_adapter.statements.filtering import filtered

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

_NAMED = "Variable_name 64\nValue 1024?"
_WARNINGS = "Level 7\nCode uint\nMessage 512"
_ENGINES = "Engine 64\nSupport 8\nComment 80\nTransactions 3?\nXA 3?\nSavepoints 3?"
_COLLATION = "Collation 64\nCharset 64\nId ubigint\nDefault 3\nCompiled 3\nSortlen uint\nPad_attribute 9"
_CHARSET = "Charset 64\nDescription 2048\nDefault collation 64\nMaxlen uint"
_PROCESSLIST = "Id ubigint\nUser 32\nHost 261\ndb 64?\nCommand 16\nTime int\nState 64?\nInfo longtext?"
_PRIVILEGES = "Privilege 10\nContext 15\nComment 50"
_PLUGINS = "Name 64\nStatus 10\nType 80\nLibrary 64?\nLicense 80?"
_TRIGGERS = """Trigger 64
Event 6
Table 64
Statement longtext
Timing 6
Created timestamp?
sql_mode 512
Definer 288
character_set_client 64
collation_connection 64
Database Collation 64"""
_EVENTS = """Db 64
Name 64
Definer 288
Time zone 64
Type 9
Execute at datetime?
Interval value 256?
Interval field 18?
Starts datetime?
Ends datetime?
Status 18
Originator uint
character_set_client 64
collation_connection 64
Database Collation 64"""
_ROUTINES = """Db 64
Name 64
Type 9
Definer 288
Modified timestamp
Created timestamp
Security_type 7
Comment longtext
character_set_client 64
collation_connection 64
Database Collation 64"""
_OPEN_TABLES = "Database 64\nTable 64\nIn_use int\nName_locked int"


async def variables(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    session.refresh_volatile_variables()
    rows: list[Row] = list(session.variables.items())
    return await filtered(session, cursor, outputs_of(_NAMED), rows)


async def global_variables(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    rows: list[Row] = [
        pair for pair in session.environment.globals.items() if VARIABLES[pair[0]].scope != "session"
    ]
    return await filtered(session, cursor, outputs_of(_NAMED), rows)


async def status(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    counts = Counter({**process_counts(session.environment), **session_counts(session)})
    return await _status(session, cursor, counts)


async def global_status(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    return await _status(session, cursor, await all_counts(session.environment))


async def _status(session: Session, cursor: TokenCursor, counts: Counter[str]) -> ResultSet:
    environment = session.environment
    tls = session.connection.stream.tls
    uptime = int(time.time() - environment.started)
    count = counts["Threads_connected"]
    facts = {
        "Aborted_clients": "0", "Aborted_connects": str(counts["Aborted_connects"]), "Bytes_received": str(counts["Bytes_received"]), "Bytes_sent": str(counts["Bytes_sent"]),
        "Com_select": str(counts["Com_select"]), "Connection_control_delay_generated": str(counts["Connection_control_delay_generated"]),
        "Connection_errors_max_connections": str(counts["Connection_errors_max_connections"]),
        "Connections": str(session.connection.id), "Created_tmp_disk_tables": "0",
        "Created_tmp_tables": "0", "Handler_read_rnd_next": "0", "Innodb_page_size": "16384",
        "Innodb_buffer_pool_reads": "0", "Innodb_row_lock_waits": "0", "Key_reads": "0", "Last_query_cost": "0.000000",
        "Max_used_connections": str(count),
        **{name: str(counts[name]) for name in ("Millrace_reads_memory", "Millrace_reads_view", "Millrace_reads_tables")},
        LONGEST: f"{counts[LONGEST] / 1000:.1f}", "Millrace_shortcuts": str(counts["Millrace_shortcuts"]), "Open_tables": "0", "Opened_tables": "0",
        "Prepared_stmt_count": str(len(session.prepared)),
        "Queries": str(counts["Questions"]), "Questions": str(counts["Questions"]), "Select_full_join": "0",
        "Slow_queries": str(counts["Slow_queries"]), "Ssl_cipher": tls.cipher if tls is not None else "",
        "Ssl_version": tls.version if tls is not None else "", "Table_locks_immediate": "0", "Threads_cached": "0",
        "Threads_connected": str(count), "Threads_created": str(count), "Threads_running": "1",
        "Uptime": str(uptime), "Uptime_since_flush_status": str(uptime),
    }  # fmt: skip
    return await filtered(session, cursor, outputs_of(_NAMED), list(facts.items()))


def _warning_rows(session: Session, cursor: TokenCursor, found: list[Warning]) -> ResultSet:
    start, count = 0, len(found)
    if cursor.accept("LIMIT"):
        count = cursor.integer()
        if cursor.accept(","):
            start, count = count, cursor.integer()
        elif cursor.accept("OFFSET"):
            start = cursor.integer()
    cursor.expect_end()
    rows: list[Row] = [(each.level, each.code, each.message) for each in found[start : start + count]]
    return ResultSet(outputs_of(_WARNINGS), rows)


async def warnings(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    return _warning_rows(session, cursor, list(session.warnings))


async def errors(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    return _warning_rows(session, cursor, [each for each in session.warnings if each.level == "Error"])


async def count(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    cursor.expect("(", "*", ")")
    kind = cursor.accept_any("WARNINGS", "ERRORS")
    if not kind:
        raise cursor.error()
    found = [each for each in session.warnings if kind == "WARNINGS" or each.level == "Error"]
    name = f"@@session.{'warning' if kind == 'WARNINGS' else 'error'}_count"
    return ResultSet((OutputColumn(name, BIGINT, False),), [(len(found),)])


async def engines(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    cursor.expect_end()
    return ResultSet(outputs_of(_ENGINES), list(tables.engines(session)))


async def engine(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    return ResultSet(outputs_of("Type 10\nName 512\nStatus longtext"), [])


async def collation(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    return await filtered(session, cursor, outputs_of(_COLLATION), list(tables.collations(session)))


async def character_set(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    rows: list[Row] = [(row[0], row[2], row[1], row[3]) for row in tables.character_sets(session)]
    return await filtered(session, cursor, outputs_of(_CHARSET), rows)


async def processlist(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    cursor.expect_end()
    rows: list[Row] = []
    for row in await tables.processlist(session):
        info = row[7]
        shown = info[:100] if isinstance(info, str) and not full else info
        rows.append((*row[:7], shown))
    return ResultSet(outputs_of(_PROCESSLIST), rows)


async def privileges(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    names = ("Select", "Insert", "Update", "Delete", "Create", "Drop", "Index", "Alter")
    return ResultSet(outputs_of(_PRIVILEGES), [(name, "Tables", "") for name in names])


async def plugins(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    names = ("mysql_native_password", "caching_sha2_password")
    return ResultSet(outputs_of(_PLUGINS), [(name, "ACTIVE", "AUTHENTICATION", None, "GPL") for name in names])


async def _none(session: Session, cursor: TokenCursor, lines: str) -> ResultSet:
    if cursor.accept_any("FROM", "IN"):
        cursor.identifier()
    return await filtered(session, cursor, outputs_of(lines), [])


async def triggers(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    return await _none(session, cursor, _TRIGGERS)


async def events(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    return await _none(session, cursor, _EVENTS)


async def routines(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    return await _none(session, cursor, _ROUTINES)


async def open_tables(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    return await _none(session, cursor, _OPEN_TABLES)


async def nothing(session: Session, cursor: TokenCursor, full: bool) -> ResultSet:
    """Replication and profiling, which there is none of."""
    return ResultSet(outputs_of("File 255\nPosition ubigint"), [])
