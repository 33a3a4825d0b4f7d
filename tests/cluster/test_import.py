"""`millrace import` that is killed, into a cluster whose processes are killed: every row is there once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from backend.imports.journal import DATABASE
from backend.imports.server import rows_of
from tests.mariadb import MariaDB
from tests.serving import MillraceServer

ROWS = 40_000
TIMEOUT_S = 120


@pytest.mark.slow
def test_an_import_that_is_killed_goes_on_where_it_was(d_server: MillraceServer, mariadb: MariaDB) -> None:
    source = mariadb.fresh_database()
    with mariadb.connect(source) as connection:
        rows_of(connection, "CREATE TABLE keyed (id INT PRIMARY KEY AUTO_INCREMENT, n INT, t VARCHAR(50), KEY (n))")
        rows_of(connection, f"INSERT INTO keyed (n, t) SELECT seq % 97, CONCAT('text ', seq) FROM seq_1_to_{ROWS}")
        rows_of(connection, "CREATE TABLE keyless (n INT, t VARCHAR(50))")
        rows_of(connection, f"INSERT INTO keyless SELECT seq % 97, CONCAT('text ', seq) FROM seq_1_to_{ROWS // 4}")
    command = [sys.executable, "-m", "backend.cli", "import", f"mysql://root@127.0.0.1:{mariadb.port}/{source}", "--database=d"]
    command += [f"--mysql-port={d_server.mysql_port}", "--jobs=2", "--chunk-rows=500"]
    steps = 0
    with d_server.connect() as connection:
        for kills in range(1, 5):
            importing = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            deadline = time.monotonic() + TIMEOUT_S
            while importing.poll() is None and _steps(connection) < steps + 10:
                assert time.monotonic() < deadline
            importing.send_signal(signal.SIGKILL)
            output, _ = importing.communicate(timeout=TIMEOUT_S)
            assert importing.returncode == -signal.SIGKILL, f"it should not have ended before kill {kills}: {output}"
            steps = _steps(connection)
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 0 and f"{ROWS + ROWS // 4:,} rows stored, 0 rejected" in done.stdout, done.stdout + done.stderr
        for table in ("keyed", "keyless"):
            sql = f"SELECT COUNT(*), COUNT(DISTINCT t), SUM(n), SUM(CRC32(t)) FROM {table}"
            with mariadb.connect(source) as theirs:
                expected = rows_of(theirs, sql)
            rows_of(connection, "USE d")
            assert rows_of(connection, sql) == expected
        assert _steps(connection) == 0


def _steps(connection: object) -> int:
    try:
        found = rows_of(connection, f"SELECT COUNT(*) FROM {DATABASE}.steps")
    except Exception:  # it is not there yet
        return 0
    return int(found[0][0])
