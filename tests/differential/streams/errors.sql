-- What is wrong, and how a client learns it: codes and SQLSTATEs.
CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(5), c DATE, UNIQUE KEY ub (b));
INSERT INTO t VALUES (1, 1, 'x', '2024-01-01');
KILL 999999999;
KILL QUERY 999999999;
USE no_such_database;
SELECT * FROM no_such_table;
DESCRIBE no_such_table;
SHOW COLUMNS FROM no_such_table;
SHOW INDEX FROM no_such_table;
SHOW CREATE TABLE no_such_table;
SELECT no_such_column FROM t;
SELECT t.no_such FROM t;
SELECT x.id FROM t;
SELECT id FROM t ORDER BY nope;
SELECT id FROM t GROUP BY nope;
SELECT id FROM t WHERE nope = 1;
SELECT id FROM t HAVING nope = 1;
SELECT a.id FROM t a JOIN t a ON 1;
SELECT id FROM t a JOIN t b ON a.id = b.id;
SELECT no_such_function(1);
SELECT CONCAT();
SELECT ABS(1, 2);
SELEC 1;
SELECT 1 +;
SELECT 'unclosed;
SELECT COUNT(*) FROM t WHERE COUNT(*) > 1;
SELECT SUM(COUNT(*)) FROM t;
SELECT (SELECT 1, 2);
SELECT (SELECT id FROM t UNION SELECT 5);
SELECT 1 UNION SELECT 1, 2;
SELECT 1 LIMIT -1;
SELECT * FROM t LIMIT 'x';
SELECT *;
INSERT INTO t VALUES (1, 1, 'y', NULL);
INSERT INTO t VALUES (2, 1, 'x', NULL);
INSERT INTO t VALUES (2, NULL, 'y', NULL);
INSERT INTO t VALUES (2, 1);
INSERT INTO t (id, a) VALUES (2);
INSERT INTO t (id, nope) VALUES (2, 1);
INSERT INTO t (id, id) VALUES (2, 2);
INSERT INTO t (id) VALUES (2);
INSERT INTO t VALUES (2, 'abc', 'y', NULL);
INSERT INTO t VALUES (2, 99999999999, 'y', NULL);
INSERT INTO t VALUES (2, 1, 'too long', NULL);
INSERT INTO t VALUES (2, 1, 'y', 'no date');
INSERT INTO t VALUES (2, 1, 'y', '2024-02-31');
INSERT INTO no_such_table VALUES (1);
UPDATE t SET a = NULL;
UPDATE t SET nope = 1;
UPDATE t SET b = 'too long';
UPDATE no_such_table SET a = 1;
DELETE FROM no_such_table;
DELETE FROM t WHERE nope = 1;
CREATE TABLE t (id INT);
CREATE TABLE d1 (a INT, a INT);
CREATE TABLE d2 (a INT, A VARCHAR(3));
CREATE TABLE d3 (a INT DEFAULT 'abc');
CREATE TABLE d4 (a DATE DEFAULT 'abc');
CREATE TABLE d5 (a INT NOT NULL DEFAULT NULL);
CREATE TABLE d6 (a INT PRIMARY KEY, b INT PRIMARY KEY);
CREATE TABLE d7 (a INT, PRIMARY KEY (nope));
CREATE TABLE d8 (a INT, KEY k (a), KEY k (a));
CREATE TABLE d10 (a INT AUTO_INCREMENT);
CREATE TABLE d11 (a INT AUTO_INCREMENT PRIMARY KEY, b INT AUTO_INCREMENT, KEY (b));
CREATE TABLE d12 (a VARCHAR(70000));
CREATE TABLE d13 (a DECIMAL(70, 2));
CREATE TABLE d14 (a DECIMAL(5, 9));
CREATE TABLE d15 (a CHAR(300));
CREATE TABLE d16 ();
-- accept: MySQL has no such error
CREATE TABLE d17 (a NO_SUCH_TYPE);
CREATE TABLE d18 (a INT, FOREIGN KEY (nope) REFERENCES t (id));
-- accept: MySQL 1824
CREATE TABLE d20 (a INT, FOREIGN KEY (a) REFERENCES no_such_table (id)) ENGINE=InnoDB;
-- accept: MySQL 1059
CREATE TABLE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (a INT);
CREATE TABLE d21 (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa INT);
SELECT 1 AS `x `;
CREATE TABLE d22 (`x ` INT);
CREATE TABLE `d23 ` (a INT);
CREATE DATABASE stream_errors;
-- accept: MySQL 1059
CREATE DATABASE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;
DROP DATABASE no_such_database;
DROP TABLE no_such_table;
DROP TABLE IF EXISTS no_such_table;
SHOW WARNINGS;
-- accept: MySQL 1051
DROP VIEW no_such_view;
DROP INDEX nope ON t;
CREATE INDEX ub ON t (a);
CREATE INDEX i ON t (nope);
CREATE UNIQUE INDEX i ON t (a, nope);
ALTER TABLE t ADD COLUMN a INT;
ALTER TABLE t DROP COLUMN nope;
ALTER TABLE t MODIFY nope INT;
ALTER TABLE t CHANGE nope x INT;
ALTER TABLE t RENAME COLUMN nope TO x;
ALTER TABLE t ADD PRIMARY KEY (a);
ALTER TABLE t DROP INDEX nope;
ALTER TABLE t DROP FOREIGN KEY nope;
ALTER TABLE t ALTER COLUMN nope SET DEFAULT 1;
ALTER TABLE t ADD COLUMN x INT AFTER nope;
ALTER TABLE no_such_table ADD COLUMN x INT;
RENAME TABLE no_such_table TO other;
RENAME TABLE t TO t;
TRUNCATE no_such_table;
ROLLBACK TO no_such_savepoint;
RELEASE SAVEPOINT no_such_savepoint;
SET no_such_variable = 1;
SET @@global.no_such = 1;
SELECT @@no_such_variable;
SET autocommit = 'maybe';
SET sql_mode = 'NO_SUCH_MODE';
SET NAMES no_such_charset;
SET time_zone = 'Nowhere/Land';
SET character_set_client = 'ucs2';
SET wait_timeout = 'abc';
SET version = 'x';
EXECUTE no_such_statement;
DEALLOCATE PREPARE no_such_statement;
PREPARE p FROM 'SELECT nope FROM t';
PREPARE p FROM 'SELEC';
PREPARE p FROM '';
SHOW TABLES FROM no_such_database;
-- accept: MySQL has no such error
SELECT CAST('x' AS NO_SUCH_TYPE);
SELECT 9223372036854775807 + 1;
SELECT -9223372036854775808 - 1;
SELECT 18446744073709551615 + 1;
SELECT 1e308 * 10;
SELECT CAST(0 AS UNSIGNED) - 1;
SELECT 'a' COLLATE no_such_collation;
SELECT _latin1'a' = _utf8mb4'a' COLLATE utf8mb4_bin;
SELECT ST_NoSuch(1);
LOCK TABLES no_such_table READ;
-- accept: MySQL 1410
GRANT SELECT ON no_such_database.no_such_table TO nobody_at_all;
DROP USER nobody_at_all;
REVOKE SELECT ON *.* FROM nobody_at_all;
-- accept: MySQL 42000
SET PASSWORD FOR nobody_at_all = 'x';
;
-- accept: the place of the error
SELECT * FROM (SELECT 1 a UNION (SELECT 1 a INTO @a)) t1a;
SELECT (SELECT a) AS a;
SELECT 1 = ALL (SELECT 1 FROM (SELECT 1) AS b WHERE 1 = xx), 1 AS xx;
SELECT 1 AS xx, (SELECT 2 FROM (SELECT 1 AS a) AS b WHERE a = xx) AS y;
SELECT ABS(3 three);
SELECT INSTR(@foobar "p1", "bar");
SELECT CONV(255, 10 AS p2, 16);
-- HAVING names what the SELECT list and GROUP BY have, and columns of queries around.
CREATE TABLE grouped (a INT DEFAULT 5, b INT, c TEXT);
INSERT INTO grouped VALUES (6, 3, 'x'), (8, 4, 'y'), (8, NULL, 'z');
-- accept: the name of the clause
SELECT COUNT(*) FROM grouped GROUP BY b HAVING a = 8;
-- accept: the name of the clause
SELECT a + 1 FROM grouped HAVING a > 1;
SELECT MAX(b) AS m FROM grouped GROUP BY a HAVING SUM(b) > 3 AND MAX(a) > 1;
SELECT a FROM grouped x WHERE EXISTS (SELECT 1 FROM grouped GROUP BY b HAVING a = 8);
-- accept: the name of the clause
SELECT a, GROUP_CONCAT(b ORDER BY 2) FROM grouped GROUP BY a;
SELECT a, GROUP_CONCAT(b, c ORDER BY 2 DESC) AS g FROM grouped GROUP BY a;
-- accept: the place of the error
ALTER TABLE grouped ORDER BY 12;
-- accept: the name of the clause
ALTER TABLE grouped ORDER BY nosuch;
ALTER TABLE grouped ORDER BY a DESC, grouped.b;
-- accept: the place of the error
ALTER TABLE grouped ADD FULLTEXT INDEX USING BTREE (c);
-- accept: the place of the error
COMMIT AND CHAIN RELEASE;
-- accept: the place of the error
SET SESSION @honk = 99;
-- accept: the place of the error
SELECT 1 FOR UPDATE UNION SELECT 2;
(SELECT 1 FOR UPDATE) UNION SELECT 2;
CREATE TABLE sets (x SET('A', 'B') DEFAULT 0);
DROP TABLE grouped;
-- a constant that is no number is an error whenever a statement that changes rows is run, not the first time alone
CREATE TABLE once (id INT, d DATE, f DOUBLE, n INT);
INSERT INTO once VALUES (1, '2019-06-11', 1, 1), (0, '2019-06-12', 0, 2);
PREPARE once_ FROM "UPDATE once SET n = n + 1 WHERE id = '1bad'";
EXECUTE once_;
EXECUTE once_;
PREPARE once_ FROM "UPDATE once SET n = n + 1 WHERE d = '1bad' OR f = '1bad'";
EXECUTE once_;
EXECUTE once_;
SELECT n FROM once ORDER BY n;
CREATE TABLE checked_once (d INT CHECK (d > 'a'));
INSERT INTO checked_once VALUES (1);
INSERT INTO checked_once VALUES (2);
-- a text of another character set that is made of literals row by row cannot be converted
CREATE TABLE narrow (a VARCHAR(10) CHARACTER SET latin1, b INT);
INSERT INTO narrow VALUES ('a', 1);
SELECT CONCAT(a, IF(b > 10, 'æ', 'ß')) FROM narrow;
SELECT CONCAT(a, IF(b > 10, 'x', 'y'), IF(1 > 10, 'æ', 'ß'), 'ß') AS c FROM narrow;
SELECT CONCAT(a, CASE b WHEN 1 THEN N'é' END) FROM narrow;
SELECT a = IF(b > 10, 'æ', 'ß') FROM narrow;
-- Indexes without a name, and of what has no room for a value; a column that is declared twice beside a SELECT.
CREATE TABLE unnamed (a CHAR(0) NOT NULL, INDEX (a));
CREATE TABLE unnamed (a INT, INDEX `` (a));
CREATE TABLE unnamed (a INT, a FLOAT) SELECT 1 AS b;
CREATE TABLE unnamed (a INT, KEY (a), KEY b (a)) SELECT 1 AS b;
DROP TABLE unnamed;
