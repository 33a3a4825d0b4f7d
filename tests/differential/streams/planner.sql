-- What the planner once got wrong: each statement here was answered otherwise than by MariaDB, or refused.
CREATE TABLE t1 (i INT);
INSERT INTO t1 VALUES (1), (2), (3), (4);
CREATE TABLE t2 (i INT);
-- a temporary table hides another only after its own rows were read
CREATE TEMPORARY TABLE t1 SELECT i FROM t1 UNION ALL SELECT i + 10 FROM t1;
SELECT i + 0 FROM t1;
DROP TEMPORARY TABLE t1;
CREATE TEMPORARY TABLE t1 SELECT i FROM t1 WHERE i > 2;
SELECT * FROM t1;
CREATE TEMPORARY TABLE t2 AS SELECT * FROM t1;
SELECT * FROM t2;
DROP TEMPORARY TABLE t1, t2;
INSERT INTO t2 SELECT * FROM t1 AS t2;
SELECT * FROM t2;
-- parameters in CREATE TABLE … SELECT
PREPARE s FROM 'CREATE TABLE c3 SELECT i FROM t1 WHERE i > ?';
SET @b = 2;
EXECUTE s USING @b;
SELECT * FROM c3;
-- SQL_CALC_FOUND_ROWS of a UNION is in its first SELECT
SELECT SQL_CALC_FOUND_ROWS i FROM t1 UNION SELECT i + 10 FROM t1 LIMIT 2;
SELECT FOUND_ROWS();
(SELECT SQL_CALC_FOUND_ROWS i FROM t1 LIMIT 1) UNION ALL (SELECT i FROM t1 LIMIT 1) LIMIT 1;
SELECT FOUND_ROWS();
SELECT SQL_CALC_FOUND_ROWS DISTINCT i FROM t1 LIMIT 1;
SELECT FOUND_ROWS();
-- a key that is repeated is another level
SELECT i, COUNT(*) FROM t1 GROUP BY i, i WITH ROLLUP;
-- system variables that are saved and put back
SET @saved = @@sql_select_limit;
SET sql_select_limit = 0;
SET sql_select_limit = @saved;
SELECT * FROM t1;
SET @saved = @@sort_buffer_size;
SET sort_buffer_size = @saved;
SET sort_buffer_size = @undefined;
SET sql_mode = 'ANSI_QUOTES';
SET sql_mode = "";
SELECT @@sql_mode;
SET sql_mode = DEFAULT;
-- what all alternatives of an OR share, on whichever side it is written
SELECT a.i, b.i FROM t1 a, t2 b WHERE a.i = b.i AND a.i = 1 OR b.i = a.i AND b.i = 2;
-- DISTINCT in an order that it does not select, as WordPress asks for
CREATE TABLE wa (id INT PRIMARY KEY, name VARCHAR(10));
CREATE TABLE wb (id INT, o INT);
INSERT INTO wa VALUES (1, 'c'), (2, 'b'), (3, 'a');
INSERT INTO wb VALUES (1, 1), (2, 2), (3, 3), (3, 3);
SET sql_mode = '';
SELECT DISTINCT t.id, b.o FROM wa AS t INNER JOIN wb b ON t.id = b.id ORDER BY t.name;
SELECT SQL_CALC_FOUND_ROWS DISTINCT t.id FROM wa AS t INNER JOIN wb b ON t.id = b.id WHERE b.o IN (1, 3) ORDER BY t.name LIMIT 1;
SELECT FOUND_ROWS();
SELECT DISTINCT t.name FROM wa t JOIN wb ON wb.id = t.id GROUP BY t.id ORDER BY MAX(wb.o) DESC;
SET sql_mode = DEFAULT;
-- locks inside of expressions
SELECT IF(GET_LOCK('x', 3), 5, NULL);
SELECT IS_USED_LOCK('x') = CONNECTION_ID(), IS_FREE_LOCK('x'), IS_FREE_LOCK('y'), IS_USED_LOCK('y');
SELECT RELEASE_LOCK('x') + 1 AS c;
SELECT IF(0, GET_LOCK('z', 0), 7), IS_FREE_LOCK('z');
SELECT CASE WHEN IS_FREE_LOCK('a') THEN 1 ELSE RELEASE_LOCK('a') END;
SELECT GET_LOCK(CONCAT('a', id), 0) FROM wa ORDER BY id;
DO RELEASE_ALL_LOCKS(), SLEEP(0);
SET @l = GET_LOCK('ll', 0);
SELECT @l, RELEASE_LOCK('ll');
-- moments in the session's time zone: in defaults, and in user variables
SET time_zone = '+03:00';
CREATE TABLE z (a INT, ts TIMESTAMP DEFAULT '2003-01-01 00:00:00');
INSERT INTO z (a) VALUES (1);
SELECT * FROM z;
SELECT ts INTO @v FROM z;
SELECT @v;
INSERT INTO z VALUES (2, @v);
ALTER TABLE z ADD t2 TIMESTAMP NOT NULL DEFAULT '2004-05-06 07:08:09';
CREATE TABLE z2 SELECT * FROM z;
INSERT INTO z2 (a) VALUES (4);
SET time_zone = '+00:00';
SELECT * FROM z2;
-- more combinations of listed values than could be looked up
CREATE TABLE listed (a CHAR(3), b CHAR(3), c CHAR(3), d CHAR(3), KEY k (a, b, c, d));
INSERT INTO listed VALUES ('v1', 'v2', 'v3', 'v4'), ('v1', 'v2', 'v3', 'x'), ('v29', 'v0', 'v5', 'v5');
SELECT * FROM listed WHERE a IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') AND b IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') AND c IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') AND d IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') ORDER BY a;
SELECT * FROM listed WHERE a IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') AND b IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') AND c IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') AND d IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') ORDER BY a;
SELECT * FROM listed WHERE a IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') AND b IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') AND c IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') AND d IN ('v0', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v9', 'v10', 'v11', 'v12', 'v13', 'v14', 'v15', 'v16', 'v17', 'v18', 'v19', 'v20', 'v21', 'v22', 'v23', 'v24', 'v25', 'v26', 'v27', 'v28', 'v29') ORDER BY a;
DROP TABLE listed;
CREATE TABLE counted (i INT);
INSERT INTO counted VALUES (1), (2), (3), (6);
SELECT i FROM counted WHERE EXISTS (SELECT 6 FROM DUAL WHERE counted.i <> 6 INTERSECT ALL SELECT 3 FROM DUAL WHERE counted.i <> 3);
SELECT i FROM counted WHERE EXISTS (SELECT 6 FROM DUAL WHERE counted.i <> 6 EXCEPT ALL SELECT 6 FROM DUAL WHERE counted.i <> 3);
SELECT i FROM counted ORDER BY i UNION SELECT 1;
SELECT i FROM counted LIMIT 1 UNION SELECT 1;
DROP TABLE counted;
CREATE TABLE nested (a INT, b INT);
INSERT INTO nested VALUES (1, 1), (2, 5);
UPDATE nested SET b = (SELECT DISTINCT 1 FROM (SELECT * FROM nested) AS d);
SELECT * FROM nested;
DROP TABLE nested;
CREATE TABLE groups1 (a INT, b INT);
INSERT INTO groups1 VALUES (1, 10), (1, 11), (2, 20), (3, 30), (3, 31), (3, 32);
SELECT COUNT(*), a, (SELECT MIN(g.a) FROM groups1 AS g WHERE g.a = COUNT(*)) AS m FROM groups1 GROUP BY a ORDER BY a;
SELECT a FROM groups1 WHERE COUNT(*) > 1;
SELECT a FROM groups1 UNION SELECT 7 ORDER BY (SELECT COUNT(*) FROM groups1 AS g WHERE g.a <= a), a;
SELECT p.a AS v, q.a AS v FROM groups1 AS p, groups1 AS q ORDER BY v;
SELECT * FROM groups1 USE INDEX (none_of_them);
DROP TABLE groups1;
SELECT a, 2 AS a FROM (SELECT '1' AS a) AS b HAVING a = 2;
SELECT a, 2 AS a FROM (SELECT '1' AS a) AS b HAVING a = 1;
-- a subquery of the SELECT list inside a key: evaluated for each row, any value of it beside the groups
SET sql_mode = '';
CREATE TABLE t4 (a INT, b INT);
INSERT INTO t4 VALUES (1, 10), (2, 20), (2, 21), (3, 5);
SELECT (SELECT t4.a) AS aa, COUNT(DISTINCT b) FROM t4 GROUP BY aa + 0;
SELECT (SELECT MAX(i) FROM t1 WHERE t1.i <= t4.a) AS aa, SUM(b) FROM t4 GROUP BY aa + 1 HAVING aa > 1;
SELECT (SELECT MAX(i) FROM t1 WHERE t1.i <= t4.a) * 2 AS aa, SUM(b) FROM t4 GROUP BY -aa ORDER BY aa DESC;
SELECT a, a IN (SELECT (SELECT MAX(i) FROM t1 WHERE t1.i <= x.a) AS s FROM t4 AS x GROUP BY s + 1) FROM t4;
SET sql_mode = 'ONLY_FULL_GROUP_BY';
SELECT (SELECT t4.a) AS aa, COUNT(DISTINCT b) FROM t4 GROUP BY aa + 0;
SELECT (SELECT t4.a) + 0 AS aa, COUNT(DISTINCT b) FROM t4 GROUP BY aa;
SET sql_mode = DEFAULT;
-- a text beside binary strings is the bytes of its own character set, also where an index is asked
CREATE TABLE t5 (id INT PRIMARY KEY, v VARBINARY(20), KEY (v));
INSERT INTO t5 VALUES (1, 'a'), (2, 'A'), (3, 0xC9), (4, 0xC389), (5, NULL);
SELECT id FROM t5 WHERE v = _latin1 0xC9;
SELECT id FROM t5 WHERE v BETWEEN 'a' AND _latin1 0xC9 ORDER BY v;
SELECT id FROM t5 WHERE v IN (_latin1 0xC9, 'a') ORDER BY v;
DELETE FROM t5 WHERE v = _latin1 0xC9;
-- beside a number, binary texts that are not written as digits are still texts
CREATE TABLE t6 (id INT PRIMARY KEY, t VARCHAR(20) COLLATE utf8mb4_general_ci);
INSERT INTO t6 VALUES (1, 'A'), (2, 'b'), (3, '2');
SELECT id FROM t6 WHERE t IN (2, _binary'a') ORDER BY id;
-- assignments as items of ORDER BY and GROUP BY
SELECT id, @r := id FROM t6 ORDER BY @r := t DESC;
SELECT MAX(id), COUNT(*) FROM t6 GROUP BY @g := id DIV 2 ORDER BY 1;
SELECT @g;
SELECT GROUP_CONCAT(id ORDER BY @z := t DESC) FROM t6;
-- a constant that is no number or date is told of once, not for each row
SELECT id FROM t6 WHERE id = '1x';
SHOW COUNT(*) WARNINGS;
SELECT id FROM t6 WHERE id + 0 > '1x' ORDER BY id;
SHOW COUNT(*) WARNINGS;
PREPARE s FROM 'SELECT id FROM t6 WHERE id + 0 < ? ORDER BY id';
SET @v = '2x';
EXECUTE s USING @v;
SHOW COUNT(*) WARNINGS;
EXECUTE s USING @v;
SHOW COUNT(*) WARNINGS;
-- The NULL of a ROLLUP, and of a group without rows, in a column that is else never NULL.
CREATE TABLE rolled (id INT NOT NULL PRIMARY KEY, c BIGINT);
INSERT INTO rolled VALUES (1, 1), (2, 2), (3, 1);
SELECT x.o + 0 AS o, (SELECT MIN(d.c) FROM rolled AS d HAVING COUNT(*) > (SELECT COUNT(a.id) FROM rolled a WHERE a.c = x.o)) AS n FROM (SELECT id AS o, COUNT(*) FROM rolled GROUP BY id WITH ROLLUP) AS x ORDER BY 1;
SELECT x.o, (SELECT MIN(d.c) FROM rolled AS d HAVING COUNT(*) > (SELECT COUNT(a.id) FROM rolled a WHERE a.c = x.o)) AS n FROM (SELECT id + 1 AS o, COUNT(*) FROM rolled GROUP BY id WITH ROLLUP) AS x ORDER BY 1;
SET sql_mode = '';
SELECT x.o + 0 AS o, (SELECT MIN(d.c) FROM rolled AS d HAVING COUNT(*) > (SELECT COUNT(a.id) FROM rolled a WHERE a.c = x.o)) AS n FROM (SELECT id AS o, COUNT(*) FROM rolled WHERE id > 100) AS x;
DROP TABLE rolled;
-- An aggregate of an alias of the query around belongs to the query that it stands in.
SET sql_mode = DEFAULT;
CREATE TABLE aliased (a INT, b INT);
INSERT INTO aliased VALUES (1, 1), (2, 2);
SELECT b x, (SELECT GROUP_CONCAT(x) FROM aliased) AS n FROM aliased ORDER BY 1;
SELECT b + 1 AS x, (SELECT SUM(x + i.a) FROM aliased i) AS n, (SELECT MAX(x) FROM aliased i WHERE i.a = x) AS m FROM aliased ORDER BY 1;
DROP TABLE aliased;
