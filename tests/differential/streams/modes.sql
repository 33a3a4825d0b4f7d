-- What sql_mode changes.
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT NOT NULL, s VARCHAR(3), d DATE, c CHAR(5), u INT UNSIGNED);
SET sql_mode = '';
INSERT INTO t (n, s, d) VALUES ('12abc', 'too long', '2024-02-31');
-- accept: MySQL 1264 for the date
SHOW WARNINGS;
INSERT INTO t (s) VALUES ('x');
SHOW WARNINGS;
INSERT INTO t (n, u, d) VALUES (99999999999, -5, '0000-00-00');
SHOW WARNINGS;
INSERT INTO t (n) VALUES (NULL), (1);
SHOW WARNINGS;
UPDATE t SET n = 1 / 0 WHERE id = 1;
SHOW WARNINGS;
SELECT * FROM t ORDER BY id;
SELECT n, s FROM t GROUP BY n ORDER BY n;
SET sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO';
INSERT INTO t (n, d) VALUES (1, '0000-00-00');
INSERT INTO t (n, d) VALUES (1, '2024-00-10');
INSERT INTO t (n) VALUES (1 / 0);
UPDATE t SET n = n % 0;
UPDATE t SET n = '12abc' + 1;
UPDATE t SET n = CAST('12abc' AS SIGNED) WHERE id = 1;
-- accept: MySQL says DOUBLE, MariaDB DECIMAL
UPDATE t SET n = 5 WHERE s = 1;
INSERT INTO t (n) SELECT 'abc' + 1;
-- accept: MariaDB has not used a number for the statement that failed
INSERT IGNORE INTO t (n) VALUES ('abc');
-- accept: MySQL's message
SHOW WARNINGS;
UPDATE t SET d = DATE_ADD('bad', INTERVAL 1 DAY);
UPDATE IGNORE t SET s = 'too long' WHERE id = 1;
SHOW WARNINGS;
SET sql_mode = 'ANSI_QUOTES';
SELECT "id" FROM "t" WHERE "id" = 1 AND s <> 'id';
SET sql_mode = 'NO_BACKSLASH_ESCAPES';
SELECT 'a\b' AS one, LENGTH('\n') AS two;
SET sql_mode = '';
SELECT 'a\\b', LENGTH('\n');
SET sql_mode = 'ONLY_FULL_GROUP_BY';
SELECT n, s FROM t GROUP BY n;
SELECT MAX(n), s FROM t;
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO t (id, n) VALUES (0, 77);
SELECT id FROM t WHERE n = 77;
DELETE FROM t WHERE id = 0;
SET sql_mode = '';
-- accept: the number
INSERT INTO t (id, n) VALUES (0, 78);
SELECT id > 0 FROM t WHERE n = 78;
SET sql_mode = 'IGNORE_SPACE';
SELECT COUNT (*) > 0 FROM t;
SET sql_mode = 'ANSI';
SELECT 'a' || "s" AS joined FROM t WHERE id = 1;
SET sql_mode = 'TRADITIONAL';
INSERT INTO t (n) VALUES ('x');
SET sql_mode = DEFAULT;
SELECT 1;
SET sql_mode = '';
CREATE TABLE zero_dates (id INT PRIMARY KEY, d DATE NOT NULL, m DATETIME NOT NULL, n DATE);
INSERT INTO zero_dates VALUES (1, '0000-00-00', '0000-00-00', '0000-00-00'), (2, '2001-01-01', '2001-01-01', NULL);
SELECT id, d IS NULL FROM zero_dates WHERE d IS NULL;
SELECT id FROM zero_dates WHERE m IS NULL OR id = 2;
SELECT id FROM zero_dates WHERE n IS NULL;
SELECT l.id, r.id FROM zero_dates l LEFT JOIN zero_dates r ON r.id = l.id + 1 WHERE r.d IS NULL ORDER BY 1;
SELECT l.id, r.id FROM zero_dates l LEFT JOIN zero_dates r ON r.id = l.id WHERE r.d IS NULL ORDER BY 1;
UPDATE zero_dates SET n = '2002-02-02' WHERE d IS NULL;
DELETE FROM zero_dates WHERE m IS NULL;
SELECT * FROM zero_dates;
SET sql_mode = 'NO_UNSIGNED_SUBTRACTION';
SELECT CAST(0 AS UNSIGNED) - 1, 2 - CAST(3 AS UNSIGNED), CAST(1 AS UNSIGNED) - CAST(2 AS UNSIGNED), CAST(5 AS UNSIGNED) - 2;
SELECT CAST(18446744073709551615 AS UNSIGNED) - 1;
SET sql_mode = DEFAULT;
-- What is stored does not depend on the modes that were in force when it was written.
SET sql_mode = 'PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE';
CREATE VIEW joined AS SELECT 2 OR 3 || 3 AS a, 2 OR (3 || 3) AS b, (2 OR 3) || 3 AS c, 'a'||'b'||'c' || 1 AS d, NOT 1 BETWEEN -5 AND 5 AS e, NOT 2||3 AS f;
CREATE TABLE kept (a VARCHAR(10), b VARCHAR(30) AS (a || 'x' || a), c VARCHAR(10) DEFAULT (1||2));
INSERT INTO kept (a) VALUES ('y');
CREATE TABLE selected AS SELECT a || b AS x FROM kept;
SET sql_mode = '';
SELECT * FROM joined;
SELECT * FROM kept;
SELECT * FROM selected;
INSERT INTO kept (a) VALUES ('z');
SELECT * FROM kept ORDER BY a;
DROP VIEW joined;
DROP TABLE kept, selected;
-- Zero dates, and dates with zeros in them, that are read from texts and numbers.
CREATE TABLE zeros (d DATE, m DATETIME);
SET sql_mode = 'NO_ZERO_DATE';
SELECT CAST('0000-00-00' AS DATE) AS a, CAST('2001-00-01' AS DATE) AS b, CAST(0 AS DATE) AS c, DATE('0000-00-00') AS d, TIMESTAMP('0000-00-00') AS e, CAST('2001-00-00 10:00:00' AS DATETIME) AS f;
SET sql_mode = 'NO_ZERO_IN_DATE';
SELECT CAST('0000-00-00' AS DATE) AS a, CAST('2001-00-01' AS DATE) AS b, CAST(0 AS DATE) AS c, DATE('2001-00-00') AS d, TIMESTAMP('0000-00-00') AS e, CAST(20010000 AS DATETIME) AS f;
SELECT STR_TO_DATE('2001', '%Y') AS a, STR_TO_DATE('0000', '%Y') AS b, STR_TO_DATE('00-01-00', '%Y-%m-%d') AS c;
SET sql_mode = 'STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE';
-- accept: the message of MySQL names the column
INSERT INTO zeros VALUES (CAST('0000-00-00' AS DATE), NULL);
INSERT IGNORE INTO zeros VALUES (CAST('0000-00-00' AS DATE), CAST('2001-00-01' AS DATETIME));
SELECT * FROM zeros;
DROP TABLE zeros;
-- A column that is too long for its type is an error or a larger type.
CREATE TABLE long_columns (a VARCHAR(70000) CHARACTER SET latin1, b VARCHAR(30000), c VARBINARY(70000));
SET sql_mode = '';
-- accept: no notes about it
CREATE TABLE long_columns (a VARCHAR(70000) CHARACTER SET latin1, b VARCHAR(30000), c VARBINARY(70000));
SELECT column_name AS n, data_type AS t FROM information_schema.columns WHERE table_name = 'long_columns' AND table_schema = DATABASE() ORDER BY 1;
DROP TABLE long_columns;
-- A column without a default is warned of once for all rows.
CREATE TABLE without_default (a INT NOT NULL, b INT NOT NULL, c INT);
INSERT INTO without_default (c) VALUES (1), (2);
SHOW WARNINGS;
INSERT INTO without_default VALUES (DEFAULT, 1, 1), (DEFAULT, 2, 2);
SHOW WARNINGS;
DROP TABLE without_default;
-- CHAR values with all their spaces.
SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH';
CREATE TABLE padded (id INT PRIMARY KEY, c CHAR(4), v VARCHAR(4), b BINARY(3), KEY (c));
INSERT INTO padded VALUES (1, 'x', 'x', 'x'), (2, NULL, NULL, NULL), (3, 'äöüß', 'y ', 'y'), (4, '', '', '');
SELECT id, c, CONCAT('[', c, ']'), LENGTH(c), CHAR_LENGTH(c), c = 'x', c LIKE 'x', CONCAT(UPPER(c), '|', v, '|') FROM padded ORDER BY id;
SELECT id FROM padded WHERE c = 'x';
SELECT id FROM padded WHERE c IN ('x', '') ORDER BY id;
SELECT c, COUNT(*) FROM padded GROUP BY c ORDER BY c;
SELECT CONCAT(c, '|') FROM padded WHERE id = 1;
SELECT a.id, CONCAT(b.c, '|') FROM padded a JOIN padded b ON a.c = b.v ORDER BY 1;
SET sql_mode = DEFAULT;
SELECT CONCAT('[', c, ']') FROM padded ORDER BY id;
DROP TABLE padded;
