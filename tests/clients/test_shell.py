"""The mariadb shell shows the same, whatever way it is asked to show it."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.clients.test_dumps import client
from tests.clients.test_languages import fill
from tests.mariadb import MariaDB
from tests.serving import MillraceServer

SCRIPT = r"""
SELECT * FROM everything ORDER BY id;
SELECT id, words, bytes, moment6 FROM everything WHERE id < 3 ORDER BY id\G
INSERT INTO parents (name) VALUES ('ann'), ('bob');
INSERT IGNORE INTO parents (name) VALUES ('ann');
UPDATE parents SET amount = 5;
BEGIN; DELETE FROM parents; ROLLBACK;
SELECT COUNT(*) FROM parents;
DELIMITER //
SELECT 1; SELECT 2//
DELIMITER ;
SET @a = 3;
SELECT @a + 1 AS four, NULL AS nothing, 'it''s' AS quoted;
INSERT INTO parents (name) VALUES ('ann');
SELECT * FROM nowhere;
SELEC 1;
USE nowhere;
SHOW TABLES;
SELECT id FROM many;
"""


def output(server: MariaDB | MillraceServer, *options: str) -> tuple[list[str], list[str]]:
    """What it prints, and the errors it tells."""
    command = client(server, "mariadb", "--force", "--no-auto-rehash", *options, "shell")
    done = subprocess.run(command, input=SCRIPT.encode(), capture_output=True, timeout=120)
    text = re.sub(r"\(?\d+\.\d+ sec\)?", "", done.stdout.decode("utf-8", "backslashreplace"))
    # MySQL 8 names a key with its table.
    errors = re.findall(r"ERROR \d+ \(\w+\) at line \d+", done.stderr.decode())
    return text.replace("'parents.name'", "'name'").splitlines(), errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [["--table", "-vvv", "--show-warnings"], ["--batch"], ["--xml"], ["--html"], ["--column-type-info=0", "--quick", "--raw"], ["--compress", "--vertical"]],
    ids=" ".join,
)
def test_the_shell_shows_what_it_shows_of_mariadb(options: list[str], millrace: MillraceServer, mariadb: MariaDB) -> None:
    for server in (millrace, mariadb):
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("DROP DATABASE IF EXISTS shell")
        fill(server, "shell")
    expected = output(mariadb, *options)
    assert len(expected[1]) == 4
    assert output(millrace, *options) == expected
