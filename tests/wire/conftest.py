"""Servers that tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT

from backend.execution.embedded import open_embedded
from tests.wire.server import ServerThread


@pytest.fixture(scope="session")
def millrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    """A server over a database in this process."""
    folder = tmp_path_factory.mktemp("millrace")

    async def open_database() -> Any:
        return await open_embedded(folder, shard_count=2)

    with ServerThread(open_database) as server:
        connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root")
        connection.cursor().execute("CREATE DATABASE wire")
        connection.close()
        yield server


@pytest.fixture
def connection(millrace: ServerThread) -> Iterator[Any]:
    connected = pymysql.connect(
        host="127.0.0.1",
        port=millrace.port,
        user="root",
        database="wire",
        autocommit=True,
        client_flag=CLIENT.MULTI_STATEMENTS,
    )
    yield connected
    connected.close()


@pytest.fixture
def run(connection: Any) -> Any:
    """run(sql) gives the rows of the last statement, or the affected rows if it has none."""

    def execute(sql: str, *parameters: Any) -> Any:
        cursor = connection.cursor()
        affected = cursor.execute(sql, parameters or None)
        found = list(cursor.fetchall()) if cursor.description is not None else affected
        while cursor.nextset():
            found = list(cursor.fetchall()) if cursor.description is not None else cursor.rowcount
        return found

    return execute
