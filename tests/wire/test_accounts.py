"""Users, what they may do, and what they are told when they may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mysql.connector
import pymysql
import pytest

from backend.execution.embedded import open_embedded
from tests.wire.server import ServerThread


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    folder = tmp_path_factory.mktemp("accounts")

    async def open_database() -> Any:
        return await open_embedded(folder)

    with ServerThread(open_database) as running:
        with user(running) as root:
            root("CREATE DATABASE shop")
            root("CREATE DATABASE other")
            root("CREATE TABLE shop.items (id INT PRIMARY KEY, name VARCHAR(20))")
            root("CREATE TABLE shop.secrets (id INT PRIMARY KEY)")
            root("CREATE TABLE other.t (id INT PRIMARY KEY)")
            root("CREATE USER bob IDENTIFIED BY 'pw'")
        yield running


@contextmanager
def user(server: ServerThread, name: str = "root", password: str = "", **more: Any) -> Iterator[Callable[[str], Any]]:
    connection = pymysql.connect(
        host="127.0.0.1", port=server.port, user=name, password=password, autocommit=True, **more
    )

    def run(sql: str) -> Any:
        cursor = connection.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall())

    try:
        yield run
    finally:
        connection.close()


def error(run: Callable[[str], Any], sql: str) -> tuple[int, str]:
    with pytest.raises(pymysql.err.MySQLError) as raised:
        run(sql)
    return raised.value.args[0], raised.value.args[1]


def grants(run: Callable[[str], Any], who: str) -> list[str]:
    return [row[0] for row in run(f"SHOW GRANTS FOR {who}")]


@pytest.mark.parametrize("plugin", ["mysql_native_password", "caching_sha2_password"])
def test_a_created_user_logs_in_with_its_password_alone(server: ServerThread, plugin: str) -> None:
    with user(server) as root:
        root(f"CREATE USER 'eve'@'%' IDENTIFIED WITH {plugin} BY 'it''s'")
        stored = root("SELECT plugin, authentication_string FROM mysql.user WHERE User = 'eve'")
        assert stored[0][0] == plugin and "it's" not in stored[0][1]
    with user(server, "eve", "it's") as eve:
        assert eve("SELECT CURRENT_USER()") == [("eve@%",)]
    for password in ("", "its", "it's "):
        with pytest.raises(pymysql.err.OperationalError, match="1045"), user(server, "eve", password):
            pass
    other = mysql.connector.connect(host="127.0.0.1", port=server.port, user="eve", password="it's")
    other.close()


def test_a_user_moves_with_its_hash(server: ServerThread) -> None:
    with user(server) as root:
        created = root("SHOW CREATE USER bob")[0][0]
        root("DROP USER bob")
        root(created)
    with user(server, "bob", "pw"):
        pass


def test_passwords_change(server: ServerThread) -> None:
    with user(server, "bob", "pw") as bob:
        bob("SET PASSWORD = 'two'")
    with user(server, "bob", "two") as bob:
        bob("ALTER USER USER() IDENTIFIED BY 'three'")
        assert error(bob, "ALTER USER root@localhost IDENTIFIED BY 'mine'")[0] == 1227
    with user(server) as root:
        root("SET PASSWORD FOR bob = 'four'")
        assert error(root, "SET PASSWORD FOR nobody = 'x'")[0] == 1133
    with user(server, "bob", "four"):
        pass


def test_root_is_without_password_until_it_has_one(server: ServerThread) -> None:
    with user(server) as root:
        root("ALTER USER root@localhost IDENTIFIED BY 'strong'")
        assert root("SELECT 1") == [(1,)]
    with pytest.raises(pymysql.err.OperationalError, match="1045"), user(server):
        pass
    with user(server, "root", "strong") as root:
        assert grants(root, "CURRENT_USER()") == ["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"]


def test_the_last_account_stays(server: ServerThread) -> None:
    with user(server) as root:
        root("DROP USER bob")
        assert error(root, "DROP USER root@localhost")[0] == 1396


def test_user_statements_say_what_is_wrong(server: ServerThread) -> None:
    with user(server) as root:
        assert error(root, "CREATE USER bob") == (1396, "Operation CREATE USER failed for 'bob'@'%'")
        assert error(root, "DROP USER a, b@x") == (1396, "Operation DROP USER failed for 'a'@'%','b'@'x'")
        root("CREATE USER IF NOT EXISTS bob")
        assert root("SHOW WARNINGS") == [("Note", 3163, "Authorization ID 'bob'@'%' already exists.")]
        root("DROP USER IF EXISTS a")
        assert root("SHOW WARNINGS") == [("Note", 3162, "Authorization ID 'a'@'%' does not exist.")]
        assert error(root, "CREATE USER x IDENTIFIED WITH sha512 BY 'x'") == (1524, "Plugin 'sha512' is not loaded")
        assert error(root, "CREATE USER x IDENTIFIED WITH mysql_native_password AS 'zzz'")[0] == 1827
        assert error(root, f"CREATE USER {'x' * 33}")[0] == 1470
        assert error(root, "GRANT SELECT ON shop.* TO nobody") == (
            1410, "You are not allowed to create a user with GRANT",
        )  # fmt: skip
        assert error(root, "GRANT FLY ON *.* TO bob")[0] == 1064
        assert error(root, "GRANT PROCESS ON shop.* TO bob")[0] == 1221
        assert error(root, "GRANT PROCESS ON shop.items TO bob")[0] == 1144
        assert error(root, "REVOKE SELECT ON shop.* FROM bob") == (
            1141, "There is no such grant defined for user 'bob' on host '%'",
        )  # fmt: skip


def test_locked_accounts_and_renamed_ones(server: ServerThread) -> None:
    with user(server) as root:
        root("ALTER USER bob ACCOUNT LOCK")
        with pytest.raises(pymysql.err.OperationalError, match="Account is locked"), user(server, "bob", "pw"):
            pass
        root("ALTER USER bob ACCOUNT UNLOCK")
        root("GRANT SELECT ON shop.* TO bob")
        root("RENAME USER bob TO 'rob'@'localhost'")
        assert grants(root, "rob@localhost")[1] == "GRANT SELECT ON `shop`.* TO `rob`@`localhost`"
    with user(server, "rob", "pw") as rob:
        assert rob("SELECT * FROM shop.items") == []


def test_grants_add_up_and_are_taken_back(server: ServerThread) -> None:
    with user(server) as root:
        root("GRANT SELECT, INSERT ON shop.* TO bob")
        root("GRANT UPDATE ON shop.* TO bob WITH GRANT OPTION")
        root("GRANT CREATE USER, BACKUP_ADMIN ON *.* TO bob")
        root("GRANT DELETE, SHOW VIEW ON TABLE shop.items TO bob")
        assert grants(root, "bob") == [
            "GRANT CREATE USER, BACKUP_ADMIN ON *.* TO `bob`@`%`",
            "GRANT SELECT, INSERT, UPDATE ON `shop`.* TO `bob`@`%` WITH GRANT OPTION",
            "GRANT DELETE, SHOW VIEW ON `shop`.`items` TO `bob`@`%`",
        ]
        root("REVOKE ALL ON shop.* FROM bob")
        root("REVOKE GRANT OPTION ON shop.* FROM bob")
        root("REVOKE DELETE ON shop.items FROM bob")
        assert grants(root, "bob")[1:] == ["GRANT SHOW VIEW ON `shop`.`items` TO `bob`@`%`"]
        root("REVOKE ALL PRIVILEGES, GRANT OPTION FROM bob")
        assert grants(root, "bob") == ["GRANT USAGE ON *.* TO `bob`@`%`"]
        root("GRANT ALL ON *.* TO bob")
        root("REVOKE SUPER ON *.* FROM bob")
        assert "SUPER" not in grants(root, "bob")[0] and "CREATE USER" in grants(root, "bob")[0]


def test_without_grants_nothing_is_seen_or_done(server: ServerThread) -> None:
    with user(server, "bob", "pw") as bob:
        assert bob("SHOW DATABASES") == [("information_schema",)]
        assert bob("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA") == [("information_schema",)]
        assert bob("SELECT * FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop'") == []
        assert error(bob, "USE shop") == (1044, "Access denied for user 'bob'@'%' to database 'shop'")
        assert error(bob, "USE missing")[0] == 1044
        denied = (1142, "SELECT command denied to user 'bob'@'localhost' for table 'items'")
        assert error(bob, "SELECT * FROM shop.items") == denied
        for sql in ("SHOW COLUMNS FROM shop.items", "SHOW CREATE TABLE shop.items", "DESCRIBE shop.items",
                    "SET @x = (SELECT COUNT(*) FROM shop.items)", "SELECT 1 FROM (SELECT id FROM shop.items) d",
                    "WITH c AS (SELECT * FROM shop.items) SELECT * FROM c", "SHOW INDEX FROM shop.items",
                    "SELECT 1 WHERE EXISTS (SELECT 1 FROM shop.items)", "SELECT nosuch FROM shop.items"):  # fmt: skip
            assert error(bob, sql) == denied, sql
        assert error(bob, "SELECT * FROM shop.missing")[0] == 1142
        assert error(bob, "SHOW TABLES FROM shop")[0] == 1044
        assert error(bob, "CREATE DATABASE mine") == (1044, "Access denied for user 'bob'@'%' to database 'mine'")
        assert error(bob, "DROP DATABASE shop")[0] == 1044
        for privilege, sql in (
            ("CREATE", "CREATE TABLE shop.items (id INT)"), ("DROP", "DROP TABLE IF EXISTS shop.items"),
            ("ALTER", "ALTER TABLE shop.items ADD COLUMN x INT"), ("INDEX", "CREATE INDEX i ON shop.items (name)"),
            ("INDEX", "ALTER TABLE shop.items DROP INDEX x"), ("DROP", "TRUNCATE TABLE shop.items"),
            ("ALTER", "RENAME TABLE shop.items TO shop.items2"), ("CREATE VIEW", "CREATE VIEW shop.items AS SELECT 1"),
            ("INSERT", "INSERT INTO shop.items VALUES (1, 'a')"), ("UPDATE", "UPDATE shop.items SET name = 'x'"),
            ("DELETE", "DELETE FROM shop.items"), ("INSERT", "REPLACE INTO shop.items VALUES (1, 'a')"),
        ):  # fmt: skip
            if sql.startswith("ALTER"):
                privilege = "ALTER"
            assert error(bob, sql) == (1142, f"{privilege} command denied to user 'bob'@'localhost' for table 'items'"), sql
        for privilege, sql in (
            ("CREATE USER", "CREATE USER x"), ("CREATE USER", "DROP USER bob"), ("RELOAD", "FLUSH PRIVILEGES"),
            ("SUPER or SYSTEM_VARIABLES_ADMIN", "SET GLOBAL sql_mode = ''"),
        ):  # fmt: skip
            assert error(bob, sql) == (
                1227, f"Access denied; you need (at least one of) the {privilege} privilege(s) for this operation",
            )  # fmt: skip
        assert error(bob, "GRANT SELECT ON *.* TO bob")[0] == 1045
        assert error(bob, "GRANT SELECT ON shop.* TO bob")[0] == 1044
        assert error(bob, "GRANT SELECT ON shop.items TO bob")[0] == 1142
        assert error(bob, "SELECT * FROM mysql.user")[0] == 1142
        assert error(bob, "SHOW GRANTS FOR root@localhost")[0] == 1044
        assert bob("SHOW GRANTS") == [("GRANT USAGE ON *.* TO `bob`@`%`",)]
    with pytest.raises(pymysql.err.OperationalError, match="1044"), user(server, "bob", "pw", database="shop"):
        pass


def test_what_is_granted_can_be_done_at_once(server: ServerThread) -> None:
    with user(server) as root, user(server, "bob", "pw") as bob:
        root("GRANT SELECT ON shop.items TO bob")
        assert bob("SELECT * FROM shop.items") == []
        assert bob("SHOW DATABASES") == [("information_schema",), ("shop",)]
        assert bob("SHOW TABLES FROM shop") == [("items",)]
        assert bob("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop'") == [("items",)]
        assert error(bob, "SELECT * FROM shop.items JOIN shop.secrets USING (id)")[0] == 1142
        assert error(bob, "INSERT INTO shop.items VALUES (1, 'a')")[0] == 1142
        root("GRANT INSERT, UPDATE ON shop.items TO bob")
        bob("INSERT INTO shop.items VALUES (1, 'a') ON DUPLICATE KEY UPDATE name = 'b'")
        assert error(bob, "REPLACE INTO shop.items VALUES (1, 'a')")[0] == 1142
        assert error(bob, "INSERT INTO shop.items SELECT id, 'x' FROM shop.secrets")[0] == 1142
        bob("UPDATE shop.items SET name = 'c' WHERE id = 1")
        root("REVOKE SELECT ON shop.items FROM bob")
        assert error(bob, "UPDATE shop.items SET name = 'c' WHERE id = 1")[0] == 1142
        assert error(bob, "SELECT * FROM shop.items")[0] == 1142
        root("DROP USER bob")
        assert error(bob, "UPDATE shop.items SET name = 'c'")[0] == 1142


def test_database_patterns(server: ServerThread) -> None:
    with user(server) as root:
        root(r"GRANT ALL ON `test\_%`.* TO bob")
    with user(server, "bob", "pw") as bob:
        bob("CREATE DATABASE test_one")
        bob("CREATE TABLE test_one.t (id INT PRIMARY KEY)")
        bob("INSERT INTO test_one.t VALUES (1)")
        assert error(bob, "CREATE DATABASE testing")[0] == 1044
        bob("DROP DATABASE test_one")


def test_temporary_tables_and_tables_from_queries(server: ServerThread) -> None:
    with user(server) as root, user(server, "bob", "pw") as bob:
        denied = (1044, "Access denied for user 'bob'@'%' to database 'shop'")
        assert error(bob, "CREATE TEMPORARY TABLE shop.mine (id INT)") == denied
        root("GRANT CREATE TEMPORARY TABLES ON shop.* TO bob")
        bob("CREATE TEMPORARY TABLE shop.mine (id INT)")
        bob("INSERT INTO shop.mine VALUES (1)")
        assert bob("SELECT * FROM shop.mine") == [(1,)]
        for query in ("SELECT * FROM shop.secrets", "(SELECT * FROM shop.secrets)", "AS SELECT * FROM shop.secrets"):
            assert error(bob, f"CREATE TEMPORARY TABLE shop.copied {query}")[0] == 1142
        bob("DROP TEMPORARY TABLE shop.mine")
        assert error(bob, "SELECT * FROM shop.mine")[0] == 1142


def test_a_view_shows_what_its_tables_do_not(server: ServerThread) -> None:
    with user(server) as root, user(server, "bob", "pw") as bob:
        root("INSERT INTO shop.secrets VALUES (1), (2)")
        root("CREATE VIEW shop.counted AS SELECT COUNT(*) AS n FROM shop.secrets")
        root("GRANT SELECT, SHOW VIEW ON shop.counted TO bob")
        assert bob("SELECT * FROM shop.counted") == [(2,)]
        assert error(bob, "SELECT * FROM shop.secrets")[0] == 1142
        assert error(bob, "SELECT * FROM shop.counted, shop.secrets")[0] == 1142
        root("GRANT CREATE VIEW ON other.* TO bob")
        assert error(bob, "CREATE VIEW other.v AS SELECT * FROM shop.secrets")[0] == 1142
        bob("CREATE VIEW other.v AS SELECT * FROM shop.counted")


def test_who_reads_a_view_for_its_invoker_needs_rights_on_its_tables(server: ServerThread) -> None:
    with user(server) as root, user(server, "bob", "pw") as bob:
        root("CREATE TABLE shop.asked (id INT PRIMARY KEY)")
        root("CREATE SQL SECURITY INVOKER VIEW shop.asking AS SELECT * FROM shop.asked")
        root("GRANT SELECT ON shop.asking TO bob")
        root("GRANT CREATE TEMPORARY TABLES ON shop.* TO bob")
        assert error(bob, "SELECT * FROM shop.asking")[0] == 1356
        bob("CREATE TEMPORARY TABLE shop.asked (id INT PRIMARY KEY)")
        assert error(bob, "SELECT * FROM shop.asking")[0] == 1356, "it is not what the view reads"
        root("GRANT SELECT ON shop.asked TO bob")
        assert bob("SELECT * FROM shop.asking") == []


def test_a_view_reads_what_its_definer_may_read_now(server: ServerThread) -> None:
    with user(server) as root, user(server, "bob", "pw") as bob:
        root("CREATE USER ann")
        root("GRANT ALL ON shop.* TO ann")
        root("INSERT INTO shop.items VALUES (1, 'one')")
        root("CREATE DEFINER = ann VIEW shop.seen AS WITH i AS (SELECT * FROM shop.items) SELECT * FROM i")
        root("CREATE VIEW shop.outer_view AS SELECT * FROM shop.seen WHERE id = 1")
        root("GRANT SELECT ON shop.seen TO bob")
        queries = ("SELECT * FROM shop.seen WHERE id = 1", "SELECT * FROM shop.outer_view")

        def read_often() -> None:
            for _ in range(5):  # often enough to be answered by a shortcut
                assert bob(queries[0]) == root(queries[0]) == root(queries[1]) == [(1, "one")]

        read_often()
        root("REVOKE ALL ON shop.* FROM ann")
        for run, query in ((bob, queries[0]), (root, queries[0]), (root, queries[1])):
            assert error(run, query)[0] == 1356
        root("GRANT SELECT ON shop.items TO ann")
        read_often()
        root("DROP USER ann")
        assert error(root, queries[0]) == (1449, "The user specified as a definer ('ann'@'%') does not exist")
        assert error(root, queries[1])[0] == 1449
        assert error(bob, queries[0])[0] == 1045


def test_granting_needs_the_option_and_the_privilege(server: ServerThread) -> None:
    with user(server) as root, user(server, "bob", "pw") as bob:
        root("CREATE USER ann")
        root("GRANT SELECT ON shop.* TO bob WITH GRANT OPTION")
        bob("GRANT SELECT ON shop.items TO ann")
        assert error(bob, "GRANT INSERT ON shop.items TO ann") == (
            1142, "GRANT command denied to user 'bob'@'localhost' for table 'items'",
        )  # fmt: skip


def test_prepared_statements_are_checked_when_they_run(server: ServerThread) -> None:
    with user(server) as root:
        root("ALTER USER bob IDENTIFIED WITH mysql_native_password BY 'pw'")
        root("GRANT SELECT ON shop.items TO bob")
        connection = mysql.connector.connect(host="127.0.0.1", port=server.port, user="bob", password="pw")
        cursor = connection.cursor(prepared=True)
        cursor.execute("SELECT * FROM shop.items WHERE id = ?", (1,))
        assert cursor.fetchall() == []
        root("REVOKE SELECT ON shop.items FROM bob")
        with pytest.raises(mysql.connector.Error, match="1142"):
            cursor.execute("SELECT * FROM shop.items WHERE id = ?", (1,))
        with pytest.raises(mysql.connector.Error, match="1142"):
            connection.cursor(prepared=True).execute("SELECT * FROM shop.secrets WHERE id = ?", (1,))
        connection.close()


def test_others_are_not_seen_or_killed(server: ServerThread) -> None:
    with user(server) as root, user(server, "bob", "pw") as bob:
        number = root("SELECT CONNECTION_ID()")[0][0]
        assert {row[1] for row in bob("SHOW PROCESSLIST")} == {"bob"}
        assert {row[1] for row in root("SHOW PROCESSLIST")} == {"root", "bob"}
        assert error(bob, f"KILL {number}") == (1095, f"You are not owner of thread {number}")
        root("GRANT PROCESS, CONNECTION_ADMIN ON *.* TO bob")
        assert {row[1] for row in bob("SHOW PROCESSLIST")} == {"root", "bob"}
        bob(f"KILL {number}")


def test_no_password_is_shown(server: ServerThread) -> None:
    from mysql_adapter.information_schema.server import shown_statement

    shown = shown_statement("CREATE USER x IDENTIFIED BY 'it''s \\' me'")
    assert shown == "CREATE USER x IDENTIFIED BY <secret>"
    assert shown_statement('SET PASSWORD = "x"') == "SET PASSWORD = <secret>"
    assert shown_statement("SELECT 'x'") == "SELECT 'x'"


def test_accounts_are_there_after_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("restart")

    async def open_database() -> Any:
        database = await open_embedded(folder)
        return database

    with ServerThread(open_database) as first:
        with user(first) as root:
            root("CREATE USER bob IDENTIFIED BY 'pw'")
            root("GRANT ALL ON *.* TO bob")
        first.call(lambda: first.server.environment.database.store.close())  # type: ignore[union-attr]
    with ServerThread(open_database) as second, user(second, "bob", "pw") as bob:
        assert bob("SELECT User FROM mysql.user ORDER BY User") == [("bob",), ("root",)]


def test_roles_hand_on_what_they_may_do_while_they_are_active(server: ServerThread) -> None:
    with user(server) as root:
        root("CREATE ROLE reader, 'writer'@'%'")
        root("CREATE ROLE IF NOT EXISTS reader")
        assert error(root, "CREATE ROLE reader") == (1396, "Operation CREATE ROLE failed for 'reader'@'%'")
        root("GRANT SELECT ON shop.* TO reader")
        root("GRANT INSERT ON shop.items TO writer")
        root("GRANT reader TO writer")
        root("GRANT writer TO bob")
        assert error(root, "GRANT writer TO reader")[0] == 3527
        assert error(root, "GRANT nobody TO bob") == (3523, "Unknown authorization ID `nobody`@`%`")
        assert grants(root, "bob") == ["GRANT USAGE ON *.* TO `bob`@`%`", "GRANT `writer`@`%` TO `bob`@`%`"]
        with user(server, "bob", "pw") as bob:
            assert bob("SELECT CURRENT_ROLE()") == [("NONE",)]
            assert error(bob, "SELECT * FROM shop.items")[0] == 1142
            bob("SET ROLE writer")
            assert bob("SELECT CURRENT_ROLE()") == [("`writer`@`%`",)]
            for number in range(4):  # often enough for the short way
                bob(f"INSERT INTO shop.items VALUES ({number}, 'a')")
                assert bob("SELECT name FROM shop.items WHERE id = 0") == [("a",)]
            assert "GRANT INSERT ON `shop`.`items` TO `bob`@`%`" in [row[0] for row in bob("SHOW GRANTS")]
            assert error(bob, "DELETE FROM shop.items")[0] == 1142
            bob("SET ROLE NONE")
            assert error(bob, "SELECT name FROM shop.items WHERE id = 0")[0] == 1142
            assert error(bob, "SET ROLE reader") == (3530, "`reader`@`%` is not granted to `bob`@`%`")
            bob("SET ROLE ALL")
            bob("SELECT * FROM shop.items")
            bob("SET ROLE ALL EXCEPT writer")
            assert error(bob, "SELECT * FROM shop.items")[0] == 1142
            assert error(bob, "GRANT reader TO bob")[0] == 1227
            assert error(bob, "CREATE ROLE mine")[0] == 1227
        with pytest.raises(pymysql.err.OperationalError) as raised:
            pymysql.connect(host="127.0.0.1", port=server.port, user="reader")
        assert raised.value.args[0] == 3118


def test_default_roles_are_active_after_login_until_they_are_taken_away(server: ServerThread) -> None:
    with user(server) as root:
        root("CREATE ROLE reader")
        root("GRANT SELECT ON shop.* TO reader")
        assert error(root, "SET DEFAULT ROLE reader TO bob")[0] == 3530
        root("GRANT reader TO bob")
        root("SET DEFAULT ROLE ALL TO bob")
        root("CREATE USER eve IDENTIFIED BY 'pw' DEFAULT ROLE reader")
        assert " DEFAULT ROLE `reader`@`%` " in root("SHOW CREATE USER eve")[0][0]
        with user(server, "bob", "pw") as bob, user(server, "eve", "pw") as eve:
            for someone in (bob, eve):
                assert someone("SELECT * FROM shop.items") == []
            root("REVOKE reader FROM eve")
            assert error(eve, "SELECT * FROM shop.items")[0] == 1142
            assert error(root, "REVOKE reader FROM eve")[0] == 3530
            bob("SELECT * FROM shop.items")
            root("DROP ROLE reader")
            assert error(bob, "SELECT * FROM shop.items")[0] == 1142
        assert grants(root, "bob") == ["GRANT USAGE ON *.* TO `bob`@`%`"]
        assert error(root, "DROP ROLE reader")[0] == 1396
        root("DROP ROLE IF EXISTS reader")
        assert root("SELECT COUNT(*) FROM mysql.role_edges") == [(0,)]
        assert error(root, "GRANT bob TO eve WITH ADMIN OPTION")[0] == 1235


def test_an_expired_password_has_to_be_changed_first(server: ServerThread) -> None:
    with user(server) as root:
        root("ALTER USER bob PASSWORD EXPIRE")
        assert " PASSWORD EXPIRE ACCOUNT " in root("SHOW CREATE USER bob")[0][0]
        with pytest.raises(pymysql.err.OperationalError) as raised:
            pymysql.connect(host="127.0.0.1", port=server.port, user="bob", password="pw")
        assert raised.value.args[0] == 1862
        with user(server, "bob", "pw", client_flag=1 << 22) as bob:
            for sql in ("SELECT 1", "SHOW TABLES", "ALTER TABLE shop.items ADD x INT"):
                assert error(bob, sql)[0] == 1820
            bob("ALTER USER USER() IDENTIFIED BY 'new'")
            assert bob("SELECT 1") == [(1,)]
        with user(server, "bob", "new") as bob:
            assert bob("SELECT 1") == [(1,)]
