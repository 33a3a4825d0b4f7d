"""Queries over one table by column: each answer is the one by rows, to the last digit and in the same order, errors included."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from backend.execution.answering.viewing import KEYLESS_ROWS_MAX
from backend.execution.local_store import LocalStore
from backend.execution.outcome import ResultSet
from tests.differential.comparison import Answer
from tests.differential.embedded import EmbeddedPeer

TABLE = """CREATE TABLE t (
    id INT NOT NULL PRIMARY KEY, small TINYINT, number INT NOT NULL, large BIGINT, natural_ INT UNSIGNED, huge BIGINT UNSIGNED,
    price DECIMAL(8, 2), wide DECIMAL(30, 4), day DATE, moment DATETIME(3), hours TIME, of_year YEAR, ratio DOUBLE,
    name VARCHAR(20), exact VARCHAR(20) COLLATE utf8mb4_bin, plain VARCHAR(20) COLLATE utf8mb4_general_ci, data VARBINARY(20), kind ENUM('b', 'a', 'C'))"""
NUMBERS = ("id", "small", "number", "large", "natural_", "huge", "price", "of_year")
GROUPS = ("small", "number", "price", "day", "hours", "name", "exact", "plain", "data", "kind", "of_year", "huge", "LOWER(name)", "small + 1")
QUERIES = 80


@pytest.mark.parametrize(("seed", "shard_count"), [(1, 1), (3, 3)])
def test_columns_answer_as_rows_do(tmp_path: Path, seed: int, shard_count: int) -> None:
    compare(tmp_path, seed, shard_count)


@pytest.mark.slow
def test_4000_answers_by_column_are_those_by_rows(tmp_path: Path) -> None:
    for seed in range(100, 150):
        compare(tmp_path / str(seed), seed, 1 + seed % 3)


def compare(tmp_path: Path, seed: int, shard_count: int) -> None:
    random = Random(seed)
    problems = []
    with EmbeddedPeer(tmp_path, shard_count) as peer:
        scans = _counted(peer)
        assert not peer.run(TABLE).error
        for first in range(0, 600, 100):
            rows = ",".join(_row(random, first + number) for number in range(100))
            assert not peer.run(f"INSERT INTO t VALUES {rows}").error
        for _ in range(QUERIES):
            sql, is_ordered = _query(random)
            by_rows, by_column = peer.run_by_column(sql, None), peer.run_by_column(sql)
            if _shown(by_rows, is_ordered or shard_count == 1) != _shown(by_column, is_ordered or shard_count == 1):
                problems.append(f"{sql}\n  by rows {by_rows}\n  by column {by_column}")
        assert not problems, f"seed {seed}, {len(problems)} answers differ:\n" + "\n".join(problems)
        assert len(scans) > QUERIES * shard_count // 4, "many of them are asked by column"


@pytest.mark.parametrize("where", ["WHERE s.a < 0", "WHERE s.a IS NULL", ""])
@pytest.mark.parametrize("compare", ["=", "<=>"])
def test_groups_that_rows_ask_for_are_the_same_by_column(tmp_path: Path, where: str, compare: str) -> None:
    """Those of no rows, and those of NULL, too."""
    sql = f"SELECT s.id, (SELECT COUNT(*) FROM t WHERE t.a {compare} s.a), (SELECT MAX(t.id) FROM t WHERE t.a {compare} s.a) FROM s {where} ORDER BY s.id"
    with EmbeddedPeer(tmp_path, 1) as peer:
        for name in ("s", "t"):
            peer.run(f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, a INT)")
            peer.run(f"INSERT INTO {name} VALUES (1, NULL), (2, 1), (3, 1), (4, 2), (5, NULL)")
        by_rows = peer.run_by_column(sql, None)
        assert not by_rows.error and peer.run_by_column(sql) == by_rows


@pytest.mark.parametrize("shard_count", [1, 2])
def test_columns_follow_every_change_and_keep_to_their_epoch(tmp_path: Path, shard_count: int) -> None:
    """The columns that a shard has kept are not those of another state."""
    random = Random(shard_count)
    questions = ("SELECT COUNT(*), SUM(number), MIN(small) FROM t", "SELECT small, COUNT(*), SUM(price) FROM t GROUP BY small ORDER BY small",
                 "SELECT id, number FROM t ORDER BY number DESC, id LIMIT 7", "SELECT COUNT(*) FROM other")  # fmt: skip
    with EmbeddedPeer(tmp_path, shard_count) as peer:
        store = peer.database.store
        assert isinstance(store, LocalStore) and not peer.run(TABLE).error
        peer.run("CREATE TABLE other (id INT PRIMARY KEY)")
        peer.run(f"INSERT INTO t VALUES {','.join(_row(random, number) for number in range(300))}")
        store.column_rows_min = 0
        for step in range(24):
            held = peer.database.begin(repeatable=True)
            peer.transaction, expected = held, []
            for sql in questions:
                expected.append(peer.run(sql))
            peer.transaction = None
            number = random.randrange(400)
            peer.run(random.choice([
                f"UPDATE t SET number = number + 1 WHERE id = {number}", f"DELETE FROM t WHERE id = {number}", f"INSERT INTO other VALUES ({step})",
                f"INSERT INTO t VALUES {_row(random, 1000 + step)}", "ALTER TABLE t ADD COLUMN more INT, ALGORITHM=INSTANT" if step == 12 else "DELETE FROM other",
            ]))  # fmt: skip
            for sql in questions:
                assert _shown(peer.run_by_column(sql), True) == _shown(peer.run_by_column(sql, None), True), (step, sql)
            peer.transaction = held
            if step != 12:
                assert [peer.run(sql) for sql in questions] == expected, step
            held.rollback()
            peer.transaction = None


def test_first_rows_by_column_do_not_hide_how_many_rows_a_view_would_have(tmp_path: Path) -> None:
    """Whether all rows are worth keeping depends on how many they are, not on LIMIT."""
    with EmbeddedPeer(tmp_path, 1) as peer:
        store = peer.database.store
        assert isinstance(store, LocalStore)
        store.column_rows_min = 0
        peer.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
        rows = KEYLESS_ROWS_MAX + 1
        for first in range(0, rows, 20_000):
            peer.run(f"INSERT INTO t VALUES {','.join(f'({number}, {number % 100})' for number in range(first, min(first + 20_000, rows)))}")
        for number in range(4):
            assert peer.run(f"SELECT id FROM t WHERE a >= 0 OR id = {number} ORDER BY a DESC, id LIMIT 2").rows == [(b"99",), (b"199",)]
            assert isinstance(peer.outcome, ResultSet) and not peer.outcome.from_view


def _counted(peer: EmbeddedPeer) -> list[int]:
    store = peer.database.store
    assert isinstance(store, LocalStore)
    scans: list[int] = []
    scan_columns = store.scan_columns

    def counted(shard: int, scan: Any) -> Any:
        scans.append(shard)
        return scan_columns(shard, scan)

    store.scan_columns = counted  # type: ignore[method-assign]
    return scans


def _shown(answer: Answer, is_ordered: bool) -> object:
    rows = answer.rows if answer.rows is None or is_ordered else sorted(answer.rows, key=repr)
    return rows, answer.error, answer.message


def _row(random: Random, number: int) -> str:
    def maybe(value: object) -> str:
        return "NULL" if random.random() < 0.15 else str(value)

    text = lambda: repr(random.choice(["a", "A", "á", "b", "B ", "ß", "ss", "", "long enough", "x%y", "10", "2"]))  # noqa: E731
    values = [
        number, maybe(random.randint(-3, 3)), random.choice([0, 7, -7, random.randint(-(2**31), 2**31 - 1)]),
        maybe(random.choice([1, -1, 2**63 - 1, -(2**63)] if random.random() < 0.02 else [5, -5, 10**12])), maybe(random.randint(0, 5)),
        maybe(random.choice([0, 3, 2**64 - 1] if random.random() < 0.02 else [0, 3, 10**10])), maybe(f"{random.randint(-999, 999)}.{random.randint(0, 99):02}"),
        maybe(f"{random.randint(-9, 9)}.5"), maybe(repr(random.choice(["2020-02-29", "1999-12-31", "2021-01-01"]))),
        maybe(repr(random.choice(["2020-02-29 12:00:00.125", "1999-12-31 23:59:59", "2021-01-01"]))), maybe(repr(random.choice(["-10:00:00", "01:02:03"]))),
        maybe(random.choice([1999, 2000])), maybe(random.choice([0.1, -0.5, 1e300])), maybe(text()), maybe(text()), maybe(text()), maybe(text()),
        maybe(repr(random.choice(["a", "b", "C"]))),
    ]  # fmt: skip
    return f"({','.join(map(str, values))})"


def _number(random: Random) -> str:
    left = random.choice(NUMBERS)
    if random.random() < 0.15:
        truths = [f"({_condition(random, 2)})" for _ in range(2)]
        return random.choice([truths[0], f"{truths[0]} {random.choice('+-*')} {truths[1]}", f"{truths[0]} + {left}"])
    return random.choice([left, f"{left} {random.choice('+-*')} {random.choice([*NUMBERS, '2', '1.5', '1000000'])}"])


def _condition(random: Random, depth: int = 0) -> str:
    if depth < 2 and random.random() < 0.35:
        parts = _condition(random, depth + 1), _condition(random, depth + 1)
        return random.choice([f"({parts[0]} AND {parts[1]})", f"({parts[0]} OR {parts[1]})", f"NOT ({parts[0]})"])
    compare = random.choice(["=", "<>", "<", "<=", ">", ">="])
    return random.choice([
        f"{_number(random)} {compare} {random.choice([_number(random), '0', '2', '-1.25', '7'])}",
        f"{random.choice(NUMBERS)} BETWEEN -2 AND {random.choice(['2', '3.5', 'id'])}",
        f"{random.choice(NUMBERS)} {random.choice(['IN', 'NOT IN'])} (1, 2, -3, 5.5)",
        f"{random.choice(NUMBERS)} IN (1, NULL)",
        f"day {compare} '2020-06-01'", f"moment {compare} day", f"moment {compare} '2020-02-29 12:00:00.2'", f"day {compare} 'no date'",
        f"{random.choice(['name', 'exact', 'plain', 'kind', 'data'])} {compare} '{random.choice(['a', 'A', 'B', 'ss'])}'",
        f"{random.choice(['name', 'plain'])} LIKE '{random.choice(['a%', '%s', '_'])}'",
        f"{random.choice([*GROUPS, *NUMBERS])} IS {random.choice(['NULL', 'NOT NULL'])}",
        f"{random.choice(NUMBERS)} {compare} DATE'2020-02-29'", f"small {compare} natural_ + DATE'2020-02-29'",
        f"small / {random.choice(['2', '0', 'number'])} > 0", f"ratio {compare} 0", f"name {compare} 5", f"small {compare} '1'",
    ])  # fmt: skip


def _query(random: Random) -> tuple[str, bool]:
    where = f" WHERE {_condition(random)}" if random.random() < 0.8 else ""
    if random.random() < 0.3:
        items = [f"{random.choice([*GROUPS, *NUMBERS, _number(random)])}{random.choice(['', ' DESC'])}" for _ in range(random.randint(1, 3))]
        return f"SELECT id, number, name FROM t{where} ORDER BY {', '.join(items)} LIMIT {random.choice([0, 1, 5, 40])} OFFSET {random.choice([0, 3])}", True
    functions = [
        random.choice([
            "COUNT(*)", f"COUNT({random.choice(GROUPS)})", f"SUM({_number(random)})", f"AVG({_number(random)})", "MIN(day)", "MAX(moment)",
            f"MIN({_number(random)})", f"MAX({_number(random)})", "MAX(name)", "SUM(ratio)", "COUNT(DISTINCT small)", "AVG(price / 3)", "MAX(hours)",
        ])
        for _ in range(random.randint(1, 3))
    ]  # fmt: skip
    groups = random.sample((*GROUPS, "small < number", "natural_ IN (1, 2)"), random.choice([0, 1, 1, 2]))
    if not groups:
        return f"SELECT {', '.join(functions)} FROM t{where}", True
    having = random.choice(["", "", " HAVING COUNT(*) > 3"])
    return f"SELECT {', '.join([*groups, *functions])} FROM t{where} GROUP BY {', '.join(groups)}{having}", False
