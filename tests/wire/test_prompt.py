"""`millrace sql` on a machine without a MySQL client."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.commands.prompt import run_prompt
from tests.wire.worker_server import WorkerServer


def test_statements_are_run_without_a_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with WorkerServer(tmp_path) as server:

        def run(*arguments: str) -> tuple[object, str]:
            with pytest.raises(SystemExit) as ended:
                run_prompt("127.0.0.1", server.port, "root", arguments)
            return ended.value.code, capsys.readouterr().out

        assert run("-e", "CREATE DATABASE d; CREATE TABLE d.t (a INT)")[0] == 0
        code, shown = run("d", "--execute=INSERT INTO t VALUES (41); SELECT a + 1 AS b FROM t")
        assert code == 0 and "42" in shown and "1 row(s)" in shown
        code, shown = run("-e", "SELECT nothing FROM d.t; SELECT 1")
        assert code == 1 and "ERROR 1054" in shown and "1 row(s)" not in shown
        assert "needs the mysql" in str(run("--column-names")[0])
