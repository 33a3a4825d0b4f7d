"""The load of Lobsters sends the statements of its pages, exactly, and tells their time from when they were due."""

from __future__ import annotations

import select
import time
from datetime import datetime
from itertools import islice
from random import Random
from typing import Any

import pymysql
import pytest

from apps.lobsters.load import Users, draw_arrivals
from apps.lobsters.packets import packet_end
from apps.lobsters.pages import Result, Statement, pages, run_page
from apps.lobsters.plain_connection import PlainConnection
from apps.lobsters.quick_connection import QuickConnection, Remembered
from apps.lobsters.requests import Request, requests
from apps.lobsters.site import build_site
from tests.mariadb import MariaDB

SCALE = 0.01


def asked(count: int) -> list[Request]:
    """Every kind of page, the rare ones first: no two of them ask for the same new short id."""
    drawn = requests(SCALE, 1, datetime(2018, 6, 1))
    first: dict[str, Request] = {}
    for page, request in islice(drawn, 20_000):
        first.setdefault(page, (page, request))
    return [*first.values(), *islice(drawn, count)]


def built(mariadb: MariaDB, database: str, variant: str) -> None:
    connection = PlainConnection("127.0.0.1", mariadb.port)
    list(build_site(connection, database, variant, SCALE, 0, True))
    connection.close()


@pytest.mark.parametrize("variant", ["baseline", "natural"])
@pytest.mark.parametrize("is_prepared", [True, False])
def test_exactly_the_statements_of_the_pages_are_sent(mariadb: MariaDB, variant: str, is_prepared: bool) -> None:
    known = pages(variant, True)
    names = f"lobsters_sent_{is_prepared:d}", f"lobsters_expected_{is_prepared:d}"
    names = names[0] + variant, names[1] + variant
    for name in names:
        built(mariadb, name, variant)
    expected: list[str] = []
    theirs = PlainConnection("127.0.0.1", mariadb.port, names[1])

    def execute(statement: Statement, values: list[Any]) -> Result:
        expected.append(statement.text(values, str))
        return theirs.execute(statement, values)

    wanted = asked(60)
    users = Users(known, lambda: QuickConnection("127.0.0.1", mariadb.port, names[0], is_prepared, Remembered()), 1)
    admin = pymysql.connect(host="127.0.0.1", port=mariadb.port, user="root", autocommit=True)
    with admin, admin.cursor() as cursor:
        cursor.execute("SELECT @@global.log_output")
        ((output,),) = cursor.fetchall()
        cursor.execute("SET GLOBAL log_output = 'TABLE'")
        cursor.execute("TRUNCATE TABLE mysql.general_log")
        cursor.execute("SELECT id FROM information_schema.processlist WHERE db = %s", (names[0],))
        ((thread,),) = cursor.fetchall()
        cursor.execute("SET GLOBAL general_log = 1")
        found = users.run([0.0] * len(wanted), wanted, time.monotonic(), 0.0)
        cursor.execute("SET GLOBAL general_log = 0")
        cursor.execute("SET GLOBAL log_output = %s", (output,))
        cursor.execute(
            "SELECT argument FROM mysql.general_log WHERE thread_id = %s AND command_type IN ('Query', 'Execute')",
            (thread,),
        )
        sent = [argument.decode() if isinstance(argument, bytes) else argument for (argument,) in cursor.fetchall()]
    assert found["errors"] == 0 and found["pages"] == len(wanted), found["first_errors"]
    for page, request in wanted:
        run_page(known[page], request, execute)
    assert list(map(_plain, sent)) == list(map(_plain, expected))


def _plain(text: str) -> str:
    """As the log writes it: a moment has its type, values that were prepared are quoted in another way."""
    return " ".join(text.replace("TIMESTAMP'", "'").replace("\\n", "\n").split())


def test_a_request_that_waits_for_a_connection_counts_from_its_arrival(mariadb: MariaDB) -> None:
    built(mariadb, "lobsters_waits", "natural")
    users = Users(pages("natural", True), lambda: QuickConnection("127.0.0.1", mariadb.port, "lobsters_waits", True, Remembered()), 1)
    wanted = [(page, request) for page, request in asked(200) if page == "story"][:50]
    found = users.run([0.001 * number for number in range(50)], wanted, time.monotonic() - 1.0, 0.0)
    assert found["pages"] == 50 and not found["failed_in_seconds"]
    [sojourns] = found["sojourns"].values()
    assert sum(sojourns[:200]) == 0, "all began a second late, and say so"
    assert sum(found["seconds"][0]) == 50


def test_arrivals_are_as_many_as_the_rate_says_and_in_order() -> None:
    arrivals = draw_arrivals(1000.0, 5.0, 3)
    assert abs(len(arrivals) - 5000) < 300 and arrivals == sorted(arrivals) and arrivals[-1] < 5.0


def test_answers_in_any_pieces_are_the_same(mariadb: MariaDB) -> None:
    """An answer that arrives in small pieces is read as one that arrives at once."""
    built(mariadb, "lobsters_pieces", "natural")
    known = {each.name: each for statements in pages("natural", True).values() for each in statements}
    connection = QuickConnection("127.0.0.1", mariadb.port, "lobsters_pieces", True, Remembered())
    plain = PlainConnection("127.0.0.1", mariadb.port, "lobsters_pieces")
    random = Random(1)
    asked_for: list[tuple[str, list[Any]]] = [("comments.ids", []), ("story.author", [1]), ("story.comments", [7]), ("story.by_slug", ["00000a"]), ("user.hat", [1])]
    for name, values in asked_for:
        for is_in_pieces in (False, True, True):
            statement = known[name]
            connection.send(statement, values)
            answer = None
            while answer is None:
                select.select([connection], [], [])
                answer = connection.received(random.randrange(1, 200) if is_in_pieces else 1 << 16)
            expected = plain.execute(statement, values)
            assert answer.row_count == expected.row_count
            if expected.row_count:
                for column in ("id", "user_id", "story_id"):
                    if column in expected.columns:
                        assert list(map(int, answer.values(column))) == expected.values(column)
                        assert answer.keys(column) == expected.keys(column)
    connection.close()
    plain.close()


def test_a_packet_whose_header_is_not_there_ends_beyond_the_data() -> None:
    assert packet_end(b"\x05\x00", 0) > 2 and packet_end(b"\x05\x00\x00\x01hello", 0) == 9
