SELECT id FROM users WHERE id IN (SELECT author FROM stories)
SELECT id FROM users WHERE id NOT IN (SELECT author FROM stories)
SELECT id FROM users WHERE id NOT IN (SELECT author FROM stories WHERE author IS NOT NULL)
SELECT id FROM users WHERE team IN (SELECT points FROM stories)
SELECT id FROM users WHERE team NOT IN (SELECT vote FROM votes WHERE story = 1)
SELECT id FROM users WHERE team NOT IN (SELECT x FROM empty_table)
SELECT id, team IN (SELECT vote FROM votes) FROM users
SELECT id, team NOT IN (SELECT vote FROM votes) FROM users
SELECT id, team IN (SELECT x FROM empty_table) FROM users
SELECT id, id IN (SELECT author FROM stories), id NOT IN (SELECT author FROM stories) FROM users
SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM stories s WHERE s.author = u.id)
SELECT id FROM users u WHERE NOT EXISTS (SELECT 1 FROM stories s WHERE s.author = u.id)
SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM stories s WHERE s.author = u.id AND s.points > u.team)
SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM stories s WHERE s.points > u.score)
SELECT id FROM users u WHERE EXISTS (SELECT * FROM empty_table)
SELECT id FROM users u WHERE NOT EXISTS (SELECT * FROM empty_table)
SELECT id FROM users u WHERE EXISTS (SELECT * FROM stories WHERE points = 10)
SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM stories s WHERE s.author = u.id) OR team = 3
SELECT id, EXISTS (SELECT 1 FROM stories s WHERE s.author = u.id) AS has FROM users u
SELECT id, (SELECT COUNT(*) FROM stories s WHERE s.author = u.id) AS n FROM users u
SELECT id, (SELECT COUNT(*) + 1 FROM stories s WHERE s.author = u.id) AS n FROM users u
SELECT id, (SELECT MAX(points) FROM stories s WHERE s.author = u.id) AS m FROM users u
SELECT id, (SELECT COALESCE(SUM(points), 0) FROM stories s WHERE s.author = u.id) AS m FROM users u
SELECT id, (SELECT COUNT(*) FROM stories s WHERE s.points > u.team) AS n FROM users u
SELECT id, (SELECT COUNT(*) FROM stories s WHERE s.points > u.team OR u.team IS NULL) AS n FROM users u
SELECT id, (SELECT title FROM stories s WHERE s.author = u.id ORDER BY s.id LIMIT 1) AS t FROM users u
SELECT id, (SELECT title FROM stories s WHERE s.author = u.id ORDER BY s.id DESC LIMIT 1) AS t FROM users u
SELECT id, (SELECT title FROM stories s WHERE s.author = u.id ORDER BY s.id LIMIT 1 OFFSET 1) AS t FROM users u
SELECT id FROM users WHERE score = (SELECT MAX(score) FROM users)
SELECT id FROM users WHERE score > (SELECT AVG(score) FROM users)
SELECT id FROM users u WHERE score >= (SELECT MAX(score) FROM users x WHERE x.team = u.team)
SELECT id, (SELECT name FROM users x WHERE x.id = u.team) FROM users u
SELECT id, (SELECT name FROM users x WHERE x.team = u.team) FROM users u WHERE u.id = 6
SELECT id, (SELECT name FROM users x WHERE x.team = u.team) FROM users u
SELECT (SELECT id FROM users)
SELECT (SELECT id FROM empty_table), (SELECT COUNT(*) FROM empty_table)
SELECT id FROM users WHERE team = ANY (SELECT vote FROM votes)
SELECT id FROM users WHERE team > ALL (SELECT vote FROM votes WHERE vote IS NOT NULL)
SELECT id FROM users WHERE team > ALL (SELECT vote FROM votes)
SELECT id FROM users WHERE team >= SOME (SELECT points FROM stories)
SELECT id FROM users WHERE team <> ALL (SELECT points FROM stories WHERE points > 100)
SELECT id, team > ALL (SELECT vote FROM votes WHERE vote IS NOT NULL), team < ANY (SELECT points FROM stories) FROM users
SELECT story, user FROM votes WHERE (story, user) IN (SELECT id, author FROM stories)
SELECT story, user FROM votes WHERE (story, vote) NOT IN (SELECT id, points FROM stories)
SELECT story, user, (story, vote) IN (SELECT id, points FROM stories) FROM votes
SELECT u.id FROM users u WHERE u.id IN (SELECT s.author FROM stories s WHERE s.id IN (SELECT v.story FROM votes v WHERE v.user = u.id))
SELECT u.id FROM users u WHERE EXISTS (SELECT 1 FROM stories s WHERE s.author = u.id AND EXISTS (SELECT 1 FROM votes v WHERE v.story = s.id AND v.user = u.id))
SELECT u.id FROM users u WHERE NOT EXISTS (SELECT 1 FROM tags t WHERE NOT EXISTS (SELECT 1 FROM votes v WHERE v.user = u.id AND v.story = t.id))
SELECT u.id, (SELECT COUNT(*) FROM stories s WHERE s.author = u.id AND s.points >= (SELECT AVG(x.points) FROM stories x WHERE x.author = u.id)) AS c FROM users u
SELECT u.id FROM users u WHERE u.team IN (SELECT x.team FROM users x GROUP BY x.team HAVING COUNT(*) > 1)
SELECT u.id FROM users u WHERE u.id IN (SELECT MAX(v.user) FROM votes v GROUP BY v.story)
SELECT u.id FROM users u WHERE 2 IN (SELECT COUNT(*) FROM stories s WHERE s.author = u.id)
SELECT u.id FROM users u WHERE 1 IN (SELECT v.vote FROM votes v WHERE v.user = u.id GROUP BY v.vote HAVING COUNT(*) >= u.team)
SELECT u.id FROM users u WHERE u.id IN (SELECT author FROM stories UNION SELECT user FROM votes)
SELECT u.id, (SELECT COUNT(DISTINCT v.story) FROM votes v JOIN stories s ON s.id = v.story WHERE v.user = u.id) AS c FROM users u
SELECT COUNT(*), SUM((SELECT COUNT(*) FROM stories s WHERE s.author = u.id)) FROM users u
SELECT team, (SELECT COUNT(*) FROM stories s WHERE s.points = u.team) FROM users u GROUP BY team
SELECT team FROM users u GROUP BY team HAVING COUNT(*) > (SELECT COUNT(*) FROM users x WHERE x.team = 3)
SELECT id FROM users u ORDER BY (SELECT COUNT(*) FROM stories s WHERE s.author = u.id), id
SELECT name FROM users WHERE name IN (SELECT title FROM stories)
SELECT title FROM stories WHERE title IN (SELECT 'alpha')
SELECT s.id FROM stories s JOIN users u ON u.id = s.author AND EXISTS (SELECT 1 FROM votes v WHERE v.story = s.id)
SELECT s.id, u.id FROM stories s LEFT JOIN users u ON u.id = s.author AND u.id IN (SELECT user FROM votes WHERE vote = 1)
SELECT id FROM users u WHERE (SELECT COUNT(*) FROM stories s WHERE s.author = u.id) > 1
SELECT id FROM users u WHERE (SELECT COUNT(*) FROM stories s WHERE s.author = u.id) = (SELECT COUNT(*) FROM votes v WHERE v.user = u.id)
SELECT id FROM users u WHERE CASE WHEN EXISTS (SELECT 1 FROM votes v WHERE v.user = u.id) THEN team ELSE 1 END = 1
SELECT u.id FROM users u LEFT JOIN stories s ON s.author = u.id WHERE NOT EXISTS (SELECT 1 FROM votes v WHERE v.story = s.id)
SELECT u.id, (SELECT GROUP_CONCAT(s.title ORDER BY s.id) FROM stories s WHERE s.author = u.id) FROM users u
SELECT u.id, (SELECT SUM(v.weight) FROM stories s LEFT JOIN votes v ON v.story = s.id AND v.user <> u.id WHERE s.author = u.id) AS w FROM users u
SELECT x FROM (SELECT id AS x FROM users) d WHERE x IN (SELECT author FROM stories)
SELECT id FROM users u WHERE id = (SELECT author FROM stories s WHERE s.id = u.id)
SELECT id FROM users u WHERE NOT (id = (SELECT author FROM stories s WHERE s.id = u.id))
SELECT id FROM users u WHERE name = (SELECT name FROM users x WHERE x.name = u.name)
SELECT id FROM users u WHERE EXISTS (SELECT COUNT(*) FROM empty_table e WHERE e.id = u.id)
SELECT id FROM users u WHERE u.team IN (SELECT DISTINCT x.team FROM users x WHERE x.id <> u.id)
SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM stories s WHERE s.author = u.id UNION SELECT 1 FROM votes v WHERE v.user = u.id)
SELECT id FROM users u WHERE u.team IN (SELECT s.points FROM stories s WHERE s.author = u.id UNION ALL SELECT v.vote FROM votes v WHERE v.user = u.id)
SELECT id, (SELECT x FROM (SELECT 5 AS x) d WHERE d.x > u.id) FROM users u
SELECT id, (SELECT MAX(n) FROM (SELECT author, COUNT(*) AS n FROM stories GROUP BY author) d WHERE d.author = u.id) AS m FROM users u
SELECT u.id FROM users u WHERE EXISTS (SELECT 1 FROM stories s LEFT JOIN votes v ON v.story = s.id AND v.user = u.id WHERE s.author = u.team AND v.vote IS NULL)
SELECT id FROM stories s WHERE points = (SELECT MAX(points) FROM stories x WHERE x.author <=> s.author)
SELECT id FROM stories s WHERE created > ALL (SELECT created FROM stories x WHERE x.author = s.author AND x.id <> s.id)
SELECT 5 <= ANY (SELECT NULL UNION SELECT 3), 5 <= ALL (SELECT NULL UNION SELECT 7), 5 = ANY (SELECT NULL UNION SELECT 3)
SELECT 5 <= ANY (SELECT 7), EXISTS (SELECT 1 FROM users WHERE id > 100), 1 IN (SELECT id FROM users)
SELECT 1 WHERE EXISTS (SELECT 1 FROM users WHERE id > 100)
SELECT 1 FROM DUAL WHERE 1 IN (SELECT id FROM users)
SELECT (SELECT COUNT(*) FROM users) + (SELECT MAX(id) FROM stories), (SELECT name FROM users WHERE id = 2)
SELECT * FROM (SELECT 1 AS a UNION SELECT 2) x JOIN (SELECT 2 AS a) y ON x.a = y.a
SELECT COUNT(*) FROM (SELECT 1 AS a) x LEFT JOIN (SELECT 2 AS b) y ON y.b = x.a WHERE y.b IS NULL
SELECT id FROM users u WHERE EXISTS (SELECT COUNT(*) FROM stories s WHERE s.author = u.id HAVING COUNT(*) > 1)
SELECT id FROM users u WHERE NOT EXISTS (SELECT COUNT(*) FROM stories s WHERE s.author = u.id HAVING COUNT(*) > 1)
SELECT id, EXISTS (SELECT 1 FROM empty_table HAVING MAX(x) IS NULL) FROM users
SELECT id FROM users u WHERE team IN (SELECT COUNT(*) FROM stories s WHERE s.author = u.id HAVING COUNT(*) > 0)
SELECT id, team NOT IN (SELECT COUNT(*) FROM stories s WHERE s.author = u.id HAVING COUNT(*) > 0) FROM users u
SELECT id, (team, id) IN (SELECT COUNT(*), MAX(author) FROM stories s WHERE s.author = u.id) FROM users u
SELECT id, (team, id) NOT IN (SELECT COUNT(*), MAX(author) FROM stories s WHERE s.author = u.id HAVING COUNT(*) > 0) FROM users u
SELECT id FROM users u WHERE id > ALL (SELECT COUNT(*) FROM stories s WHERE s.author = u.id HAVING COUNT(*) > 5)
SELECT id FROM stories WHERE (author, points) = (SELECT author, points FROM stories WHERE id = 1)
SELECT id, (author, points) <> (SELECT author, points FROM stories x WHERE x.id = s.id + 1) FROM stories s
SELECT id FROM stories WHERE (author, points) >= (SELECT MIN(author), MAX(points) FROM stories)
SELECT id, (SELECT MIN(author), 7 FROM stories) < (author, points) FROM stories
SELECT id, (author, points) = (SELECT author, points FROM stories WHERE id > 100) FROM stories
SELECT id, (author, points) = (SELECT author, points FROM stories) FROM stories
SELECT (SELECT 1, 2) = (SELECT 1, 2), (SELECT 1, NULL) <=> (SELECT 1, NULL), ROW(1, 2) = (SELECT 1, 3)
SELECT (SELECT SUM(u.team)) FROM users u
SELECT team, (SELECT COUNT(*) FROM stories s WHERE s.author = MAX(u.id)) FROM users u GROUP BY team
SELECT team FROM users u GROUP BY team HAVING team > ALL (SELECT s.author FROM stories s WHERE SUM(u.id) < s.points)
SELECT team, (SELECT s.title FROM stories s WHERE s.id = COUNT(u.id)) FROM users u GROUP BY team
SELECT id FROM users u WHERE EXISTS (SELECT SUM(u.team) FROM stories)
SELECT team, (SELECT MAX(u.id) + COUNT(s.id) FROM stories s) FROM users u GROUP BY team
SELECT u.id, s.id FROM users u LEFT JOIN stories s ON EXISTS (SELECT 1 FROM votes v WHERE v.story = s.id AND v.user = u.id)
SELECT u.id, s.id FROM users u LEFT JOIN stories s ON s.author = u.id AND s.points > (SELECT COUNT(*) FROM votes v WHERE v.story <= s.id AND v.user <= u.team)
SELECT u.id, (SELECT ROW_NUMBER() OVER (ORDER BY s.id) AS n FROM stories s WHERE s.author = u.id ORDER BY n DESC LIMIT 1) FROM users u
SELECT u.id, (SELECT SUM(n) FROM (SELECT RANK() OVER (ORDER BY points) AS n, author FROM stories) d WHERE d.author = u.id) FROM users u
(SELECT id FROM users ORDER BY id LIMIT 4) ORDER BY id DESC LIMIT 2
SELECT id FROM users u WHERE EXISTS ((SELECT 1 FROM stories s WHERE s.author = u.id))
SELECT id FROM users u WHERE EXISTS ((SELECT s.id FROM stories s WHERE s.author = u.id) UNION (SELECT v.user FROM votes v WHERE v.user = u.id))
SELECT id FROM users ORDER BY id LIMIT 18446744073709551615 OFFSET 2
SELECT id, (SELECT COUNT(*) + (SELECT MAX(id) FROM tags) FROM stories s WHERE s.author = u.id) FROM users u
SELECT id, (SELECT COUNT(*) + (SELECT MAX(v.user) FROM votes v WHERE v.story = u.id) FROM stories s WHERE s.author = u.id) FROM users u
SELECT id, (SELECT COUNT(*) + (SELECT MAX(v.user) FROM votes v WHERE v.story = MAX(s.id)) FROM stories s WHERE s.author = u.id) FROM users u
SELECT id, (SELECT SUM(points) FROM stories s WHERE s.author = u.id HAVING COUNT(*) > (SELECT COUNT(*) FROM users x WHERE x.score < u.score)) FROM users u
SELECT id FROM users u WHERE EXISTS (SELECT SUM(points) FROM stories s WHERE s.author = u.id HAVING COUNT(*) > (SELECT COUNT(*) FROM users x WHERE x.score < u.score))
SELECT id FROM users u WHERE team NOT IN (SELECT COUNT(*) + (SELECT MIN(v.vote) FROM votes v WHERE v.user = u.id) FROM stories s WHERE s.author <= u.id)
SELECT id FROM users u WHERE team <> ALL (SELECT COUNT(*) + (SELECT MIN(v.vote) FROM votes v WHERE v.user = u.team) FROM stories s WHERE s.author < u.id)
SELECT id FROM users WHERE 1 = ALL (SELECT 0 FROM (SELECT MAX(points) AS m FROM stories) AS x WHERE m = m)
SELECT id FROM users WHERE NOT EXISTS (SELECT 1 FROM (SELECT COUNT(*) AS n FROM tags) AS x WHERE n > 2)
SELECT u.id, x.one FROM users AS u LEFT JOIN (SELECT 1 AS one FROM (SELECT MAX(score) AS m FROM users) AS y WHERE m > 5) AS x ON TRUE
SELECT id FROM users WHERE id = ALL ((SELECT 1 UNION SELECT 1) UNION SELECT 1)
SELECT id FROM users WHERE id >= ALL ((SELECT 2))
SELECT id FROM users WHERE name IN (SELECT GROUP_CONCAT(CAST(name AS BINARY)) FROM users GROUP BY id)
