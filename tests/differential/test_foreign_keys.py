"""Foreign keys beside MariaDB's: the same rows, counts, codes and messages."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.differential.comparison import DriverPeer, compare
from tests.differential.embedded import EmbeddedPeer
from tests.differential.generator import Generated
from tests.mariadb import MariaDB

RESTRICTED = """
CREATE TABLE p (id INT PRIMARY KEY, code VARCHAR(10) UNIQUE, n INT)
CREATE TABLE c (id INT PRIMARY KEY, pid INT, pcode VARCHAR(10), FOREIGN KEY (pid) REFERENCES p (id), CONSTRAINT by_code FOREIGN KEY (pcode) REFERENCES p (code))
INSERT INTO c VALUES (1, 1, NULL)
INSERT INTO p VALUES (1, 'one', 0), (2, 'two', 0), (3, NULL, 0)
INSERT INTO c VALUES (1, 1, NULL)
INSERT INTO c VALUES (2, 2, 'ONE'), (3, 3, 'four')
INSERT INTO c VALUES (2, 2, 'ONE'), (3, NULL, NULL)
INSERT IGNORE INTO c VALUES (4, 9, NULL), (5, 1, NULL), (1, 1, NULL)
SELECT * FROM c ORDER BY id
DELETE FROM p WHERE id = 1
DELETE FROM p WHERE id = 3
UPDATE p SET n = n + 1
UPDATE p SET id = 10 WHERE id = 1
UPDATE p SET code = 'uno' WHERE id = 1
UPDATE p SET code = 'One' WHERE id = 1
UPDATE c SET pid = 7 WHERE id = 2
UPDATE IGNORE c SET pid = 7
UPDATE c SET pid = NULL WHERE id = 2
UPDATE c SET pid = 2 WHERE id = 1
DELETE FROM p WHERE id = 1
DELETE FROM c WHERE pcode IS NOT NULL
DELETE FROM p WHERE id = 1
REPLACE INTO p VALUES (2, 'two', 5)
REPLACE INTO c VALUES (1, 5, NULL)
INSERT INTO c VALUES (1, 1, NULL) ON DUPLICATE KEY UPDATE pid = 77
INSERT INTO c VALUES (1, 1, NULL) ON DUPLICATE KEY UPDATE pcode = 'two'
INSERT INTO p VALUES (2, 'two', 1) ON DUPLICATE KEY UPDATE code = 'zwei'
INSERT INTO p VALUES (2, 'two', 1) ON DUPLICATE KEY UPDATE n = 9
SELECT * FROM p ORDER BY id
SELECT * FROM c ORDER BY id
TRUNCATE TABLE p
DELETE FROM c
DELETE FROM p
"""

CASCADING = """
CREATE TABLE a (id INT PRIMARY KEY)
CREATE TABLE b (id INT PRIMARY KEY, a INT NOT NULL, FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE ON UPDATE CASCADE)
CREATE TABLE c (id INT PRIMARY KEY, b INT, a INT, KEY (a), FOREIGN KEY (b) REFERENCES b (id) ON DELETE SET NULL, FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE ON UPDATE SET NULL)
CREATE TABLE d (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE)
CREATE TABLE e (d INT PRIMARY KEY, FOREIGN KEY (d) REFERENCES d (id))
INSERT INTO a VALUES (1), (2), (3), (4)
INSERT INTO b VALUES (10, 1), (11, 1), (20, 2), (30, 3)
INSERT INTO c VALUES (100, 10, 2), (101, 11, 1), (102, NULL, 1), (200, 20, 3), (300, 30, NULL)
INSERT INTO d VALUES (1000, 100), (1001, 101), (1002, 102), (2000, 200), (3000, 300)
INSERT INTO e VALUES (3000), (2000)
UPDATE a SET id = 40 WHERE id = 4
UPDATE a SET id = 50 WHERE id = 2
SELECT * FROM b ORDER BY id
SELECT * FROM c ORDER BY id
DELETE FROM a WHERE id = 1
SELECT * FROM b ORDER BY id
SELECT * FROM c ORDER BY id
SELECT * FROM d ORDER BY id
DELETE FROM a WHERE id = 3
SELECT * FROM a ORDER BY id
DELETE FROM e
DELETE FROM a WHERE id = 3
REPLACE INTO a VALUES (50)
SELECT * FROM b ORDER BY id
SELECT * FROM c ORDER BY id
SELECT * FROM d ORDER BY id
DELETE FROM b
SELECT * FROM c ORDER BY id
"""

ITSELF = """
CREATE TABLE t (id INT PRIMARY KEY, up INT, CONSTRAINT tree FOREIGN KEY (up) REFERENCES t (id))
INSERT INTO t VALUES (1, 1)
INSERT INTO t VALUES (2, NULL), (3, 2), (4, 3)
INSERT INTO t VALUES (6, 5), (5, NULL)
INSERT INTO t VALUES (5, NULL), (6, 5)
SELECT * FROM t ORDER BY id
DELETE FROM t WHERE id = 2
DELETE FROM t WHERE id IN (5, 6)
DELETE FROM t WHERE id = 6
DELETE FROM t WHERE id IN (3, 4) ORDER BY id DESC
DELETE FROM t WHERE id = 1
UPDATE t SET id = 9 WHERE id = 2
SELECT * FROM t ORDER BY id
CREATE TABLE u (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES u (id) ON DELETE CASCADE ON UPDATE CASCADE)
INSERT INTO u VALUES (1, NULL), (2, 1), (3, 2), (4, 3), (5, NULL), (6, 5)
UPDATE u SET id = 7 WHERE id = 1
DELETE FROM u WHERE id = 1
SELECT * FROM u ORDER BY id
"""

COMPOSITE = """
CREATE TABLE p (a INT, b VARCHAR(5), n INT, PRIMARY KEY (a, b), KEY (n))
CREATE TABLE c (id INT PRIMARY KEY, a INT, b VARCHAR(5), n INT, FOREIGN KEY (a, b) REFERENCES p (a, b) ON UPDATE CASCADE, FOREIGN KEY (n) REFERENCES p (n))
INSERT INTO p VALUES (1, 'x', 5), (1, 'y', 5), (2, 'x', 6)
INSERT INTO c VALUES (1, 1, 'x', 5), (2, 1, NULL, NULL), (3, NULL, 'q', 6)
INSERT INTO c VALUES (4, 1, 'z', NULL)
INSERT INTO c VALUES (4, 2, 'x', 7)
UPDATE c SET b = 'zz' WHERE id = 2
UPDATE c SET b = 'y' WHERE id = 2
UPDATE p SET b = 'w' WHERE a = 1 AND b = 'y'
SELECT * FROM c ORDER BY id
DELETE FROM p WHERE a = 1 AND b = 'x'
DELETE FROM c WHERE id = 2
DELETE FROM p WHERE a = 2
DELETE FROM c WHERE id IN (1, 3)
DELETE FROM p
"""

TRANSACTION = """
CREATE TABLE p (id INT PRIMARY KEY)
CREATE TABLE c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id))
BEGIN
INSERT INTO p VALUES (1), (2)
INSERT INTO c VALUES (1, 1)
DELETE FROM p WHERE id = 1
SAVEPOINT s
DELETE FROM c
DELETE FROM p WHERE id = 1
INSERT INTO c VALUES (2, 1)
INSERT INTO c VALUES (2, 2)
ROLLBACK TO SAVEPOINT s
INSERT INTO c VALUES (3, 1)
COMMIT
SELECT * FROM c ORDER BY id
BEGIN
DELETE FROM c
DELETE FROM p
INSERT INTO c VALUES (9, 2)
INSERT INTO p VALUES (2)
INSERT INTO c VALUES (9, 2)
COMMIT
SELECT * FROM c
SELECT * FROM p
"""

DEFINITIONS = """
CREATE TABLE p (id INT PRIMARY KEY, k INT)
CREATE TABLE c (id INT PRIMARY KEY, pid INT)
INSERT INTO p VALUES (1, 1)
INSERT INTO c VALUES (1, 1), (2, 5)
ALTER TABLE c ADD CONSTRAINT fk FOREIGN KEY (pid) REFERENCES p (id)
INSERT INTO c VALUES (3, 9)
DELETE FROM c WHERE pid IN (5, 9)
ALTER TABLE c ADD CONSTRAINT fk FOREIGN KEY (pid) REFERENCES p (id)
INSERT INTO c VALUES (3, 9)
DELETE FROM p
ALTER TABLE p ADD COLUMN z INT
DELETE FROM p
ALTER TABLE c DROP FOREIGN KEY fk
DELETE FROM p
DROP TABLE p
DROP TABLE c
"""


def check(mariadb: MariaDB, folder: Path, script: str, shard_count: int) -> None:
    database = mariadb.fresh_database()
    connection = mariadb.connect(database)
    with connection, EmbeddedPeer(folder, shard_count) as embedded:
        peer = DriverPeer(connection)
        statements = [Generated(line) for line in script.strip().splitlines()]
        assert not compare(statements, peer, embedded)


@pytest.mark.parametrize("shard_count", (1, 3))
@pytest.mark.parametrize("script", (RESTRICTED, CASCADING, ITSELF, COMPOSITE, TRANSACTION, DEFINITIONS))
def test_foreign_keys_are_enforced_as_by_mariadb(
    script: str, shard_count: int, mariadb: MariaDB, tmp_path: Path
) -> None:
    check(mariadb, tmp_path, script, shard_count)


def test_errors_say_the_same_as_mariadbs(mariadb: MariaDB, tmp_path: Path) -> None:
    database = mariadb.fresh_database()
    statements = (
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "INSERT INTO p VALUES (1)",
        "CREATE TABLE c (pid INT, FOREIGN KEY (pid) REFERENCES p (id))",
        "CREATE TABLE c2 (pid INT, CONSTRAINT x FOREIGN KEY (pid) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE)",
        "INSERT INTO c VALUES (1)",
        "INSERT INTO c VALUES (2)",
        "INSERT INTO c2 VALUES (2)",
        "DELETE FROM p",
        "TRUNCATE TABLE p",
    )
    with mariadb.connect(database) as connection, EmbeddedPeer(tmp_path) as embedded:
        peer = DriverPeer(connection)
        for sql in statements:
            expected, found = peer.run(sql), embedded.run(sql)
            assert found.error == expected.error, sql
            assert found.message.replace("`d`", f"`{database}`") == expected.message, sql


def random_script(random: Random) -> str:
    """Three tables in a chain with random actions, and rows that come and go."""
    actions = ("CASCADE", "SET NULL", "RESTRICT", "NO ACTION")
    lines = ["CREATE TABLE t0 (id INT PRIMARY KEY, v INT)"]
    for number in (1, 2, 3):
        keys = ", ".join(
            f"CONSTRAINT k{number}_{up} FOREIGN KEY (up{up}) REFERENCES t{up} (id)"
            f" ON DELETE {random.choice(actions)} ON UPDATE {random.choice(actions)}"
            for up in range(number)
        )
        columns = ", ".join(f"up{up} INT" for up in range(number))
        lines.append(f"CREATE TABLE t{number} (id INT PRIMARY KEY, v INT, {columns}, {keys})")
    for _ in range(80):
        number = random.randrange(4)
        table, key = f"t{number}", random.randrange(1, 9)
        match random.randrange(6):
            case 0 | 1 | 2:
                ups = "".join(f", {random.choice((*map(str, range(1, 9)), 'NULL'))}" for _ in range(number))
                lines.append(f"INSERT INTO {table} VALUES ({key}, 0{ups})")
            case 3:
                lines.append(f"DELETE FROM {table} WHERE id = {key}")
            case 4:
                lines.append(f"UPDATE {table} SET id = {random.randrange(1, 9)} WHERE id = {key}")
            case _:
                up = f"up{random.randrange(number)}" if number else "v"
                lines.append(f"UPDATE {table} SET {up} = {random.randrange(1, 9)} WHERE id = {key}")
        lines.append(f"SELECT * FROM t{random.randrange(4)} ORDER BY id")
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(8))
def test_random_chains_of_tables_end_up_as_in_mariadb(seed: int, mariadb: MariaDB, tmp_path: Path) -> None:
    check(mariadb, tmp_path, random_script(Random(seed)), 2)
