"""A connection to one of the servers, and all that it answers to a statement, as bytes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.constants import CLIENT, FIELD_TYPE

Row = tuple[bytes | None, ...]
LOST = (0, 2006, 2013, 2014)
CONNECT_TIMEOUT_S = 5


@dataclass(frozen=True, slots=True)
class Answer:
    rows: list[Row] | None = None
    columns: tuple[str, ...] = ()
    floats: frozenset[int] = frozenset()
    affected: int = 0
    insert_id: int = 0
    warnings: int = 0
    code: int = 0
    message: str = ""
    timed_out: bool = False
    further: Answer | None = None
    """The next result, where a text has several statements."""

    def __str__(self) -> str:
        if self.timed_out:
            return "no answer in time"
        if self.code:
            return f"{self.code} {self.message}"
        if self.rows is None:
            return f"affected {self.affected}, insert id {self.insert_id}, warnings {self.warnings}"
        shown = [[None if cell is None else cell.decode("utf-8", "backslashreplace") for cell in row] for row in self.rows[:20]]
        return f"{len(self.rows)} rows {shown}"[:3000]


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    socket: str | None = None
    greeting: Sequence[str] = ()
    """What every connection says first."""


class Line:
    """One connection. It is opened again after it was lost, with nothing of its session."""

    def __init__(self, address: Address, user: str, password: str, database: str, timeout_s: float) -> None:
        self.address, self._login, self._timeout_s = address, (user, password, database), timeout_s
        self._pending: tuple[threading.Thread, list[Answer]] | None = None
        self._connection = self._open()

    def _open(self) -> Any:
        user, password, database = self._login
        connection = pymysql.connect(
            host=self.address.host, port=self.address.port, unix_socket=self.address.socket, user=user, password=password,
            database=None if database == "*NO-ONE*" else database, charset="utf8mb4", use_unicode=False, autocommit=None,
            client_flag=CLIENT.MULTI_STATEMENTS, local_infile=True, connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=self._timeout_s, write_timeout=self._timeout_s,
        )  # fmt: skip
        connection.decoders = {}
        connection.encoding = "latin-1"  # of the columns' names: any bytes will do
        for each in self.address.greeting:
            connection.query(each)
        return connection

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._connection._force_close()

    def ask(self, sql: str) -> Answer:
        if self._connection._sock is None:
            self._connection = self._open()
        try:
            self._connection.query(sql.encode("utf-8", "surrogateescape"))
        except pymysql.err.MySQLError as error:
            return self._failed(error)
        answer = self._answer()
        try:
            further = []
            while self._connection._result.has_next:
                self._connection.next_result()
                further.append(self._answer())
        except pymysql.err.MySQLError as error:
            further.append(self._failed(error))
        following: Answer | None = None
        for each in reversed(further):
            following = _followed(each, following)
        return _followed(answer, following)

    def send(self, sql: str) -> None:
        answers: list[Answer] = []
        thread = threading.Thread(target=lambda: answers.append(self.ask(sql)), daemon=True)
        thread.start()
        self._pending = thread, answers

    @property
    def is_waiting(self) -> bool:
        return self._pending is not None

    def reap(self) -> Answer:
        assert self._pending is not None
        thread, answers = self._pending
        self._pending = None
        thread.join(self._timeout_s + 1)
        return answers[0] if answers else Answer(timed_out=True)

    def _failed(self, error: pymysql.err.MySQLError) -> Answer:
        code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        message = str(error.args[-1]) if error.args else ""
        if code not in LOST:
            return Answer(code=code, message=message)
        number = self._connection.thread_id()
        self.close()
        if "timed out" not in message:
            return Answer(code=code or 2013, message=message)
        with contextlib.suppress(Exception), contextlib.closing(self._open()) as other:
            other.query(f"KILL {number}")
        return Answer(timed_out=True)

    def _answer(self) -> Answer:
        result = self._connection._result
        if result.description is None:
            return Answer(affected=result.affected_rows, insert_id=result.insert_id or 0, warnings=result.warning_count)
        columns = tuple(each[0] for each in result.description)
        floats = frozenset(
            index for index, each in enumerate(result.description) if each[1] in (FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE)
        )
        rows = [tuple(_bytes(cell) for cell in row) for row in result.rows or ()]
        return Answer(rows, columns, floats, warnings=result.warning_count)


def _followed(answer: Answer, further: Answer | None) -> Answer:
    return Answer(
        answer.rows, answer.columns, answer.floats, answer.affected, answer.insert_id, answer.warnings, answer.code,
        answer.message, answer.timed_out, further,
    )  # fmt: skip


def _bytes(cell: Any) -> bytes | None:
    return cell.encode() if isinstance(cell, str) else cell
