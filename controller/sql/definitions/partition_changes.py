"""ALTER TABLE … ADD, DROP, TRUNCATE, COALESCE, REORGANIZE and REBUILD PARTITION.

Rows are stored as in any table, so no row moves. The rows of partitions that are dropped or truncated are left out of a copy of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controller.sql.definitions.partition_rules import condition_of, increases
from controller.sql.definitions.partition_text import read_partitioning, read_partitions
from controller.sql.definitions.stored_expressions import bind
from controller.sql.settings import Settings
from controller.sql.text.cursor import TokenReader
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Expression
from dataflow.schema import Partition, Partitioning, Table

_VERBS = ("ADD", "DROP", "TRUNCATE", "COALESCE", "REORGANIZE", "REBUILD", "EXCHANGE", "DISCARD", "IMPORT")
Change = tuple[Partitioning, Expression | None]


def at_partition_change(cursor: TokenReader) -> bool:
    return any(cursor.at(verb, "PARTITION") for verb in _VERBS)


def read_repartitioning(cursor: TokenReader, table: Table) -> Partitioning | None:
    """PARTITION BY … or REMOVE PARTITIONING."""
    if not cursor.accept("REMOVE", "PARTITIONING"):
        return read_partitioning(cursor)
    if table.partitioning is None:
        raise InvalidStatement(Condition.NOT_PARTITIONED)
    return None


def read_partition_change(cursor: TokenReader, table: Table, settings: Settings) -> Change:
    """The new partitioning, and what is true of the rows that go with the old one."""
    verb = cursor.next().upper
    cursor.next()
    found = table.partitioning
    if found is None:
        raise InvalidStatement(Condition.NOT_PARTITIONED)
    cursor.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    left_out = None
    match verb:
        case "ADD":
            found = _added(cursor, found)
        case "DROP":
            if found.method not in ("RANGE", "LIST"):
                raise InvalidStatement(Condition.NEEDS_RANGE_OR_LIST, "DROP")
            gone = _named(cursor, found, "DROP")
            kept = tuple([each for each in found.partitions if each not in gone])
            if not kept:
                raise InvalidStatement(Condition.CANT_DROP_ALL_PARTITIONS)
            left_out = bind(condition_of(found, gone), table, settings, "partition function")
            found = replace(found, partitions=kept, count=len(kept))
        case "TRUNCATE":
            gone = _named_or_all(cursor, found, table)
            left_out = bind(condition_of(_listed(found), gone), table, settings, "partition function")
        case "COALESCE":
            found = _coalesced(found, cursor.integer())
        case "REORGANIZE":
            found = _reorganized(cursor, found, settings)
        case "REBUILD":
            _named_or_all(cursor, found, table)
        case _:
            raise Unsupported(f"{verb} PARTITION")
    cursor.expect_end()
    return found, left_out


def _listed(found: Partitioning) -> Partitioning:
    """With a name for each partition, as MySQL gives them: p0, p1 …"""
    if found.partitions:
        return found
    return replace(found, partitions=tuple([Partition(f"p{number}") for number in range(found.count)]))


def _added(cursor: TokenReader, found: Partitioning) -> Partitioning:
    if cursor.accept("PARTITIONS"):
        if found.method in ("RANGE", "LIST"):
            raise InvalidStatement(Condition.PARTITIONS_NOT_DEFINED, found.method)
        count = cursor.integer()
        if not count:
            raise InvalidStatement(Condition.ADDS_NO_PARTITION)
        names = [Partition(f"p{found.count + number}") for number in range(count)] if found.partitions else []
        return replace(found, partitions=(*found.partitions, *names), count=found.count + count)
    new = read_partitions(cursor, found.method, bool(found.columns))
    if found.method in ("RANGE", "LIST"):
        _check_names([*found.partitions, *new])
        if found.method == "RANGE" and found.partitions[-1].values[0][0] == "MAXVALUE":
            raise InvalidStatement(Condition.MAXVALUE_NOT_LAST)
        partitions = (*found.partitions, *new)
    else:
        partitions = (*_listed(found).partitions, *new)
        _check_names(partitions)
    return replace(found, partitions=partitions, count=len(partitions))


def _check_names(partitions: Sequence[Partition]) -> None:
    names = [each.name.lower() for each in partitions]
    repeated = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if repeated is not None:
        raise InvalidStatement(Condition.REPEATED_PARTITION, repeated)


def _coalesced(found: Partitioning, count: int) -> Partitioning:
    if found.method in ("RANGE", "LIST"):
        raise InvalidStatement(Condition.COALESCE_NEEDS_HASH)
    if not count:
        raise InvalidStatement(Condition.COALESCES_NO_PARTITION)
    if count >= found.count:
        raise InvalidStatement(Condition.CANT_DROP_ALL_PARTITIONS)
    return replace(found, partitions=found.partitions[:-count], count=found.count - count)


def _reorganized(cursor: TokenReader, found: Partitioning, settings: Settings) -> Partitioning:
    if cursor.at_end:
        if found.method in ("RANGE", "LIST") or found.partitions:
            raise InvalidStatement(Condition.REORGANIZE_NEEDS_RANGE)
        return found
    old = _named(cursor, found, "REORGANIZE")
    cursor.expect("INTO")
    new = read_partitions(cursor, found.method, bool(found.columns))
    first = found.partitions.index(old[0])
    if found.partitions[first : first + len(old)] != old and found.method == "RANGE":
        raise InvalidStatement(Condition.REORGANIZED_NOT_CONSECUTIVE)
    kept = [each for each in found.partitions if each not in old]
    partitions = (*kept[:first], *new, *kept[first:])
    _check_names(partitions)
    if found.method == "RANGE" and not _covers(old[-1], new[-1], old[-1] is found.partitions[-1], settings):
        raise InvalidStatement(Condition.REORGANIZED_RANGE)
    return replace(found, partitions=partitions, count=len(partitions))


def _covers(old: Partition, new: Partition, may_extend: bool, settings: Settings) -> bool:
    """Whether what ends a range ends it there again, or further on."""
    return new.values == old.values or (may_extend and increases(old.values[0], new.values[0], settings))


def _named(cursor: TokenReader, found: Partitioning, verb: str) -> tuple[Partition, ...]:
    by_name = {each.name.lower(): each for each in _listed(found).partitions}
    names = [cursor.identifier().lower()]
    while cursor.accept(","):
        names.append(cursor.identifier().lower())
    if any(name not in by_name for name in names):
        raise InvalidStatement(Condition.UNKNOWN_PARTITION_TO_CHANGE, verb)
    return tuple([each for name, each in by_name.items() if name in names])


def check_partition_names(cursor: TokenReader, table: Table) -> None:
    """The partitions of a statement that looks at them."""
    if table.partitioning is None:
        raise InvalidStatement(Condition.NOT_PARTITIONED)
    _named_or_all(cursor, table.partitioning, table)


def _named_or_all(cursor: TokenReader, found: Partitioning, table: Table) -> tuple[Partition, ...]:
    listed = _listed(found)
    if cursor.accept("ALL"):
        return listed.partitions
    by_name = {each.name.lower(): each for each in listed.partitions}
    chosen = []
    while True:
        name = cursor.identifier()
        if name.lower() not in by_name:
            raise InvalidStatement(Condition.UNKNOWN_PARTITION, name, table.name)
        chosen.append(by_name[name.lower()])
        if not cursor.accept(","):
            return tuple(chosen)
