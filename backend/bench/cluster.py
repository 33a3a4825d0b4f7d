"""A cluster for the length of a benchmark: the real thing, in a folder of its own."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from backend.clustering.node import Node
from backend.processes.settings import ClusterSettings
from backend.processes.supervisor import Supervisor
from controller.sql.settings import DEFAULT_SETTINGS


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the disk of the working directory, which is the one to be measured."""
    with tempfile.TemporaryDirectory(prefix="millrace-bench-", dir=".") as folder:
        yield Path(folder).resolve()


@asynccontextmanager
async def running(
    folder: Path, workers: int = 1, durability: str = "fsync"
) -> AsyncIterator[tuple[Supervisor, Node]]:
    """A started cluster and this process's part in it."""
    settings = ClusterSettings(
        mysql_port=0, http_port=0, data=str(folder), workers=workers, controllers=1, durability=durability
    )
    supervisor = Supervisor(settings, lambda line: None)
    try:
        await supervisor.start()
        assert supervisor.deployment is not None
        node = Node(supervisor.deployment)
        await node.start()
        yield supervisor, node
        await node.stop()
    finally:
        await supervisor.stop()


async def define(node: Node, *statements: str, database: str | None = None) -> None:
    """Run DDL statements through the leading controller."""
    for sql in statements:
        await node.database.define(sql, database, DEFAULT_SETTINGS)
