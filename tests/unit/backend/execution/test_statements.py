"""What the random statements do not ask for: defaults of time, messages, counts, ids."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from backend.execution.outcome import ResultSet
from backend.execution.statement_run import utc_now
from dataflow.errors import Condition, InvalidStatement
from dataflow.values.modes import Modes
from tests.unit.backend.execution.engine import Engine, run

PERSON = "CREATE TABLE p (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT NOT NULL DEFAULT 0)"


def test_current_timestamp_is_the_default_and_follows_only_real_changes(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(
            "CREATE TABLE t (id INT PRIMARY KEY, n INT, made DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6),"
            " changed TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3))"
        )
        before = utc_now()
        await engine.run("INSERT INTO t (id, n) VALUES (1, 1)")
        [(made, changed)] = await engine.rows("SELECT made, changed FROM t")
        assert isinstance(made, int) and isinstance(changed, int)
        assert before <= made <= utc_now()
        assert 0 <= made - changed < 1_000  # cut to milliseconds
        await engine.run("UPDATE t SET n = 1")
        assert await engine.rows("SELECT made, changed FROM t") == [(made, changed)]
        await engine.run("UPDATE t SET changed = '2001-01-01 00:00:00' WHERE n = 1")
        [(set_by_hand,)] = await engine.rows("SELECT changed FROM t")
        await engine.run("UPDATE t SET n = 2")
        [(same_made, later)] = await engine.rows("SELECT made, changed FROM t")
        assert same_made == made
        assert isinstance(later, int) and isinstance(set_by_hand, int) and later >= changed > set_by_hand

    run(tmp_path, scenario)


def test_default_expressions_and_generated_columns_are_computed(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(
            "CREATE TABLE t (a INT PRIMARY KEY, b INT DEFAULT (1 + 2),"
            " double_b INT AS (b * 2) VIRTUAL, sum_ab INT AS (a + b) STORED, KEY (sum_ab))"
        )
        await engine.run("INSERT INTO t (a) VALUES (10)")
        await engine.run("INSERT INTO t (a, b) VALUES (20, 5)")
        assert await engine.rows("SELECT a, b, double_b, sum_ab FROM t") == [(10, 3, 6, 13), (20, 5, 10, 25)]
        await engine.run("UPDATE t SET b = 4 WHERE sum_ab = 25")
        assert await engine.rows("SELECT a, double_b FROM t WHERE sum_ab = 24") == [(20, 8)]

    run(tmp_path, scenario)


def test_messages_name_the_key_as_mysql_8_does(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (a INT, b VARCHAR(9), c INT UNIQUE, PRIMARY KEY (a, b), CONSTRAINT k CHECK (c < 9))")
        await engine.run("INSERT INTO t VALUES (1, 'x', 1)")
        for sql, message in (
            ("INSERT INTO t VALUES (1, 'X', 2)", "Duplicate entry '1-X' for key 't.PRIMARY'"),
            ("INSERT INTO t VALUES (2, 'x', 1)", "Duplicate entry '1' for key 't.c'"),
            ("INSERT INTO t VALUES (2, 'x', 10)", "Check constraint 'k' is violated."),
            ("INSERT INTO t (b) VALUES ('y')", "Field 'a' doesn't have a default value"),
            ("INSERT INTO t VALUES (1, NULL, 1)", "Column 'b' cannot be null"),
        ):
            with pytest.raises(InvalidStatement) as raised:
                await engine.run(sql)
            assert str(raised.value) == message

    run(tmp_path, scenario)


def test_info_and_warnings_count_what_happened(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PERSON)
        assert (await engine.done("INSERT INTO p (name) VALUES ('a')")).info == ""
        done = await engine.done("INSERT IGNORE INTO p (name) VALUES ('a'), ('b')")
        assert done.info == "Records: 2  Duplicates: 1  Warnings: 1"
        assert [(w.level, w.code, w.message) for w in done.warnings] == [
            ("Warning", 1062, "Duplicate entry 'a' for key 'p.name'")
        ]
        done = await engine.done("UPDATE p SET n = 1 WHERE name = 'a' OR n = 1")
        assert (done.affected, done.matched, done.info) == (1, 1, "Rows matched: 1  Changed: 1  Warnings: 0")
        done = await engine.done("UPDATE p SET n = 1")
        assert (done.affected, done.matched) == (1, 2)
        done = await engine.done("UPDATE IGNORE p SET name = 'same' ORDER BY id")
        assert (done.affected, done.matched, len(done.warnings)) == (1, 2, 1)

    run(tmp_path, scenario)


def test_ids_are_what_the_ok_packet_and_last_insert_id_need(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PERSON)

        async def ids(sql: str) -> tuple[int, int | None]:
            done = await engine.done(sql)
            return done.last_insert_id, done.generated_id

        assert await ids("INSERT INTO p (name) VALUES ('a'), ('b')") == (1, 1)
        assert await ids("INSERT INTO p VALUES (10, 'c', 0)") == (10, None)
        assert await ids("INSERT INTO p (name) VALUES ('d')") == (11, 11)
        assert await ids("INSERT INTO p (name) VALUES ('c') ON DUPLICATE KEY UPDATE n = n + 1") == (10, None)
        assert await ids("INSERT IGNORE INTO p (name) VALUES ('c')") == (0, None)
        assert await ids("UPDATE p SET n = 7") == (0, None)
        engine.modes = Modes.parse("NO_AUTO_VALUE_ON_ZERO")
        assert await ids("INSERT INTO p VALUES (0, 'zero', 0)") == (0, None)
        assert await engine.rows("SELECT name FROM p WHERE id = 0") == [("zero",)]

    run(tmp_path, scenario)


def test_sql_calc_found_rows_counts_all_rows_and_returns_few(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PERSON)
        await engine.run("INSERT INTO p (name) VALUES ('a'), ('b'), ('c'), ('d')")
        outcome = await engine.run("SELECT SQL_CALC_FOUND_ROWS name FROM p WHERE id > 1 ORDER BY name DESC LIMIT 1")
        assert isinstance(outcome, ResultSet)
        assert (outcome.rows, outcome.found_rows) == ([("d",)], 3)

    run(tmp_path, scenario)


def test_aggregates_have_the_types_and_values_of_mysql(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (a INT, b VARCHAR(9), c DOUBLE)")
        [row] = await engine.rows("SELECT COUNT(*), COUNT(a), SUM(a), BIT_AND(a), GROUP_CONCAT(b), MAX(c) FROM t")
        assert row == (0, 0, None, 18446744073709551615, None, None)
        await engine.run("INSERT INTO t VALUES (1, 'x', 0.5), (2, 'y', 1.5), (2, 'X', NULL), (NULL, NULL, 4)")
        [row] = await engine.rows("SELECT SUM(a), AVG(a), SUM(DISTINCT a), SUM(b), AVG(c), VAR_SAMP(a) FROM t")
        assert row == (Decimal(5), Decimal("1.6667"), Decimal(3), 0.0, 2.0, pytest.approx(1 / 3))
        [row] = await engine.rows("SELECT COUNT(DISTINCT b), COUNT(DISTINCT a, b), GROUP_CONCAT(DISTINCT b ORDER BY b DESC SEPARATOR '+') FROM t")
        assert row[:2] == (2, 3) and row[2].lower() == "y+x"  # which of equal texts is shown is open
        assert await engine.rows("SELECT JSON_ARRAYAGG(a), JSON_OBJECTAGG(b, c) FROM t WHERE c < 2") == [("[1, 2]", '{"x": 0.5, "y": 1.5}')]

    run(tmp_path, scenario)


def test_a_transaction_that_grows_too_large_is_refused(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (a INT PRIMARY KEY, b LONGBLOB)")
        transaction = engine.database.begin()
        transaction._size_bytes_max = 100_000
        await engine.run("INSERT INTO t VALUES (1, REPEAT('x', 60000))", transaction)
        with pytest.raises(InvalidStatement) as raised:
            await engine.run("INSERT INTO t VALUES (2, REPEAT('x', 60000))", transaction)
        assert raised.value.condition is Condition.TRANSACTION_TOO_LARGE
        await transaction.commit()
        assert await engine.rows("SELECT a FROM t") == [(1,)]

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO p (n) VALUES (1 / 0)", "INSERT INTO p (n) VALUES (5 MOD 0)", "UPDATE p SET n = id DIV 0",
     "INSERT INTO p (id) VALUES (1) ON DUPLICATE KEY UPDATE n = n / 0"],
)  # fmt: skip
def test_what_comes_from_a_division_by_zero_is_not_stored_in_strict_mode(tmp_path: Path, statement: str) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define(PERSON)
        await engine.run("INSERT INTO p (id, n) VALUES (1, 7)")
        with pytest.raises(InvalidStatement) as refused:
            await engine.run(statement)
        assert refused.value.condition is Condition.DIVISION_BY_ZERO
        assert await engine.rows("SELECT id, n, 1 / 0 FROM p") == [(1, 7, None)]

    run(tmp_path, scenario)
