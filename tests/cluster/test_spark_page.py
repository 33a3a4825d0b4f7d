"""The code of docs/spark.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.test_spark import ROOT, execute, spark
from tests.serving import MillraceServer

__all__ = ["spark"]

CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_the_page_runs(spark: Any, d_server: MillraceServer, tmp_path: Path) -> None:
    execute(
        d_server,
        "DROP DATABASE IF EXISTS shop",
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, customer INT NOT NULL, item VARCHAR(20), amount DECIMAL(8, 2))",
        "CREATE TABLE shop.customers (id INT PRIMARY KEY, name VARCHAR(20))",
        "INSERT INTO shop.orders VALUES (1, 1, 'tea', 90), (2, 1, 'pot', 60), (3, 2, 'tea', 10)",
    )
    pieces = CODE.findall((ROOT / "docs" / "spark.md").read_text())
    names: dict[str, Any] = {"spark": spark, "folder": str(tmp_path)}
    for piece in pieces:
        here = piece.replace("127.0.0.1:3307", f"127.0.0.1:{d_server.mysql_port}").replace("port=3307", f"port={d_server.mysql_port}")
        exec(here, names)
    assert sorted(map(tuple, names["totals"].collect())) == [("pot", 60), ("tea", 100)]
    assert execute(d_server, "SELECT customer, item, rating FROM shop.ratings ORDER BY item") == [(1, "pot", 150.0), (1, "tea", 150.0)]
    commits = dict(execute(d_server, "SELECT * FROM shop.millrace_spark_commits"))
    assert commits.pop("nightly") == 20261118 and len(commits) == 1, "the other is the stream's"
    assert names["changed"].isStreaming and execute(d_server, "SELECT * FROM shop.order_counts") == [("tea", 1)]
    execute(d_server, "DROP DATABASE shop")
