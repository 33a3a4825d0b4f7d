-- Statements that change rows found by queries, each followed by what is there.
UPDATE users SET score = (SELECT COUNT(*) FROM stories s WHERE s.author = users.id) WHERE team = 1
SELECT * FROM users
UPDATE users SET score = score + 1, name = CONCAT(name, score) WHERE id IN (SELECT author FROM stories WHERE points > 5)
SELECT * FROM users
UPDATE stories s JOIN users u ON u.id = s.author SET s.points = u.team, u.joined = '2022-02-02' WHERE u.team IS NOT NULL
SELECT * FROM stories
SELECT * FROM users
UPDATE users u LEFT JOIN votes v ON v.user = u.id SET u.score = 0, v.weight = 9 WHERE u.id > 4
SELECT * FROM users
SELECT * FROM votes
UPDATE stories SET points = 99 WHERE author = (SELECT MIN(id) FROM users) ORDER BY id DESC LIMIT 1
SELECT * FROM stories
DELETE FROM taggings WHERE tag IN (SELECT id FROM tags WHERE tag = 'db')
SELECT * FROM taggings
DELETE v FROM votes v JOIN stories s ON s.id = v.story WHERE s.points > 50
SELECT * FROM votes
DELETE s, v FROM stories s LEFT JOIN votes v ON v.story = s.id WHERE s.id = 4
SELECT * FROM stories
SELECT * FROM votes
DELETE FROM votes USING votes JOIN users u ON u.id = votes.user WHERE u.name = 'dan'
SELECT * FROM votes
DELETE FROM users WHERE NOT EXISTS (SELECT 1 FROM stories s WHERE s.author = users.id) AND team = 3
SELECT * FROM users
INSERT INTO empty_table SELECT u.id, COUNT(s.id) FROM users u LEFT JOIN stories s ON s.author = u.id GROUP BY u.id
SELECT * FROM empty_table
REPLACE INTO tags SELECT id + 100, UPPER(tag), (SELECT MAX(x) FROM empty_table) FROM tags WHERE parent IN (SELECT id FROM tags)
SELECT * FROM tags
INSERT INTO votes SELECT id, 1, 1, 1 FROM stories ON DUPLICATE KEY UPDATE weight = 77
SELECT * FROM votes
UPDATE empty_table e, users u SET e.x = u.team WHERE e.id = u.id
SELECT * FROM empty_table
UPDATE users u JOIN nowhere n ON n.id = u.id SET u.team = 1
DELETE z FROM users u JOIN stories s ON s.author = u.id
UPDATE users u JOIN (SELECT 1 AS a) d ON TRUE SET d.a = 2
CREATE TABLE digits (id INT PRIMARY KEY AUTO_INCREMENT, a INT DEFAULT 0x10, b VARBINARY(5) DEFAULT x'41', c DECIMAL(10,2), e BIT(8) DEFAULT b'101')
INSERT INTO digits (a, b, c, e) VALUES (0xFF, 0x4142, 0xFF, b'1011'), (b'101', b'1000001', b'1', 0x41), (0x1, NULL, NULL, 0x2)
INSERT INTO digits (a, b, c) VALUES (0xFF, 0x41, 2.5), (5, 'x', 0x1)
INSERT INTO digits SET a = 0x10, b = x'4142'
UPDATE digits SET c = 0x20 WHERE a = 0x10
SELECT id, a, b, c, e + 0 FROM digits
SELECT id FROM digits WHERE e = b'1011' OR b = 0x41
INSERT INTO digits (a) SELECT 10 DIV 0
INSERT INTO digits (a, c) SELECT id, score / (id - 2) FROM users
INSERT IGNORE INTO digits (id, a, c) SELECT id + 100, id, score / (id - 2) FROM users
-- one table under two names
CREATE TABLE pairs (id INT PRIMARY KEY, x INT, y INT)
INSERT INTO pairs VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)
UPDATE pairs a JOIN pairs b ON a.id = b.id SET a.x = 5, b.y = 6
SELECT * FROM pairs
UPDATE pairs a JOIN pairs b ON a.id = b.id + 1 SET a.x = a.id * 10, b.x = b.id * 100, b.y = a.x
SELECT * FROM pairs
UPDATE pairs a JOIN pairs b ON a.id = b.id SET a.id = 7, b.y = 6
DELETE a, b FROM pairs a JOIN pairs b ON a.id = b.id + 1 WHERE a.id = 3
SELECT * FROM pairs
DELETE pairs.* FROM pairs, tags RIGHT JOIN taggings g ON tags.id = g.tag
SELECT * FROM pairs
