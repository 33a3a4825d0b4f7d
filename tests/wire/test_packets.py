"""The protocol below the drivers: framing, order, limits, cursors, interruption."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import mysql.connector
import pymysql
import pytest

from mysql_adapter.wire.packets import CAN, STATUS
from tests.wire.echo import EchoDatabase
from tests.wire.raw import DEPRECATE_EOF, PLAIN, RawClient, ServerError, error_of, framed, handshake_response
from tests.wire.server import Limits, ServerThread


@pytest.fixture(scope="module")
def database() -> EchoDatabase:
    return EchoDatabase()


@pytest.fixture(scope="module")
def server(database: EchoDatabase) -> Iterator[ServerThread]:
    with ServerThread(database) as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> Iterator[RawClient]:
    with RawClient(server.port) as connected:
        yield connected


def test_greeting_claims_mysql_8(client: RawClient) -> None:
    assert client.greeting[0] == 10
    assert client.greeting[1:].startswith(b"8.0.36-millrace\0")


def test_bytes_may_come_one_by_one(client: RawClient) -> None:
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in framed(b"\x03SELECT 'slow'", 0):
        client.socket.sendall(bytes((byte,)))
    assert client.read_result() == [b"\x04slow"]


def test_pipelined_commands_are_answered_in_order(client: RawClient) -> None:
    client.socket.sendall(b"".join(framed(b"\x03SELECT %d" % number, 0) for number in range(500)))
    for number in range(500):
        text = str(number).encode()
        assert client.read_result() == [bytes((len(text),)) + text]


@pytest.mark.parametrize("size", [0xFFFFFF - 12, 0xFFFFFF - 11, 0xFFFFFF - 10, 20_000_000, 2 * 0xFFFFFF - 10])
def test_packets_over_16_mb_go_both_ways(client: RawClient, size: int) -> None:
    (row,) = client.query(b"SELECT '" + b"x" * size + b"'")
    assert row[-size:] == b"x" * size and len(row) == size + (4 if size < 1 << 24 else 9)


def test_packet_over_the_limit_is_1153_and_the_end(database: EchoDatabase) -> None:
    with ServerThread(database, limits=Limits(packet_bytes_max=1_000_000)) as server, RawClient(server.port) as client:
        client.command(3, b"SELECT '" + b"x" * 20_000_000 + b"'")
        with pytest.raises(ServerError) as raised:
            client.read_ok()
        assert (raised.value.code, raised.value.sqlstate) == (1153, "08S01")
        with pytest.raises((EOFError, ConnectionError)):
            client.read()


def test_wrong_sequence_number_is_1156_and_the_end(client: RawClient) -> None:
    client.send_packet(b"\x0e", 3)
    with pytest.raises(ServerError) as raised:
        client.read_ok()
    assert raised.value.code == 1156
    with pytest.raises((EOFError, ConnectionError)):
        client.read()


@pytest.mark.parametrize("payload", [b"", b"\x00", b"\x05x", b"\x0b", b"\x12", b"\x1e", b"\x20", b"\xff"])
def test_unknown_command_is_1047_and_no_more(client: RawClient, payload: bytes) -> None:
    client.send_packet(payload, 0)
    with pytest.raises(ServerError) as raised:
        client.read_ok()
    assert (raised.value.code, raised.value.sqlstate) == (1047, "08S01")
    assert client.query("SELECT 1") == [b"\x011"]


@pytest.mark.parametrize("capabilities", [PLAIN, DEPRECATE_EOF])
def test_rows_end_as_the_client_wants(server: ServerThread, capabilities: int) -> None:
    with RawClient(server.port, capabilities) as client:
        assert client.query("SELECT 1") == [b"\x011"]
        if capabilities == PLAIN:
            assert client.end == b"\xfe\x00\x00\x02\x00"
        else:
            assert client.end == b"\xfe\x00\x00\x02\x00\x00\x00"


def test_several_statements_give_several_results(client: RawClient) -> None:
    client.command(3, b"SELECT 1; SET @x = 2; SELECT 'a;b', @x")
    assert client.read_result() == [b"\x011"]
    assert client.end_status & STATUS.SERVER_MORE_RESULTS_EXISTS
    ok = client.read_ok()
    assert struct.unpack("<H", ok[3:5])[0] & STATUS.SERVER_MORE_RESULTS_EXISTS
    assert client.read_result() == [b"\x03a;b\x012"]
    assert not client.end_status & STATUS.SERVER_MORE_RESULTS_EXISTS


def test_an_error_ends_several_statements(client: RawClient) -> None:
    client.command(3, b"SELECT 1; SELECT nonsense; SELECT 2")
    assert client.read_result() == [b"\x011"]
    with pytest.raises(ServerError) as raised:
        client.read_ok()
    assert raised.value.code == 1054
    assert client.query("SELECT 3") == [b"\x013"]


def test_several_statements_need_to_be_asked_for(server: ServerThread) -> None:
    with RawClient(server.port, PLAIN & ~int(CAN.CLIENT_MULTI_STATEMENTS)) as client:
        with pytest.raises(ServerError) as raised:
            client.query("SELECT 1; SELECT 2")
        assert raised.value.code == 1064
        assert client.query("SELECT 1;") == [b"\x011"]
        client.command(0x1B, b"\0\0")
        assert client.read()[0] == 0xFE
        client.command(3, b"SELECT 1; SELECT 2")
        assert client.read_result() + client.read_result() == [b"\x011", b"\x012"]


@pytest.mark.parametrize("sql", ["/* nothing */", "-- nothing\n", "/*!99999 of a version to come */", "# nothing;"])
def test_a_comment_alone_is_done_at_once(client: RawClient, sql: str) -> None:
    assert client.query(sql) == []


@pytest.mark.parametrize("sql", ["", "  ", ";"])
def test_empty_statement_is_1065(client: RawClient, sql: str) -> None:
    with pytest.raises(ServerError) as raised:
        client.query(sql)
    assert (raised.value.code, raised.value.sqlstate) == (1065, "42000")


def prepare(client: RawClient, sql: bytes) -> tuple[int, int, int]:
    client.command(0x16, sql)
    answer = client.read_ok()
    _, statement, columns, parameters, _, _ = struct.unpack("<BIHHBH", answer)
    for count in (parameters, columns):
        if count:
            for _ in range(count):
                client.read()
            if not client.capabilities & CAN.CLIENT_DEPRECATE_EOF:
                assert client.read()[0] == 0xFE
    return statement, columns, parameters


def execute(statement: int, body: bytes = b"", flags: int = 0) -> bytes:
    return struct.pack("<IBI", statement, flags, 1) + body


@pytest.mark.parametrize("capabilities", [PLAIN, DEPRECATE_EOF])
def test_cursor_fetches_as_many_rows_as_asked(server: ServerThread, capabilities: int) -> None:
    with RawClient(server.port, capabilities) as client:
        statement, columns, parameters = prepare(client, b"SELECT 'series 5'")
        assert (columns, parameters) == (1, 0)
        client.command(0x17, execute(statement, flags=1))
        assert client.read_ok() == b"\x02"
        client.read(), client.read()
        end = client.read()
        assert end[0] == 0xFE
        assert struct.unpack("<H", end[3:5])[0] & STATUS.SERVER_STATUS_CURSOR_EXISTS
        counts = []
        for wanted in (2, 2, 2):
            client.command(0x1C, struct.pack("<II", statement, wanted))
            counts.append(len(client.read_rows()))
        assert counts == [2, 2, 1]
        assert client.end_status & STATUS.SERVER_STATUS_LAST_ROW_SENT
        client.command(0x1C, struct.pack("<II", statement, 1))
        with pytest.raises(ServerError) as raised:
            client.read_ok()
        assert raised.value.code == 1325


def test_types_are_remembered_between_executions(client: RawClient) -> None:
    statement, columns, parameters = prepare(client, b"SELECT ?, ? /* ? */, '?'")
    assert (columns, parameters) == (3, 2)
    client.command(0x17, execute(statement, b"\x00\x01\x08\x00\xfd\x00" + struct.pack("<q", 7) + b"\x01a"))
    first = client.read_result()
    client.command(0x17, execute(statement, b"\x00\x00" + struct.pack("<q", -8) + b"\x02bc"))
    second = client.read_result()
    assert first == [b"\x00\x00" + struct.pack("<q", 7) + b"\x01a\x01?"]
    assert second == [b"\x00\x00" + struct.pack("<q", -8) + b"\x02bc\x01?"]
    client.command(0x17, execute(statement, b"\x02\x00" + struct.pack("<q", 9)))
    assert client.read_result() == [b"\x00\x08" + struct.pack("<q", 9) + b"\x01?"]


def test_long_data_comes_in_pieces_and_is_used_once(client: RawClient) -> None:
    statement, _, _ = prepare(client, b"SELECT ?")
    for piece in (b"abc", b"\xff\x00", b"def"):
        client.command(0x18, struct.pack("<IH", statement, 0) + piece)
    client.command(0x17, execute(statement, b"\x00\x01\xfc\x00"))
    assert client.read_result() == [b"\x00\x00\x08abc\xff\x00def"]
    client.command(0x17, execute(statement, b"\x00\x01\xfc\x00\x01z"))
    assert client.read_result() == [b"\x00\x00\x01z"]


def test_statement_reset_forgets_long_data_and_keeps_the_transaction(client: RawClient, database: EchoDatabase) -> None:
    client.query("BEGIN")
    statement, _, _ = prepare(client, b"SELECT ?")
    client.command(0x18, struct.pack("<IH", statement, 0) + b"abc")
    client.command(0x1A, struct.pack("<I", statement))
    ok = client.read_ok()
    assert struct.unpack("<H", ok[3:5])[0] & STATUS.SERVER_STATUS_IN_TRANS
    client.command(0x17, execute(statement, b"\x00\x01\xfc\x00\x01z"))
    assert client.read_result() == [b"\x00\x00\x01z"]
    client.query("COMMIT")


def test_closed_statement_is_unknown(client: RawClient) -> None:
    statement, _, _ = prepare(client, b"SELECT 1")
    client.command(0x19, struct.pack("<I", statement))
    client.command(0x17, execute(statement))
    with pytest.raises(ServerError) as raised:
        client.read_ok()
    assert raised.value.code == 1243


@pytest.mark.parametrize("body", [b"", b"\x00", b"\x00\x01", b"\x00\x01\xfd\x00", b"\x00\x01\xfd\x00\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x00\x00"])
def test_broken_parameters_are_1210(client: RawClient, body: bytes) -> None:
    statement, _, _ = prepare(client, b"SELECT ?")
    client.command(0x17, execute(statement, body))
    with pytest.raises(ServerError) as raised:
        client.read_ok()
    assert raised.value.code == 1210
    assert client.query("SELECT 1") == [b"\x011"]


def test_any_bytes_are_a_statement(client: RawClient) -> None:
    assert client.query(b"SELECT _binary'\xff\x00\xfe', 'gr\xc3\xbc\xc3\x9f'") == [b"\x03\xff\x00\xfe\x06gr\xc3\xbc\xc3\x9f"]


def test_other_character_sets_are_converted(client: RawClient) -> None:
    client.query("SET NAMES latin1")
    assert client.query(b"SELECT 'gr\xfc\xdf'") == [b"\x04gr\xfc\xdf"]
    client.query("SET NAMES utf8mb4")
    assert client.query("SELECT 'grüß'") == [b"\x06" + "grüß".encode()]


@pytest.mark.parametrize("value", ["binary", "NULL", "'binary'"])
def test_results_may_be_left_unconverted(client: RawClient, value: str) -> None:
    client.query(f"SET character_set_results = {value}")
    assert client.query("SELECT 'grüß'") == [b"\x06" + "grüß".encode()]


def test_kill_query_interrupts_and_the_connection_goes_on(server: ServerThread, database: EchoDatabase) -> None:
    before = database.sleeping
    with RawClient(server.port) as sleeper, RawClient(server.port) as killer:
        (row,) = sleeper.query("SELECT CONNECTION_ID()")
        sleeper.command(3, b"SELECT 'sleep'")
        database.wait_until(lambda: database.sleeping > before)
        killer.query(b"KILL QUERY " + row[1:])
        with pytest.raises(ServerError) as raised:
            sleeper.read_ok()
        assert (raised.value.code, raised.value.sqlstate) == (1317, "70100")
        assert sleeper.query("SELECT 1") == [b"\x011"]


@pytest.mark.parametrize("how", ["KILL", "KILL CONNECTION", "PROCESS_KILL"])
def test_kill_ends_the_connection(server: ServerThread, database: EchoDatabase, how: str) -> None:
    before = database.sleeping
    with RawClient(server.port) as sleeper, RawClient(server.port) as killer:
        (row,) = sleeper.query("SELECT CONNECTION_ID()")
        sleeper.command(3, b"SELECT 'sleep'")
        database.wait_until(lambda: database.sleeping > before)
        if how == "PROCESS_KILL":
            killer.command(0x0C, struct.pack("<I", int(row[1:])))
            killer.read_ok()
        else:
            killer.query(how.encode() + b" " + row[1:])
        with pytest.raises((EOFError, ConnectionError)):
            sleeper.read()
        with pytest.raises(ServerError) as raised:
            killer.query("KILL 999999999")
        assert raised.value.code == 1094


def test_disconnect_while_running_rolls_back(server: ServerThread, database: EchoDatabase) -> None:
    before = database.sleeping
    with RawClient(server.port) as client:
        client.query("BEGIN")
        client.command(3, b"SELECT 'sleep'")
        database.wait_until(lambda: database.sleeping > before)
        database.log.clear()
    database.wait_until(lambda: database.log == ["rollback"])


def test_slow_reader_stalls_no_one_and_costs_little(server: ServerThread) -> None:
    with RawClient(server.port) as slow, RawClient(server.port) as other:
        slow.command(3, b"SELECT 'series 200000'")
        assert server.server is not None
        for number in range(200):
            assert other.query(f"SELECT {number % 10}") == [b"\x01%d" % (number % 10)]
        connection = next(each for each in server.server.connections.values() if not each.is_waiting)
        buffered = server.call(lambda: connection.stream.unsent_bytes)
        assert buffered < 1_000_000
        assert len(slow.read_result()) == 200_000


def test_greedy_writer_is_held_back(server: ServerThread, database: EchoDatabase) -> None:
    """A client that sends without reading must not fill the server's memory."""
    before = database.sleeping
    with RawClient(server.port) as client, RawClient(server.port) as killer:
        (row,) = client.query("SELECT CONNECTION_ID()")
        client.command(3, b"SELECT 'sleep'")
        database.wait_until(lambda: database.sleeping > before)
        client.socket.settimeout(1)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 200_000_000:
                sent += client.socket.send(b"\x0e\x00\x00\x00\x0e" * 100_000)
        assert server.server is not None
        connection = server.server.connections[int(row[1:])]
        assert connection.stream.buffered_bytes < 2_000_000
        killer.query(b"KILL " + row[1:])


@pytest.mark.parametrize("payload", [b"", b"\0" * 4, b"\xff" * 200, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", handshake_response(0)])
def test_garbage_instead_of_a_login_is_refused(server: ServerThread, payload: bytes) -> None:
    with RawClient(server.port, login=False) as client:
        client.send_packet(payload)
        answer = client.read()
        assert error_of(answer).code == 1043
        with pytest.raises((EOFError, ConnectionError)):
            client.read()


def test_raw_garbage_ends_the_connection(server: ServerThread) -> None:
    # Maybe it ends while it is still being sent to.
    with RawClient(server.port, login=False) as client, pytest.raises((EOFError, ConnectionError)):
        client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100_000)
        while True:
            client.read()


def test_commands_before_login_are_not_run(server: ServerThread) -> None:
    with RawClient(server.port, login=False) as client:
        client.socket.sendall(framed(handshake_response(PLAIN, b"nobody", b"x" * 20), 1) + framed(b"\x03SELECT 1", 0))
        packets = []
        with pytest.raises((EOFError, ConnectionError)):
            while True:
                packets.append(client.read())
        assert [packet[0] for packet in packets][-1:] == [0xFF]
        assert error_of(packets[-1]).code == 1045


@pytest.mark.parametrize("pure", [True])
def test_compressed_protocol(server: ServerThread, pure: bool) -> None:
    connection = mysql.connector.connect(
        host="127.0.0.1", port=server.port, user="root", password="", compress=True, use_pure=pure, ssl_disabled=True
    )
    cursor = connection.cursor()
    big = "abcdef" * 4_000_000
    cursor.execute("SELECT %s, 1", (big,))
    assert cursor.fetchall() == [(big, 1)]
    cursor.execute("SELECT 'series 5000'")
    assert len(cursor.fetchall()) == 5000
    connection.close()


def test_draining_lets_a_transaction_finish(database: EchoDatabase) -> None:
    with ServerThread(database) as server:
        idle = RawClient(server.port)
        busy = RawClient(server.port)
        busy.query("BEGIN")
        server.call(server.stop)
        with pytest.raises((EOFError, ConnectionError)):
            idle.read()
        assert busy.query("SELECT 1") == [b"\x011"]
        busy.query("COMMIT")
        with pytest.raises((EOFError, ConnectionError)):
            busy.read()


def test_statistics_and_ping(client: RawClient) -> None:
    client.command(9)
    assert client.read().startswith(b"Uptime: ")
    client.command(0x0E)
    assert client.read_ok()[0] == 0


def test_reset_connection_forgets_the_session(client: RawClient, database: EchoDatabase) -> None:
    client.query("SET @x = 1, autocommit = 0, sql_mode = 'ANSI_QUOTES'")
    statement, _, _ = prepare(client, b"SELECT 1")
    client.query("BEGIN")
    database.log.clear()
    client.command(0x1F)
    client.read_ok()
    assert database.log == ["rollback"]
    assert client.query("SELECT @x, @@autocommit") == [b"\xfb\x011"]
    client.command(0x17, execute(statement))
    with pytest.raises(ServerError):
        client.read_ok()


def test_init_database(client: RawClient) -> None:
    client.command(2, b"test")
    client.read_ok()
    assert client.query("SELECT DATABASE()") == [b"\x04test"]
    client.command(2, b"nowhere")
    with pytest.raises(ServerError) as raised:
        client.read_ok()
    assert (raised.value.code, raised.value.sqlstate) == (1049, "42000")
    assert client.query("SELECT DATABASE()") == [b"\x04test"]


def test_idle_connection_is_closed_after_wait_timeout(server: ServerThread) -> None:
    connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root")
    cursor = connection.cursor()
    cursor.execute("SET wait_timeout = 1")
    cursor.execute("SELECT 1")
    connection._sock.settimeout(10)
    assert connection._sock.recv(100) == b""


def test_client_that_never_reads_is_ended(database: EchoDatabase) -> None:
    with ServerThread(database, limits=Limits(write_timeout_s=0.1)) as server, RawClient(server.port) as client:
        client.command(3, b"SELECT 'series 500000'")
        assert server.server is not None
        server.wait_for(server.server.emptied())


def test_query_attributes_are_passed_over(server: ServerThread) -> None:
    connection = mysql.connector.connect(host="127.0.0.1", port=server.port, user="root", password="", use_pure=True)
    cursor = connection.cursor()
    cursor.add_attribute("trace", "abc")
    cursor.add_attribute("number", 7)
    cursor.execute("SELECT 'with attributes'")
    assert cursor.fetchall() == [("with attributes",)]
    prepared = connection.cursor(prepared=True)
    prepared.add_attribute("trace", "abc")
    prepared.execute("SELECT ?, 'x'", (5,))
    assert prepared.fetchall() == [(5, "x")]
    connection.close()
