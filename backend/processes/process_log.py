"""The logs of a cluster's processes: how long they get, how many are kept, and what must not be in them.

A process writes its own log and begins a new file when that is full, or was moved away. What a child, Java or Python, writes to its standard output
goes to a file that the supervisor keeps short: it moves the end of it aside and empties the file, which is appended to.
So there are at most `FILES_KEPT` + 1 files of `FILE_BYTES_MAX` of each, and a little more while a child writes fast.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

from backend.network.origin import current

FILE_BYTES_MAX = 10_000_000
FILES_KEPT = 3
OUTPUT_CHECK_S = 5.0

FORMATS = ("text", "json")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_SECRET = re.compile(r"(IDENTIFIED|PASSWORD).*", re.IGNORECASE | re.DOTALL)


class _LogHandler(RotatingFileHandler):
    """Notices that its file was moved away, as `WatchedFileHandler` does."""

    def emit(self, record: logging.LogRecord) -> None:
        if self.stream is not None and not self._is_in_place(self.stream.fileno()):
            self.stream.close()
            self.stream = self._open()
        super().emit(record)

    def _is_in_place(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.stat(self.baseFilename), os.fstat(descriptor))
        except FileNotFoundError:
            return False


class JsonFormatter(logging.Formatter):
    """A line is a JSON object: time, level, process, logger, message, and what is known of `statement`, `trace` and `exception`."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": time, "level": record.levelname, "process": self._process, "logger": record.name, "message": record.getMessage()}
        origin = current.get()
        if origin is not None:
            line["statement"] = origin.statement
            if origin.trace:
                line["trace"] = origin.trace.split("-")[1]
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def first_place(path: Path) -> Path:
    """Where what is in a file is moved to: those that were moved before make room, the oldest is gone."""
    for number in range(FILES_KEPT, 1, -1):
        older = path.with_name(f"{path.name}.{number - 1}")
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number}"))
    return path.with_name(f"{path.name}.1")


def configure_logging(path: Path, log_format: str = "text") -> None:
    """All that this process logs goes there, as lines of text or of JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = _LogHandler(path, maxBytes=FILE_BYTES_MAX, backupCount=FILES_KEPT, errors="backslashreplace")
    handler.setFormatter(JsonFormatter(path.stem) if log_format == "json" else logging.Formatter(_FORMAT))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
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
            with first_place(path).open("wb") as moved:
                shutil.copyfileobj(output, moved)  # in pieces: a large buffer would stay with the process
            output.truncate(0)
    except OSError as error:
        logging.getLogger(__name__).warning("%s cannot be shortened: %s", path, error)


def without_secrets(statement: str) -> str:
    """A statement as it may be logged: what follows IDENTIFIED or PASSWORD, in whatever it is, is left out."""
    return _SECRET.sub(r"\1 <secret>", statement)
