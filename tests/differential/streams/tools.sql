-- GUI clients, phpMyAdmin, mysqldump and the shell: what they ask of a server before showing anything.
SELECT @@version_comment LIKE '%' AS any_comment LIMIT 1;
SELECT DATABASE(), USER() LIKE 'root@%' AS me, CURRENT_USER() LIKE 'root@%' AS me_too, CONNECTION_ID() > 0 AS numbered;
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci;
SET SESSION net_read_timeout = 600, SESSION net_write_timeout=600;
SET SQL_QUOTE_SHOW_CREATE=1;
SET SQL_SAFE_UPDATES=0, SQL_SELECT_LIMIT=DEFAULT, MAX_JOIN_SIZE=DEFAULT;
SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, @@character_set_results AS character_set_results, @@collation_connection AS collation_connection, @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@lower_case_table_names AS lower_case_table_names, @@net_write_timeout AS net_write_timeout, @@sql_auto_is_null AS sql_auto_is_null;
-- accept: each server's own
SHOW VARIABLES LIKE 'version%';
SHOW VARIABLES LIKE 'lower_case_table_names';
SHOW VARIABLES WHERE variable_name IN ('character_set_client', 'autocommit', 'sql_safe_updates');
SHOW SESSION VARIABLES LIKE 'foreign_key_checks';
SHOW GLOBAL VARIABLES LIKE 'autocommit';
-- accept: each server's own
SHOW STATUS LIKE 'Threads_connected';
-- accept: each server's own
SHOW ENGINES;
-- accept: each server's own
SHOW PLUGINS;
-- accept: MySQL has more columns
SHOW COLLATION LIKE 'utf8mb4_general_ci';
-- accept: MySQL's default collation
SHOW CHARACTER SET LIKE 'utf8mb4';
SHOW DATABASES LIKE 'stream\_tools';
-- accept: privileges are named differently
SHOW GRANTS;
-- accept: MariaDB has a column more
SHOW PROCESSLIST;
SHOW WARNINGS;
SHOW ERRORS;
CREATE TABLE things (id INT NOT NULL AUTO_INCREMENT, label VARCHAR(40) CHARACTER SET latin1 DEFAULT NULL, amount DECIMAL(9,3) NOT NULL DEFAULT '0.500', state ENUM('on','off') NOT NULL DEFAULT 'on', made TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (id), UNIQUE KEY label_state (label, state), KEY amount (amount)) ENGINE=InnoDB COMMENT='some things';
CREATE TABLE parts (thing_id INT NOT NULL, number INT NOT NULL, PRIMARY KEY (thing_id, number), CONSTRAINT part_of FOREIGN KEY (thing_id) REFERENCES things (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE OR REPLACE VIEW thing_view AS SELECT id, label FROM things WHERE state = 'on';
INSERT INTO things (label, amount) VALUES ('a', 1), ('b', 2.25), (NULL, 3);
INSERT INTO parts VALUES (1, 1), (1, 2), (2, 1);
SHOW TABLES;
-- accept: the type of the second column
SHOW FULL TABLES WHERE Table_type <> 'VIEW';
SHOW FULL TABLES FROM `stream_tools` LIKE 'thing%';
SHOW OPEN TABLES FROM nowhere;
-- accept: sizes and dates
SHOW TABLE STATUS FROM `stream_tools` LIKE 'things';
-- accept: widths of integers
SHOW COLUMNS FROM parts LIKE 'n%';
-- accept: widths of integers
DESC parts number;
SHOW FULL COLUMNS FROM nowhere;
SHOW CREATE TABLE nowhere;
-- accept: MySQL's layout
SHOW CREATE TABLE things;
-- accept: MySQL's layout
SHOW CREATE VIEW thing_view;
-- accept: MySQL says more
SHOW CREATE DATABASE `stream_tools`;
-- accept: columns that only one of them has
SHOW KEYS FROM things WHERE Key_name = 'PRIMARY';
-- accept: Created is a TIMESTAMP in MySQL
SHOW TRIGGERS LIKE 'things';
-- accept: Created is a TIMESTAMP in MySQL
SHOW TRIGGERS FROM `stream_tools`;
-- accept: Created is a TIMESTAMP in MySQL
SHOW PROCEDURE STATUS WHERE Db = 'stream_tools';
-- accept: Created is a TIMESTAMP in MySQL
SHOW FUNCTION STATUS WHERE Db = 'stream_tools';
SHOW EVENTS FROM `stream_tools`;
SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'stream_tools';
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_COLLATION, TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'stream_tools' ORDER BY TABLE_NAME;
SELECT COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_KEY, PRIVILEGES, COLUMN_COMMENT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'stream_tools' AND TABLE_NAME = 'things' ORDER BY ORDINAL_POSITION;
SELECT INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE, COLLATION, SUB_PART, NULLABLE, INDEX_TYPE FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'stream_tools' AND TABLE_NAME = 'things' ORDER BY INDEX_NAME, SEQ_IN_INDEX;
SELECT CONSTRAINT_NAME, CONSTRAINT_TYPE, TABLE_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'stream_tools' ORDER BY TABLE_NAME, CONSTRAINT_NAME;
SELECT CONSTRAINT_NAME, TABLE_NAME, COLUMN_NAME, ORDINAL_POSITION, POSITION_IN_UNIQUE_CONSTRAINT, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = 'stream_tools' ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION;
SELECT CONSTRAINT_NAME, UNIQUE_CONSTRAINT_NAME, MATCH_OPTION, UPDATE_RULE, DELETE_RULE, TABLE_NAME, REFERENCED_TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'stream_tools';
-- accept: views cannot be written to here
SELECT TABLE_NAME, IS_UPDATABLE, SECURITY_TYPE FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'stream_tools';
SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'stream_tools';
SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'stream_tools';
SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'stream_tools';
SELECT COUNT(*) FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = 'stream_tools' AND PARTITION_NAME IS NOT NULL;
SELECT LOGFILE_GROUP_NAME, FILE_NAME FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'UNDO LOG' AND FILE_NAME IS NOT NULL GROUP BY LOGFILE_GROUP_NAME, FILE_NAME, ENGINE ORDER BY LOGFILE_GROUP_NAME;
/*!40100 SET @@SQL_MODE='' */;
/*!40103 SET TIME_ZONE='+00:00' */;
FLUSH /*!40101 LOCAL */ TABLES;
FLUSH TABLES WITH READ LOCK;
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */;
UNLOCK TABLES;
SAVEPOINT sp;
SELECT /*!40001 SQL_NO_CACHE */ `id`, `label`, `amount`, `state` FROM `things`;
ROLLBACK TO SAVEPOINT sp;
RELEASE SAVEPOINT sp;
LOCK TABLES `things` READ /*!32311 LOCAL */,`thing_view` READ /*!32311 LOCAL */;
UNLOCK TABLES;
/*!40000 ALTER TABLE `things` DISABLE KEYS */;
/*!40000 ALTER TABLE `things` ENABLE KEYS */;
SET @OLD_X = @@SQL_NOTES, SQL_NOTES = 0;
/*!40111 SET SQL_NOTES = @OLD_X */;
/*!99999 this is for a version to come */;
SELECT /* a comment */ 1 /*! + 1 */ AS two -- and one more
;
EXPLAIN SELECT * FROM nowhere;
CHECK TABLE things;
ANALYZE TABLE things;
OPTIMIZE TABLE parts;
REPAIR TABLE nowhere;
SELECT * FROM things WHERE id = '1abc';
SELECT id FROM things WHERE label = 1;
-- accept: what a comparison makes of a text is not worth a warning here
SHOW WARNINGS;
SELECT 'a' 'b' AS joined, "double" AS d, N'national' AS n, _utf8mb4'intro' AS i, X'4142' AS x, 0x4344 AS h, b'1000001' AS b, 1e3 AS e, .5 AS f, -0 AS z, NULL AS nothing, TRUE AS t;
SELECT 1 + 1, 'x''y', id, `label` FROM things ORDER BY id LIMIT 1;
SELECT things.*, p.number AS `the number` FROM things JOIN parts p ON p.thing_id = things.id ORDER BY 1, p.number;
SELECT id, COUNT(*) FROM things;
SELECT * FROM things, parts WHERE id = thing_id AND number > 1;
SELECT t.id FROM things t WHERE x.id = 1;
SELECT id FROM things JOIN things u;
SELECT NOSUCH(1);
SELECT 1 FROM;
SELECT 'unterminated;
USE nowhere;
KILL 4294967295;
DELETE FROM things WHERE id = 1;
SELECT COUNT(*) FROM parts;
DROP VIEW thing_view;
-- accept: 1451 in MariaDB, 3730 in MySQL 8
DROP TABLE things;
DROP TABLE parts, things;
DROP DATABASE nowhere;
