-- Small tables full of NULLs, duplicates and texts that differ only in case or accents.
CREATE TABLE users (id INT NOT NULL PRIMARY KEY, name VARCHAR(20) COLLATE utf8mb4_general_ci, team INT, score DECIMAL(8,2), joined DATE, UNIQUE KEY u_name (name));
CREATE TABLE stories (id INT NOT NULL PRIMARY KEY, author INT, title VARCHAR(30) COLLATE utf8mb4_general_ci, points INT, created DATETIME, KEY k_author (author));
CREATE TABLE votes (story INT NOT NULL, user INT NOT NULL, vote TINYINT, weight DOUBLE, PRIMARY KEY (story, user), KEY k_user (user));
CREATE TABLE tags (id INT NOT NULL PRIMARY KEY, tag VARCHAR(10) COLLATE utf8mb4_bin, parent INT);
CREATE TABLE taggings (story INT, tag INT);
CREATE TABLE empty_table (id INT, x INT);
INSERT INTO users VALUES (1,'Ann',1,10.50,'2020-01-01'),(2,'bob',1,20.00,'2020-02-01'),(3,'Cléo',2,NULL,'2020-03-01'),(4,'dan',NULL,5.25,NULL),(5,NULL,2,7.00,'2020-05-01'),(6,'Eve',3,10.50,'2020-01-01');
INSERT INTO stories VALUES (1,1,'Alpha',10,'2021-01-01 10:00:00'),(2,1,'beta',NULL,'2021-01-02 11:00:00'),(3,2,'Gamma',7,'2021-01-03 12:00:00'),(4,3,'alpha',10,NULL),(5,NULL,'Delta',3,'2021-01-05 14:00:00'),(6,9,NULL,0,'2021-01-06 15:00:00'),(7,2,'GAMMA',-2,'2021-01-01 10:00:00');
INSERT INTO votes VALUES (1,1,1,1.5),(1,2,1,2.5),(1,3,0,NULL),(2,1,1,0.5),(3,4,0,1),(3,5,NULL,2),(4,1,1,1),(4,6,1,3.25),(5,2,0,0),(9,9,1,1);
INSERT INTO tags VALUES (1,'web',NULL),(2,'Web',1),(3,'db',1),(4,'ops',NULL),(5,NULL,3);
INSERT INTO taggings VALUES (1,1),(1,3),(2,2),(3,3),(3,3),(4,NULL),(NULL,1),(6,4),(7,1);
