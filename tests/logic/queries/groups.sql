SELECT s.author, COUNT(*), SUM(v.vote), AVG(v.weight) FROM stories s JOIN votes v ON v.story = s.id GROUP BY s.author
SELECT u.team, COUNT(*) AS c FROM users u JOIN stories s ON s.author = u.id GROUP BY u.team HAVING c > 1
SELECT u.team + 1 AS k, COUNT(*) FROM users u JOIN stories s ON s.author = u.id GROUP BY k
SELECT u.team + 1, COUNT(*) FROM users u LEFT JOIN stories s ON s.author = u.id GROUP BY u.team + 1 ORDER BY 1
SELECT COUNT(*), COUNT(s.id), COUNT(DISTINCT s.author), MIN(s.points), MAX(s.title) FROM users u LEFT JOIN stories s ON s.author = u.id
SELECT COUNT(*) FROM users u JOIN empty_table e ON e.id = u.id
SELECT SUM(e.x), COUNT(e.x) FROM users u JOIN empty_table e ON e.id = u.id
SELECT SUM(e.x), COUNT(e.x) FROM users u JOIN empty_table e ON e.id = u.id WHERE u.id = 3
SELECT COUNT(*) AS c FROM users u JOIN empty_table e ON e.id = u.id WHERE u.id = 3 HAVING c > 0
SELECT COUNT(DISTINCT s.author, v.vote) FROM stories s JOIN votes v ON v.story = s.id
SELECT COUNT(CASE WHEN v.vote = 1 THEN 1 END) AS up, COUNT(CASE WHEN v.vote = 0 THEN 1 END) AS down FROM votes v JOIN stories s ON s.id = v.story
SELECT s.id, GROUP_CONCAT(DISTINCT t.tag ORDER BY t.tag DESC SEPARATOR '; ') AS tags FROM stories s JOIN taggings g ON g.story = s.id JOIN tags t ON t.id = g.tag GROUP BY s.id
SELECT DISTINCT u.team FROM users u JOIN stories s ON s.author = u.id
SELECT DISTINCT u.team, s.points FROM users u LEFT JOIN stories s ON s.author = u.id ORDER BY u.team DESC, s.points
SELECT DISTINCT COUNT(*) FROM users u JOIN stories s ON s.author = u.id GROUP BY u.id
SELECT team, COUNT(*), SUM(score) FROM users GROUP BY team WITH ROLLUP
SELECT team, joined, COUNT(*) FROM users GROUP BY team, joined WITH ROLLUP
SELECT team, COUNT(*) FROM users GROUP BY team WITH ROLLUP HAVING COUNT(*) > 1
SELECT d.team, d.n FROM (SELECT team, COUNT(*) AS n FROM users GROUP BY team) d WHERE d.n > 1
SELECT d.team, u.id FROM (SELECT team, COUNT(*) AS n FROM users GROUP BY team) d JOIN users u ON u.team = d.team WHERE d.n > 1
SELECT u.id, d.n FROM users u LEFT JOIN (SELECT author, COUNT(*) AS n FROM stories GROUP BY author) d ON d.author = u.id
SELECT u.id, COALESCE(d.n, 0) AS n FROM users u LEFT JOIN (SELECT author, COUNT(*) AS n FROM stories GROUP BY author) d ON d.author = u.id WHERE u.id IN (1, 4)
SELECT d.team, MAX(d.n) FROM (SELECT u.team, u.id, COUNT(s.id) AS n FROM users u LEFT JOIN stories s ON s.author = u.id GROUP BY u.team, u.id) d GROUP BY d.team
SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM votes GROUP BY story) d
SELECT * FROM (SELECT id, points FROM stories ORDER BY points DESC, id LIMIT 3) d ORDER BY id
SELECT * FROM (SELECT id, points FROM stories ORDER BY points DESC, id LIMIT 2, 3) d JOIN votes v ON v.story = d.id
SELECT u.name, d.id FROM users u JOIN (SELECT * FROM stories ORDER BY id LIMIT 4) d ON d.author = u.id WHERE d.points > 1
SELECT AVG(u.score), STDDEV(u.score) FROM users u JOIN stories s ON s.author = u.id
SELECT BIT_AND(s.points), BIT_OR(s.points), BIT_XOR(s.id) FROM users u JOIN stories s ON s.author = u.id
SELECT MIN(u.name), MAX(u.joined), MIN(s.created) FROM users u JOIN stories s ON s.author = u.id
SELECT s.author, SUM(v.vote) AS v FROM stories s JOIN votes v ON v.story = s.id GROUP BY s.author ORDER BY v DESC, s.author LIMIT 2
SELECT u.id, u.name FROM users u JOIN stories s ON s.author = u.id GROUP BY u.id, u.name
SELECT 1 FROM users u JOIN stories s ON s.author = u.id GROUP BY u.team
SELECT SUM(DISTINCT s.points), AVG(DISTINCT s.points) FROM stories s JOIN votes v ON v.story = s.id
SELECT s.title, COUNT(*) + 1 AS c FROM stories s JOIN votes v ON v.story = s.id WHERE v.vote IS NOT NULL GROUP BY s.id, s.title HAVING SUM(v.vote) >= 0 ORDER BY c, s.title
SELECT COUNT(*) FROM (SELECT DISTINCT title FROM stories) d
SELECT ABS(SUM(s.points)) FROM stories s JOIN users u ON u.id = s.author WHERE u.team = 1
SELECT COUNT(*) AS c FROM users u JOIN stories s ON s.author = u.id WHERE u.id = 1 HAVING c = 0
SELECT COUNT(*) AS c FROM users u JOIN stories s ON s.author = u.id WHERE u.id = 4 HAVING c = 0
SELECT COUNT(*) AS c FROM users u JOIN stories s ON s.author = u.id WHERE u.id = 4 HAVING c > 0
-- DISTINCT and HAVING
SELECT DISTINCT team FROM users GROUP BY team HAVING COUNT(*) = 1
SELECT DISTINCT COUNT(*) FROM users GROUP BY team HAVING COUNT(*) > 0
SELECT DISTINCT s.points FROM stories s JOIN users u ON u.id = s.author GROUP BY s.points, u.team HAVING COUNT(*) = 1 ORDER BY 1
SELECT DISTINCT COUNT(*) FROM users WHERE team = 1 HAVING COUNT(*) = 1
SELECT DISTINCT COUNT(*) FROM users WHERE team = 99
SELECT DISTINCT COUNT(*) FROM users WHERE team IN (1, 2, 3) GROUP BY team
SELECT DISTINCT COUNT(*) FROM users WHERE team IN (1, 2, 3) GROUP BY team HAVING COUNT(*) < 2
SELECT COUNT(*) FROM (SELECT DISTINCT points FROM stories GROUP BY points, author HAVING COUNT(*) = 1) d
SELECT DISTINCT ROW_NUMBER() OVER (ORDER BY team) FROM users GROUP BY team HAVING COUNT(*) = 2
-- keys of a ROLLUP that name what is selected
SELECT team, id, team AS again, COUNT(*) FROM users GROUP BY team, id, again WITH ROLLUP
SELECT team, team AS again, COUNT(*) FROM users GROUP BY team, again WITH ROLLUP
SELECT team, COUNT(*) FROM users GROUP BY team, team WITH ROLLUP
SELECT team, id AS x, COUNT(*) FROM users GROUP BY 1, 2 WITH ROLLUP
-- BIT and BLOB in lists
SELECT GROUP_CONCAT(DISTINCT b'11' + id), GROUP_CONCAT(x'41', id ORDER BY id) FROM users WHERE id < 4
