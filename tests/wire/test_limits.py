"""Each statement has a limit of time and of memory, and KILL ends it soon, whatever it is doing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.wire.server import ServerThread

LONG = "SELECT COUNT(*) FROM numbers a, numbers b WHERE a.n + b.n < -1"
"""Some 25 million rows are looked at, and none is kept."""


@pytest.fixture
def digits(run: Any) -> Iterator[None]:
    run("CREATE TABLE digits (n INT PRIMARY KEY)")
    run("INSERT INTO digits VALUES " + ",".join(f"({n})" for n in range(10)))
    run("CREATE TABLE numbers (n INT PRIMARY KEY)")
    run("INSERT INTO numbers VALUES " + ",".join(f"({n})" for n in range(5_000)))
    yield
    run("DROP TABLE digits, numbers")


def code_of(call: Any) -> tuple[int, float]:
    """The error that `call` ends with, and after how many seconds."""
    started = time.monotonic()
    with pytest.raises(pymysql.MySQLError) as failure:
        call()
    return failure.value.args[0], time.monotonic() - started


def test_a_select_ends_at_max_execution_time(run: Any, digits: None) -> None:
    run("SET max_execution_time = 100")
    code, took_s = code_of(lambda: run(LONG))
    assert code == 3024 and took_s < 5
    assert run("SELECT 1") == [(1,)], "the connection goes on"
    run("INSERT INTO digits SELECT 100 + a.n * 10 + b.n FROM digits a, digits b")  # only SELECTs are limited
    run("SET max_execution_time = 0")


def test_a_hint_limits_one_select(run: Any, digits: None) -> None:
    code, _ = code_of(lambda: run("SELECT /*+ NO_ICP(t) MAX_EXECUTION_TIME(50) */ " + LONG[7:]))
    assert code == 3024
    run("SET max_execution_time = 50")
    assert run("SELECT /*+ MAX_EXECUTION_TIME(60000) */ COUNT(*) FROM digits a, digits b, digits c, digits d") == [(10_000,)]
    run("SET max_execution_time = 0")


def test_kill_query_ends_a_computation(millrace: ServerThread, connection: Any, run: Any, digits: None) -> None:
    other = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root")
    seen: list[float] = []

    def kill() -> None:
        seen.append(time.monotonic())
        other.cursor().execute(f"KILL QUERY {connection.thread_id()}")

    timer = threading.Timer(0.3, kill)
    timer.start()
    code, _ = code_of(lambda: run(LONG))
    ended = time.monotonic()
    timer.join()
    other.close()
    assert code == 1317
    assert ended - seen[0] < 2
    assert run("SELECT 1") == [(1,)]


def test_a_statement_ends_at_its_memory(run: Any, digits: None) -> None:
    run("SET statement_memory = 4000000")
    for sql in (
        "SELECT * FROM digits a, digits b, digits c, digits d, digits e, digits f, digits g, digits h ORDER BY a.n + h.n",
        "SELECT DISTINCT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n, REPEAT('x', 200) FROM digits a, digits b, digits c, digits d, digits e",
    ):
        code, _ = code_of(lambda sql=sql: run(sql))  # type: ignore[misc]
        assert code == 3170, sql
    assert run("SELECT COUNT(*) FROM digits a, digits b") == [(100,)]
    run("SET statement_memory = DEFAULT")


@pytest.mark.parametrize(("sql", "expected"), [
    ("SELECT COUNT(*), SUM(a.n * b.n), MAX(b.n) FROM numbers a, numbers b WHERE a.n < 400 AND b.n < 500", [(200_000, 9_955_050_000, 499)]),
    ("SELECT a.n % 3, COUNT(*) FROM numbers a JOIN numbers b ON a.n % 2 = b.n % 2 WHERE a.n < 600 AND b.n < 600 GROUP BY 1 ORDER BY 1", [(n, 60_000) for n in range(3)]),
    ("SELECT COUNT(*), COUNT(b.n) FROM numbers a LEFT JOIN numbers b ON b.n < a.n AND a.n < 500 WHERE a.n < 600", [(124_851, 124_750)]),
    ("SELECT COUNT(*) FROM (SELECT a.n x, CONCAT(b.n) y FROM numbers a, numbers b WHERE a.n < 400 AND b.n < 400) q WHERE q.y > '1'", [(159_200,)]),
])  # fmt: skip
def test_groups_over_a_join_hold_none_of_its_rows(run: Any, digits: None, sql: str, expected: list[tuple[int, ...]]) -> None:
    run("SET statement_memory = 4000000")
    found = run(sql)
    run("SET statement_memory = DEFAULT")
    assert found == expected


@pytest.mark.parametrize("value", ["GROUP_CONCAT(REPEAT('x', 500))", "COUNT(DISTINCT a.n, b.n)", "MAX(CONCAT(REPEAT('x', 9000), a.n, b.n))"])
def test_what_groups_keep_of_each_row_counts(run: Any, digits: None, value: str) -> None:
    run("SET statement_memory = 4000000, group_concat_max_len = 1000000000")
    code, _ = code_of(lambda: run(f"SELECT {value} FROM numbers a, numbers b WHERE a.n < 300 AND b.n < 400 GROUP BY a.n"))
    run("SET statement_memory = DEFAULT, group_concat_max_len = DEFAULT")
    assert code == 3170


def test_a_union_holds_its_rows_once(run: Any, digits: None) -> None:
    run("SET statement_memory = 6000000")
    found = run("SELECT n, CONCAT('note ', n % 50) FROM numbers UNION SELECT n + 5000, CONCAT('note ', n % 50) FROM numbers")
    run("SET statement_memory = DEFAULT")
    assert sorted(found) == [(n, f"note {n % 50}") for n in range(10_000)]


TAKES_GIGABYTES = {
    "keys of a join": "SELECT COUNT(*) FROM numbers a JOIN numbers b ON CONCAT(a.n) = REPEAT(b.n, 200000)",
    "keys of a left join": "SELECT COUNT(*) FROM numbers a LEFT JOIN numbers b ON CONCAT(a.n) = REPEAT(b.n, 200000)",
    "keys of a semi join": "SELECT COUNT(*) FROM numbers WHERE CONCAT(n) IN (SELECT REPEAT(n, 200000) FROM numbers)",
    "keys of a short sort": "SELECT n FROM numbers WHERE n < 900 ORDER BY REPEAT('x', 3000000 + n)",
    "keys of a sort by a variable": "SELECT n FROM numbers WHERE n < 900 ORDER BY IF(n < 10, 'x', @long)",
    "keys of a long sort by a variable": "SELECT n FROM numbers ORDER BY IF(n < 10, 'x', @long), n",
    "groups by a variable": "SELECT IF(n < 10, 'x', @long) g, n, COUNT(*) FROM numbers GROUP BY g, n",
    "long rows after short ones": "SELECT REPEAT('x', IF(n < 4000, 1, 3000000)) FROM numbers ORDER BY n + 1",
    "rows to insert": "INSERT INTO texts (n, t) VALUES " + ", ".join(f"({n}, REPEAT('x', 3000000))" for n in range(700)),
    "rows to insert from others": "INSERT INTO texts (n) SELECT n FROM numbers",
    "rows to update": "UPDATE numbers SET t = REPEAT(n % 10, 3000000)",
}


@pytest.mark.parametrize("what", TAKES_GIGABYTES)
def test_a_statement_that_would_take_gigabytes_ends_before(run: Any, digits: None, what: str) -> None:
    run("ALTER TABLE numbers ADD COLUMN t LONGTEXT")
    run("CREATE TABLE texts (n INT PRIMARY KEY, t LONGTEXT, u LONGTEXT AS (REPEAT('u', IF(t IS NULL, 3000000, 1))) STORED)")
    run("SET @long = REPEAT('x', 20000000)")
    run("SET statement_memory = 64000000")
    before_bytes = reset_peak()
    try:
        code, _ = code_of(lambda: run(TAKES_GIGABYTES[what]))
    finally:
        run("SET statement_memory = DEFAULT, @long = NULL")
        run("DROP TABLE texts")
    assert code == 3170
    assert peak_bytes() - before_bytes < 300_000_000


def test_long_values_that_are_gone_at_once_are_no_matter(run: Any, digits: None) -> None:
    run("SET statement_memory = 64000000")
    assert run("SELECT SUM(LENGTH(REPEAT('x', 3000000))) FROM numbers WHERE n < 500") == [(1_500_000_000,)]
    run("SET statement_memory = DEFAULT")


def reset_peak() -> int:
    """Begin to look for the largest size of this process; its size now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def test_a_session_may_not_have_more_memory_than_everybody(run: Any, digits: None) -> None:
    run("SET GLOBAL statement_memory = 4000000")
    run("SET statement_memory = 1000000000")
    try:
        code, _ = code_of(lambda: run("SELECT * FROM digits a, digits b, digits c, digits d, digits e ORDER BY a.n"))
    finally:
        run("SET GLOBAL statement_memory = DEFAULT")
    assert code == 3170


def test_the_longest_hold_of_the_loop_is_told(run: Any) -> None:
    run("FLUSH STATUS")
    run("SELECT 1")
    [(name, value)] = run("SHOW STATUS LIKE 'Millrace_loop_hold%'")
    assert name == "Millrace_loop_hold_max_ms" and 0 <= float(value) < 1000
