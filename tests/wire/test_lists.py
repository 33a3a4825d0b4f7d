"""Long lists of keys: their rows, made all at once, are those of executing the statement, and MariaDB's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from mysql_adapter.shortcuts.standing_answers import Standing
from mysql_adapter.wire.row_batches import RowBatches
from tests.mariadb import MariaDB
from tests.wire.raw import DEPRECATE_EOF, PLAIN
from tests.wire.server import ServerThread, sharing_server
from tests.wire.test_shortcuts import QUERY_ATTRIBUTES, WARM, Client, execute, text

STORIES = 400
TABLES = [
    "CREATE TABLE stories (id INT PRIMARY KEY, author INT, title VARCHAR(300) NOT NULL, note VARBINARY(400), score BIGINT NOT NULL, big BIGINT UNSIGNED)",
    "CREATE TABLE votes (number INT AUTO_INCREMENT PRIMARY KEY, story INT, KEY (story))",
    "CREATE VIEW counts AS SELECT story, COUNT(*) AS votes FROM votes GROUP BY story",
    "CREATE VIEW counted AS SELECT id, author, title, COALESCE(votes, 0) AS votes FROM stories LEFT JOIN counts ON story = id",
]


def story(number: int) -> str:
    author = "NULL" if number % 5 == 0 else str(number % 3)
    note = "NULL" if number % 7 == 0 else f"x'{'00fb' * (number % 4)}'"
    score = number**5 * (-1) ** number if number % 50 == 0 else number * 1000 - number
    big = 2**64 - number if number % 41 == 0 else number
    return f"({number}, {author}, '{'ü' * (number % 60)} {number}', {note}, {score}, {big})"


def fill(run: Any) -> None:
    for sql in TABLES:
        run(sql)
    run("INSERT INTO stories VALUES " + ", ".join(map(story, range(1, STORIES + 1))))
    run("INSERT INTO votes (story) VALUES " + ", ".join(f"({number % 90 + 1})" for number in range(1, 500)))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    with sharing_server(tmp_path_factory.mktemp("lists")) as found:
        yield found


@pytest.fixture
def client(server: ServerThread) -> Iterator[Client]:
    with Client(server) as connected:
        connected.query("DROP DATABASE IF EXISTS lists")
        connected.query("CREATE DATABASE lists")
        connected.query("USE lists")
        fill(connected.query)
        yield connected


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were made at once, each time."""
    made: list[int] = []
    encoded = RowBatches.encoded

    def counting(self: RowBatches, entries: Any, first: int) -> Any:
        found = encoded(self, entries, first)
        if found is not None:
            made.append(len(entries.words))
        return found

    monkeypatch.setattr(RowBatches, "encoded", counting)
    return made


def listed(*numbers: int, between: str = ", ") -> str:
    return f"({between.join(map(str, numbers))})"


SHUFFLED = random.Random(5).sample(range(1, STORIES + 50), STORIES)
COUNTED = "SELECT id, author, title, votes FROM counted WHERE id IN {}"
QUERIES = [
    COUNTED,
    "SELECT votes, id FROM counted WHERE id IN {}",
    "SELECT title, votes FROM counted WHERE id IN {}",
    "SELECT story, votes FROM counts WHERE story IN {}",
    "SELECT id, author, title, note FROM stories WHERE id IN {}",
    "SELECT * FROM stories WHERE id IN {}",
    "SELECT `title`, `id` FROM `lists`.`stories` WHERE `id` IN {} ORDER BY `id` DESC",
    "SELECT big FROM stories WHERE id IN {}",
    "SELECT score, note FROM stories WHERE id IN {} ORDER BY id",
    "SELECT note FROM stories WHERE id IN {}",
]


@pytest.mark.parametrize("capabilities", [PLAIN, DEPRECATE_EOF])
@pytest.mark.parametrize("sql", QUERIES)
def test_rows_made_at_once_are_those_of_executing(
    server: ServerThread, client: Client, batches: list[int], sql: str, capabilities: int
) -> None:
    with Client(server, capabilities) as other:
        other.query("USE lists")
        rows = other.same(text(sql.format(listed(*SHUFFLED))))
        assert batches[-1:] == [len(rows)] and len(rows) > (80 if "counts" in sql else 255)
        for numbers in (SHUFFLED[:100], sorted(SHUFFLED), [*SHUFFLED[:200], *SHUFFLED[100:300], 1, 1], range(1000, 1100)):
            for between in (", ", ","):
                payload = text(sql.format(listed(*numbers, between=between)))
                other.same(payload)
                assert batches[-1:] == [len(other.rows)]


def test_rows_are_mariadbs(server: ServerThread, mariadb: MariaDB, client: Client, batches: list[int]) -> None:
    database = mariadb.fresh_database()
    theirs = mariadb.connect(database).cursor()
    fill(theirs.execute)
    ours = pymysql.connect(host="127.0.0.1", port=server.port, user="root", database="lists", autocommit=True).cursor()
    for sql in QUERIES:
        sql = sql.replace("`lists`.", "")
        for numbers in (SHUFFLED, SHUFFLED[:90], [*SHUFFLED[:150], *SHUFFLED[:150]], [0, *SHUFFLED[:70], 9223372036854775806]):
            query = sql.format(listed(*numbers))
            theirs.execute(query)
            expected = sorted(theirs.fetchall(), key=repr)
            for _ in range(WARM):
                ours.execute(query)
                assert sorted(ours.fetchall(), key=repr) == expected
            assert batches.pop() == len(expected)


def test_rows_come_in_the_order_of_the_list_or_of_the_key(client: Client, batches: list[int]) -> None:
    wanted = [*SHUFFLED[:100], *SHUFFLED[:50]]
    there = [each for each in SHUFFLED[:100] if each <= STORIES]
    for sql, order in (
        ("SELECT id, votes FROM counted WHERE id IN {}", there),
        ("SELECT id, title FROM stories WHERE id IN {}", sorted(there)),
        ("SELECT id, title FROM stories WHERE id IN {} ORDER BY id DESC", sorted(there, reverse=True)),
    ):
        rows = client.same(text(sql.format(listed(*wanted))))
        assert [int(row[1 : 1 + row[0]]) for row in rows] == order and batches[-1] == len(order)


OTHERS = [
    "SELECT id, votes + 1 FROM counted WHERE id IN {}",
    "SELECT id, id FROM counted WHERE id IN {}",
    "SELECT id, votes FROM counted WHERE id IN {} ORDER BY votes, id",
    "SELECT id, votes FROM counted WHERE id IN {} LIMIT 50",
    "SELECT DISTINCT author FROM counted WHERE id IN {}",
    "SELECT id, votes FROM counted WHERE id IN {} AND author > 1",
    "SELECT id, votes FROM counted WHERE author > 1 AND id IN {}",
    "SELECT COUNT(*) FROM stories WHERE id IN {}",
    "SELECT id FROM stories WHERE id NOT IN {}",
    "SELECT number, story FROM votes WHERE story IN {}",
    "SELECT id FROM stories WHERE title = '{}' OR id = 3",
    "SELECT id FROM stories WHERE id IN (5, 6) OR id IN {}",
]


@pytest.mark.parametrize("sql", OTHERS)
def test_what_is_not_made_at_once_is_right(client: Client, batches: list[int], sql: str) -> None:
    for numbers in (SHUFFLED, SHUFFLED[:100], SHUFFLED[100:200]):
        payload = text(sql.format(listed(*numbers)))
        for _ in range(WARM):
            client.executed(payload)
        for _ in range(3):
            assert client.run(payload) == client.executed(payload)
    assert not batches


def test_lists_in_comments_are_no_lists(client: Client) -> None:
    """What stands in the last brackets is then not what is asked for."""
    numbers = [SHUFFLED[:100], SHUFFLED[100:200]]
    expected = [client.same(text(COUNTED.format(listed(*each)))) for each in numbers]
    for comment in (" /* {} */", " -- {}", " # {}"):
        for asked, inside in ((0, 0), (0, 1), (1, 0), (1, 1)):
            payload = text(COUNTED.format(listed(*numbers[asked])) + comment.format(listed(*numbers[inside])))
            for _ in range(WARM):
                client.executed(payload)
            for _ in range(3):
                client.run(payload)
                assert client.rows == expected[asked]


def test_lists_that_are_no_sql_are_errors(client: Client) -> None:
    numbers = SHUFFLED[:100]
    client.same(text(COUNTED.format(listed(*numbers))))
    for fault in (f"{listed(*numbers)[:-1]},)", f"({numbers[0]},, {listed(*numbers)[1:]}", f"{listed(*numbers)})"):
        with pytest.raises(Exception, match="1064"):
            client.run(text(COUNTED.format(fault)))
    for odd in ("18446744073709551615", "-1", "1.0", "'1'", "NULL", "0x01", "1e0", "1 + 1"):
        payload = text(COUNTED.format(f"({odd}, {listed(*numbers)[1:]}"))
        client.run(payload)
        rows = sorted(client.rows)
        client.executed(payload)
        assert sorted(client.rows) == rows


def test_texts_longer_than_250_bytes_are_sent(client: Client, batches: list[int]) -> None:
    wanted = text(COUNTED.format(listed(*range(1, 200))))
    client.same(wanted)
    for length in (251, 255, 256, 300):
        client.query(f"UPDATE stories SET title = REPEAT('z', {length}) WHERE id = 77")
        batches.clear()
        client.same(wanted)
        assert not batches
    client.query("UPDATE stories SET title = REPEAT('z', 250) WHERE id = 77")
    client.same(wanted)
    assert batches


def test_each_write_is_seen_at_once(server: ServerThread, client: Client, batches: list[int]) -> None:
    wanted = text(COUNTED.format(listed(*range(1, 150))))
    client.same(wanted)
    choices = random.Random(8)
    with Client(server) as other:
        other.query("USE lists")
        other.same(wanted)
        for step in range(60):
            number = choices.randint(1, 150)
            match choices.randrange(4):
                case 0:
                    client.query(f"INSERT INTO votes (story) VALUES ({number})")
                case 1:
                    client.query(f"DELETE FROM votes WHERE story = {number} LIMIT 1")
                case 2:
                    client.query(f"UPDATE stories SET author = NULL, title = '{step}' WHERE id = {number}")
                case _:
                    client.query(f"REPLACE INTO stories VALUES {story(number)}")
            assert client.run(wanted) == other.run(wanted) == client.executed(wanted)
    assert len(batches) > 30


def test_a_key_that_is_not_there_yet_is_asked_for(client: Client, batches: list[int]) -> None:
    client.same(text(COUNTED.format(listed(*range(1, 129)))))
    assert batches
    batches.clear()
    payload = text(COUNTED.format(listed(*range(101, 229))))
    assert not client.is_answered_at_once(payload)
    assert len(client.rows) == 128 and not batches
    assert client.is_answered_at_once(payload) and client.run(payload) == client.executed(payload) and batches


def test_a_transaction_sees_its_own_writes(client: Client) -> None:
    wanted = text(COUNTED.format(listed(*range(1, 101))))
    before = client.same(wanted)
    client.query("BEGIN")
    assert client.is_answered_at_once(wanted) and client.end_status & 1
    client.query("UPDATE stories SET title = 'mine' WHERE id = 50")
    assert not client.is_answered_at_once(wanted) and client.rows != before
    client.query("ROLLBACK")
    assert client.is_answered_at_once(wanted) and client.rows == before


def test_character_sets_of_results_are_kept(client: Client, batches: list[int]) -> None:
    wanted = text(COUNTED.format(listed(*range(1, 101))))
    expected = client.same(wanted)
    for names, is_at_once in (("latin1", False), ("utf8mb4", True), ("binary", True)):
        client.query(f"SET NAMES {names}")
        batches.clear()
        rows = client.same(wanted)
        assert (rows == expected, bool(batches)) == (is_at_once, is_at_once)


def test_a_privilege_taken_away_and_a_changed_table_are_noticed(server: ServerThread, client: Client) -> None:
    client.query("DROP USER IF EXISTS reader")
    client.query("CREATE USER reader")
    client.query("GRANT SELECT ON lists.counted TO reader")
    wanted = text("SELECT id, votes FROM lists.counted WHERE id IN " + listed(*range(1, 101)))
    with Client(server, user=b"reader") as reader:
        expected = reader.same(wanted)
        client.query("REVOKE SELECT ON lists.counted FROM reader")
        with pytest.raises(Exception, match="1142"):
            reader.run(wanted)
        client.query("GRANT SELECT ON lists.counted TO reader")
        assert reader.same(wanted) == expected
    client.query("ALTER TABLE stories ADD COLUMN other INT DEFAULT 7 FIRST")
    assert client.run(wanted) == client.executed(wanted) and client.same(wanted) == expected
    client.query("DROP USER reader")


def test_a_session_is_left_as_after_executing(client: Client) -> None:
    wanted = text(COUNTED.format(listed(*range(350, 450))))
    client.same(wanted)
    assert client.is_answered_at_once(wanted)
    assert client.query("SELECT FOUND_ROWS(), ROW_COUNT(), @@warning_count") == [b"\x0251\x02-1\x010"]


def test_clients_that_may_send_attributes_get_the_same(server: ServerThread, client: Client, batches: list[int]) -> None:
    with Client(server, DEPRECATE_EOF | QUERY_ATTRIBUTES) as other:
        other.query(b"\0\1USE lists")
        payload = b"\x03\0\1" + COUNTED.format(listed(*range(1, 101))).encode()
        assert len(other.same(payload)) == 100 and batches


@pytest.mark.parametrize("capabilities", [PLAIN, DEPRECATE_EOF])
@pytest.mark.parametrize("sql", QUERIES)
def test_prepared_lists_are_the_same_both_ways(
    server: ServerThread, client: Client, batches: list[int], sql: str, capabilities: int
) -> None:
    with Client(server, capabilities) as other:
        other.query("USE lists")
        statement = other.prepare(sql.format(f"({', '.join(['?'] * 300)})"))
        for numbers in (SHUFFLED[:300], SHUFFLED[300:0:-1], SHUFFLED[:150] * 2, range(1000, 1300)):
            rows = other.same(execute(statement, *numbers))
            assert batches[-1:] == [len(rows)]
        some = [*SHUFFLED[:299], None]
        for types in (True, False):
            payload = execute(statement, *some, types=types)
            assert other.run(payload) == other.executed(payload)


def test_lists_on_several_lines_are_made_at_once(client: Client, batches: list[int]) -> None:
    wanted = text(COUNTED.format(listed(*SHUFFLED[:100], between=",\n  ")))
    assert client.same(wanted) and batches


def test_an_answer_stands_until_its_view_changes(server: ServerThread, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    stood: list[bytes] = []
    answer = Standing.answer

    def noting(self: Standing, parameters: object) -> Any:
        found = answer(self, parameters)
        stood.append(found[0])
        return found

    monkeypatch.setattr(Standing, "answer", noting)
    monkeypatch.setattr("mysql_adapter.shortcuts.standing_answers.STANDS_S", 60.0)
    for numbers in (range(1, 20), range(1, 150)):  # packets that are kept, and packets that are made at once
        wanted, others = text(COUNTED.format(listed(*numbers))), text(COUNTED.format(listed(*(number + 1 for number in numbers))))
        client.same(wanted)
        client.same(others)
        with Client(server) as other:
            other.query("USE lists")
            for step in range(10):
                client.query(f"INSERT INTO votes (story) VALUES ({step + 2})")
                expected = client.executed(wanted)
                assert client.run(wanted) == expected  # it is looked up, and kept
                stood.clear()
                assert client.run(wanted) == other.run(wanted) == expected
                assert client.run(others) == client.executed(others)
                assert stood == [expected] * 2
    client.query("ALTER TABLE stories DROP COLUMN big")
    client.same(wanted)
    client.query("DELETE FROM stories WHERE id = 3")
    assert client.run(wanted) == client.executed(wanted)
