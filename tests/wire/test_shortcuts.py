"""Statements answered as they arrive give the same bytes as those that are executed, or are executed.

A command that comes in one piece with another is always executed: so both ways can be compared.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import MySQLdb
import pymysql
import pytest

from mysql_adapter.shortcuts import shortcuts
from tests.mariadb import MariaDB
from tests.wire.raw import DEPRECATE_EOF, PLAIN, RawClient, ServerError, framed
from tests.wire.server import ServerThread, sharing_server

PING = b"\x0e"
QUERY_ATTRIBUTES = 1 << 27
LONG, LONGLONG, DOUBLE, VAR_STRING, NULL_TYPE = 3, 8, 5, 253, 6
DATE, TIME, DATETIME, NEWDECIMAL, BLOB = 10, 11, 12, 246, 252
WARM = 8
"""So often a statement comes before it is expected to be answered as it arrives."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    with sharing_server(tmp_path_factory.mktemp("shared")) as found:
        yield found


class Client(RawClient):
    """`executed` and `run` give all bytes of an answer."""

    def __init__(self, server: ServerThread, capabilities: int = PLAIN, user: bytes = b"root") -> None:
        super().__init__(server.port, capabilities, login=False)
        self.log_in(user)
        assert server.server is not None
        self._shortcuts = server.server.environment.shortcuts
        self._recorded = bytearray()

    def read_bytes(self, count: int) -> bytes:
        data = super().read_bytes(count)
        self._recorded = getattr(self, "_recorded", bytearray()) + data
        return data

    def run(self, payload: bytes) -> bytes:
        self.socket.sendall(framed(payload, 0))
        return self._answer()

    def executed(self, payload: bytes) -> bytes:
        before = self._shortcuts.answered
        self.socket.sendall(framed(PING, 0) + framed(payload, 0))
        self.read_ok()
        answer = self._answer()
        assert self._shortcuts.answered == before
        return answer

    def _answer(self) -> bytes:
        self._recorded = bytearray()
        self.rows = self.read_result()
        return bytes(self._recorded)

    def read_described(self) -> bytes:
        """The whole answer to a PREPARE of a client that gets EOF packets."""
        self._recorded = bytearray()
        columns, parameters = struct.unpack("<HH", self.read_ok()[5:9])
        for count in (parameters, columns):
            for _ in range(count + 1 if count else 0):
                self.read()
        return bytes(self._recorded)[4:]

    def is_answered_at_once(self, payload: bytes) -> bool:
        before = self._shortcuts.answered
        self.run(payload)
        return self._shortcuts.answered > before

    def same(self, payload: bytes) -> list[bytes]:
        """The rows of an answer that is at hand and does not differ from that of executing it."""
        for _ in range(WARM):
            expected = self.executed(payload)
        if not self.is_answered_at_once(payload):  # the first time it is looked at closely
            assert self.is_answered_at_once(payload), payload
        assert self.run(payload) == expected
        return self.rows

    def prepare(self, sql: str) -> int:
        self.command(0x16, sql.encode())
        first = self.read_ok()
        number, columns, parameters = struct.unpack("<IHH", first[1:9])
        ends = 0 if self.capabilities & (DEPRECATE_EOF & ~PLAIN) else 1
        for count in (parameters, columns):
            for _ in range(count + ends if count else 0):
                self.read()
        return int(number)


def text(sql: str) -> bytes:
    return b"\x03" + sql.encode()


def execute(statement: int, *values: Any, types: bool = True, flags: int = 0) -> bytes:
    """An EXECUTE with parameters of all kinds."""
    nulls, kinds, body = 0, b"", b""
    for place, value in enumerate(values):
        match value:
            case None:
                nulls |= 1 << place
                kinds += bytes((NULL_TYPE, 0))
            case float():
                kinds, body = kinds + bytes((DOUBLE, 0)), body + struct.pack("<d", value)
            case str():
                data = value.encode()
                kinds, body = kinds + bytes((VAR_STRING, 0)), body + bytes((len(data),)) + data
            case bytes() | Decimal():
                data = value if isinstance(value, bytes) else str(value).encode()
                kind = BLOB if isinstance(value, bytes) else NEWDECIMAL
                kinds, body = kinds + bytes((kind, 0)), body + bytes((len(data),)) + data
            case datetime():
                data = struct.pack("<HBBBBB", *value.timetuple()[:6])
                data += struct.pack("<I", value.microsecond) if value.microsecond else b""
                kinds, body = kinds + bytes((DATETIME, 0)), body + bytes((len(data),)) + data
            case date():
                kinds, body = kinds + bytes((DATE, 0)), body + b"\4" + struct.pack("<HBB", *value.timetuple()[:3])
            case timedelta():
                minutes, seconds = divmod(value.seconds, 60)
                data = struct.pack("<BIBBB", 0, value.days, *divmod(minutes, 60), seconds)
                kinds, body = kinds + bytes((TIME, 0)), body + b"\x08" + data
            case _ if value >= 1 << 63:
                kinds, body = kinds + bytes((LONGLONG, 0x80)), body + struct.pack("<Q", value)
            case _:
                kinds, body = kinds + bytes((LONGLONG, 0)), body + struct.pack("<q", value)
    head = b"\x17" + struct.pack("<IBI", statement, flags, 1)
    if not values:
        return head
    bitmap = nulls.to_bytes((len(values) + 7) // 8, "little")
    return head + bitmap + (b"\1" + kinds if types else b"\0") + body


@pytest.fixture
def client(server: ServerThread) -> Iterator[Client]:
    with Client(server) as connected:
        connected.query("DROP DATABASE IF EXISTS quick")
        connected.query("CREATE DATABASE quick")
        connected.query("USE quick")
        connected.query(
            "CREATE TABLE stories (id INT PRIMARY KEY, title VARCHAR(60) NOT NULL, author INT, UNIQUE KEY (title))"
        )
        connected.query("INSERT INTO stories VALUES (1, 'one', 7), (2, 'two', NULL), (3, 'three', 7)")
        connected.query("CREATE TABLE votes (user INT, story INT, PRIMARY KEY (user, story), KEY (story))")
        connected.query("INSERT INTO votes VALUES (1, 1), (2, 1), (3, 2)")
        yield connected


POINT = "SELECT * FROM stories WHERE id = {}"
COUNTED = (
    "SELECT s.id, s.title, COUNT(v.user) AS votes FROM stories s LEFT JOIN votes v ON v.story = s.id"
    " WHERE s.id = {} GROUP BY s.id, s.title"
)

TYPES = """
    c0 TINYINT, c1 SMALLINT UNSIGNED, c2 MEDIUMINT, c3 INT UNSIGNED, c4 BIGINT, c5 BIGINT UNSIGNED, c6 DECIMAL(20,4),
    c7 FLOAT, c8 DOUBLE, c9 DATE, c10 DATETIME(6), c11 TIMESTAMP NULL, c12 TIME(3), c13 YEAR, c14 CHAR(5), c15 VARCHAR(300),
    c16 TEXT, c17 BINARY(4), c18 VARBINARY(20), c19 BLOB, c20 ENUM('a','b'), c21 SET('x','y'), c22 BIT(10), c23 JSON,
    c24 INT(6) ZEROFILL, c25 BOOLEAN
"""
VALUES = [
    "-5, 65535, -8388608, 4294967295, -9223372036854775808, 18446744073709551615, -12345.6789, 1.5, 1e300, '2024-02-29',"
    " '2024-02-29 12:34:56.000789', '2024-02-29 12:00:00', '-100:00:00.250', 1999, 'ab', 'grüße', REPEAT('x', 1000),"
    " 'a', x'00ff27', REPEAT('b', 300), 'b', 'x,y', b'1000000001', '{\"a\": [1, null]}', 42, TRUE",
    "0, 0, 0, 0, 0, 0, 0, 0, 0, '0001-01-01', '1000-01-01', '1970-01-01 00:00:01', '00:00:00', 2155, '', '', '', '', '', '',"
    " 'a', '', b'0', 'null', 0, FALSE",
    ", ".join(["NULL"] * 26),
]


@pytest.mark.parametrize("capabilities", [PLAIN, DEPRECATE_EOF])
def test_every_type_is_the_same_both_ways(server: ServerThread, client: Client, capabilities: int) -> None:
    client.query(f"CREATE TABLE types (id BIGINT PRIMARY KEY, {TYPES})")
    for number, values in enumerate(VALUES):
        client.query(f"INSERT INTO types VALUES ({number}, {values})")
    with Client(server, capabilities) as other:
        other.query("USE quick")
        statement = other.prepare("SELECT * FROM types WHERE id = ?")
        for number in range(len(VALUES)):
            assert len(other.same(text(f"SELECT * FROM types WHERE id = {number}"))) == 1
            assert len(other.same(execute(statement, number))) == 1
            assert len(other.same(execute(statement, number, types=False))) == 1


MANY = (
    "SELECT v.user, s.title FROM stories s JOIN votes v ON v.story = s.id WHERE s.id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10){}"
)
QUERIES = [
    POINT.format(2),
    COUNTED.format(1),
    COUNTED.format(99),
    "SELECT title FROM stories WHERE title = 'TWO'",
    "select Id, 'x', 5 FROM stories WHERE id = 3",
    "SELECT id FROM stories WHERE id IN (3, 1, 2, 9)",
    "SELECT user FROM votes WHERE user = 3 AND story = 2",
    "SELECT COUNT(*) FROM stories s JOIN votes v ON v.story = s.id WHERE s.id = 99",
    "SELECT COUNT(*) FROM stories s JOIN votes v ON v.story = s.id",
    "SELECT user FROM votes WHERE story = 1 ORDER BY user DESC LIMIT 1",
    "SELECT user FROM votes WHERE story = 1 ORDER BY user LIMIT 1, 5",
    "SELECT id, author + 1 FROM stories WHERE id = 1 AND author > 3",
    "SELECT id, title FROM stories WHERE id = 2 ORDER BY title LIMIT 1",
    "SELECT id, title FROM stories WHERE id = 2 LIMIT 0",
    "SELECT id FROM stories WHERE title IN ('two', 'one')",
    "SELECT DISTINCT s.author FROM stories s JOIN votes v ON v.story = s.id WHERE s.author = 7",
    "SELECT s.title, v.user, ROW_NUMBER() OVER (ORDER BY v.user) FROM stories s JOIN votes v ON v.story = s.id WHERE s.id = 1",
    "SELECT `title` FROM `quick`.`stories` WHERE `id`=1",
    "SELECT id FROM stories WHERE id = 1 AND id = 2",
    "SELECT title, id FROM stories WHERE id IN (3, 1, 2, 9, 1, 10, 11, 12, 13)",
    f"SELECT id, COALESCE(author, 0) FROM stories WHERE id IN ({', '.join(map(str, range(300, -5, -1)))})",
    MANY.format(""),
    MANY.format(" ORDER BY v.user DESC"),
]


@pytest.mark.parametrize("sql", QUERIES)
def test_a_text_query_is_the_same_both_ways(client: Client, sql: str) -> None:
    client.same(text(sql))


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        (POINT.format("?"), (1,)),
        (POINT.format("?"), (99,)),
        (COUNTED.format("?"), (1,)),
        ("SELECT id FROM stories WHERE title = ?", ("Three",)),
        ("SELECT id, ? FROM stories WHERE id = ?", ("text", 2)),
        ("SELECT id, ? FROM stories WHERE id = ?", (-0.0, 2)),
        ("SELECT id FROM stories WHERE id IN (?, ?)", (3, 1)),
        ("SELECT user FROM votes WHERE user = ? AND story = ?", (3, 2)),
        ("SELECT user FROM votes WHERE story = ? ORDER BY user LIMIT ?", (1, 1)),
        ("SELECT user FROM votes WHERE story = ? ORDER BY user LIMIT ? OFFSET ?", ("1", "1", "1")),
        ("SELECT COUNT(*) FROM stories s JOIN votes v ON v.story = s.id", ()),
    ],
)
def test_a_prepared_query_is_the_same_both_ways(client: Client, sql: str, parameters: tuple[Any, ...]) -> None:
    client.same(execute(client.prepare(sql), *parameters))


@pytest.mark.parametrize("flags", [0, 8])
def test_clients_that_may_send_attributes_get_the_same(server: ServerThread, client: Client, flags: int) -> None:
    """They say how many there are before the text, and give each parameter a name."""
    attributes = b"\x01\x01" + b"\0" + b"\1" + bytes((VAR_STRING, 0)) + b"\4name" + b"\5value"
    with Client(server, DEPRECATE_EOF | QUERY_ATTRIBUTES) as other:
        other.query(b"\0\1USE quick")
        rows = other.same(b"\x03\0\1" + POINT.format(1).encode())
        payload = b"\x03" + attributes + POINT.format(1).encode()
        for _ in range(WARM):
            assert not other.is_answered_at_once(payload) and other.rows == rows
        statement = other.prepare(POINT.format("?"))
        head = b"\x17" + struct.pack("<IBI", statement, flags, 1) + b"\1\0"
        for number in (1, 2):
            key = struct.pack("<q", number)
            found = other.same(head + b"\1" + bytes((LONGLONG, 0)) + b"\0" + key)
            assert found == other.same(head + b"\0" + key) and len(found) == 1
        none = other.prepare("SELECT COUNT(*) FROM stories s JOIN votes v ON v.story = s.id")
        head = b"\x17" + struct.pack("<IBI", none, flags, 1)
        assert len(other.same(head + b"\0" if flags else head)) == 1


def test_equal_floats_that_look_different_stay_different(client: Client) -> None:
    statement = client.prepare("SELECT id, ? FROM stories WHERE id = ?")
    zero, minus = client.same(execute(statement, 0.0, 1)), client.same(execute(statement, -0.0, 1))
    assert zero != minus


def test_a_limit_may_come_as_a_text_but_not_be_written_as_one(client: Client) -> None:
    """Some drivers have texts for everything."""
    statement = client.prepare("SELECT user FROM votes WHERE story = ? ORDER BY user LIMIT ?")
    for limit in (1, 2):
        assert client.same(execute(statement, "1", str(limit))) == client.same(execute(statement, 1, limit))
    for wrong, code in ((execute(statement, 1, "-1"), 1210), (execute(statement, 1, 1.0), 1210), (text("SELECT 1 LIMIT '1'"), 1064)):
        with pytest.raises(ServerError) as raised:
            client.run(wrong)
        assert raised.value.code == code


def test_what_is_drawn_in_a_window_is_drawn_each_time(client: Client) -> None:
    for drawn in ("SUM(RAND()) OVER ()", "FIRST_VALUE(RAND()) OVER (ORDER BY user)", "COUNT(*) OVER (ORDER BY RAND())"):
        payload = text(f"SELECT user, {drawn} FROM votes WHERE story = 1")
        for _ in range(WARM):
            assert not client.is_answered_at_once(payload)


@pytest.mark.parametrize("sql", ["SELECT * FROM stories WHERE id = ?", "SELECT title FROM stories WHERE id = ? AND author = 7"])
def test_unusual_parameters_are_executed_and_right(client: Client, sql: str) -> None:
    statement = client.prepare(sql)
    client.same(execute(statement, 1))
    for value in (None, "1", 1.0, 1 << 63, "2", 2):
        for types in (True, False):
            payload = execute(statement, value, types=types)
            assert client.run(payload) == client.executed(payload)


EVENTS = """CREATE TABLE events (id INT PRIMARY KEY, room INT NOT NULL, day DATE, starts DATETIME(6), takes TIME,
    price DECIMAL(10, 2), code VARBINARY(20), weight DOUBLE, KEY (room), KEY (day), KEY (starts), KEY (takes), KEY (price), KEY (code))"""
MOMENT = datetime(2024, 2, 29, 12, 30)
BY_COLUMN = "SELECT {0}, COUNT(*), MAX(starts), MIN(price), MIN(code) FROM events WHERE {0} = ? GROUP BY {0}"


def fill_events(client: Client) -> None:
    client.query(EVENTS)
    rows = [
        f"({n}, {n % 3}, '2024-02-{n % 28 + 1:02}', '2024-02-29 12:{n % 60:02}:00.{n % 2 * 25:06}', '0{n % 9}:00:00', {n % 7}.50, 'c{n % 5}', {n / 4})"
        for n in range(100)
    ]
    client.query("INSERT INTO events VALUES " + ", ".join(rows) + ", (100, 0, NULL, NULL, NULL, NULL, NULL, NULL)")


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        (BY_COLUMN.format("day"), [(date(2024, 2, 5),), (date(2024, 2, 6),), (MOMENT,), (None,), ("2024-02-05",)]),
        (BY_COLUMN.format("starts"), [(MOMENT,), (MOMENT.replace(microsecond=25, minute=31),), (date(2024, 2, 29),), (None,)]),
        (BY_COLUMN.format("takes"), [(timedelta(hours=3),), (timedelta(hours=4),), (None,)]),
        (BY_COLUMN.format("price"), [(Decimal("3.50"),), (Decimal("3.5"),), (Decimal("3.51"),), (3.5,), (None,), (Decimal("-0.00"),)]),
        (BY_COLUMN.format("code"), [(b"c1",), (b"\xff",), ("c2",), (None,)]),
        (BY_COLUMN.format("id"), [(Decimal("7.0"),), (Decimal("7.5"),), (1 << 63,), (None,), (7,)]),
        ("SELECT ?, ?, ?, id FROM events WHERE id = ?", [(None, MOMENT, Decimal("1.50"), 3), (1, date(2024, 1, 1), Decimal("1.5"), 3)]),
        ("SELECT id FROM events WHERE room = ? AND starts > ? AND price < ? ORDER BY starts LIMIT 5", [(1, MOMENT, Decimal("4")), (1, MOMENT, Decimal("2")), (2, None, 1)]),
        ("SELECT id, COUNT(*) OVER (ORDER BY id RANGE ? PRECEDING) FROM events WHERE room = ?", [(6, 1), (12, 1), (6, 2)]),
        ("SELECT id, SUM(weight) OVER (ORDER BY id ROWS ? PRECEDING) FROM events WHERE room = ?", [(1, 1), (2, 1), (1, 2)]),
    ],
)
def test_parameters_of_any_type_are_the_same_both_ways(client: Client, sql: str, parameters: list[tuple[Any, ...]]) -> None:
    fill_events(client)
    statement = client.prepare(sql)
    for _ in range(WARM):
        for values in parameters:
            payload = execute(statement, *values)
            assert client.run(payload) == client.executed(payload)
    for values in parameters:
        at_once = client.is_answered_at_once(execute(statement, *values))
        assert at_once or values in [(Decimal("7.5"),), (1 << 63,)], "only what is no key of the column is asked for"


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT id, price FROM events WHERE room = ? AND id < ? ORDER BY id DESC LIMIT 5", [(1, 50), (2, 50), (1, 20), (1, -1), (9, 50)]),
        ("SELECT id FROM events WHERE room = ? AND id >= ? ORDER BY id LIMIT ?", [(1, 50, 3), (1, 50, 4), (0, 98, 10), (0, 98, 0)]),
        ("SELECT id FROM events WHERE room = ? AND starts BETWEEN ? AND ? ORDER BY starts LIMIT 9", [(1, MOMENT, MOMENT.replace(minute=50)), (1, MOMENT, None)]),
        ("SELECT id, weight FROM events WHERE room = ? AND id > ? AND weight > ? ORDER BY id LIMIT 3", [(1, 5, 0.5), (1, 5, 20.0), (2, 5, 24.9)]),
        ("SELECT room, COUNT(*) FROM events WHERE id = ? OR day = ? GROUP BY room", [(3, "2024-02-05")]),
        ("SELECT id FROM events WHERE room IN (?, ?) AND id < ? ORDER BY id DESC LIMIT 4", [(1, 2, 60), (0, 2, 30)]),
    ],
)
def test_ranges_of_ordered_views_follow_each_change(client: Client, sql: str, parameters: list[tuple[Any, ...]]) -> None:
    fill_events(client)
    statement = client.prepare(sql)
    changes = ["DELETE FROM events WHERE id = 49", "UPDATE events SET weight = 100 WHERE id = 7", "INSERT INTO events SELECT 49, 1, day, starts, takes, price, code, 9 FROM events WHERE id = 1", "SELECT 1"]
    answered = 0
    for change in changes:
        for values in parameters:
            payload = execute(statement, *values)
            for _ in range(WARM):
                assert client.run(payload) == client.executed(payload)
            answered += client.is_answered_at_once(payload)
        client.query(change)
        for values in parameters:
            payload = execute(statement, *values)
            assert client.run(payload) == client.executed(payload)
    assert answered == len(changes) * len(parameters)


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT id, 10 / (id - 2) FROM stories WHERE id = ?", (1, 2, 3)),
        ("SELECT id, 10 / (id - 2) FROM stories WHERE id IN (?, 3, 2, 1, 4, 5, 6, 7, 8, 9)", (1, 2)),
        ("SELECT title, COUNT(*), title + 0 FROM stories WHERE title = ? GROUP BY title", ("one", "two")),
        ("SELECT id, COUNT(*) FROM stories WHERE id = CAST(? AS SIGNED) GROUP BY id", ("1", "2x", "x")),
    ],
)
def test_what_has_warnings_is_executed_each_time(client: Client, sql: str, keys: tuple[Any, ...]) -> None:
    statement = client.prepare(sql)
    for _ in range(WARM):
        for key in keys:
            payload = execute(statement, key)
            client.executed(payload)
            expected = client.query("SHOW WARNINGS")
            client.run(payload)
            assert client.query("SHOW WARNINGS") == expected
            assert client.run(payload) == client.executed(payload)


def test_types_sent_before_hold_until_others_are_sent(client: Client) -> None:
    statement = client.prepare("SELECT id FROM stories WHERE id = ?")
    for number in (1, 2):
        client.same(execute(statement, number))
    assert client.is_answered_at_once(execute(statement, 2, types=False)) and client.rows
    client.run(execute(statement, "2"))
    assert client.run(execute(statement, "3", types=False)) == client.executed(execute(statement, "3"))
    assert client.rows == client.same(execute(statement, 3))


def test_long_data_and_cursors_are_executed(client: Client) -> None:
    statement = client.prepare("SELECT id FROM stories WHERE title = ?")
    [row] = client.same(execute(statement, "one"))
    client.command(0x18, struct.pack("<IH", statement, 0) + b"two")
    payload = execute(statement, "")
    assert not client.is_answered_at_once(payload[:-1])
    assert client.rows != [row]
    assert client.is_answered_at_once(execute(statement, "one"))
    client.command(0x17, execute(statement, "one", flags=1)[1:])
    client.read_ok()
    for _ in range(2):
        client.read()
    assert client.is_answered_at_once(execute(statement, "one"))  # which closes the cursor
    client.command(0x1C, struct.pack("<II", statement, 1))
    with pytest.raises(ServerError) as error:
        client.read_ok()
    assert error.value.code == 1325


def test_a_closed_statement_is_unknown(client: Client) -> None:
    statement = client.prepare(POINT.format("?"))
    client.same(execute(statement, 1))
    client.command(0x19, struct.pack("<I", statement))
    with pytest.raises(ServerError) as error:
        client.run(execute(statement, 1))
    assert error.value.code == 1243


def test_a_statement_that_is_prepared_again_is_described_as_before(server: ServerThread, client: Client) -> None:
    """Where it is prepared as it arrives: alone, and in one piece with a CLOSE of the one before."""
    for sql, values in ((POINT.format("?"), (1,)), ("INSERT INTO votes VALUES (?, ?)", (9, 9)), ("SELECT 1", ()), ("DELETE FROM votes WHERE user = 77", ())):
        prepare, found = framed(b"\x16" + sql.encode(), 0), []
        for _ in range(4):
            with Client(server) as other:
                other.query("USE quick")
                other.socket.sendall(prepare)
                described = other.read_described()
                other.socket.sendall(framed(b"\x19" + described[1:5], 0) + prepare)
                again = other.read_described()
                assert described[5:] == again[5:] and int.from_bytes(again[1:5], "little") == 2
                found.append(described)
                with pytest.raises(ServerError) as error:
                    other.run(execute(1, *values))
                assert error.value.code == 1243
                if sql.startswith("SELECT"):
                    assert len(other.run(execute(2, *values))) == len(other.executed(execute(2, *values)))
        assert len(set(found)) == 1
    assert any(each.preparations.known(POINT.format("?").encode()) for each in client._shortcuts._contexts.values())


def test_preparing_again_knows_the_definitions_of_now(client: Client) -> None:
    counts = []
    for column in ("", "", "ALTER TABLE stories ADD extra INT", "", "DROP TABLE stories"):
        if column:
            client.query(column)
        client.command(0x16, b"SELECT * FROM stories WHERE id = ?")
        try:
            counts.append(client.read_described()[5])
        except ServerError as error:
            counts.append(error.code)
    assert counts == [3, 3, 4, 4, 1146]


def test_parameters_may_come_under_other_types_each_time(client: Client) -> None:
    statement = client.prepare(POINT.format("?"))
    head = b"\x17" + struct.pack("<IBI", statement, 0, 1) + b"\0\1"
    packets = [head + bytes((1, 0, 2)), head + bytes((2, 0, 2, 0)), head + bytes((LONG, 0, 2, 0, 0, 0)), head + bytes((VAR_STRING, 0, 1)) + b"2"]
    expected = [client.same(each) for each in packets]
    assert len(set(map(len, expected))) == 1
    for _ in range(3):
        for each in packets:
            assert client.is_answered_at_once(each) and client.rows == expected[0]
    nothing = b"\x17" + struct.pack("<IBI", statement, 0, 1) + b"\1\1" + bytes((NULL_TYPE, 0))
    assert client.run(nothing) == client.executed(nothing) and client.rows == []
    assert client.is_answered_at_once(packets[0]) and client.rows == expected[0]


def test_what_is_not_one_statement_is_executed(client: Client) -> None:
    for sql in (f"{POINT.format(1)};", f"{POINT.format(1)}; {POINT.format(2)}", f"/* a */ {POINT.format(1)}"):
        for _ in range(WARM):
            before = client._shortcuts.answered
            client.run(text(sql))
            while client.end_status & 8:
                client.read_result()
            assert client._shortcuts.answered == before


def test_a_command_in_pieces_is_answered(client: Client) -> None:
    expected = client.same(text(POINT.format(1)))
    packet = framed(text(POINT.format(1)), 0)
    for cut in range(1, len(packet)):
        client.socket.sendall(packet[:cut])
        client.socket.sendall(packet[cut:])
        assert client.read_result() == expected


def test_many_commands_at_once_are_answered_in_order(client: Client) -> None:
    rows = [client.same(text(POINT.format(number))) for number in (1, 2, 3)]
    client.socket.sendall(b"".join(framed(text(POINT.format(number % 3 + 1)), 0) for number in range(60)))
    assert [client.read_result() for _ in range(60)] == rows * 20


def test_a_wrong_sequence_number_ends_the_connection(client: Client) -> None:
    client.same(text(POINT.format(1)))
    client.socket.sendall(framed(text(POINT.format(1)), 1))
    with pytest.raises(ServerError) as error:
        client.read_ok()
    assert error.value.code == 1156


# --- writes


def test_each_write_is_seen_by_everyone_at_once(server: ServerThread, client: Client) -> None:
    choices = random.Random(3)
    with Client(server) as other:
        other.query("USE quick")
        statements = [each.prepare(COUNTED.format("?")) for each in (client, other)]
        for number in range(1, 4):
            client.same(text(COUNTED.format(number)))
            client.same(execute(statements[0], number))
            other.same(execute(statements[1], number))
        for step in range(200):
            story, user = choices.randint(1, 3), choices.randint(1, 30)
            writer = choices.choice((client, other))
            match choices.randrange(3):
                case 0:
                    writer.query(f"INSERT IGNORE INTO votes VALUES ({user}, {story})")
                case 1:
                    writer.query(f"DELETE FROM votes WHERE user = {user} AND story = {story}")
                case _:
                    writer.query(f"UPDATE stories SET title = 'title {step}' WHERE id = {story}")
            for reader, statement in zip((client, other), statements):
                for payload in (text(COUNTED.format(story)), text(POINT.format(story)), execute(statement, story)):
                    assert reader.run(payload) == reader.executed(payload)


def test_an_evicted_key_is_executed_and_comes_back(server: ServerThread, client: Client) -> None:
    payloads = [text(COUNTED.format(1)), text(POINT.format(2))]
    expected = [client.same(payload) for payload in payloads]
    assert server.server is not None
    host: Any = server.server.environment.database.store._views  # type: ignore[attr-defined]

    def evict_all() -> None:
        for hosted in host.views.values():
            host.engine.evict_keys(hosted.view, list(hosted.view.arrangement.index))
        host._publisher.publish(host.engine)

    for _ in range(3):
        server.call(evict_all)
        for payload, rows in zip(payloads, expected):
            assert not client.is_answered_at_once(payload) and client.rows == rows
            assert client.same(payload) == rows


def test_rows_of_many_keys_follow_each_change(client: Client) -> None:
    client.query("INSERT INTO stories SELECT user * 100 + story, CONCAT('t', user, '-', story), 1 FROM votes")
    for first in range(10, 600, 50):
        client.query("INSERT INTO stories VALUES " + ", ".join(f"({n}, 'title {n}', {n})" for n in range(first, first + 50) if n not in (101, 201, 302)))
    wanted = text(f"SELECT id, title, author FROM stories WHERE id IN ({', '.join(map(str, range(1, 560)))})")
    assert len(client.same(wanted)) > 500
    for change in ("UPDATE stories SET author = 5 WHERE id = 77", "DELETE FROM stories WHERE id = 78", "UPDATE stories SET title = 'z' WHERE id = 1"):
        client.query(change)
        client.same(wanted)


def test_rows_of_several_keys_come_in_their_order(client: Client) -> None:
    rows = client.same(text("SELECT id FROM stories WHERE id IN (3, 1, 9, 2, 1)"))
    assert rows == [b"\x011", b"\x012", b"\x013"]
    rows = client.same(text("SELECT title FROM stories WHERE title IN ('two', 'one', 'three')"))
    assert rows == [b"\x03one", b"\x05three", b"\x03two"]


def test_a_transaction_sees_what_it_has_written(server: ServerThread, client: Client) -> None:
    payload = text(COUNTED.format(1))
    before = client.same(payload)
    with Client(server) as other:
        other.query("USE quick")
        client.query("BEGIN")
        assert client.is_answered_at_once(payload) and client.end_status & 1  # in a transaction
        client.query("INSERT INTO votes VALUES (9, 1)")
        assert not client.is_answered_at_once(payload)
        assert client.rows != before
        assert other.run(payload) and other.rows == before
        client.query("ROLLBACK")
        assert client.is_answered_at_once(payload) and client.rows == before and not client.end_status & 1
        client.query("BEGIN")
        client.query("INSERT INTO votes VALUES (9, 1)")
        client.query("COMMIT")
        assert other.run(payload) and other.rows != before
        assert client.is_answered_at_once(payload) and client.rows == other.rows


def test_without_autocommit_a_read_begins_a_transaction(client: Client) -> None:
    payload = text(POINT.format(1))
    client.same(payload)
    client.query("SET autocommit = 0")
    assert not client.is_answered_at_once(payload)
    assert client.end_status & 3 == 1
    client.same(payload)
    assert client.end_status & 3 == 1
    client.query("COMMIT")
    client.query("SET autocommit = 1")
    client.same(payload)
    assert client.end_status & 3 == 2


def test_set_transaction_is_about_the_next_statement_alone(client: Client) -> None:
    payload = text(POINT.format(1))
    client.same(payload)
    client.query("SET TRANSACTION READ ONLY")
    assert not client.is_answered_at_once(payload)
    client.query("UPDATE stories SET author = 5 WHERE id = 1")


def test_locking_reads_are_executed(client: Client) -> None:
    for _ in range(WARM):
        assert not client.is_answered_at_once(text(POINT.format(1) + " FOR UPDATE"))


# --- the session


def test_settings_decide_what_is_answered(client: Client) -> None:
    client.query("CREATE TABLE moments (id INT PRIMARY KEY, at TIMESTAMP, name VARCHAR(20))")
    client.query("INSERT INTO moments VALUES (1, '2024-06-01 12:00:00', 'é')")
    payload = text("SELECT at, name, '1' || '0', \"name\" FROM moments WHERE id = 1")
    statement = client.prepare("SELECT at, name FROM moments WHERE id = ?")
    answers = set()
    for setting in (
        "time_zone = '+00:00'",
        "time_zone = '+05:00'",
        "NAMES latin1",
        "character_set_results = NULL",
        "NAMES utf8mb4",
        "sql_mode = 'ANSI_QUOTES'",
        "sql_mode = 'PIPES_AS_CONCAT'",
        "sql_mode = 'NO_BACKSLASH_ESCAPES'",
    ):
        client.query(f"SET {setting}")
        client.same(payload)
        answers.add(client.run(payload))
        client.same(execute(statement, 1))
    assert len(answers) >= 6


def test_the_database_decides_what_a_name_means(client: Client) -> None:
    payload = text(POINT.format(1))
    first = client.same(payload)
    client.query("CREATE DATABASE IF NOT EXISTS quick2")
    client.query("USE quick2")
    client.query("CREATE TABLE IF NOT EXISTS stories (id INT PRIMARY KEY, other INT)")
    client.query("INSERT INTO stories VALUES (1, 2)")
    assert client.same(payload) != first
    client.query("USE quick")
    assert client.is_answered_at_once(payload) and client.rows == first
    client.query("DROP DATABASE quick2")


def test_a_prepared_statement_stays_in_the_database_it_was_prepared_in(client: Client) -> None:
    statement = client.prepare(POINT.format("?"))
    where = client.prepare("SELECT DATABASE(), title FROM stories WHERE id = ?")
    first = client.same(execute(statement, 1))
    client.query("CREATE DATABASE IF NOT EXISTS quick2")
    client.query("USE quick2")
    client.query("CREATE TABLE IF NOT EXISTS stories (id INT PRIMARY KEY, title VARCHAR(60) NOT NULL, author INT)")
    client.query("INSERT INTO stories VALUES (1, 'elsewhere', 8)")
    other = client.prepare(POINT.format("?"))
    for _ in range(WARM):
        client.run(execute(statement, 1))
        assert client.rows == first
        client.run(execute(where, 1))
        assert b"quick\x03one" in client.rows[0]
    assert client.same(execute(other, 1)) != first
    assert client.query("SELECT DATABASE()") == [b"\x06quick2"]
    client.run(execute(client.prepare("DROP DATABASE quick2")))
    assert client.query("SELECT DATABASE()") == [b"\xfb"]
    client.query("USE quick")
    assert client.same(execute(statement, 1)) == first


def test_numbers_written_as_texts_are_answered_at_once(client: Client) -> None:
    first = client.same(text(POINT.format(1)))
    quoted = text(POINT.format("'1'"))
    assert client.same(quoted) == first
    assert client.is_answered_at_once(quoted) and client.rows == first
    counted = text("SELECT COUNT(*) FROM votes WHERE story = '1'")
    assert client.same(counted) == client.same(text("SELECT COUNT(*) FROM votes WHERE story = 1"))
    assert client.is_answered_at_once(counted)


def test_the_status_tells_a_transaction_that_only_reads(client: Client) -> None:
    statement = client.prepare(POINT.format("?"))
    for begin, status in (("BEGIN", 3), ("START TRANSACTION READ ONLY", 0x2003), ("START TRANSACTION", 3)):
        client.query(begin)
        for payload in (text(POINT.format(1)), execute(statement, 1)):
            client.same(payload)
            assert client.end_status == status
        client.query("COMMIT")
        client.same(text(POINT.format(1)))
        assert client.end_status == 2


def test_a_temporary_table_hides_another(client: Client) -> None:
    payload = text(POINT.format(1))
    first = client.same(payload)
    client.query("CREATE TEMPORARY TABLE stories (id INT PRIMARY KEY, t INT)")
    client.query("INSERT INTO stories VALUES (1, 5)")
    for _ in range(WARM):
        assert not client.is_answered_at_once(payload) and client.rows == [b"\x011\x015"]
    client.query("DROP TEMPORARY TABLE stories")
    assert client.run(payload) and client.rows == first


def test_definitions_take_effect_at_once(server: ServerThread, client: Client) -> None:
    client.query("CREATE VIEW counts AS SELECT story, COUNT(*) AS n FROM votes GROUP BY story")
    through = text("SELECT * FROM counts WHERE story = 1")
    assert client.same(through) == [b"\x011\x012"]
    point = text(POINT.format(1))
    first = client.same(point)
    with Client(server) as other:
        other.query("USE quick")
        other.query("ALTER TABLE stories ADD COLUMN extra INT DEFAULT 4")
        client.run(point)
        assert client.rows == [first[0] + b"\x014"]
        client.same(point)
        other.query("CREATE OR REPLACE VIEW counts AS SELECT story, MAX(user) AS n FROM votes GROUP BY story")
        client.query("UPDATE votes SET user = 8 WHERE user = 2")
        assert client.run(through) and client.rows == [b"\x011\x018"]
        client.same(through)
        other.query("DROP TABLE stories")
        with pytest.raises(ServerError) as error:
            client.run(point)
        assert error.value.code == 1146


def test_a_privilege_taken_away_is_gone(server: ServerThread, client: Client) -> None:
    client.query("CREATE USER IF NOT EXISTS reader")
    client.query("GRANT SELECT ON quick.stories TO reader")
    payload = text("SELECT * FROM quick.stories WHERE id = 1")
    with Client(server, user=b"reader") as reader:
        statement = reader.prepare("SELECT * FROM quick.stories WHERE id = ?")
        client.same(payload)
        reader.same(payload)
        reader.same(execute(statement, 1))
        client.query("REVOKE SELECT ON quick.stories FROM reader")
        for refused in (payload, execute(statement, 1)):
            with pytest.raises(ServerError) as error:
                reader.run(refused)
            assert error.value.code == 1142
        assert client.is_answered_at_once(payload) or client.same(payload)
        client.query("GRANT SELECT ON quick.* TO reader")
        reader.same(payload)
        reader.same(execute(statement, 1))
    client.query("DROP USER reader")


def test_who_may_not_read_a_table_does_not_profit_from_others(server: ServerThread, client: Client) -> None:
    client.query("CREATE USER IF NOT EXISTS stranger")
    payload = text("SELECT * FROM quick.stories WHERE id = 1")
    client.same(payload)
    with Client(server, user=b"stranger") as stranger:
        for _ in range(WARM):
            with pytest.raises(ServerError) as error:
                stranger.run(payload)
            assert error.value.code == 1142
    client.query("DROP USER stranger")


# --- what is left behind


def test_a_session_is_left_as_after_executing(client: Client) -> None:
    payload = text("SELECT SQL_CALC_FOUND_ROWS user FROM votes WHERE story = 1 ORDER BY user LIMIT 1")
    client.same(payload)

    def after(run: Callable[[bytes], bytes]) -> list[list[bytes]]:
        client.query("INSERT IGNORE INTO votes VALUES (1, 1)")  # with a warning
        assert client.query("SHOW WARNINGS")
        found = []
        for sql in ("SHOW WARNINGS", "SELECT FOUND_ROWS()", "SELECT ROW_COUNT()"):
            run(payload)
            found.append(client.query(sql))
        return found

    assert after(client.run) == after(client.executed) == [[], [b"\x012"], [b"\x02-1"]]


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT user FROM votes WHERE story = 1 ORDER BY user LIMIT 1", 1),
        ("SELECT user FROM votes WHERE story = 1 ORDER BY user LIMIT 1, 5", 2),
        ("SELECT user FROM votes WHERE story = 1 ORDER BY user LIMIT 1 OFFSET 1", 2),
        ("SELECT user FROM votes WHERE story = 1 ORDER BY user LIMIT 5 OFFSET 7", 2),
        ("SELECT user FROM votes WHERE story = 1 ORDER BY user LIMIT 0 OFFSET 1", 0),
        ("SELECT SQL_CALC_FOUND_ROWS user FROM votes WHERE story = 1 ORDER BY user LIMIT 1", 2),
        ("SELECT SQL_CALC_FOUND_ROWS user FROM votes WHERE story = 1 ORDER BY user LIMIT 0", 2),
    ],
)
def test_rows_that_are_skipped_are_found(client: Client, mariadb: MariaDB, sql: str, count: int) -> None:
    client.same(text(sql))
    assert client.query("SELECT FOUND_ROWS()") == [b"\1%d" % count]
    client.executed(text(sql))
    assert client.query("SELECT FOUND_ROWS()") == [b"\1%d" % count]
    with mariadb.connect(mariadb.fresh_database()) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE votes (user INT, story INT, PRIMARY KEY (user, story), KEY (story))")
        cursor.execute("INSERT INTO votes VALUES (1, 1), (2, 1), (3, 2)")
        cursor.execute(sql)
        cursor.execute("SELECT FOUND_ROWS()")
        assert cursor.fetchone() == (count,)


def test_rows_that_are_skipped_are_found_where_nothing_is_kept(client: Client) -> None:
    for limit, count in (("1 OFFSET 1", 2), ("1", 1), ("2, 9", 3), ("5, 9", 3), ("1, 0", 0)):
        client.query(f"SELECT id FROM stories LIMIT {limit}")
        assert client.query("SELECT FOUND_ROWS()") == [b"\1%d" % count]


@pytest.mark.parametrize(("variable", "others"), [("Questions", 1), ("Com_select", 0), ("Millrace_shortcuts", 0)])
def test_statements_are_counted(client: Client, variable: str, others: int) -> None:
    client.same(text(POINT.format(1)))

    def count() -> int:
        [row] = client.query(f"SHOW STATUS LIKE '{variable}'")
        return int(row[len(variable) + 2 :])

    before = count()
    for _ in range(10):
        assert client.is_answered_at_once(text(POINT.format(1)))
    assert count() == before + 10 + others


def test_a_killed_connection_is_answered_no_more(server: ServerThread, client: Client) -> None:
    payload = text(POINT.format(1))
    with Client(server) as other:
        other.query("USE quick")
        other.same(payload)
        [row] = other.query("SELECT CONNECTION_ID()")
        client.query(f"KILL {row[1:].decode()}")
        with pytest.raises((EOFError, ConnectionError)):
            other.run(payload)


def test_a_large_result_is_executed(client: Client) -> None:
    client.query("CREATE TABLE texts (id INT PRIMARY KEY, body LONGTEXT)")
    client.query("INSERT INTO texts VALUES (1, REPEAT('x', 300000)), (2, REPEAT('y', 100000))")
    large, small = (text(f"SELECT * FROM texts WHERE id = {number}") for number in (1, 2))
    client.same(small)
    for _ in range(WARM):
        assert not client.is_answered_at_once(large)
    assert client.run(large) == client.executed(large)


def test_many_statements_are_forgotten_and_learnt_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortcuts, "STATEMENTS_MAX", 3)
    for columns in ("id", "title", "author", "id, title", "id, author", "title, author", "author, id", "id"):
        client.same(text(f"SELECT {columns} FROM stories WHERE id = 1"))
        contexts = client._shortcuts._contexts.values()
        assert sum(len(each._statements) for each in contexts) <= 3
    client.same(execute(client.prepare(POINT.format("?")), 1))


def test_layers_below_change_nothing(server: ServerThread, client: Client) -> None:
    client.same(text(POINT.format(1)))
    connection = MySQLdb.connect(host="127.0.0.1", port=server.port, user="root", db="quick", compress=True, autocommit=True)
    before, cursor = client._shortcuts.answered, connection.cursor()
    for _ in range(WARM):
        cursor.execute(POINT.format(1))
        assert cursor.fetchall() == ((1, "one", 7),)
    connection.close()
    assert client._shortcuts.answered > before


def test_reset_and_change_of_user_begin_anew(server: ServerThread, client: Client) -> None:
    client.query("SET time_zone = '+03:00'")
    payload = text(POINT.format(1))
    client.same(payload)
    statement = client.prepare(POINT.format("?"))
    client.same(execute(statement, 1))
    client.command(0x1F)
    client.read_ok()
    client.same(payload)
    with pytest.raises(ServerError):
        client.run(execute(statement, 1))


def test_drivers_read_what_they_expect(server: ServerThread, client: Client) -> None:
    connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root", database="quick", autocommit=True)
    with connection.cursor() as cursor:
        for number in (1, 2, 3) * WARM:
            cursor.execute("SELECT title, author FROM stories WHERE id = %s", (number,))
            assert cursor.fetchone() == {1: ("one", 7), 2: ("two", None), 3: ("three", 7)}[number]
    connection.close()


def test_bytes_are_counted_for_the_session_and_for_all(server: ServerThread, client: Client) -> None:
    payload = text(POINT.format(1))
    answer = client.run(payload)
    client.same(payload)

    def counts(scope: str, who: Client = client) -> dict[str, int]:
        rows = who.query(f"SHOW {scope} STATUS WHERE Variable_name IN ('Bytes_received', 'Bytes_sent', 'Questions')")
        return {row[1 : row[0] + 1].decode(): int(row[row[0] + 2 :]) for row in rows}

    before, everything = counts("SESSION"), counts("GLOBAL")
    for _ in range(100):
        assert client.run(payload) == answer
    after = counts("SESSION")
    assert after["Bytes_received"] >= before["Bytes_received"] + 100 * (len(payload) + 4)
    assert after["Bytes_sent"] >= before["Bytes_sent"] + 100 * len(answer)
    assert after["Questions"] == before["Questions"] + 102
    with Client(server) as other:
        begun = counts("SESSION", other)
        assert begun["Questions"] == 1 and begun["Bytes_sent"] < after["Bytes_sent"]
        assert all(count >= everything[name] + 100 for name, count in counts("GLOBAL", other).items())
        other.command(0x1F)
        other.read_ok()
        assert counts("SESSION", other)["Questions"] == 1, "a reset begins anew"
    total = counts("GLOBAL")
    assert total["Questions"] >= everything["Questions"] + 100 + begun["Questions"] + 4
