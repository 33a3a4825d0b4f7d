CREATE TABLE parents (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) COLLATE utf8mb4_bin NOT NULL, UNIQUE KEY (name)) AUTO_INCREMENT = 100;
INSERT INTO parents (name) VALUES ('a'), ('b\\''\n\t'), ('日本 😀');
CREATE TABLE kinds (
  a SMALLINT, b DATE NOT NULL, ti TINYINT, mi MEDIUMINT UNSIGNED, bi BIGINT UNSIGNED, bo BOOL, de DECIMAL(20,5), dl DECIMAL(50,10), fl FLOAT,
  du DOUBLE, bt BIT(12), ye YEAR, dt DATETIME(6), ts TIMESTAMP(3) NULL, tm TIME(2), ch CHAR(5), vc VARCHAR(30) CHARACTER SET latin1,
  tx MEDIUMTEXT, bn BINARY(4), vb VARBINARY(20), bl LONGBLOB, en ENUM('x','y z','ä'), se SET('p','q','r'), js JSON,
  ge INT GENERATED ALWAYS AS (a * 2) STORED, parent INT UNSIGNED,
  PRIMARY KEY (b, a), KEY (vc), CONSTRAINT fk FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE
);
INSERT INTO kinds (a, b, ti, mi, bi, bo, de, dl, fl, du, bt, ye, dt, ts, tm, ch, vc, tx, bn, vb, bl, en, se, js, parent) VALUES
  (1, '2020-02-29', -128, 16777215, 18446744073709551615, 1, '123456789012345.12345', '1234567890123456789012345678901234567890.0123456789',
   16777216, 1.7976931348623157e308, b'101010101010', 2155, '9999-12-31 23:59:59.999999', '2020-01-01 10:11:12.123', '-838:59:59.00', 'ab', 'é ',
   'text\\''"\t\n\r\0', x'00ff0a0d', x'', x'fffe00275c', 'ä', 'p,r', '{"a": [1, 2.5, null]}', 100),
  (2, '2020-02-29', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (-3, '0000-00-00', 0, 0, 0, 0, '-0.00001', '0', 0.1, -1e-300, b'0', 0, '0000-00-00 00:00:00', '1970-01-01 00:00:01', '00:00:00', '', '', '', '',
   x'00', '', 'x', '', '[]', 101),
  (4, '2021-02-30', 127, 1, 1, 1, '1', '-1', 1e-30, 0.1, b'1', 1901, '1000-01-01', '2038-01-19 03:14:07', '12:34:56.78', 'x', 'y', REPEAT('z', 1000),
   'abcd', 'efgh', REPEAT('\0', 300), 'y z', 'p,q,r', '"s"', 102);
CREATE TABLE nokey (a INT, b VARCHAR(10));
INSERT INTO nokey VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (2, 'y');
CREATE TABLE `odd ``name` (`a b` VARCHAR(20) NOT NULL PRIMARY KEY, `select` INT);
INSERT INTO `odd ``name` VALUES ('k1', 1), ('K2', 2), ('k3', 3), ('q''4', 4), ('\\5', 5), ('', 0);
CREATE TABLE empty (id INT PRIMARY KEY);
CREATE VIEW second AS SELECT * FROM nokey WHERE a = 1;
CREATE VIEW first AS SELECT COUNT(*) AS n FROM second;
CREATE TRIGGER left_out BEFORE INSERT ON nokey FOR EACH ROW SET NEW.a = NEW.a;
