"""The tables of information_schema that describe the server, and those for what does not exist here."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dataflow.values.collation.names import CHARSETS, COLLATIONS
from dataflow.values.types import Row
from mysql_adapter.information_schema.virtual import empty, virtual
from mysql_adapter.neighbours import all_processes

if TYPE_CHECKING:
    from mysql_adapter.connection import Connection
    from mysql_adapter.sessions.session import Session

ENGINE_COMMENT = "Dataflow over LevelDB: transactions, secondary indexes and materialised views"


@virtual("ENGINES", """
    ENGINE 64
    SUPPORT 8
    COMMENT 80
    TRANSACTIONS 3?
    XA 3?
    SAVEPOINTS 3?
""")
def engines(session: Session) -> Iterator[Row]:
    yield ("InnoDB", "DEFAULT", ENGINE_COMMENT, "YES", "NO", "YES")


@virtual("CHARACTER_SETS", """
    CHARACTER_SET_NAME 64
    DEFAULT_COLLATE_NAME 64
    DESCRIPTION 2048
    MAXLEN uint
""")
def character_sets(session: Session) -> Iterator[Row]:
    for charset in CHARSETS.values():
        yield (charset.name, charset.default_collation, charset.description, charset.bytes_max)


@virtual("COLLATIONS", """
    COLLATION_NAME 64
    CHARACTER_SET_NAME 64
    ID ubigint
    IS_DEFAULT 3
    IS_COMPILED 3
    SORTLEN uint
    PAD_ATTRIBUTE 9
""")
def collations(session: Session) -> Iterator[Row]:
    for each in sorted(COLLATIONS, key=lambda each: each.name):
        default = "Yes" if each.is_default else ""
        pad = "PAD SPACE" if each.pads else "NO PAD"
        yield (each.name, each.charset, each.id, default, "Yes", each.sort_length, pad)


@virtual("COLLATION_CHARACTER_SET_APPLICABILITY", """
    COLLATION_NAME 64
    CHARACTER_SET_NAME 64
""")
def applicability(session: Session) -> Iterator[Row]:
    for each in COLLATIONS:
        yield (each.name, each.charset)


_SECRETIVE = re.compile(r"\b(?:IDENTIFIED|PASSWORD)\b", re.IGNORECASE)
_STRINGS = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", re.DOTALL)


def shown_statement(sql: str) -> str:
    """A statement for others to see, without passwords."""
    return _STRINGS.sub("<secret>", sql) if _SECRETIVE.search(sql) else sql


@virtual("PROCESSLIST", """
    ID ubigint
    USER 32
    HOST 261
    DB 64?
    COMMAND 16
    TIME int
    STATE 64?
    INFO longtext?
""")
async def processlist(session: Session) -> list[Row]:
    return await all_processes(session)


def process_row(number: int, connection: Connection) -> Row:
    other = connection.session
    if other is None:
        return (number, "unauthenticated user", connection.host_name, None, "Connect", 0, "login", None)
    running = not connection.is_waiting
    return (
        number, other.user, connection.peer, other.database, "Query" if running else "Sleep",
        int(time.time() - other.statement_started), "executing" if running else "",
        shown_statement(other.statement) if running else None,
    )  # fmt: skip


empty("TRIGGERS", """
    TRIGGER_CATALOG 64
    TRIGGER_SCHEMA 64
    TRIGGER_NAME 64
    EVENT_MANIPULATION 6
    EVENT_OBJECT_CATALOG 64
    EVENT_OBJECT_SCHEMA 64
    EVENT_OBJECT_TABLE 64
    ACTION_ORDER uint
    ACTION_CONDITION 1?
    ACTION_STATEMENT longtext
    ACTION_ORIENTATION 3
    ACTION_TIMING 6
    ACTION_REFERENCE_OLD_TABLE 1?
    ACTION_REFERENCE_NEW_TABLE 1?
    ACTION_REFERENCE_OLD_ROW 3
    ACTION_REFERENCE_NEW_ROW 3
    CREATED datetime?
    SQL_MODE 512
    DEFINER 288
    CHARACTER_SET_CLIENT 64
    COLLATION_CONNECTION 64
    DATABASE_COLLATION 64
""")
empty("ROUTINES", """
    SPECIFIC_NAME 64
    ROUTINE_CATALOG 64
    ROUTINE_SCHEMA 64
    ROUTINE_NAME 64
    ROUTINE_TYPE 9
    DATA_TYPE longtext?
    CHARACTER_MAXIMUM_LENGTH bigint?
    CHARACTER_OCTET_LENGTH bigint?
    NUMERIC_PRECISION uint?
    NUMERIC_SCALE uint?
    DATETIME_PRECISION uint?
    CHARACTER_SET_NAME 64?
    COLLATION_NAME 64?
    DTD_IDENTIFIER longtext?
    ROUTINE_BODY 8
    ROUTINE_DEFINITION longtext?
    EXTERNAL_NAME 1?
    EXTERNAL_LANGUAGE 64
    PARAMETER_STYLE 3
    IS_DETERMINISTIC 3
    SQL_DATA_ACCESS 64
    SQL_PATH 1?
    SECURITY_TYPE 7
    CREATED datetime
    LAST_ALTERED datetime
    SQL_MODE 512
    ROUTINE_COMMENT longtext
    DEFINER 288
    CHARACTER_SET_CLIENT 64
    COLLATION_CONNECTION 64
    DATABASE_COLLATION 64
""")
empty("PARAMETERS", """
    SPECIFIC_CATALOG 64
    SPECIFIC_SCHEMA 64
    SPECIFIC_NAME 64
    ORDINAL_POSITION ubigint
    PARAMETER_MODE 5?
    PARAMETER_NAME 64?
    DATA_TYPE longtext?
    CHARACTER_MAXIMUM_LENGTH bigint?
    CHARACTER_OCTET_LENGTH bigint?
    NUMERIC_PRECISION uint?
    NUMERIC_SCALE bigint?
    DATETIME_PRECISION uint?
    CHARACTER_SET_NAME 64?
    COLLATION_NAME 64?
    DTD_IDENTIFIER longtext
    ROUTINE_TYPE 9
""")
empty("EVENTS", """
    EVENT_CATALOG 64
    EVENT_SCHEMA 64
    EVENT_NAME 64
    DEFINER 288
    TIME_ZONE 64
    EVENT_BODY 3
    EVENT_DEFINITION longtext
    EVENT_TYPE 9
    STATUS 18
    CREATED datetime
    LAST_ALTERED datetime
""")
empty("FILES", """
    FILE_ID bigint?
    FILE_NAME longtext?
    FILE_TYPE 256?
    TABLESPACE_NAME 268
    TABLE_SCHEMA 1?
    TABLE_NAME 1?
    LOGFILE_GROUP_NAME 256?
    LOGFILE_GROUP_NUMBER bigint?
    ENGINE 64
    TOTAL_EXTENTS bigint?
    INITIAL_SIZE bigint?
    EXTENT_SIZE bigint?
    EXTRA 256?
""")
empty("PLUGINS", """
    PLUGIN_NAME 64
    PLUGIN_VERSION 20
    PLUGIN_STATUS 10
    PLUGIN_TYPE 80
    PLUGIN_TYPE_VERSION 20
    PLUGIN_LIBRARY 64?
    PLUGIN_LIBRARY_VERSION 20?
    PLUGIN_AUTHOR 64?
    PLUGIN_DESCRIPTION longtext?
    PLUGIN_LICENSE 80?
    LOAD_OPTION 64
""")
empty("COLUMN_STATISTICS", """
    SCHEMA_NAME 64
    TABLE_NAME 64
    COLUMN_NAME 64
    HISTOGRAM json
""")
empty("INNODB_TABLES", """
    TABLE_ID ubigint
    NAME 655
    FLAG int
    N_COLS int
    SPACE bigint
    ROW_FORMAT 12?
    ZIP_PAGE_SIZE uint
    SPACE_TYPE 10?
""")
