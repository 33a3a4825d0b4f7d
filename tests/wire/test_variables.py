"""SET and SELECT of variables, in all the forms clients use."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from tests.wire.server import ServerThread


def code(raised: Any) -> int:
    return int(raised.value.args[0])


@pytest.mark.parametrize(
    ("statement", "question", "answer"),
    [
        ("SET autocommit=0", "@@autocommit", 0),
        ("SET AUTOCOMMIT = ON", "@@session.autocommit", 1),
        ("SET SESSION autocommit = FALSE", "@@autocommit", 0),
        ("SET @@autocommit = 1", "@@autocommit", 1),
        ("SET @@session.autocommit := 0", "@@autocommit", 0),
        ("SET LOCAL sql_mode = ''", "@@sql_mode", ""),
        ("SET sql_mode=''", "@@sql_mode", ""),
        ("SET sql_mode = ANSI_QUOTES", "@@sql_mode", "ANSI_QUOTES"),
        ("SET sql_mode = 'strict_all_tables'", "@@sql_mode", "STRICT_ALL_TABLES"),
        ("SET sql_mode = DEFAULT", "@@sql_mode LIKE '%STRICT_TRANS_TABLES%'", 1),
        ("SET sql_mode = 'NO_AUTO_CREATE_USER,ALLOW_INVALID_DATES'", "@@sql_mode", "ALLOW_INVALID_DATES"),
        (
            "SET sql_mode=CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')",
            "@@sql_mode LIKE '%PIPES_AS_CONCAT%' AND @@sql_mode LIKE '%STRICT_TRANS_TABLES%'",
            1,
        ),
        (
            "SET SESSION sql_mode = REPLACE(REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY,', ''), 'NO_ZERO_DATE', '')",
            "@@sql_mode LIKE '%FULL_GROUP%'",
            0,
        ),
        ("SET NAMES utf8", "@@character_set_client", "utf8mb3"),
        ("SET NAMES 'latin1'", "@@collation_connection", "latin1_swedish_ci"),
        ("SET NAMES utf8mb4 COLLATE 'utf8mb4_unicode_ci'", "@@collation_connection", "utf8mb4_unicode_ci"),
        ("SET NAMES DEFAULT", "@@character_set_results", "utf8mb4"),
        ("SET CHARACTER SET utf8mb4", "@@character_set_client", "utf8mb4"),
        ("SET collation_connection = utf8mb4_bin", "@@character_set_connection", "utf8mb4"),
        ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "@@transaction_isolation", "READ-COMMITTED"),
        (
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE",
            "@@tx_isolation",
            "REPEATABLE-READ",
        ),
        ("SET SESSION tx_isolation = 'SERIALIZABLE'", "@@transaction_isolation", "SERIALIZABLE"),
        ("SET time_zone = 'SYSTEM'", "@@time_zone", "SYSTEM"),
        ("SET time_zone = '+02:00'", "@@time_zone", "+02:00"),
        ("SET foreign_key_checks = 0, unique_checks = 0", "@@foreign_key_checks", 0),
        ("SET SESSION group_concat_max_len = 1000000", "@@group_concat_max_len", 1000000),
        ("SET sql_auto_is_null = 0, wait_timeout = 3600", "@@wait_timeout", 3600),
        ("SET SQL_BIG_SELECTS=1", "@@sql_big_selects", 1),
        ("SET @x = 5", "@x", 5),
        ("SET @w = 77; SET wait_timeout = @w", "@@wait_timeout", 77),
        ("SET @x := CONCAT('a', 'b'), @y = 2", "@x", "ab"),
        ("SET @old = @@wait_timeout, wait_timeout = 7, @now = @@wait_timeout", "@now", 28800),
        ("SET @`quoted name` = 1", "@`quoted name`", 1),
        ("/*!40101 SET NAMES latin1 */", "@@character_set_client", "latin1"),
        ("/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */", "@@unique_checks", 0),
        ("/*!99999 SET autocommit = 0 */ SET autocommit = 1", "@@autocommit", 1),
        ("SET character_set_results = NULL", "@@character_set_results", None),
        ("SELECT 1", "@@version_comment", "millrace"),
        ("SELECT 1", "@@global.max_allowed_packet", 64 << 20),
        ("SELECT 1", "@@lower_case_table_names", 0),
        ("SELECT 1", "@@system_time_zone", "UTC"),
        ("SELECT 1", "@@auto_increment_increment", 1),
        ("SELECT 1", "@@read_only", 0),
        ("SELECT 1", "@@server_id", 1),
        ("SELECT 1", "@nothing", None),
    ],
)
def test_set_then_select(run: Any, statement: str, question: str, answer: Any) -> None:
    run(statement)
    assert run(f"SELECT {question}") == [(answer,)]


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("SET nonsense = 1", 1193),
        ("SELECT @@nonsense", 1193),
        ("SET version = '9'", 1238),
        ("SET max_connections = 5", 1229),
        ("SET GLOBAL timestamp = 5", 1228),
        ("SET autocommit = 7", 1231),
        ("SET sql_mode = 'WHATEVER'", 1231),
        ("SET wait_timeout = 'x'", 1232),
        ("SET NAMES klingon", 1115),
        ("SET NAMES latin1 COLLATE utf8mb4_bin", 1253),
        ("SET collation_connection = klingon_ci", 1273),
        ("SET time_zone = 'Mars/Phobos'", 1298),
        ("SET", 1064),
        ("SET autocommit", 1064),
        ("SET autocommit = ", 1064),
        ("SET autocommit = 1 1", 1064),
        ("SET TRANSACTION ISOLATION LEVEL WHATEVER", 1064),
    ],
)
def test_wrong_set_is_an_error(run: Any, statement: str, wanted: int) -> None:
    with pytest.raises(pymysql.err.MySQLError) as raised:
        run(statement)
    assert code(raised) == wanted


def test_failed_set_changes_nothing(run: Any) -> None:
    with pytest.raises(pymysql.err.MySQLError):
        run("SET sql_mode = '', @z = 1, nonsense = 2")
    assert run("SELECT @@sql_mode = '', @z") == [(0, None)]


def test_session_functions(run: Any, millrace: ServerThread) -> None:
    rows = run("SELECT VERSION(), DATABASE(), SCHEMA(), USER(), CURRENT_USER(), SESSION_USER()")
    assert rows == [("8.0.36-millrace", "wire", "wire", "root@localhost", "root@localhost", "root@localhost")]
    assert run("SELECT CONNECTION_ID() > 0, LAST_INSERT_ID(), NOW() = NOW(), CURRENT_TIMESTAMP <= SYSDATE()")[0][:2] == (1, 0)


def test_time_zone_moves_now(run: Any) -> None:
    run("SET time_zone = '+00:00', timestamp = 86400")
    assert str(run("SELECT NOW()")[0][0]) == "1970-01-02 00:00:00"
    assert run("SELECT UNIX_TIMESTAMP(), UTC_TIMESTAMP() = NOW(), UTC_DATE() = CURDATE()") == [(86400, 1, 1)]
    run("SET time_zone = '-05:00'")
    assert str(run("SELECT NOW()")[0][0]) == "1970-01-01 19:00:00"


def test_global_value_is_what_new_sessions_get(run: Any, millrace: ServerThread) -> None:
    run("SET GLOBAL group_concat_max_len = 2048")
    assert run("SELECT @@group_concat_max_len, @@global.group_concat_max_len") == [(1024, 2048)]
    other = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root")
    cursor = other.cursor()
    cursor.execute("SELECT @@group_concat_max_len")
    assert cursor.fetchone() == (2048,)
    run("SET GLOBAL group_concat_max_len = DEFAULT")


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("SHOW VARIABLES LIKE 'sql_mode'", ["sql_mode"]),
        ("SHOW SESSION VARIABLES LIKE 'auto_increment_%'", ["auto_increment_increment", "auto_increment_offset"]),
        ("SHOW GLOBAL VARIABLES WHERE Variable_name = 'version'", ["version"]),
        (
            "SHOW VARIABLES WHERE variable_name IN ('wait_timeout', 'lower_case_table_names') OR Value = '8.0.36-millrace'",
            ["lower_case_table_names", "version", "wait_timeout"],
        ),
        ("SHOW VARIABLES LIKE 'no such thing'", []),
    ],
)
def test_show_variables(run: Any, statement: str, names: list[str]) -> None:
    assert [row[0] for row in run(statement)] == names
