-- What SELECTs warn of.
SELECT '12abc' + 1;
SHOW WARNINGS;
SELECT @@warning_count;
SELECT 'abc' + 1, '5' + 1, '' + 1;
SHOW WARNINGS;
SELECT CAST('12abc' AS SIGNED), CAST('abc' AS UNSIGNED), CAST('1.5x' AS DECIMAL(5,2));
SHOW WARNINGS;
SHOW COUNT(*) WARNINGS;
SELECT 1 / 0, 5 % 0, 5 DIV 0;
SHOW WARNINGS;
SELECT 1 = '1x', '2' = 2;
-- accept: MySQL says DOUBLE, MariaDB DECIMAL
SHOW WARNINGS;
SELECT YEAR('not a date'), CAST('2024-13-45' AS DATE);
SHOW WARNINGS;
SELECT DATE_ADD('bad', INTERVAL 1 DAY);
SHOW WARNINGS;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO t VALUES (1, '10'), (2, '20x'), (3, 'x');
SELECT id, v + 0 FROM t ORDER BY id;
SHOW WARNINGS;
SELECT SUM(v) FROM t;
SHOW WARNINGS;
SELECT id FROM t WHERE v = 20 ORDER BY id;
-- accept: MySQL says DOUBLE, MariaDB DECIMAL
SHOW WARNINGS;
SELECT id FROM t WHERE id = 1;
SHOW WARNINGS;
SET sql_mode = '';
SELECT 1 / 0;
SHOW WARNINGS;
SELECT CAST(1000 AS DECIMAL(5, 2)), CAST(1000 AS CHAR(3)), CONVERT('abc', BINARY(2));
SELECT @@warning_count;
SELECT CAST('9223372036854775809' AS SIGNED), CAST('18446744073709551616' AS SIGNED), CAST('-1' AS UNSIGNED);
SELECT @@warning_count;
SELECT CAST(1e300 AS SIGNED), CAST(19999999999999999999 AS SIGNED), CAST(-1.0 AS UNSIGNED), CAST(~0 >> 1 AS SIGNED);
SELECT @@warning_count;
SELECT SEC_TO_TIME(3300000), TIME_TO_SEC('916:40:00'), MAKETIME(916, 0, 0), TIMEDIFF('839:00:00', '38:59:59');
SELECT @@warning_count;
SELECT STR_TO_DATE('2004.12.12 22.30.61', '%Y.%m.%d %T'), STR_TO_DATE('2003-04-05 g', '%Y-%m-%d'), DATE_ADD('2001-01-01 10:10:10x', INTERVAL 1 DAY);
SELECT @@warning_count;
SELECT TIMESTAMP('2001-01-01 10:10:10.123456xyz'), MICROSECOND('1997-12-31 23:59:59.01XXXX'), ADDTIME('-01:01:01.01 GGG', '-23:59:59.1');
SELECT @@warning_count;
CREATE TABLE divided (a INT, b INT);
INSERT IGNORE INTO divided VALUES (1 / 0, 1 / 0);
SELECT @@warning_count;
DROP TABLE divided;
-- More rows than one where a value is wanted: an error, and a warning under IGNORE.
CREATE TABLE several (a INT, b INT);
INSERT INTO several VALUES (1, 1), (2, 2);
UPDATE several SET b = (SELECT a FROM several x);
-- accept: how often
UPDATE IGNORE several SET b = (SELECT a FROM several x);
SELECT * FROM several ORDER BY a;
-- accept: how often
UPDATE IGNORE several SET b = 5 WHERE a <> (SELECT a FROM several x);
INSERT IGNORE INTO several VALUES (9, (SELECT a FROM several x));
SHOW WARNINGS;
SELECT * FROM several ORDER BY a;
DROP TABLE several;
-- A moment as a TIME loses its date; a number that no DOUBLE can be.
CREATE TABLE times (t TIME);
INSERT INTO times VALUES ('2010-12-11 00:20:03.1234'), ('10:11:12'), (101112), ('1 10:11:12'), (20101211010203);
SHOW WARNINGS;
SELECT * FROM times ORDER BY t;
DROP TABLE times;
-- dates that the calendar has not: a text is warned of, and so is what an interval is added to
SELECT DAYOFYEAR('0000-00-00'), WEEKDAY('0000-00-00'), DAYOFWEEK('2001-00-01'), DAYNAME('2009-10-00');
SELECT WEEK('0000-00-00'), TO_DAYS('0000-00-00'), TO_SECONDS('0000-00-00'), YEARWEEK('0000-00-00'), WEEKOFYEAR('0000-00-00');
SELECT '2009-10-00' + INTERVAL 1 DAY, FROM_DAYS(1) + INTERVAL 1 MONTH, TIMESTAMPADD(WEEK, 1, FROM_DAYS(1));
-- a text with characters that the column has not is warned of once, even if it is too long, too
CREATE TABLE narrow_texts (a VARCHAR(2) CHARACTER SET utf32, b VARCHAR(3) CHARACTER SET latin1);
INSERT IGNORE INTO narrow_texts (a) VALUES (0x00110000), (0x0010000000110000);
INSERT IGNORE INTO narrow_texts (b) VALUES ('яяяяя'), ('aaaaa');
SELECT HEX(a), b FROM narrow_texts;
