"""One statement of a recorded stream, over the wire: rows, columns as they are described, counts, errors.

What the two servers are known to describe differently is left out here, and only here:
- lengths and flags of computed columns, and whether an integer is INT or BIGINT;
- the primary-key and similar flags of columns of information_schema and SHOW;
- JSON, which MariaDB has as LONGTEXT.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.constants import CLIENT, FIELD_TYPE, FLAG
from pymysql.protocol import MysqlPacket

from tests.differential.comparison import SAME_ERRORS

INTEGERS = frozenset(
    {FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.INT24, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG, FIELD_TYPE.YEAR}
)
STRINGS = frozenset(
    {FIELD_TYPE.STRING, FIELD_TYPE.VAR_STRING, FIELD_TYPE.VARCHAR, FIELD_TYPE.BLOB, FIELD_TYPE.TINY_BLOB,
     FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB, FIELD_TYPE.JSON, FIELD_TYPE.ENUM, FIELD_TYPE.SET, FIELD_TYPE.NULL}
)  # fmt: skip
BINARY_CHARSET = 63
STATES = {1366: "HY000", 4025: "HY000", 3819: "HY000", 167: "HY000", 1467: "HY000"}
"""Where MariaDB and MySQL disagree; MySQL's."""

FLAGS = (
    FLAG.NOT_NULL | FLAG.PRI_KEY | FLAG.UNIQUE_KEY | FLAG.BLOB | FLAG.UNSIGNED | FLAG.ZEROFILL | FLAG.BINARY
    | FLAG.ENUM | FLAG.AUTO_INCREMENT | FLAG.TIMESTAMP | FLAG.SET
)  # fmt: skip

KEYS = FLAG.PRI_KEY | FLAG.UNIQUE_KEY | FLAG.AUTO_INCREMENT | FLAG.TIMESTAMP
TEMPORARY = re.compile(r"\b(ORDER BY|GROUP BY|JOIN|WITH|COUNT|rich)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Reply:
    rows: list[tuple[str | None, ...]] | None = None
    columns: list[tuple[Any, ...]] | None = None
    affected: int = 0
    insert_id: int = 0
    warnings: int = 0
    error: tuple[int, str] | None = None
    message: str = ""

    @property
    def kind(self) -> str:
        return "error" if self.error else "done" if self.rows is None else "rows"


class _Packet(MysqlPacket):  # type: ignore[misc]
    def raise_for_error(self) -> None:
        try:
            super().raise_for_error()
        except pymysql.err.MySQLError as error:
            error.args = (*error.args, self._data[4:9].decode())
            raise


class _Connection(pymysql.connections.Connection):  # type: ignore[misc]
    """PyMySQL's, which tells the SQLSTATE of an error as well."""

    def _read_packet(self, packet_type: Any = _Packet) -> Any:
        return super()._read_packet(_Packet if packet_type is MysqlPacket else packet_type)


class StreamPeer:
    def __init__(self, host: str, port: int) -> None:
        self._connection = _Connection(
            host=host, port=port, user="root", autocommit=True, charset="utf8mb4", client_flag=CLIENT.MULTI_STATEMENTS
        )
        self._connection.decoders = {}

    def close(self) -> None:
        self._connection.close()

    def run(self, sql: str) -> Reply:
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(sql)
            except pymysql.err.MySQLError as error:
                code, message, *state = error.args
                return Reply(error=(SAME_ERRORS.get(code, code), STATES.get(code, "".join(state))), message=str(message))
            result = cursor._result
            if cursor.description is None:
                return Reply(affected=cursor.rowcount, insert_id=cursor.lastrowid or 0, warnings=result.warning_count)
            fields = result.fields
            # SHOW WARNINGS and the like count what they show, or do not: it is not looked at.
            return Reply([tuple(map(_text, row)) for row in cursor.fetchall()], [_column(field) for field in fields])


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return bytes(value).decode("utf-8", "backslashreplace")


def _column(field: Any) -> tuple[Any, ...]:
    kind = field.type_code
    stored = bool(field.org_table) and bytes(field.db).startswith(b"stream_") and kind != FIELD_TYPE.JSON
    if not stored or (kind in STRINGS and field.length > 1 << 31):
        family = "integer" if kind in INTEGERS else "string" if kind in STRINGS else kind
        return (field.name, family)
    charset = "binary" if field.charsetnr == BINARY_CHARSET else "text"
    return (field.name, field.org_name, field.table_name, field.org_table, kind, field.flags & FLAGS, field.scale, field.length, charset)


def _described(sql: str, columns: list[tuple[Any, ...]] | None) -> list[tuple[Any, ...]]:
    """MariaDB forgets which keys a column is part of, and a view's table, when it makes a temporary table."""
    if columns is None or not TEMPORARY.search(sql):
        return columns or []
    return [each if len(each) < 9 else (*each[:3], each[4], each[5] & ~(KEYS | FLAG.NOT_NULL), *each[6:]) for each in columns]


def difference(sql: str, expected: Reply, found: Reply, accepted: bool) -> str:
    """What is not the same, for people to read; empty if nothing."""
    if accepted:
        return "" if expected.kind == found.kind else f"{expected.kind}, found {found.kind} {found.message!r}"
    if expected.error or found.error:
        if expected.error == found.error:
            return ""
        return f"{expected.error} {expected.message!r}, found {found.error} {found.message!r} {found.rows}"
    described, other = _described(sql, expected.columns), _described(sql, found.columns)
    if described != other:
        pairs = ", ".join(f"{a} found {b}" for a, b in zip(described, other) if a != b)
        return "columns " + (pairs or f"{described} found {other}")
    if expected.rows is not None and found.rows is not None:
        ordered = "order by" in sql.lower()
        same = expected.rows == found.rows if ordered else Counter(expected.rows) == Counter(found.rows)
        return "" if same else f"rows\n    {expected.rows}\n  found\n    {found.rows}"
    left = (expected.affected, expected.insert_id, expected.warnings)
    right = (found.affected, found.insert_id, found.warnings)
    if sql.split(maxsplit=1)[0].upper() in ("ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE", "SET", "/*!40000"):
        return ""  # how many rows had to be copied, and what was worth a warning, is up to the server
    return "" if left == right else f"(affected, insert id, warnings) {left}, found {right}"
