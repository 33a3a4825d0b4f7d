"""A connection of a load process that never waits: a statement is sent, and whatever arrives is given to `received`.

Statements that the page prepares are prepared once for each number of values, when they are first executed; others go as text.
"""

from __future__ import annotations

import socket
from typing import Any

import pymysql
from pymysql.converters import escape_string

from apps.lobsters.packets import (
    EOF,
    ERROR,
    OK,
    Columns,
    PacketAnswer,
    ServerError,
    command,
    execution,
    number,
    packet_end,
    preparation,
)
from apps.lobsters.pages import Statement
from apps.lobsters.plain_connection import SQL_MODE

RECEIVED_AT_ONCE = 1 << 16
REMEMBERED_ROWS_MIN = 8
REMEMBERED_MAX = 100


class Remembered:
    """Long answers of all connections of a process. One that is the same, byte for byte, is not read again."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, bool], dict[bytes, PacketAnswer]] = {}

    def find(self, statement: str, is_binary: bool, data: bytes) -> PacketAnswer | None:
        known = self._answers.get((statement, is_binary))
        return None if known is None else known.get(data)

    def add(self, statement: str, is_binary: bool, data: bytes, answer: PacketAnswer) -> None:
        if answer.row_count >= REMEMBERED_ROWS_MIN:
            known = self._answers.setdefault((statement, is_binary), {})
            if len(known) == REMEMBERED_MAX:
                known.clear()
            known[data] = answer


class QuickConnection:
    """One statement is under way at a time."""

    def __init__(self, host: str, port: int, database: str, is_prepared: bool, remembered: Remembered) -> None:
        # PyMySQL logs in; after that there is nothing left to read, and the socket is ours
        address: dict[str, Any] = {"host": host, "port": port, "user": "root", "database": database}
        self._driver = pymysql.connect(**address, charset="utf8mb4", autocommit=True, ssl_disabled=True)
        with self._driver.cursor() as cursor:
            cursor.execute(SQL_MODE)
        self._socket: socket.socket = self._driver._sock
        self._socket.settimeout(None)
        self._is_prepared = is_prepared
        self._remembered = remembered
        self._statement_ids: dict[str, int] = {}
        self._columns: dict[str, Columns] = {}
        self._pending: tuple[str, list[Any]] | None = None
        self._sql, self._is_binary = "", False
        self._data = b""
        self._at = 0
        self._starts: list[int] = []
        self._known: Columns | None = None

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, statement: Statement, values: list[Any]) -> None:
        self._sql = statement.name
        if not (self._is_prepared and statement.is_prepared):
            self._is_binary = False
            self._socket.sendall(command(statement.text(values, escape_string)))
            return
        self._is_binary = True
        sql, flat = statement.spread(values)
        statement_id = self._statement_ids.get(sql)
        if statement_id is None:
            self._pending = sql, flat
            self._socket.sendall(preparation(sql))
        else:
            self._socket.sendall(execution(statement_id, flat))

    def received(self, most: int = RECEIVED_AT_ONCE) -> PacketAnswer | None:
        """What has arrived is taken; the answer if that is its end."""
        arrived = self._socket.recv(most, socket.MSG_DONTWAIT)
        if not arrived:
            raise ConnectionError("the server has closed the connection")
        data = self._data = self._data + arrived if self._data else arrived
        if self._pending is not None:
            self._prepare_end(data, *self._pending)
            return None
        answer = self._remembered.find(self._sql, self._is_binary, data)
        if answer is None and (answer := self._answer(data)) is not None:
            self._remembered.add(self._sql, self._is_binary, data, answer)
        if answer is not None:
            self._data, self._at, self._starts, self._known = b"", 0, [], None
        return answer

    def close(self) -> None:
        self._driver._force_close()

    def _answer(self, data: bytes) -> PacketAnswer | None:
        size, at = len(data), self._at
        if self._known is None:
            known = self._columns.get(self._sql)
            if known is None or not data.startswith(known.packets):
                first_end = packet_end(data, 0)
                if size < first_end:
                    return None
                kind = data[4]
                if kind == ERROR:
                    self._data = b""
                    raise ServerError(data[13:].decode(errors="replace"))
                if kind == OK:
                    _, place = number(data, 5)
                    return PacketAnswer(None, b"", [], False, number(data, place)[0])
                end = _end_of_columns(data, first_end)
                if not end:
                    return None
                known = self._columns[self._sql] = Columns(data[:end])
            self._known = known
            at = len(known.packets)
        starts = self._starts
        while at + 4 < size:
            length = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            end = at + 4 + length
            if end > size:
                break
            if length < 9 and data[at + 4] == EOF:
                return PacketAnswer(self._known, data, starts, self._is_binary)
            if data[at + 4] == ERROR:
                self._data, self._at, self._starts, self._known = b"", 0, [], None
                raise ServerError(data[at + 13 : end].decode(errors="replace"))
            starts.append(at + 4)
            at = end
        self._at = at
        return None

    def _prepare_end(self, data: bytes, sql: str, flat: list[Any]) -> None:
        """The statement is executed as soon as the server has answered that it is prepared."""
        end = packet_end(data, 0)
        if len(data) < end:
            return
        if data[4] == ERROR:
            self._pending, self._data = None, b""
            raise ServerError(data[13:].decode(errors="replace"))
        columns, parameters = int.from_bytes(data[9:11], "little"), int.from_bytes(data[11:13], "little")
        left = sum(count + 1 for count in (columns, parameters) if count)
        for _ in range(left):
            if len(data) < end + 4 or len(data) < (end := packet_end(data, end)):
                return
        statement_id = self._statement_ids[sql] = int.from_bytes(data[5:9], "little")
        self._pending, self._data = None, b""
        self._socket.sendall(execution(statement_id, flat))


def _end_of_columns(data: bytes, at: int) -> int:
    """Behind the packet that ends the columns, 0 if it is not there yet."""
    while at + 4 < len(data):
        end = packet_end(data, at)
        if end > len(data):
            return 0
        if data[at + 4] == EOF and end - at < 13:
            return end
        at = end
    return 0
