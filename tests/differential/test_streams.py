"""Recorded streams of statements, as frameworks and tools send them, answered as MariaDB answers them.

A stream is a file of `streams/`: statements that end with `;` at the end of a line. A statement
after a line `-- accept: …` need only be answered in the same way (rows, done or error); the
reason why the answers differ is in that line. Each stream has a database of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.execution.embedded import open_embedded
from tests.differential.stream_peer import StreamPeer, difference
from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

STREAMS = sorted((Path(__file__).parent / "streams").glob("*.sql"))
ACCEPT = "-- accept: "


@pytest.fixture(scope="module")
def millrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    folder = tmp_path_factory.mktemp("streams")

    async def open_database() -> Any:
        return await open_embedded(folder, shard_count=2)

    with ServerThread(open_database) as server:
        yield server


def statements(path: Path) -> Iterator[tuple[str, bool]]:
    """(statement, whether a difference is accepted)"""
    accepted = False
    lines: list[str] = []
    for line in path.read_text().splitlines():
        if not lines and line.startswith("--"):
            accepted = accepted or line.startswith(ACCEPT)
            continue
        lines.append(line)
        if line.endswith(";"):
            yield "\n".join(lines)[:-1], accepted
            lines, accepted = [], False
    assert not lines, f"{path.name} ends within a statement"


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_is_answered_as_by_mariadb(path: Path, millrace: ServerThread, mariadb: MariaDB) -> None:
    expected, found = StreamPeer(mariadb.host, mariadb.port), StreamPeer("127.0.0.1", millrace.port)
    expected.run("SET sql_mode = CONCAT(@@sql_mode, ',TIME_ROUND_FRACTIONAL')")  # as MySQL always does
    for peer in (expected, found):
        peer.run("SET timestamp = 1700000000")  # the same moment on both, whenever each is asked
    problems = []
    for sql, accepted in [
        (f"CREATE DATABASE stream_{path.stem} COLLATE utf8mb4_general_ci", False),
        (f"USE stream_{path.stem}", False),
        *statements(path),
    ]:
        problem = difference(sql, expected.run(sql), found.run(sql), accepted)
        if problem:
            problems.append(f"{sql}\n  expected {problem}")
    expected.close()
    found.close()
    assert not problems, f"{len(problems)} statements\n" + "\n\n".join(problems)
