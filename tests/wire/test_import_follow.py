"""`millrace import --follow`: what the source does after its snapshot is done here, too, once."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from backend.imports.follow import Following, check_binlog
from backend.imports.journal import Journal
from backend.imports.live import LiveImport
from backend.imports.mysql_source import Binlog, LiveSource
from backend.imports.progress import ImportMeter
from backend.imports.server import CannotImport, rows_of
from backend.network.server_address import ServerAddress
from tests.mariadb import MariaDB
from tests.wire.importing import connect, contents
from tests.wire.server import ServerThread

TABLES = (
    "CREATE TABLE parents (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) UNIQUE)",
    """CREATE TABLE kinds (id INT PRIMARY KEY, parent INT, fl FLOAT, de DECIMAL(20,5), bt BIT(9), ye YEAR, da DATE, dt DATETIME(6), ts TIMESTAMP NULL,
    tm TIME(3), tx TEXT, bl BLOB, bn BINARY(4), en ENUM('x','y'), se SET('p','q'), js JSON, bi BIGINT UNSIGNED, ge INT AS (id * 2) STORED,
    FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE)""",
    "CREATE TABLE keyless (n INT, t VARCHAR(20))",
    "INSERT INTO parents (name) VALUES ('a'), ('b')",
    "INSERT INTO kinds (id, parent) VALUES (1, 1), (2, 2)",
    "INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (2, NULL)",
)
CHANGES = (
    "INSERT INTO parents (name) VALUES ('c'), ('ä😀')",
    """INSERT INTO kinds (id, parent, fl, de, bt, ye, da, dt, ts, tm, tx, bl, bn, en, se, js, bi) VALUES (3, 3, 0.1, -1.5, b'100000001', 2020, '2020-02-29',
    '2020-02-29 01:02:03.000456', '2020-01-01 00:00:01', '-12:00:00.5', 'it''s \\\\ ä', x'ff0027', 'ab', 'y', 'p,q', '{"a": 1}', 18446744073709551615)""",
    "UPDATE kinds SET tx = 'changed', se = '', ye = 0 WHERE id = 1",
    "UPDATE kinds SET id = 20 WHERE id = 2",
    "DELETE FROM parents WHERE id = 1",
    "INSERT INTO keyless VALUES (3, 'y')",
    "DELETE FROM keyless WHERE n = 1 LIMIT 1",
    "UPDATE keyless SET t = 'z' WHERE n = 2",
)


@pytest.fixture(scope="module")
def logging() -> Iterator[MariaDB]:
    options = ("--log-bin=bin", "--server-id=1", "--binlog-format=ROW", "--binlog-row-metadata=FULL")
    with MariaDB(Path(tempfile.mkdtemp(prefix="millrace-binlog-")), *options) as server:
        yield server


class Follower:
    """An import, and what follows it, as the command runs them."""

    def __init__(self, source: ServerAddress, target: ServerAddress) -> None:
        self.source = LiveSource(source)
        self.journal = Journal(f"follow {source.database}")
        self._target = target
        check_binlog(self.source)
        self._meter = ImportMeter(Console(quiet=True))
        self.plan = LiveImport(self.source, target, self.journal, 2, 2, self._meter).run()
        self.changes = 0

    def follow(self) -> Following:
        def told(count: int) -> None:
            self.changes += count

        return Following(self.source, self._target, self.journal, self.plan, told)

    def catch_up(self) -> Binlog:
        stop = threading.Event()
        stop.set()
        return self.follow().run(stop)


@pytest.fixture
def following(logging: MariaDB, millrace: ServerThread) -> Iterator[tuple[Any, Any, Follower]]:
    name = logging.fresh_database()
    with logging.connect(name) as source, connect(millrace.port) as target:
        for statement in TABLES:
            rows_of(source, statement)
        yield source, target, Follower(ServerAddress("127.0.0.1", logging.port, "root", "", name), ServerAddress("127.0.0.1", millrace.port, "root", "", name))
        rows_of(target, f"DROP DATABASE {name}")


def test_changes_of_every_kind_are_followed(following: tuple[Any, Any, Follower]) -> None:
    source, target, follower = following
    for statement in CHANGES:
        rows_of(source, statement)
    place = follower.catch_up()
    assert follower.changes == 9
    name = follower.source.database
    expected = contents(source, name)
    assert [row[0] for row in expected["kinds"]] == [20, 3] and contents(target, name) == expected
    assert follower.catch_up() == place and follower.changes == 9, "nothing is applied twice"
    rows_of(source, "BEGIN")
    rows_of(source, "INSERT INTO keyless SELECT seq, 'many' FROM seq_1_to_1200")
    rows_of(source, "UPDATE parents SET name = 'renamed' WHERE id = 2")
    rows_of(source, "COMMIT")
    assert place.is_before(follower.catch_up())
    assert contents(target, name) == contents(source, name)


def test_it_follows_while_the_source_is_written_to_and_ends_when_it_has_caught_up(following: tuple[Any, Any, Follower]) -> None:
    source, target, follower = following
    stop = threading.Event()
    ended: list[Binlog] = []
    thread = threading.Thread(target=lambda: ended.append(follower.follow().run(stop)))
    thread.start()
    for number in range(50):
        rows_of(source, f"INSERT INTO keyless VALUES ({number}, 'while')")
    stop.set()
    thread.join(60)
    assert ended and contents(target, follower.source.database) == contents(source, follower.source.database)


def test_a_change_of_the_schema_ends_it_with_the_statement(following: tuple[Any, Any, Follower]) -> None:
    source, _, follower = following
    rows_of(source, "INSERT INTO keyless VALUES (9, 'before')")
    rows_of(source, "ALTER TABLE keyless ADD COLUMN more INT")
    with pytest.raises(CannotImport, match="ALTER TABLE keyless ADD COLUMN more"):
        follower.catch_up()


def test_a_source_without_row_changes_is_refused(mariadb: MariaDB) -> None:
    with pytest.raises(CannotImport, match="log_bin = ON"):
        check_binlog(LiveSource(ServerAddress("127.0.0.1", mariadb.port, "root", "", mariadb.fresh_database())))
