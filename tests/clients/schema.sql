-- What every program of this folder reads and writes. One statement per line.
CREATE TABLE everything (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, tiny TINYINT, tiny_u TINYINT UNSIGNED, yes BOOL, small SMALLINT, small_u SMALLINT UNSIGNED, medium MEDIUMINT, medium_u MEDIUMINT UNSIGNED, whole INT, whole_u INT UNSIGNED, big BIGINT, big_u BIGINT UNSIGNED, filled INT(6) ZEROFILL, exact DECIMAL(20,6), real4 FLOAT, real8 DOUBLE, bits BIT(12), chars CHAR(10), words VARCHAR(100), txt TEXT, fixed BINARY(5), bytes VARBINARY(100), blobs BLOB, kind ENUM('red','green','it''s'), tags SET('a','b','c'), day DATE, moment DATETIME, moment6 DATETIME(6), stamp TIMESTAMP NULL, stamp3 TIMESTAMP(3) NULL, span TIME, span6 TIME(6), y YEAR, doc JSON) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci
INSERT INTO everything VALUES (1, 1, 2, TRUE, 3, 4, 5, 6, 7, 8, 9, 10, 42, 1.5, 1.5, 2.25, b'101', 'abc', 'Grüße 日本 😀', 'some text', x'0102', x'00FF27', x'00275C0A', 'green', 'a,c', '2024-02-29', '2024-02-29 12:34:56', '2024-02-29 12:34:56.789012', '2024-02-29 12:34:56', '2024-02-29 12:34:56.789', '12:34:56', '-12:34:56.000001', 2024, '{"a": [1, 2.5, null, true], "b": "é"}')
INSERT INTO everything (id) VALUES (2)
INSERT INTO everything VALUES (3, -128, 255, FALSE, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, -9223372036854775808, 18446744073709551615, 999999, -99999999999999.999999, -3.4e38, 1.7976931348623157e308, b'111111111111', '', '', '', '', '', '', 'it''s', '', '1000-01-01', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:01', '2038-01-19 03:14:07.999', '-838:59:59', '838:59:59.000000', 1901, '[]')
SET SESSION sql_mode = ''
INSERT INTO everything (id, day, moment, moment6, stamp, span, span6, y) VALUES (4, '0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '00:00:00', '00:00:00', 0)
INSERT INTO everything (id, day, moment) VALUES (5, '2024-00-00', '2024-02-00 01:00:00')
SET SESSION sql_mode = DEFAULT
CREATE TABLE parents (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NOT NULL, amount INT NOT NULL DEFAULT 0, UNIQUE KEY name (name))
CREATE TABLE children (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, parent_id INT, note VARCHAR(5), CONSTRAINT child_parent FOREIGN KEY (parent_id) REFERENCES parents (id))
CREATE TABLE large (id INT NOT NULL PRIMARY KEY, body LONGBLOB)
CREATE TABLE many (id INT NOT NULL PRIMARY KEY, label VARCHAR(40))
