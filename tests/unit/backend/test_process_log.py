"""Logs stay short, and keep secrets out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backend.processes import process_log
from backend.processes.process_log import FILES_KEPT, shorten_output, without_secrets

CHATTY = """
import logging, sys
from pathlib import Path
from backend.processes import process_log
process_log.FILE_BYTES_MAX = 10_000
process_log.configure_logging(Path(sys.argv[1]))
for number in range(5_000):
    logging.getLogger("chatty").warning("line %d", number)
"""


def test_a_process_keeps_the_newest_of_its_log(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "chatty.log"
    subprocess.run([sys.executable, "-c", CHATTY, str(path)], check=True)
    files = list(path.parent.iterdir())
    assert len(files) == FILES_KEPT + 1
    assert sum(each.stat().st_size for each in files) <= (FILES_KEPT + 1) * 10_000
    assert path.read_text().endswith("chatty: line 4999\n")


def test_a_log_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "moved.log"
    program = """
import logging, os, sys
from pathlib import Path
from backend.processes import process_log
path = Path(sys.argv[1])
process_log.configure_logging(path)
logging.warning("first")
path.rename(path.with_name("kept"))
logging.warning("second")
"""
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    assert path.with_name("kept").read_text().endswith("root: first\n")
    assert path.read_text().endswith("root: second\n") and "first" not in path.read_text()


def test_output_that_somebody_appends_to_is_kept_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_log, "FILE_BYTES_MAX", 1_000)
    path = tmp_path / "child.out"
    with path.open("ab", buffering=0) as output:
        output.write(b"few\n")
        shorten_output(path)
        assert path.read_bytes() == b"few\n"
        for number in range(10):
            output.write(b"x" * 5_000 + b"%d\n" % number)
            shorten_output(path)
            output.write(b"after %d\n" % number)
            assert path.read_bytes() == b"after %d\n" % number
    kept = sorted(each.name for each in tmp_path.iterdir())
    assert kept == ["child.out", *(f"child.out.{number}" for number in range(1, FILES_KEPT + 1))]
    assert (tmp_path / "child.out.1").read_bytes().endswith(b"x9\n")
    assert all(each.stat().st_size <= 1_000 for each in tmp_path.iterdir())


def test_output_that_is_not_there_is_left_alone(tmp_path: Path) -> None:
    shorten_output(tmp_path / "none.out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("statement", "logged"),
    [
        ("CREATE USER a@b IDENTIFIED BY 'hunter2', c identified by 'hunter3'", "CREATE USER a@b IDENTIFIED <secret>"),
        ("set password for a =\n'hunter2'", "set password <secret>"),
        ("PREPARE s FROM 'ALTER USER a IDENTIFIED BY ''hunter2'''", "PREPARE s FROM 'ALTER USER a IDENTIFIED <secret>"),
        ("SELECT 1", "SELECT 1"),
    ],
)
def test_statements_are_logged_without_passwords(statement: str, logged: str) -> None:
    assert without_secrets(statement) == logged
