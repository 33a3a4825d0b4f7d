"""`millrace verify`: compares each maintained view with its base tables, at one epoch a view, and reports every difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pymysql

from backend.network.server_address import ServerAddress
from backend.spark.scanning import ask


def verify(address: ServerAddress, wanted: Sequence[str], sample: int, tell: Callable[[str], None]) -> int:
    """The number of keys that differ. `wanted` are names of named views or of maintained ones; all if there are none."""
    different = 0
    with address.connect() as connection:
        for name, definition, named in _views(connection, wanted):
            try:
                rows = ask(connection, "verify_view", name, sample)
            except pymysql.err.Error as error:
                if "not maintained" not in str(error):  # it has gone since
                    raise
                continue
            epoch, keys, compared, unchecked, engine, *_ = rows[0]
            found = [row[5:] for row in rows if row[5] is not None]
            of = f" of {keys:,}" if compared < keys - unchecked else ""
            different += len(found)
            without = f", {unchecked:,} keys without rows left out" if unchecked else ""
            tell(f"{named or name}: {compared:,}{of} keys as of epoch {epoch} by {engine}{without}: {f'{len(found)} differ' if found else 'all right'}")
            for key, maintained, evaluated in found:
                tell(f"  key {key}\n    maintained {maintained}\n    evaluated  {evaluated}\n    plan       {definition}")
    return different


def _views(connection: Any, wanted: Sequence[str]) -> list[tuple[str, str, str | None]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT name, definition, named_views FROM millrace.views WHERE state <> 'set aside'")
        views = list(cursor.fetchall())
    if not wanted:
        return views
    found = [each for each in views if each[0] in wanted or any(_is_named(name, each[2] or "") for name in wanted)]
    for name in wanted:
        if not any(each[0] == name or _is_named(name, each[2] or "") for each in found):
            raise ValueError(f"view {name} is not maintained")
    return found


def _is_named(name: str, named: str) -> bool:
    names = named.split(", ")
    return name in names or name in [each.rpartition(".")[2] for each in names]
