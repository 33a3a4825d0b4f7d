"""`millrace verify`, and somebody who writes meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from click.testing import CliRunner

from backend.cli import main


def verify(port: int, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["verify", f"--url=mysql://root@127.0.0.1:{port}/d", *arguments])
    return result.exit_code, result.output


@contextmanager
def writing(connect: Callable[[], Any], statements: Callable[[int], tuple[str, ...]]) -> Iterator[None]:
    """Meanwhile a connection of its own executes the statements of 1, 2, 3 and so on."""
    stop = threading.Event()

    def write() -> None:
        with connect() as connection, connection.cursor() as cursor:
            number = 0
            while not stop.is_set():
                number += 1
                for statement in statements(number):
                    cursor.execute(statement)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
