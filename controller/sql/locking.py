"""The locking clauses of a SELECT: FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from controller.catalog import Catalog
from dataflow.errors import Condition, InvalidStatement

WAIT, NOWAIT, SKIP = "wait", "nowait", "skip"
"""What to do about a row that another transaction has locked."""


@dataclass(frozen=True, slots=True)
class Locking:
    """`tables` are the ids of those that OF names; None for all tables of the query."""

    shared: bool = False
    waiting: str = WAIT
    tables: frozenset[int] | None = None


EXCLUSIVE = Locking()


def locking_of(tree: Any, catalog: Catalog, database: str | None) -> tuple[Locking, ...]:
    """Those of the query itself, and those of branches and derived tables, which are about their own tables."""
    found = [_locking(lock, tree, catalog, database) for lock in tree.args.get("locks") or ()]
    for block in tree.find_all(exp.Select) if tree.find(exp.Lock) is not None else ():
        for lock in block.args.get("locks") or () if block is not tree else ():
            inner = _locking(lock, block, catalog, database)
            own = {catalog.names.get((each.text("db") or database or "", each.name)) for each in block.find_all(exp.Table)}
            tables = inner.tables if inner.tables is not None or None in own else frozenset(each for each in own if each is not None)
            found.append(replace(inner, tables=tables))
    return tuple(found)


def _locking(lock: exp.Lock, tree: Any, catalog: Catalog, database: str | None) -> Locking:
    wait = lock.args.get("wait")
    waiting = WAIT if wait is None else NOWAIT if wait is True else SKIP
    tables: set[int] | None = set() if lock.expressions else None
    for named in lock.expressions:
        source = next((each for each in tree.find_all(exp.Table) if each.alias_or_name == named.name and each is not named), None)
        if source is None:
            raise InvalidStatement(Condition.LOCKING_UNKNOWN_TABLE, named.name)
        table_id = catalog.names.get((source.text("db") or database or "", source.name))
        if table_id is None or tables is None:
            tables = None  # a view: whatever it is made of
        else:
            tables.add(table_id)
    return Locking(not lock.args.get("update"), waiting, None if tables is None else frozenset(tables))
