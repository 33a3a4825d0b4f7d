"""Temporary tables: seen by their session alone, gone with it."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from tests.wire.server import ServerThread


def connect(millrace: ServerThread) -> Any:
    return pymysql.connect(host="127.0.0.1", port=millrace.port, user="root", database="wire", autocommit=True)


def test_a_temporary_table_hides_another_of_its_name_for_its_session_alone(millrace: ServerThread) -> None:
    mine, other = connect(millrace), connect(millrace)
    one, two = mine.cursor(), other.cursor()
    one.execute("DROP TABLE IF EXISTS temp_t")
    one.execute("CREATE TABLE temp_t (id INT PRIMARY KEY)")
    one.execute("INSERT INTO temp_t VALUES (1)")
    one.execute("CREATE TEMPORARY TABLE temp_t (name VARCHAR(10), n INT AUTO_INCREMENT PRIMARY KEY)")
    one.execute("INSERT INTO temp_t (name) VALUES ('a'), ('b')")
    one.execute("SELECT name, n FROM temp_t ORDER BY n")
    assert one.fetchall() == (("a", 1), ("b", 2))
    two.execute("SELECT * FROM temp_t")
    assert two.fetchall() == ((1,),)
    one.execute("SHOW CREATE TABLE temp_t")
    assert "`name` varchar(10)" in one.fetchone()[1]
    one.execute("SHOW TABLES LIKE '%sql%'")
    assert one.fetchall() == ()
    one.execute("ALTER TABLE temp_t ADD COLUMN more INT DEFAULT 5")
    one.execute("SELECT more FROM temp_t WHERE name = 'a'")
    assert one.fetchall() == ((5,),)
    with pytest.raises(pymysql.err.OperationalError):
        one.execute("CREATE TEMPORARY TABLE temp_t (id INT)")
    one.execute("DROP TEMPORARY TABLE temp_t")
    one.execute("SELECT * FROM temp_t")
    assert one.fetchall() == ((1,),)
    mine.close()
    other.close()


def test_temporary_tables_go_with_their_session_and_commit_nothing(millrace: ServerThread) -> None:
    mine, other = connect(millrace), connect(millrace)
    one, two = mine.cursor(), other.cursor()
    one.execute("DROP TABLE IF EXISTS temp_base")
    one.execute("CREATE TABLE temp_base (id INT PRIMARY KEY)")
    one.execute("BEGIN")
    one.execute("INSERT INTO temp_base VALUES (1)")
    one.execute("CREATE TEMPORARY TABLE temp_gone (id INT)")
    one.execute("INSERT INTO temp_gone SELECT id FROM temp_base")
    one.execute("SELECT * FROM temp_gone")
    assert one.fetchall() == ((1,),)
    one.execute("ROLLBACK")
    one.execute("SELECT * FROM temp_base")
    assert one.fetchall() == ()
    mine.close()
    two.execute("CREATE TABLE IF NOT EXISTS temp_after (id INT)")
    with pytest.raises(pymysql.err.ProgrammingError):
        two.execute("SELECT * FROM temp_gone")
    other.close()


def test_names_mean_something_else_whenever_temporary_tables_come_and_go(millrace: ServerThread) -> None:
    connection = connect(millrace)
    cursor = connection.cursor()

    def run(sql: str) -> Any:
        cursor.execute(sql)
        return cursor.fetchall()

    run("DROP TABLE IF EXISTS temp_again")
    run("CREATE TABLE temp_again (id INT PRIMARY KEY, name VARCHAR(10))")
    run("INSERT INTO temp_again VALUES (1, 'stored')")
    run("PREPARE named FROM 'SELECT name FROM temp_again WHERE id = 1'")
    for number in range(3):
        assert run("SELECT name FROM temp_again WHERE id = 1") == run("EXECUTE named") == (("stored",),)
        run("CREATE TEMPORARY TABLE temp_again (id INT PRIMARY KEY, name VARCHAR(10))")
        run(f"INSERT INTO temp_again VALUES (1, '{number}')")
        assert run("SELECT name FROM temp_again WHERE id = 1") == run("EXECUTE named") == ((str(number),),)
        run("DROP TABLE temp_again")
    connection.close()


def test_views_do_not_see_temporary_tables(millrace: ServerThread) -> None:
    connection = connect(millrace)
    cursor = connection.cursor()

    def run(sql: str) -> Any:
        cursor.execute(sql)
        return cursor.fetchall()

    run("DROP TABLE IF EXISTS temp_viewed")
    run("CREATE TABLE temp_viewed (id INT PRIMARY KEY, name VARCHAR(10))")
    run("INSERT INTO temp_viewed VALUES (1, 'stored')")
    run("CREATE OR REPLACE VIEW temp_inner AS SELECT * FROM temp_viewed")
    run("CREATE OR REPLACE VIEW temp_outer AS SELECT * FROM temp_inner")
    run("CREATE TEMPORARY TABLE temp_viewed (id INT PRIMARY KEY, name VARCHAR(10))")
    run("CREATE TEMPORARY TABLE temp_inner (id INT PRIMARY KEY, name VARCHAR(10))")
    assert run("SELECT name FROM temp_outer") == (("stored",),)
    assert run("SELECT o.name FROM temp_outer o LEFT JOIN temp_viewed v ON v.id = o.id WHERE v.id IS NULL") == (("stored",),)
    assert run("SELECT * FROM temp_inner") == run("SELECT * FROM temp_viewed") == ()
    connection.close()
