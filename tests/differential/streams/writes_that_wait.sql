-- SLEEP and GET_LOCK where rows are changed
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(20));
INSERT INTO t (a, b) VALUES (SLEEP(0), 'x'), (GET_LOCK('writes_that_wait', 0), 'y'), (IS_FREE_LOCK('writes_that_wait'), 'z');
UPDATE t SET a = a + GET_LOCK(CONCAT('writes_that_wait', id), 0) WHERE id > 1;
INSERT INTO t (a, b) SELECT RELEASE_LOCK(CONCAT('writes_that_wait', id)), b FROM t ORDER BY id;
SELECT a, b FROM t ORDER BY b, a;
DELETE FROM t WHERE SLEEP(0) = 0 AND b = 'x';
CREATE TABLE c AS SELECT CONCAT(SLEEP(0), RELEASE_LOCK('writes_that_wait')) AS c1;
SELECT LENGTH(c1), c1 = '00' FROM c;
INSERT INTO t (id, a) VALUES (2, 0) ON DUPLICATE KEY UPDATE a = SLEEP(0) + 7;
BEGIN;
UPDATE t SET a = IF(b = 'y', SLEEP(0), 9) + 1;
ROLLBACK;
SELECT a, b FROM t ORDER BY b, a;
