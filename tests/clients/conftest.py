"""The two servers that clients talk to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serving import MillraceServer


@pytest.fixture(scope="session")
def millrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("clients") / "data", "--durability=os")
    yield server
    server.kill()
