"""ALTER TABLE that changes stored values, beside MariaDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.comparison import DriverPeer, compare
from tests.differential.embedded import EmbeddedPeer
from tests.differential.generator import Generated
from tests.mariadb import MariaDB

TYPES = """
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT, c DECIMAL(8,3), d DATETIME, KEY (a), KEY (b))
INSERT INTO t VALUES (1, '12', 300, 1.555, '2024-01-02 03:04:05'), (2, '-7', -5, 99999.999, NULL), (3, NULL, NULL, NULL, NULL)
ALTER TABLE t MODIFY b TINYINT
ALTER TABLE t MODIFY a INT
SELECT * FROM t ORDER BY id
SELECT id FROM t WHERE a = 12
SELECT id FROM t WHERE a < 0
ALTER TABLE t MODIFY b BIGINT UNSIGNED
ALTER TABLE t MODIFY b VARCHAR(2)
ALTER TABLE t MODIFY b VARCHAR(10)
SELECT * FROM t WHERE b = '300'
ALTER TABLE t MODIFY c INT
SELECT c FROM t ORDER BY id
ALTER TABLE t CHANGE d day DATE, ADD e INT DEFAULT 7
SELECT * FROM t ORDER BY id
ALTER TABLE t MODIFY day VARCHAR(30) FIRST
SELECT * FROM t ORDER BY id
ALTER TABLE t MODIFY day DATE NOT NULL
UPDATE t SET day = '2000-01-01' WHERE day IS NULL
ALTER TABLE t MODIFY day DATE NOT NULL
INSERT INTO t VALUES ('2001-02-03', 4, 1, 'x', 1, 1)
SELECT * FROM t ORDER BY id
ALTER TABLE t MODIFY a ENUM('12', '-7', '1')
SELECT a FROM t ORDER BY id
ALTER TABLE t MODIFY a DOUBLE
SELECT a FROM t ORDER BY id
"""

KEYS = """
CREATE TABLE t (a INT NOT NULL, b INT, c VARCHAR(5))
INSERT INTO t VALUES (3, 1, 'x'), (1, 2, 'y'), (2, NULL, 'z')
ALTER TABLE t ADD PRIMARY KEY (b)
ALTER TABLE t ADD PRIMARY KEY (a)
SELECT * FROM t
INSERT INTO t VALUES (3, 4, 'q')
ALTER TABLE t ADD PRIMARY KEY (c)
ALTER TABLE t DROP PRIMARY KEY
INSERT INTO t VALUES (3, 4, 'x')
ALTER TABLE t ADD PRIMARY KEY (a)
ALTER TABLE t ADD PRIMARY KEY (a, c)
SELECT * FROM t ORDER BY a, c
ALTER TABLE t DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY
SELECT COUNT(DISTINCT id), MIN(id), MAX(id) FROM t
INSERT INTO t (a, b, c) VALUES (9, 9, 'n')
SELECT id FROM t WHERE c = 'n'
ALTER TABLE t MODIFY id INT
INSERT INTO t VALUES (1, 1, 'w', 77)
ALTER TABLE t MODIFY id INT AUTO_INCREMENT
INSERT INTO t (a, b, c) VALUES (9, 9, 'm')
SELECT id FROM t WHERE c = 'm'
"""

ADDED = """
CREATE TABLE t (id INT PRIMARY KEY, n INT)
INSERT INTO t VALUES (1, 10), (5, 20), (9, NULL)
ALTER TABLE t ADD doubled INT AS (n * 2) STORED
SELECT * FROM t ORDER BY id
ALTER TABLE t ADD tripled INT AS (n * 3) VIRTUAL, ADD UNIQUE (tripled)
SELECT * FROM t WHERE tripled = 30
ALTER TABLE t ADD e VARCHAR(20) DEFAULT (CONCAT('x', 1 + 1))
SELECT e FROM t
ALTER TABLE t ADD k INT NOT NULL AUTO_INCREMENT UNIQUE
SELECT id, k FROM t ORDER BY id
INSERT INTO t (id, n) VALUES (20, 7)
SELECT id, k, doubled, tripled FROM t ORDER BY id
ALTER TABLE t DROP COLUMN id
SELECT n, k FROM t ORDER BY k
ALTER TABLE t ADD CONSTRAINT positive CHECK (n > 0), MODIFY n BIGINT
CREATE TABLE bits (n INT, CHECK ((n < 10) = b'1'))
INSERT INTO bits VALUES (9)
INSERT INTO bits VALUES (10)
"""

TEXTS = """
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) COLLATE utf8mb4_bin UNIQUE, b TEXT)
INSERT INTO t VALUES (1, 'a', 'x'), (2, 'A', 'y')
ALTER TABLE t MODIFY a VARCHAR(20) COLLATE utf8mb4_general_ci
SELECT id FROM t WHERE a = 'a' ORDER BY id
DELETE FROM t WHERE id = 2
ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci
SELECT id FROM t WHERE a = 'A'
INSERT INTO t VALUES (3, 'A', 'z')
ALTER TABLE t MODIFY b VARCHAR(3)
INSERT INTO t VALUES (4, 'b', 'long')
ALTER TABLE t MODIFY b CHAR(1)
SELECT * FROM t ORDER BY id
"""

MANY = ", ".join(f"({number % 7}, {number * 37 % 11})" for number in range(300))
UNKEYED = f"""
CREATE TABLE t (a INT NOT NULL, b INT, KEY by_b (b), KEY by_a (a))
INSERT INTO t VALUES (3, 5), (1, 5), (2, NULL), (1, -7), (1, 5)
SELECT * FROM t WHERE b = 5 ORDER BY a
SELECT * FROM t WHERE b IS NULL
SELECT * FROM t WHERE b < 6 ORDER BY b DESC, a
SELECT b FROM t WHERE a = 1 ORDER BY b
UPDATE t SET b = b + 1 WHERE a = 1
UPDATE t SET a = 9 WHERE b = 6 LIMIT 1
SELECT * FROM t ORDER BY b, a
DELETE FROM t WHERE b = 6 AND a = 1
INSERT INTO t VALUES {MANY}
SELECT b, COUNT(*), SUM(a) FROM t GROUP BY b ORDER BY b
SELECT COUNT(*) FROM t WHERE b = 3 AND a = 2
ALTER TABLE t DROP INDEX by_b
SELECT COUNT(*) FROM t WHERE b = 3
ALTER TABLE t ADD INDEX again (b)
INSERT INTO t VALUES (1, 3)
SELECT COUNT(*) FROM t WHERE b = 3
ALTER TABLE t MODIFY b BIGINT UNSIGNED
UPDATE t SET b = NULL WHERE b < 0
ALTER TABLE t MODIFY b BIGINT UNSIGNED
INSERT INTO t VALUES (4, 18446744073709551615)
SELECT a FROM t WHERE b > 9223372036854775807
ALTER TABLE t MODIFY b VARCHAR(30)
SELECT COUNT(*) FROM t WHERE b = '3'
ALTER TABLE t DROP COLUMN b
SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY a
ALTER TABLE t ADD id INT AUTO_INCREMENT, ADD KEY (id)
INSERT INTO t (a) VALUES (77)
SELECT COUNT(DISTINCT id), MAX(id) FROM t
SELECT id FROM t WHERE a = 77
CREATE TABLE p (k INT, KEY (k))
CREATE TABLE c (k INT, FOREIGN KEY (k) REFERENCES p (k) ON UPDATE CASCADE)
INSERT INTO p VALUES (1), (2)
INSERT INTO c VALUES (1), (NULL), (1)
INSERT INTO c VALUES (3)
DELETE FROM p WHERE k = 1
UPDATE p SET k = 5 WHERE k = 1
SELECT * FROM c ORDER BY k
ALTER TABLE p DROP INDEX k
"""


@pytest.mark.parametrize("shard_count", (1, 3))
@pytest.mark.parametrize("script", (TYPES, KEYS, ADDED, TEXTS, UNKEYED))
def test_rows_are_stored_anew_as_by_mariadb(script: str, shard_count: int, mariadb: MariaDB, tmp_path: Path) -> None:
    database = mariadb.fresh_database()
    with mariadb.connect(database) as connection, EmbeddedPeer(tmp_path, shard_count) as embedded:
        peer = DriverPeer(connection)
        statements = [Generated(line) for line in script.strip().splitlines()]
        found = compare(statements, peer, embedded)
        assert not found, "\n".join(found)
