"""Random UPDATEs and DELETEs over joins, tables joined with themselves among them: the rows left are MariaDB's.

A row may be found several times, and under two names of its table. Each new value reads only the row that it is
for, or the one row that a primary key finds, so it does not matter which match comes first.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.differential.comparison import DriverPeer, Peer, differences
from tests.differential.embedded import EmbeddedPeer
from tests.differential.generator import Generated
from tests.mariadb import MariaDB

TABLES = ("p", "q")
COLUMNS = ("a", "b", "c")
ROUNDS = 40


def _definitions(random: Random) -> list[str]:
    found = []
    for table in TABLES:
        found.append(f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, b INT, c INT, KEY k (a))")
        rows = [f"({key}, {', '.join(str(random.randint(0, 3)) for _ in COLUMNS)})" for key in range(1, 9)]
        found.append(f"INSERT INTO {table} VALUES {', '.join(rows)}")
    return found


def _from(random: Random) -> tuple[str, dict[str, bool]]:
    """A FROM, and its names: whether rows of the name are found by their primary key."""
    first, second = random.choice(TABLES), random.choice(TABLES)
    by_key = random.random() < 0.5
    on = "y.id = x.id" if by_key else f"y.{random.choice(COLUMNS)} {random.choice(('=', '<', '<>'))} x.{random.choice(COLUMNS)}"
    join = random.choice((f"{first} x JOIN {second} y ON {on}", f"{first} x LEFT JOIN {second} y ON {on}", f"{first} x, {second} y"))
    names = {"x": by_key, "y": by_key}
    if "," in join:
        join = f"{join} {random.choice(('JOIN', 'LEFT JOIN', 'RIGHT JOIN'))} {random.choice(TABLES)} z ON z.id = y.b"
        names["z"] = False
    return join, names


def _write(random: Random) -> list[str]:
    source, names = _from(random)
    where = [f"{random.choice(list(names))}.{random.choice(COLUMNS)} {random.choice(('=', '<', '>'))} {random.randint(0, 3)}"]
    if ", " in source and random.random() < 0.7:
        where.append("y.id = x.id")
    condition = f" WHERE {' AND '.join(where)}" if random.random() < 0.8 else ""
    targets = random.sample(list(names), random.randint(1, min(2, len(names))))
    if random.random() < 0.25:
        verb = random.choice((f"DELETE {', '.join(targets)} FROM {source}", f"DELETE FROM {', '.join(targets)} USING {source}"))
        return ["BEGIN", verb + condition, "SELECT * FROM p", "SELECT * FROM q", "ROLLBACK"]
    assigned: dict[str, str] = {}
    for name in targets:
        for column in random.sample(COLUMNS, random.randint(1, 2)):
            read = random.choice(list(names)) if names[name] and ", " not in source else name
            value = random.choice((f"{read}.{random.choice(COLUMNS)} + {random.randint(0, 2)}", str(random.randint(0, 9))))
            assigned[f"{name}.{column}"] = value
    tables = {name: source.split(f" {name}")[0].split()[-1] for name in targets}
    if len(set(tables.values())) < len(targets):  # one row under two names: no column of it is set twice
        first = {key.split(".")[1] for key in assigned if key.startswith(targets[0])}
        assigned = {key: value for key, value in assigned.items() if key.startswith(targets[0]) or key.split(".")[1] not in first}
    # MariaDB may change the first table while it joins: a column that a condition reads is set in none.
    assigned = {key: value for key, value in assigned.items() if key not in source + condition} or {"x.b": "x.b + 1"}
    return [f"UPDATE {source} SET {', '.join(f'{key} = {value}' for key, value in assigned.items())}{condition}"]


@pytest.mark.parametrize("seed", range(3))
def test_joined_writes_leave_the_rows_that_mariadb_leaves(mariadb: MariaDB, tmp_path: Path, seed: int) -> None:
    compare(mariadb, tmp_path, seed)


@pytest.mark.slow
def test_4000_joined_writes_leave_the_rows_that_mariadb_leaves(mariadb: MariaDB, tmp_path: Path) -> None:
    for seed in range(1000, 1100):
        compare(mariadb, tmp_path / str(seed), seed)


def compare(mariadb: MariaDB, folder: Path, seed: int) -> None:
    random = Random(seed)
    folder.mkdir(exist_ok=True)
    with mariadb.connect(mariadb.fresh_database()) as connection, EmbeddedPeer(folder) as found:
        expected: Peer = DriverPeer(connection)
        statements = _definitions(random)
        for _ in range(ROUNDS):
            statements += [*_write(random), *(f"SELECT * FROM {table}" for table in TABLES)]
        for sql in statements:
            difference = differences(Generated(sql), expected.run(sql), found.run(sql))
            assert not difference, f"seed {seed}: {sql}\n  expected {difference}"
