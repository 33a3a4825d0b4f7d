SELECT nope FROM users u JOIN stories s ON s.author = u.id
SELECT id FROM users u JOIN stories s ON s.author = u.id
SELECT u.nope FROM users u JOIN stories s ON s.author = u.id
SELECT 1 FROM users u JOIN stories u ON 1 = 1
SELECT id FROM users UNION SELECT id, name FROM users
SELECT id FROM users WHERE id IN (SELECT id, name FROM users)
SELECT id FROM users WHERE (id, team) IN (SELECT id FROM users)
SELECT (SELECT id, name FROM users LIMIT 1)
SELECT COUNT(*) FROM users u JOIN stories s ON COUNT(*) = 1
SELECT u.id FROM users u JOIN stories s ON s.author = u.id WHERE SUM(s.points) > 1
SELECT * FROM (SELECT id, id FROM users) d
SELECT * FROM nowhere n JOIN users u ON u.id = n.id
SELECT x.* FROM users u JOIN stories s ON s.author = u.id
SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM stories s WHERE s.nope = u.id)
SELECT team, COUNT(*) FROM users UNION SELECT 1, 2
SELECT u.id FROM users u JOIN stories s USING (author)
