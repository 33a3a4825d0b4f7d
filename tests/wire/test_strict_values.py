"""In strict mode a statement that writes a value which is not what it should be is an error each time, also when its SELECT repeats."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

WRITES = [
    ("INSERT INTO strict_into SELECT GROUP_CONCAT(a), b FROM strict_from GROUP BY b", 1260),
    ("INSERT INTO strict_into SELECT SUM(CONCAT(a, 'x') + 1), b FROM strict_from GROUP BY b", 1292),
    ("INSERT INTO strict_into VALUES ((SELECT SUM(CONCAT(a, 'x') + 1) FROM strict_from WHERE b = 1), 1)", 1292),
    ("UPDATE strict_into JOIN (SELECT SUM(CONCAT(a, 'x') + 1) s, b FROM strict_from GROUP BY b) d ON d.b = y SET x = d.s", 1292),
    ("INSERT INTO strict_into SELECT MAX(b / 0), b FROM strict_from GROUP BY b", 1365),
    ("UPDATE strict_into SET x = (SELECT MAX(b / 0) FROM strict_from)", 1365),
    ("DELETE FROM strict_into WHERE y % 0 IS NULL", 1365),
]


def test_a_write_is_refused_however_often_it_is_repeated(run: Any) -> None:
    run("CREATE TABLE strict_from (a VARCHAR(10), b INT, KEY (b))")
    run("CREATE TABLE strict_into (x TEXT, y INT)")
    run("INSERT INTO strict_from VALUES ('111111', 1), ('222222', 2), ('333', 3)")
    run("INSERT INTO strict_into VALUES ('kept', 1)")
    run("SET group_concat_max_len = 5")
    try:
        for statement, code in WRITES:
            for _ in range(4):
                with pytest.raises(pymysql.MySQLError) as raised:
                    run(statement)
                assert raised.value.args[0] == code, statement
        assert run("SELECT * FROM strict_into") == [("kept", 1)]
        run("INSERT IGNORE INTO strict_into SELECT MAX(b / 0), b FROM strict_from GROUP BY b")
        assert run("SELECT COUNT(*), COUNT(x) FROM strict_into") == [(4, 1)]
    finally:
        run("SET group_concat_max_len = DEFAULT")


def test_what_gives_no_warnings_comes_from_a_view(run: Any) -> None:
    run("CREATE TABLE silent_from (a INT, b INT, KEY (b))")
    run("CREATE TABLE silent_into (x INT, y INT)")
    run("INSERT INTO silent_from VALUES (1, 1), (2, 1), (3, 2)")
    for count in range(1, 4):
        run("INSERT INTO silent_into SELECT SUM(a), b FROM silent_from WHERE b < 9 GROUP BY b HAVING COUNT(*) > 0")
        assert run("SELECT x, y, COUNT(*) FROM silent_into GROUP BY x, y ORDER BY y") == [(3, 1, count), (3, 2, count)]
