"""Settings of the session that change values: max_allowed_packet, group_concat_max_len, div_precision_increment, default_week_format."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from tests.mariadb import MariaDB
from tests.wire.server import ServerThread

STATEMENTS = [
    "SET group_concat_max_len = 10",
    "SELECT g, GROUP_CONCAT(name ORDER BY id) FROM result_settings GROUP BY g ORDER BY g",
    "SELECT GROUP_CONCAT(name ORDER BY id SEPARATOR '–') FROM result_settings",
    "SELECT GROUP_CONCAT(DISTINCT name ORDER BY name) FROM result_settings",
    "SET group_concat_max_len = 1000000",
    "SELECT GROUP_CONCAT(REPEAT('x', 3000)) FROM result_settings",
    "SET div_precision_increment = 0",
    "SELECT id / 7, AVG(id), 1.5 / 3 FROM result_settings GROUP BY id ORDER BY id",
    "SET div_precision_increment = 12",
    "SELECT id / 7, AVG(id), 1.5 / 7 FROM result_settings GROUP BY id ORDER BY id",
    "SET default_week_format = 3",
    "SELECT WEEK('2021-01-01'), WEEK('2021-01-01', 0), YEARWEEK('2021-01-01')",
]


def test_mariadb_answers_the_same(run: Any, mariadb: MariaDB) -> None:
    name = mariadb.fresh_database()
    other = mariadb.connect(name)
    with other, other.cursor() as cursor:
        for statement in (
            "CREATE TABLE result_settings (id INT PRIMARY KEY, g INT, name VARCHAR(20))",
            "INSERT INTO result_settings VALUES (1, 1, 'alpha'), (2, 1, 'beta'), (3, 2, 'gämmä'), (4, 2, 'déltà'), (5, 3, 'e')",
        ):
            cursor.execute(statement)
            run(statement)
        for statement in STATEMENTS:
            for _ in range(3):  # as it repeats it becomes a view
                cursor.execute(statement)
                found = run(statement)
                if statement.startswith("SELECT"):
                    assert found == list(cursor.fetchall()), statement


def test_sessions_with_other_settings_do_not_mix(run: Any, millrace: ServerThread) -> None:
    run("CREATE TABLE mixed (id INT PRIMARY KEY, name VARCHAR(20))")
    run("INSERT INTO mixed VALUES (1, 'alpha'), (2, 'beta')")
    other = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", database="wire", autocommit=True)
    query = "SELECT GROUP_CONCAT(name ORDER BY id) FROM mixed WHERE id < 5"
    with other, other.cursor() as cursor:
        cursor.execute("SET group_concat_max_len = 5")
        for _ in range(5):
            cursor.execute(query)
            assert cursor.fetchall() == (("alpha",),)
            assert run(query) == [("alpha,beta",)]


def test_what_is_cut_or_too_long_is_told(run: Any) -> None:
    run("SET group_concat_max_len = 1")
    assert run("SHOW WARNINGS") == [("Warning", 1292, "Truncated incorrect group_concat_max_len value: '1'")]
    run("CREATE TABLE cut (id INT PRIMARY KEY, name VARCHAR(20))")
    run("INSERT INTO cut VALUES (1, 'abc'), (2, 'def')")
    assert run("SELECT GROUP_CONCAT(name ORDER BY id) FROM cut") == [("abc,",)]
    assert run("SHOW WARNINGS") == [("Warning", 1260, "Row 2 was cut by GROUP_CONCAT()")]
    assert run("SELECT REPEAT('x', 100000000)") == [(None,)]
    assert run("SHOW WARNINGS") == [("Warning", 1301, "Result of repeat() was larger than max_allowed_packet (67108864) - truncated")]
    deep = "HEX(" * 45 + "'x'" + ")" * 45
    assert run(f"SELECT {deep}") == [(None,)]
    with pytest.raises(pymysql.err.MySQLError) as raised:
        run("INSERT INTO cut VALUES (3, REPEAT('x', 100000000))")
    assert raised.value.args[0] == 1301


def test_the_packet_limit_is_that_of_the_moment_of_the_connect(run: Any, millrace: ServerThread) -> None:
    with pytest.raises(pymysql.err.MySQLError) as raised:
        run("SET max_allowed_packet = 1048576")
    assert raised.value.args[0] == 1621
    run("SET GLOBAL max_allowed_packet = 1048576")
    try:
        assert run("SELECT LENGTH(REPEAT('x', 2000000))") == [(2000000,)]
        other = pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", database="wire")
        with other, other.cursor() as cursor:
            for _ in range(3):
                cursor.execute("SELECT LENGTH(REPEAT('x', 2000000)), LENGTH(REPEAT('x', 1000000))")
                assert cursor.fetchall() == ((None, 1000000),)
    finally:
        run("SET GLOBAL max_allowed_packet = DEFAULT")


VECTOR, BLOCK = "0x000102030405060708090A0B0C0D0E0F", "0x6BC1BEE22E409F96E93D7E117393172A"
SHORT, MIDDLE = "0x2B7E151628AED2A6ABF7158809CF4F3C", "0x8E73B0F7DA0E6452C810F32B809079E562F8EAD2522C6B7B"
LONG = "0x603DEB1015CA71BE2B73AEF0857D77811F352C073B6108D72D9810A30914DFF4"


@pytest.mark.parametrize(
    ("mode", "key", "encrypted"),
    [
        ("aes-128-ecb", SHORT, "3AD77BB40D7A3660A89ECAF32466EF97"),
        ("aes-256-ecb", LONG, "F3EED1BDB5D2A03C064B5A7E3DB181F8"),
        ("aes-128-cbc", SHORT, "7649ABAC8119B246CEE98E9B12E9197D"),
        ("aes-256-CBC", LONG, "F58C4C04D6E5F1BA779EABFB5F7BFBD6"),
        ("aes-128-cfb128", SHORT, "3B3FD92EB72DAD20333449F8E83CFB4A"),
        ("aes-192-ofb", MIDDLE, "CDC80D6FDDF18CAB34C25909C99A4174"),
    ],
)
def test_values_are_encrypted_in_the_mode_of_the_session(run: Any, mode: str, key: str, encrypted: str) -> None:
    """The blocks are those of NIST SP 800-38A."""
    run(f"SET block_encryption_mode = '{mode}'")
    try:
        assert run(f"SELECT LEFT(HEX(AES_ENCRYPT({BLOCK}, {key}, {VECTOR})), 32)") == [(encrypted,)]
        decrypted = f"AES_DECRYPT(AES_ENCRYPT({BLOCK}, {key}, {VECTOR}), {key}, {VECTOR})"
        assert run(f"SELECT HEX({decrypted})") == [(BLOCK[2:],)]
        if not mode.endswith("ecb"):
            for statement, code in ((f"SELECT AES_ENCRYPT('a', {key})", 1582), (f"SELECT AES_ENCRYPT('a', {key}, 'short')", 1882)):
                with pytest.raises(pymysql.err.MySQLError) as raised:
                    run(statement)
                assert raised.value.args[0] == code
        with pytest.raises(pymysql.err.MySQLError) as raised:
            run("SET block_encryption_mode = 'rot13'")
        assert raised.value.args[0] == 1231
    finally:
        run("SET block_encryption_mode = DEFAULT")


def test_a_view_s_texts_are_the_bytes_that_its_definer_sent(millrace: ServerThread, mariadb: MariaDB) -> None:
    answers = []
    for port in (millrace.port, mariadb.port):
        with pymysql.connect(host="127.0.0.1", port=port, user="root", charset="latin1") as definer:
            cursor = definer.cursor()
            cursor.execute("DROP DATABASE IF EXISTS sent_views")
            cursor.execute("CREATE DATABASE sent_views")
            # In latin1 these are the bytes C3 A9, which are an é in utf8mb4.
            cursor.execute("CREATE VIEW sent_views.v AS SELECT _utf8mb4'Ã©' AS a, _latin1'é' AS b, _utf8mb4'' AS c, 'é' AS d")
        found = []
        for charset in ("utf8mb4", "latin1", "cp1251"):
            with pymysql.connect(host="127.0.0.1", port=port, user="root", charset=charset) as reader:
                cursor = reader.cursor()
                cursor.execute("SELECT a, b, c, d, HEX(a), HEX(b), CHAR_LENGTH(a) FROM sent_views.v")
                found.append(cursor.fetchall())
        with pymysql.connect(host="127.0.0.1", port=port, user="root") as definer:
            definer.cursor().execute("DROP DATABASE sent_views")
        answers.append(found)
    assert answers[0] == answers[1]


def test_the_texts_of_a_table_s_definition_are_the_bytes_that_its_definer_sent(millrace: ServerThread) -> None:
    """MariaDB itself forgets them in CHECK and in generated columns: it is not asked."""
    with pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", charset="latin1", autocommit=True) as definer:
        cursor = definer.cursor()
        cursor.execute("CREATE DATABASE sent_tables")
        cursor.execute(
            "CREATE TABLE sent_tables.t (id INT PRIMARY KEY, a VARCHAR(9) DEFAULT _utf8mb4'Ã©', b VARCHAR(9) DEFAULT (CONCAT(_utf8mb4'Ã©', 'x')),"
            " c VARCHAR(9) DEFAULT 'Ã©' CHECK (c <> _utf8mb4'Ã©'), g VARCHAR(9) AS (CONCAT(_utf8mb4'Ã©', id)))"
        )
    with pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", charset="utf8mb4", autocommit=True) as writer:
        cursor = writer.cursor()
        cursor.execute("INSERT INTO sent_tables.t (id) VALUES (1)")
        cursor.execute("SELECT a, b, c, g FROM sent_tables.t")
        assert cursor.fetchall() == (("é", "éx", "Ã©", "é1"),)
        with pytest.raises(pymysql.MySQLError) as raised:
            cursor.execute("INSERT INTO sent_tables.t (id, c) VALUES (2, 'é')")
        assert raised.value.args[0] == 3819
        cursor.execute("SHOW CREATE TABLE sent_tables.t")
        assert "_utf8mb4 X'c3a9'" in cursor.fetchone()[1]
