"""Many connections at once."""

from __future__ import annotations

import asyncio

import pytest

from tests.wire.raw import PLAIN, RawClient, framed, handshake_response
from tests.wire.server import ServerThread
from tests.wire.test_fuzz import read_packet

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def open_client(port: int) -> Client:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await read_packet(reader)
    writer.write(framed(handshake_response(PLAIN), 1))
    assert (await read_packet(reader))[0] == 0
    return reader, writer


async def busy(client: Client, number: int, count: int) -> None:
    reader, writer = client
    for turn in range(count):
        text = f"<{number}/{turn}>".encode()
        writer.write(framed(b"\x03SELECT CONCAT('<', '%d/%d', '>')" % (number, turn), 0))
        assert (await reader.readuntil(b"\xfe\x00\x00\x02\x00")).count(b"\xfe\x00\x00\x02\x00") == 1
        rest = await reader.readuntil(b"\xfe\x00\x00\x02\x00")
        assert text in rest


async def crowd(port: int, idle: int, working: int, count: int) -> None:
    sleepers = [await open_client(port) for _ in range(idle)]
    workers = [await open_client(port) for _ in range(working)]
    await asyncio.gather(*(busy(client, number, count) for number, client in enumerate(workers)))
    for sleeper in sleepers:
        await busy(sleeper, 0, 1)
    for _, writer in (*sleepers, *workers):
        writer.close()


def test_connections_share_the_server(millrace: ServerThread) -> None:
    asyncio.run(crowd(millrace.port, idle=100, working=50, count=20))


@pytest.mark.slow
def test_1000_idle_and_200_busy_connections(millrace: ServerThread) -> None:
    asyncio.run(crowd(millrace.port, idle=1000, working=200, count=100))


def test_readers_of_large_rows_that_are_slow_stall_no_one_and_cost_a_part_of_the_result(millrace: ServerThread) -> None:
    megabytes, readers = 48, 3
    with RawClient(millrace.port) as other:
        other.query("CREATE TABLE wire.large_rows (id INT PRIMARY KEY, body LONGBLOB)")
        for number in range(megabytes):
            other.query(f"INSERT INTO wire.large_rows VALUES ({number}, REPEAT('x', 1048576))")
        assert millrace.server is not None
        before = set(millrace.server.connections)
        slow = [RawClient(millrace.port) for _ in range(readers)]
        for client in slow:
            client.command(3, b"SELECT id, body FROM wire.large_rows ORDER BY id")
        streams = [each.stream for number, each in millrace.server.connections.items() if number not in before]
        assert len(streams) == readers
        for number in range(50):
            assert other.query(f"SELECT {number % 10}") == [b"\x01%d" % (number % 10)]
            assert millrace.call(lambda: sum(stream.unsent_bytes for stream in streams)) < readers * 20 << 20
        for client in slow:
            assert [len(row) > 1 << 20 for row in client.read_result()] == [True] * megabytes
            client.__exit__()
        other.query("DROP TABLE wire.large_rows")
