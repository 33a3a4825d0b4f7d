"""Data jobs in the application that holds the workers: the launcher takes them, and the workers serve them."""

from __future__ import annotations

from click.testing import CliRunner

from backend.cli import main
from tests.serving import MillraceServer


def test_views_of_a_cluster_are_verified_by_its_own_spark(d_server: MillraceServer) -> None:
    with d_server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, price DECIMAL(8, 2))")
        cursor.execute("INSERT INTO t VALUES " + ", ".join(f"({n}, {n % 7}, {n / 4})" for n in range(500)))
        cursor.execute("CREATE VIEW totals AS SELECT a, COUNT(*) AS n, SUM(price) AS total FROM t GROUP BY a")
        for _ in range(3):
            for key in range(8):
                cursor.execute(f"SELECT * FROM totals WHERE a = {key}")
                cursor.fetchall()
    url = f"mysql://root@{d_server.host}:{d_server.mysql_port}/d"
    result = CliRunner().invoke(main, ["verify", f"--url={url}", "totals"])
    assert result.exit_code == 0, result.output
    assert "d.totals: 8 keys as of epoch " in result.output and "by Spark: all right" in result.output
