"""Random range queries answered from ordered views while their tables change: MariaDB's answers.

All types, both kinds of bounds, values of other types than the column's, NULLs, several
collations, either direction, LIMIT and OFFSET, with and without a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from backend.execution.local_store import LocalStore
from tests.differential.comparison import DriverPeer, Peer, differences
from tests.differential.embedded import EmbeddedPeer
from tests.differential.generator import Generated
from tests.mariadb import MariaDB
from tests.serving import MillraceServer

COLUMNS = {
    "i": "INT",
    "u": "BIGINT UNSIGNED",
    "d": "DECIMAL(8,2)",
    "w": "DECIMAL(30,10)",
    "f": "DOUBLE",
    "y": "YEAR",
    "da": "DATE",
    "dt": "DATETIME(3)",
    "ti": "TIME",
    "b": "VARBINARY(8)",
    "t0": "VARCHAR(12) COLLATE utf8mb4_general_ci",
    "t1": "VARCHAR(12) COLLATE utf8mb4_bin",
    "t2": "CHAR(12) COLLATE utf8mb4_unicode_ci",
    "t3": "VARCHAR(12) CHARACTER SET latin1 COLLATE latin1_swedish_ci",
    "t4": "VARCHAR(12) COLLATE utf8mb4_uca1400_nopad_ai_ci",
    "t5": "VARCHAR(12) COLLATE utf8mb4_uca1400_nopad_as_cs",
    "e": "ENUM('red','green','blue') COLLATE utf8mb4_general_ci",
}
NUMBERS = ["-3", "0", "1", "2", "2", "5", "7", "12", "100"]
TEXTS = ["''", "'a'", "'A'", "'ab'", "'Ab'", "'AB '", "'abc'", "'ä'", "'äb'", "'b'", "'ba'", "'é'", "'e'", "'zz'", "'a%b'", "'a_b'"]
VALUES = {
    "i": NUMBERS,
    "u": [*NUMBERS[1:], "18446744073709551615", "9223372036854775808"],
    "d": [*NUMBERS, "1.50", "2.25", "-0.75"],
    "w": [*NUMBERS, "1.5000000001", "12345678901234567890.5", "12345678901234567890.4999999999"],
    "f": [*NUMBERS, "1.5e0", "2.25e0", "1e10"],
    "y": ["1999", "2000", "2020", "2021"],
    "da": ["'2020-01-01'", "'2020-01-02'", "'2021-06-15'", "'1999-12-31'"],
    "dt": ["'2020-01-01 00:00:00'", "'2020-01-02 10:00:00.500'", "'2021-06-15 00:00:00'", "'2020-01-01 00:00:00.001'"],
    "ti": ["'10:00:00'", "'-01:30:00'", "'23:59:59'", "'00:00:00'"],
    "b": ["''", "'a'", "'A'", "'ab'", "X'FF00'", "X'FF'"],
    "e": ["'red'", "'green'", "'blue'"],
} | dict.fromkeys(("t0", "t1", "t2", "t3", "t4", "t5"), TEXTS)
STRANGE = {
    "i": ["'5'", "'2.5'", "2.5", "2.5e0", "'abc'", "'7x'", "NULL", "18446744073709551615", "-1e30"],
    "u": ["'5'", "-1", "2.5", "1e6", "NULL"],
    "d": ["'1.5'", "1.555", "1e0", "NULL", "'x'"],
    "w": ["'1.5'", "1e0", "NULL", "12345678901234567890.49999999995"],
    "f": ["'1.5'", "1.5", "NULL", "''"],
    "y": ["'2020'", "1950", "NULL"],
    "da": ["'2020-01-01 12:00:00'", "NULL", "20200102", "DATE '2020-01-02'"],
    "dt": ["'2020-01-02'", "NULL", "20200102", "DATE '2020-01-02'", "TIMESTAMP '2020-01-02 10:00:00'"],
    "ti": ["NULL", "'1:00:00'", "TIME '10:00:00'"],
    "b": ["'b'", "NULL", "X'61'"],
    "e": ["NULL", "2"],
} | {name: ["NULL", "5", "0", "'ABC  '", "'B' COLLATE utf8mb4_bin"] for name in COLUMNS if name[0] == "t" and name != "ti"}
PATTERNS = ["'a%'", "'A%'", "'ab%'", "'%'", "'%b'", "'a_'", "'ä%'", "'a b%'", "'AB %'", "'a\\\\%%'", "'zzz%'", "'_b%'", "'a'", "''"]
TABLE = f"CREATE TABLE r (id INT PRIMARY KEY, g INT, {', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())}, KEY (g))"
OTHER = "CREATE TABLE s (id INT PRIMARY KEY, r INT, v INT, KEY (r), KEY (v))"


class Queries:
    """Statements over r and s. `shapes` are drawn once, so that each is asked with many values."""

    def __init__(self, random: Random, count: int) -> None:
        self.random = random
        self._shapes = [self._shape() for _ in range(count)]

    def row(self, key: int) -> str:
        values = ["NULL" if self.random.random() < 0.2 else self.random.choice(VALUES[name]) for name in COLUMNS]
        return f"({key}, {self.random.choice(['NULL', '1', '2', '2', '2'])}, {', '.join(values)})"

    def change(self) -> str:
        random = self.random
        key = random.randint(1, 120)
        match random.randrange(5):
            case 0:
                return f"DELETE FROM r WHERE id = {key}"
            case 1:
                name = random.choice(list(COLUMNS))
                return f"UPDATE r SET {name} = {random.choice([*VALUES[name], 'NULL'])} WHERE id = {key}"
            case 2:
                return f"REPLACE INTO s VALUES ({random.randint(1, 60)}, {key}, {random.choice([*NUMBERS, 'NULL'])})"
            case _:
                return f"REPLACE INTO r VALUES {self.row(key)}"

    def statements(self) -> Iterator[Generated]:
        for shape, columns, ordered in self._shapes:
            values = [self._value(column) for column in columns]
            yield Generated(shape.format(*values, g=self.random.choice(["1", "2", "3"])), ordered=ordered)

    def _value(self, column: str) -> str:
        random = self.random
        if column == "LIKE":
            return random.choice(PATTERNS)
        if column in ("LIMIT", "OFFSET"):
            return str(random.choice([0, 1, 3, 10, 2000]))
        if column == "n":
            return random.choice(NUMBERS)
        return random.choice(STRANGE[column] if random.random() < 0.2 else VALUES[column])

    def _condition(self, name: str) -> tuple[str, list[str]]:
        """On column `name` of r."""
        random = self.random
        if name[0] == "t" and name != "ti" and random.random() < 0.3:
            return f"{name} LIKE {{}}", ["LIKE"]
        match random.randrange(4):
            case 0:
                return f"{name} BETWEEN {{}} AND {{}}", [name, name]
            case 1:
                return f"{name} {random.choice(['<', '<='])} {{}} AND {name} > {{}}", [name, name]
            case 2:
                return f"{{}} {random.choice(['<', '<=', '>', '>='])} {name}", [name]
            case _:
                return f"{name} {random.choice(['<', '<=', '>', '>='])} {{}}", [name]

    def _shape(self) -> tuple[str, list[str], bool]:
        """The statement with places for values, whose each is, and whether it is ordered."""
        random = self.random
        name = random.choice(list(COLUMNS))
        condition, columns = self._condition(name)
        key = random.choice(["g = {g} AND ", "g = {g} AND ", "g IN ({g}, 3) AND ", ""])
        where = key + condition
        way = random.choice(["", " DESC"])
        match random.randrange(10):
            case 8:
                sign = random.choice(["<", "<=", ">", ">="])
                rest = random.choice([f"({name}, id) {sign} ({{}}, {{}})", f"({name} {sign[0]} {{0}} OR {name} = {{0}} AND id {sign} {{1}})"])
                sql = f"SELECT id, {name} FROM r WHERE {key}{rest} ORDER BY {name}{way}, id{way} LIMIT 5"
                return sql, [name, "n"], True
            case 9:
                other = random.choice(["i > 1", "d < 3", "e <> 'red'", "f IS NOT NULL", "i = y"])
                sql = f"SELECT id, {name} FROM r WHERE {key}{condition} AND {other} ORDER BY {name}{way}, id{way} LIMIT {random.choice([1, 3, 10])}"
                return sql, columns, True
            case 0 | 1 | 2:
                order = random.choice([f"{name}{way}, id{way}", f"g{way}, {name}{way}, id{way}", f"{name}{way}, id", f"id{way}"])
                tail, more = random.choice([("LIMIT {}", ["LIMIT"]), ("LIMIT {} OFFSET {}", ["LIMIT", "OFFSET"])])
                sql = f"SELECT id, {name} FROM r WHERE {key}{condition} ORDER BY {order} {tail}"
                return sql, columns + more, True
            case 3:
                return f"SELECT r.id, r.{name}, v FROM r JOIN s ON s.r = r.id WHERE {where}", columns, False
            case 4:
                sql = f"SELECT r.id, v FROM r JOIN s ON s.r = r.id WHERE {key}v > {{}} AND r.id < 60 ORDER BY v{way}, r.id{way}, s.id{way} LIMIT 5"
                return sql, ["n"], True
            case 5:
                total = random.choice(["COUNT(*)", "SUM(i)", "MAX(d)", "COUNT(v)"])
                sql = f"SELECT g, {total} AS n FROM r LEFT JOIN s ON s.r = r.id GROUP BY g HAVING n BETWEEN {{}} AND {{}}"
                return sql, ["n", "n"], False
            case 6:
                other = random.choice(["r.i", "r.id", "r.d", "g", "v", "s.id"])
                also = random.choice(["", " AND v < 10", " OR (g = {g} AND r.i IN (5, 7))"])
                sql = f"SELECT r.id, v FROM r JOIN s ON s.r = r.id WHERE r.i = {{}} OR {other} = {{}}{also}"
                if random.random() < 0.3:
                    text = random.choice(["t0", "t1", "t4"])
                    sql = f"SELECT id FROM r WHERE {text} = {{}} OR {text} IN ('b', {{}}) OR {text} IS NULL AND i = 1 ORDER BY id LIMIT 20"
                    return sql, [text, text], True
                return sql, ["n", "n"], False
            case _:
                sql = f"SELECT id FROM r WHERE g = {{g}} ORDER BY {name}{way}, id{way} LIMIT {{}} OFFSET {{}}"
                return sql, ["LIMIT", "OFFSET"], True


def maintain(mariadb: MariaDB, found: Peer, seed: int, shapes: int, rounds: int) -> None:
    random = Random(seed)
    queries = Queries(random, shapes)
    with mariadb.connect(mariadb.fresh_database()) as connection:
        expected = DriverPeer(connection)
        rows = ", ".join(queries.row(key) for key in random.sample(range(1, 121), 100))
        more = ", ".join(f"({key}, {random.randint(1, 120)}, {random.choice(NUMBERS)})" for key in range(1, 60))
        for sql in (TABLE, OTHER, f"INSERT INTO r VALUES {rows}", f"INSERT INTO s VALUES {more}"):
            assert not (theirs := expected.run(sql)).error, theirs
            assert not (ours := found.run(sql)).error, ours
        for number in range(rounds):
            problems = []
            for statement in queries.statements():
                each = differences(statement, expected.run(statement.sql), found.run(statement.sql))
                if each:
                    problems.append(f"{statement.sql}\n  expected {each}")
            assert not problems, f"seed {seed}, round {number}: {len(problems)} differ:\n" + "\n".join(problems)
            for _ in range(5):
                sql = queries.change()
                assert expected.run(sql).error == found.run(sql).error, sql


def ordered_views(mariadb: MariaDB, folder: Path, seed: int, shapes: int, rounds: int) -> int:
    """How many there were in the end."""
    with EmbeddedPeer(folder, shard_count=1) as found:
        maintain(mariadb, found, seed, shapes, rounds)
        store = found.database.store
        assert isinstance(store, LocalStore)
        return sum(bool(each.view.order) for each in store._views.views.values())


def test_ranges_are_read_from_ordered_views(mariadb: MariaDB, tmp_path: Path) -> None:
    assert ordered_views(mariadb, tmp_path, seed=1, shapes=60, rounds=12) > 20


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(10, 18))
def test_many_ranges_are_read_from_ordered_views(mariadb: MariaDB, tmp_path: Path, seed: int) -> None:
    ordered_views(mariadb, tmp_path, seed, shapes=150, rounds=60)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ranges_are_read_from_ordered_views_of_two_workers(mariadb: MariaDB, tmp_path: Path) -> None:
    server = MillraceServer(tmp_path / "data", "--workers=2")
    try:
        with server.connect() as connection:
            found = DriverPeer(connection)
            found.run("CREATE DATABASE d")
            found.run("USE d")
            maintain(mariadb, found, seed=3, shapes=60, rounds=12)
        assert all(shard["views"] > 30 for shard in server.status()["shards"])
    finally:
        server.kill()
