-- User variables: what scripts and applications do with them.
SET @a = 5, @b = 'text', @c = 1.50, @d = 2.5e0, @n = NULL;
SELECT @a + 1, @b, @c, @d * 2, @n IS NULL, @unset IS NULL;
SELECT @a = 5, @a = '5', @b = 'TEXT', @c > 1;
SELECT CONCAT(@a, @b, @c, @d) AS joined;
SET @when = CAST('2024-05-06 07:08:09' AS DATETIME);
SELECT @when, DATE_ADD(@when, INTERVAL 1 DAY) AS later, YEAR(@when) AS year;
SET @x := @a * 2, @y = @x;
SELECT @x, @y IS NULL;
SET @`quoted name` = 1, @'other name' = 2;
SELECT @`quoted name` + @'other name' AS three;
CREATE TABLE scores (id INT PRIMARY KEY, who VARCHAR(10), points INT);
INSERT INTO scores VALUES (1, 'ann', 30), (2, 'bob', 10), (3, 'cid', 30), (4, 'dan', 20);
SELECT COUNT(*), MAX(points) INTO @count, @most FROM scores;
SELECT @count, @most;
SELECT who INTO @who FROM scores WHERE id = 2;
-- accept: MariaDB wants INTO before FROM
SELECT who FROM scores WHERE id = 3 INTO @last;
SELECT @who, @last;
SELECT who INTO @who FROM scores;
SHOW WARNINGS;
SELECT who INTO @who FROM scores WHERE id = 99;
SHOW WARNINGS;
SELECT @who;
SELECT id, who INTO @who FROM scores WHERE id = 1;
SELECT id INTO @i FROM scores ORDER BY points DESC, id LIMIT 1;
SELECT @i;
SELECT id INTO @i FROM scores WHERE id = 2 FOR UPDATE;
SELECT 7, 'seven' INTO @seven, @word;
SELECT @seven + 1, @word;
-- accept: MySQL's type of an integer literal is BIGINT, MariaDB's INT
SELECT @v := 5;
SELECT @v + 1;
SET @row := 0;
-- accept: lengths of computed columns
SELECT @row := @row + 1 AS position, who FROM scores ORDER BY points, id;
SELECT @row;
-- accept: lengths of computed columns
SELECT @row2 := @row2 + 1 AS position, s.who FROM scores s, (SELECT @row2 := 0) AS start ORDER BY s.id;
SELECT @row2;
SET @rank = 0, @previous = -1;
-- accept: lengths of computed columns
SELECT who, @rank := IF(@previous = points, @rank, @rank + 1) AS place, @previous := points AS points FROM scores ORDER BY points DESC, id;
SET @n = 100;
UPDATE scores SET points = (@n := @n + 1) ORDER BY id;
SELECT id, points FROM scores ORDER BY id;
SELECT @n;
SET @wanted = 'bob';
SELECT id FROM scores WHERE who = @wanted;
SELECT id FROM scores WHERE id = @a - 4;
INSERT INTO scores VALUES (@a, @wanted, @a * 2);
SELECT * FROM scores WHERE id = 5;
SET @limit = 2;
PREPARE page FROM 'SELECT id FROM scores WHERE id > ? ORDER BY id LIMIT ?';
EXECUTE page USING @limit, @limit;
DEALLOCATE PREPARE page;
SET @text = 'SELECT who FROM scores WHERE id = 1';
PREPARE named FROM @text;
EXECUTE named;
SELECT @@sql_mode = @@session.sql_mode AS same;
SELECT 1 INTO @@x;
SELECT 1, 2 INTO @one;
