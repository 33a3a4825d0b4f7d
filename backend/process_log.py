"""The logs of a cluster's processes: how long they get, how many are kept, and what must not be in them.

A process writes its own log and begins a new file when that is full. What a child, Java or Python, writes to its standard output
goes to a file that the supervisor keeps short: it moves the end of it aside and empties the file, which is appended to.
So there are at most `FILES_KEPT` + 1 files of `FILE_BYTES_MAX` of each, and a little more while a child writes fast.
"""

from __future__ import annotations

import logging
import re
import shutil
from logging.handlers import RotatingFileHandler
from pathlib import Path

FILE_BYTES_MAX = 10_000_000
FILES_KEPT = 3
OUTPUT_CHECK_S = 5.0

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_SECRET = re.compile(r"(IDENTIFIED|PASSWORD).*", re.IGNORECASE | re.DOTALL)


def configure_logging(path: Path) -> None:
    """All that this process logs goes there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(path, maxBytes=FILE_BYTES_MAX, backupCount=FILES_KEPT, errors="backslashreplace")
    logging.basicConfig(handlers=[handler], level=logging.INFO, format=_FORMAT, force=True)
    for chatty in ("kazoo", "py4j"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def shorten_output(path: Path) -> None:
    """Move the end of a file that others append to aside if it is too long. What they write meanwhile may be lost."""
    try:
        with path.open("r+b") as output:
            size = output.seek(0, 2)
            if size <= FILE_BYTES_MAX:
                return
            output.seek(-FILE_BYTES_MAX, 2)
            for number in range(FILES_KEPT, 1, -1):
                older = path.with_name(f"{path.name}.{number - 1}")
                if older.exists():
                    older.replace(path.with_name(f"{path.name}.{number}"))
            with path.with_name(f"{path.name}.1").open("wb") as moved:
                shutil.copyfileobj(output, moved)  # in pieces: a large buffer would stay with the process
            output.truncate(0)
    except OSError as error:
        logging.getLogger(__name__).warning("%s cannot be shortened: %s", path, error)


def without_secrets(statement: str) -> str:
    """A statement as it may be logged: what follows IDENTIFIED or PASSWORD, in whatever it is, is left out."""
    return _SECRET.sub(r"\1 <secret>", statement)
