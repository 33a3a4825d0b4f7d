"""Writes dataflow/values/temporal/locales.json from MariaDB: the names of months and days in each of its locales.

Run it with `python -m tests.unit.dataflow.locale_names`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pymysql

import dataflow.values.temporal
from tests.mariadb import MariaDB

OUTPUT = Path(dataflow.values.temporal.__file__).parent / "locales.json"
MONDAY = "2001-01-01"


def names(cursor: Any) -> list[list[str]]:
    """Months, their short names, days from Monday on, their short names."""
    months = [f"2001-{month:02}-01" for month in range(1, 13)]
    days = [f"2001-01-{day:02}" for day in range(1, 8)]
    found = []
    for dates, letter in ((months, "M"), (months, "b"), (days, "W"), (days, "a")):
        cursor.execute("SELECT " + ", ".join([f"DATE_FORMAT('{date}', '%%{letter}')" for date in dates]), ())
        found.append(list(cursor.fetchone()))
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, MariaDB(Path(folder)) as server, server.connect() as connection:
        cursor = connection.cursor()
        locales: dict[str, list[list[str]]] = {}
        for number in range(1000):
            try:
                cursor.execute(f"SET lc_time_names = {number}")
            except pymysql.err.MySQLError:
                break
            cursor.execute("SELECT @@lc_time_names")
            (name,) = cursor.fetchone()
            locales[name] = names(cursor)
        OUTPUT.write_text(json.dumps(locales, ensure_ascii=False, separators=(",", ":")) + "\n")
        print(len(locales), OUTPUT.stat().st_size)


if __name__ == "__main__":
    main()
