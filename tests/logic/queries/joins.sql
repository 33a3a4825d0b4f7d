SELECT u.name, s.title FROM users u JOIN stories s ON s.author = u.id
SELECT u.name, s.title FROM users u, stories s WHERE s.author = u.id AND s.points > 5
SELECT u.id, s.id FROM users u CROSS JOIN stories s WHERE u.team = s.points
SELECT u.id, s.id FROM users u LEFT JOIN stories s ON s.author = u.id
SELECT u.id, s.id FROM users u LEFT JOIN stories s ON s.author = u.id AND s.points > 5
SELECT u.id, s.id FROM users u LEFT JOIN stories s ON s.author = u.id WHERE s.points > 5
SELECT u.id, s.id FROM users u LEFT JOIN stories s ON s.author = u.id WHERE s.id IS NULL
SELECT u.id, s.id FROM users u RIGHT JOIN stories s ON s.author = u.id
SELECT u.id, s.id, v.user FROM users u LEFT JOIN (stories s JOIN votes v ON v.story = s.id) ON s.author = u.id
SELECT u.id, s.id, v.user FROM users u LEFT JOIN stories s ON s.author = u.id LEFT JOIN votes v ON v.story = s.id AND v.vote = 1
SELECT u.id, s.id, v.user FROM users u JOIN stories s ON s.author = u.id LEFT JOIN votes v ON v.story = s.id WHERE u.team = 1
SELECT a.id, b.id FROM users a JOIN users b ON a.team = b.team AND a.id < b.id
SELECT a.id, b.id FROM users a JOIN users b USING (team)
SELECT * FROM users JOIN (SELECT id, points FROM stories) s USING (id)
SELECT * FROM (SELECT 1 AS a, 2 AS b) x NATURAL JOIN (SELECT 1 AS a, 3 AS c) y
SELECT * FROM (SELECT 1 AS a, 2 AS b) x LEFT JOIN (SELECT 2 AS a, 3 AS c) y USING (a)
SELECT * FROM (SELECT 1 AS a, 2 AS b) x RIGHT JOIN (SELECT 2 AS a, 3 AS c) y USING (a)
SELECT a.id, b.id FROM stories a JOIN stories b ON a.title = b.title
SELECT a.tag, b.tag FROM tags a JOIN tags b ON a.tag = b.tag
SELECT s.id, t.tag FROM stories s JOIN taggings g ON g.story = s.id JOIN tags t ON t.id = g.tag WHERE s.author = 2
SELECT s.id, t.tag FROM stories s JOIN taggings g ON g.story = s.id JOIN tags t ON t.id = g.tag WHERE s.id IN (1, 3)
SELECT u.id, s.id FROM users u JOIN stories s ON s.author = u.id + 1
SELECT u.id, s.id FROM users u JOIN stories s ON s.author = u.id OR s.points = u.team
SELECT u.id, s.id FROM users u JOIN stories s ON u.id <=> s.author
SELECT u.id, s.id FROM users u JOIN stories s ON NOT (u.id = s.author) WHERE u.id < 3
SELECT u.id, s.id, v.user, t.tag FROM users u JOIN stories s ON s.author = u.id JOIN votes v ON v.story = s.id JOIN taggings g ON g.story = s.id JOIN tags t ON t.id = g.tag
SELECT v.story, s.id FROM votes v LEFT JOIN stories s ON s.id = v.story WHERE v.user = 9
SELECT s.title, u.name FROM stories s LEFT JOIN users u ON u.id = s.author ORDER BY s.title, s.id LIMIT 3
SELECT s.title, u.name FROM stories s LEFT JOIN users u ON u.id = s.author ORDER BY s.id DESC LIMIT 2 OFFSET 1
SELECT u.id, e.id FROM users u LEFT JOIN empty_table e ON TRUE
SELECT u.id, e.id FROM users u JOIN empty_table e ON TRUE
SELECT u.id FROM users u LEFT JOIN empty_table e ON e.id = u.id WHERE COALESCE(e.x, 5) = 5
SELECT COUNT(*) FROM users a JOIN users b JOIN users c
SELECT s.id FROM stories s STRAIGHT_JOIN users u ON u.id = s.author
-- the comma binds less tightly than JOIN
SELECT * FROM users u, stories s RIGHT JOIN votes v ON v.story = s.id
SELECT u.id, s.id, v.vote FROM users u, stories s LEFT JOIN votes v ON v.story = s.id WHERE s.author = u.id
SELECT * FROM users u, tags t JOIN taggings g ON u.id = g.tag
SELECT * FROM users u JOIN (tags t JOIN taggings g ON u.id = g.tag) ON TRUE
SELECT * FROM users u, stories s JOIN tags t USING (id) WHERE u.id = t.id
SELECT * FROM users u, stories NATURAL JOIN empty_table e
SELECT * FROM (users u, stories s) JOIN votes v ON v.story = s.id AND v.user = u.id
SELECT u.id FROM users u LEFT JOIN (stories s, votes v) ON v.story = s.id AND s.author = u.id
