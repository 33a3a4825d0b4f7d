"""SHOW, DESCRIBE and information_schema as clients ask them."""

from __future__ import annotations

from typing import Any

import MySQLdb
import pymysql
import pytest

from tests.wire.server import ServerThread


@pytest.fixture(scope="module")
def schema(millrace: ServerThread) -> str:
    connection = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", autocommit=True)
    cursor = connection.cursor()
    for sql in (
        "CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "CREATE TABLE shop.customer (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, email VARCHAR(100) NOT NULL,"
        " name VARCHAR(50) DEFAULT 'anon' COMMENT 'shown', created DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)"
        " ON UPDATE CURRENT_TIMESTAMP(6), score DECIMAL(8,3) NOT NULL DEFAULT 1.5, UNIQUE KEY email_unique (email),"
        " KEY name_score (name(10), score DESC)) ENGINE=InnoDB COMMENT='those who buy'",
        "CREATE TABLE shop.purchase (id INT PRIMARY KEY, customer BIGINT UNSIGNED, amount INT,"
        " CONSTRAINT fk_customer FOREIGN KEY (customer) REFERENCES shop.customer (id) ON DELETE CASCADE,"
        " CONSTRAINT positive CHECK (amount > 0))",
        "CREATE TABLE shop.log (line TEXT)",
    ):
        cursor.execute(sql)
    connection.close()
    return "shop"


@pytest.fixture
def ask(schema: str, run: Any) -> Any:
    run("USE shop")
    return run


def test_tables(ask: Any) -> None:
    assert ask("SHOW TABLES") == [("customer",), ("log",), ("purchase",)]
    assert ask("SHOW TABLES FROM shop LIKE 'c%'") == [("customer",)]
    assert ask("SHOW FULL TABLES IN `shop` WHERE Table_type = 'BASE TABLE' AND Tables_in_shop > 'l'") == [
        ("log", "BASE TABLE"),
        ("purchase", "BASE TABLE"),
    ]
    assert ("customer", "InnoDB", "utf8mb4_bin", "those who buy") in [
        (row[0], row[1], row[14], row[17]) for row in ask("SHOW TABLE STATUS LIKE 'cust%'")
    ]


def test_columns(ask: Any) -> None:
    wanted = [
        ("id", "bigint unsigned", "NO", "PRI", None, "auto_increment"),
        ("email", "varchar(100)", "NO", "UNI", None, ""),
        ("name", "varchar(50)", "YES", "MUL", "anon", ""),
        (
            "created", "datetime(6)", "YES", "", "CURRENT_TIMESTAMP(6)",
            "DEFAULT_GENERATED on update CURRENT_TIMESTAMP(6)",
        ),
        ("score", "decimal(8,3)", "NO", "", "1.500", ""),
    ]  # fmt: skip
    for sql in ("DESCRIBE customer", "DESC shop.customer", "EXPLAIN customer", "SHOW COLUMNS FROM customer", "SHOW FIELDS IN customer FROM shop"):
        assert ask(sql) == wanted
    assert ask("DESCRIBE customer 'na%'") == [wanted[2]]
    assert ask("DESCRIBE customer score") == [wanted[4]]
    assert ask("SHOW COLUMNS FROM customer WHERE Field = 'id'") == [wanted[0]]
    full = ask("SHOW FULL COLUMNS FROM `customer` LIKE 'name'")
    assert full == [("name", "varchar(50)", "utf8mb4_bin", "YES", "MUL", "anon", "", "select,insert,update,references", "shown")]
    assert ask("DESCRIBE log") == [("line", "text", "YES", "", None, "")]


def test_indexes(ask: Any) -> None:
    rows = [(row[1], row[2], row[3], row[4], row[5], row[7]) for row in ask("SHOW INDEX FROM customer")]
    assert rows == [
        (0, "PRIMARY", 1, "id", "A", None),
        (0, "email_unique", 1, "email", "A", None),
        (1, "name_score", 1, "name", "A", 10),
        (1, "name_score", 2, "score", "D", None),
    ]
    assert [row[2] for row in ask("SHOW KEYS FROM customer WHERE Key_name = 'PRIMARY'")] == ["PRIMARY"]
    assert ask("SHOW INDEXES FROM log") == []


def test_create_statements(ask: Any) -> None:
    ((name, text),) = ask("SHOW CREATE TABLE shop.customer")
    assert name == "customer" and text.startswith("CREATE TABLE `customer` (\n  `id` bigint unsigned NOT NULL AUTO_INCREMENT,\n")
    ((name, text),) = ask("SHOW CREATE DATABASE IF NOT EXISTS shop")
    assert text == (
        "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */"
        " /*!80016 DEFAULT ENCRYPTION='N' */"
    )


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("DESCRIBE nothing", 1146),
        ("SHOW COLUMNS FROM nothing", 1146),
        ("SHOW INDEX FROM shop.nothing", 1146),
        ("SHOW CREATE TABLE nothing", 1146),
        ("SHOW TABLES FROM nothing", 1049),
        ("SHOW CREATE DATABASE nothing", 1049),
        ("USE nothing", 1049),
        ("SHOW NOTHING", 1064),
        ("SHOW", 1064),
        ("SHOW TABLES LIKE", 1064),
        ("SHOW VARIABLES WHERE nonsense = 1", 1054),
        ("SHOW CREATE VIEW v", 1146),
        ("LOAD DATA LOCAL INFILE 'x' INTO TABLE log", 3948),
        ("CALL something()", 1235),
        ("GRANT ALL ON *.* TO x", 1410),
        ("NONSENSE", 1064),
        ("SELECT FROM", 1064),
    ],
)
def test_errors(ask: Any, sql: str, code: int) -> None:
    with pytest.raises(pymysql.err.MySQLError) as raised:
        ask(sql)
    assert raised.value.args[0] == code, raised.value


def test_information_schema(ask: Any) -> None:
    assert ask("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name") == [
        ("customer",), ("log",), ("purchase",),
    ]  # fmt: skip
    assert ask("SELECT TABLE_NAME, TABLE_TYPE FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'COLUMNS'") == [
        ("COLUMNS", "SYSTEM VIEW"),
    ]  # fmt: skip
    columns = ask(
        "SELECT column_name, ordinal_position, data_type, column_type, character_maximum_length, numeric_precision,"
        " numeric_scale, datetime_precision, is_nullable, column_key, extra FROM information_schema.COLUMNS"
        " WHERE table_schema = 'shop' AND table_name = 'customer' ORDER BY ordinal_position"
    )
    assert columns[0] == ("id", 1, "bigint", "bigint unsigned", None, 20, 0, None, "NO", "PRI", "auto_increment")
    assert columns[2] == ("name", 3, "varchar", "varchar(50)", 50, None, None, None, "YES", "MUL", "")
    assert columns[4][5:7] == (8, 3)
    assert ask(
        "SELECT constraint_name, constraint_type FROM information_schema.table_constraints"
        " WHERE table_schema = 'shop' ORDER BY constraint_name, table_name"
    ) == [
        ("email_unique", "UNIQUE"), ("fk_customer", "FOREIGN KEY"), ("positive", "CHECK"), ("PRIMARY", "PRIMARY KEY"),
        ("PRIMARY", "PRIMARY KEY"),
    ]  # fmt: skip
    assert ask(
        "SELECT column_name, referenced_table_name, referenced_column_name FROM information_schema.key_column_usage"
        " WHERE table_name = 'purchase' AND referenced_table_name IS NOT NULL"
    ) == [("customer", "customer", "id")]
    assert ask("SELECT delete_rule, update_rule, unique_constraint_name FROM information_schema.referential_constraints") == [
        ("CASCADE", "NO ACTION", "PRIMARY"),
    ]  # fmt: skip
    assert ask("SELECT count(*) FROM information_schema.views") == [(0,)]
    assert ask("SELECT schema_name, default_collation_name FROM information_schema.schemata WHERE schema_name = 'shop'") == [
        ("shop", "utf8mb4_bin"),
    ]  # fmt: skip
    assert ask("SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_name = 'customer' ORDER BY 1") == [
        ("email_unique",), ("name_score",), ("PRIMARY",),
    ]  # fmt: skip
    ask("USE information_schema")
    assert ask("SELECT engine FROM engines") == [("InnoDB",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW DATABASES", "SHOW ENGINES", "SHOW COLLATION", "SHOW CHARACTER SET LIKE 'utf8%'", "SHOW CHARSET", "SHOW GRANTS",
        "SHOW GRANTS FOR CURRENT_USER()", "SHOW FULL PROCESSLIST", "SHOW STATUS", "SHOW GLOBAL STATUS LIKE 'Threads%'",
        "SHOW PLUGINS", "SHOW PRIVILEGES", "SHOW VARIABLES", "CHECK TABLE customer", "ANALYZE TABLE customer, log", "OPTIMIZE TABLE log",
    ],
)  # fmt: skip
def test_shows_that_have_rows(ask: Any, sql: str) -> None:
    assert ask(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW TRIGGERS", "SHOW TRIGGERS LIKE 'x'", "SHOW EVENTS", "SHOW PROCEDURE STATUS WHERE Db = 'shop'", "SHOW FUNCTION STATUS",
        "SHOW OPEN TABLES", "SHOW MASTER STATUS", "SHOW SLAVE STATUS", "SHOW WARNINGS", "SHOW ERRORS", "SHOW TRIGGERS FROM shop",
    ],
)  # fmt: skip
def test_shows_that_have_none(ask: Any, sql: str) -> None:
    assert ask(sql) == []


@pytest.mark.parametrize("sql", ["FLUSH PRIVILEGES", "FLUSH TABLES WITH READ LOCK", "DO 1, 2"])
def test_statements_without_an_answer(ask: Any, sql: str) -> None:
    assert ask(sql) == 0


def test_warnings_are_kept_until_the_next_statement(ask: Any, connection: Any) -> None:
    ask("DROP TABLE IF EXISTS never_was")
    assert connection.cursor()._query is not None
    assert ask("SHOW WARNINGS") == [("Note", 1051, "Unknown table 'shop.never_was'")]
    assert ask("SHOW COUNT(*) WARNINGS") == [(1,)]
    assert ask("SELECT @@warning_count") == [(1,)]
    assert ask("SELECT 1") == [(1,)]
    assert ask("SHOW WARNINGS") == []
    with pytest.raises(pymysql.err.MySQLError):
        ask("SELECT nonsense")
    assert ask("SHOW ERRORS") == [("Error", 1054, "Unknown column 'nonsense' in 'field list'")]


def test_prepare_and_execute_as_statements(ask: Any) -> None:
    ask("PREPARE p FROM 'SELECT ? + 1, ?'")
    ask("SET @a = 41, @b = 'x'")
    assert ask("EXECUTE p USING @a, @b")[0][1] == "x"
    with pytest.raises(pymysql.err.MySQLError) as raised:
        ask("EXECUTE p USING @a")
    assert raised.value.args[0] == 1210
    ask("DEALLOCATE PREPARE p")
    with pytest.raises(pymysql.err.MySQLError) as raised:
        ask("EXECUTE p")
    assert raised.value.args[0] == 1243


def test_field_list(millrace: ServerThread, schema: str) -> None:
    connection = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", database="shop")
    connection._execute_command(4, b"customer\0na%")
    packet = connection._read_packet()
    assert b"\x04name" in packet._data and packet._data.endswith(b"\x04anon")
    assert connection._read_packet().is_eof_packet()
    connection.close()


def test_catalog_of_another_adapter_is_found(millrace: ServerThread, ask: Any) -> None:
    """A name that another process has made is found after one look at the fresh catalog."""
    other = MySQLdb.connect(host="127.0.0.1", port=millrace.port, user="root", database="shop", autocommit=True)
    other.cursor().execute("CREATE TABLE fresh (a INT)")
    assert ask("SELECT * FROM fresh") == []
    other.cursor().execute("DROP TABLE fresh")
    with pytest.raises(pymysql.err.MySQLError) as raised:
        ask("SELECT * FROM fresh")
    assert raised.value.args == (1146, "Table 'shop.fresh' doesn't exist")


def test_auto_increment_is_shown_with_its_next_number(run: Any) -> None:
    run("CREATE TABLE counted (id INT PRIMARY KEY AUTO_INCREMENT, a INT)")
    assert "AUTO_INCREMENT=" not in run("SHOW CREATE TABLE counted")[0][1]
    run("INSERT INTO counted (a) VALUES (1), (2)")
    run("INSERT INTO counted VALUES (10, 1)")
    assert ") ENGINE=InnoDB AUTO_INCREMENT=11 DEFAULT" in run("SHOW CREATE TABLE counted")[0][1]
    status = "SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE TABLE_NAME = 'counted'"
    assert run(status) == [(11,)]
    assert run("SHOW TABLE STATUS LIKE 'counted'")[0][10] == 11
    run("DROP TABLE counted")


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT 1E", 1054),
        ("SELECT 1.5E", 1064),
        ("SELECT :x", 1064),
        ("SELECT \0 1", 1064),
        ("SELECT 5 + \0", 1064),
        ("SELECT 5\0\0", 1064),
        ("SELECT " + ".".join(["a"] * 50_000), 1064),
    ],
)
def test_odd_texts_are_errors_of_the_client(run: Any, sql: str, code: int) -> None:
    run("SELECT 5 + 6")
    with pytest.raises(pymysql.err.MySQLError) as raised:
        run(sql)
    assert raised.value.args[0] == code
    assert run("SELECT '\0', 5\0") == [("\0", 5)]
