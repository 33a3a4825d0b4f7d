"""A cluster that several files share: to start one takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serving import MillraceServer


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    """Two workers and two adapters. Who uses them makes a database anew, and may kill what is replaced."""
    options = ("--workers=2", "--adapters=2", "--controllers=1", "--durability=os")
    server = MillraceServer(tmp_path_factory.mktemp("shared") / "data", *options)
    yield server
    server.kill()


@pytest.fixture
def d_server(shared_server: MillraceServer) -> MillraceServer:
    """With an empty database d."""
    with shared_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS d")
        cursor.execute("CREATE DATABASE d")
    return shared_server
