"""The certificate that adapters make for themselves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mysql_adapter.__main__ import certificate_of
from mysql_adapter.tls import server_context


def test_adapters_that_start_together_have_the_same_certificate(tmp_path: Path) -> None:
    for number in range(4):
        folder = tmp_path / str(number)

        def started(_: int, folder: Path = folder) -> bytes:
            path = certificate_of(folder)
            server_context(path, path)
            return path.read_bytes()

        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(started, range(4)))) == 1
        assert [path.name for path in folder.iterdir()] == ["server.pem"]
        assert (folder / "server.pem").stat().st_mode & 0o777 == 0o600
