"""Temporary tables of adapters that were killed: their successors drop them.

A session's name begins with the number of its adapter and a mark of the process, so whoever
takes an adapter's place knows whose sessions are all gone.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from controller.catalog import Catalog
from controller.sql.definitions.temporary import PREFIX, temporary_tables
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.errors import MillraceError
from mysql_adapter.database import DatabaseFace

log = logging.getLogger(__name__)


def drop_statement(catalog: Catalog, owner: str) -> str | None:
    """What drops all temporary tables of a session, if it has any."""
    names = [f"`{each.database}`.`{each.name}`" for each in temporary_tables(catalog, owner).values()]
    return f"DROP TEMPORARY TABLE IF EXISTS {', '.join(names)}" if names else None


def abandoned(catalog: Catalog, process: str, adapter_count: int) -> set[str]:
    """The sessions that `process` has to tidy up after: of its predecessors, and of adapters there are no more."""
    own = process.split("-")[0]
    found = set()
    for table in catalog.tables.values():
        if table.name.startswith(PREFIX):
            number, mark, connection = table.name[len(PREFIX) :].split("-", 3)[:3]
            is_ours = number == own or (own == "0" and int(number) >= adapter_count)
            if is_ours and f"{number}-{mark}" != process:
                found.add(f"{number}-{mark}-{connection}")
    return found


async def drop_abandoned(database: DatabaseFace, process: str, adapter_count: int) -> None:
    try:
        await database.refresh_catalog()
        for owner in sorted(abandoned(database.catalog, process, adapter_count)):
            sql = drop_statement(database.catalog, owner)
            if sql is not None:
                await database.define(sql, None, replace(DEFAULT_SETTINGS, owner=owner))
    except MillraceError as error:
        log.warning("temporary tables of an adapter that was killed are left: %s", error)
