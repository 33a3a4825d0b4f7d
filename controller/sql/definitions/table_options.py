"""Options after CREATE TABLE (…) and within ALTER TABLE: most are read and forgotten."""

from __future__ import annotations

from dataclasses import dataclass, replace

from controller.sql.definitions.column_types import column_collation
from controller.sql.definitions.engines import read_engine
from controller.sql.definitions.partition_text import read_partitioning
from controller.sql.text.cursor import TokenReader
from dataflow.schema import Partitioning, Table

_KEPT = frozenset(
    """ROW_FORMAT KEY_BLOCK_SIZE STATS_PERSISTENT STATS_AUTO_RECALC STATS_SAMPLE_PAGES MAX_ROWS MIN_ROWS AVG_ROW_LENGTH
    CHECKSUM DELAY_KEY_WRITE PACK_KEYS""".split()  # noqa: SIM905
)
_FORGOTTEN = frozenset(
    """COMPRESSION ENCRYPTION CONNECTION INSERT_METHOD PASSWORD PAGE_CHECKSUM TRANSACTIONAL AUTOEXTEND_SIZE
    ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE SECONDARY_ENGINE TABLESPACE PAGE_COMPRESSED""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class TableOptions:
    charset: str | None = None
    collation: str | None = None
    engine: str | None = None
    auto_increment: int | None = None
    comment: str | None = None
    kept: tuple[tuple[str, str], ...] = ()
    partitioning: Partitioning | None = None

    def apply(self, table: Table) -> Table:
        options = dict(table.options)
        options.update(self.kept)
        collation = table.collation
        if self.charset is not None or self.collation is not None:
            collation = column_collation(self.charset, self.collation, table.collation)
        return replace(
            table,
            collation=collation,
            engine=self.engine or table.engine,
            auto_increment_start=max(1, self.auto_increment or table.auto_increment_start),
            comment=table.comment if self.comment is None else self.comment,
            options=tuple(options.items()),
            partitioning=self.partitioning or table.partitioning,
        )


def read_option(cursor: TokenReader, options: TableOptions) -> TableOptions | None:
    """`options` with the one that comes next, or None if none does."""
    cursor.accept("DEFAULT")
    word = cursor.token.upper
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
        cursor.accept("=")
        return replace(options, charset=_or_none(cursor.word_or_string()))
    if word in ("DATA", "INDEX") and cursor.accept(word, "DIRECTORY"):
        cursor.accept("=")
        cursor.string()
        return options
    if word == "UNION" and cursor.accept("UNION"):
        cursor.accept("=")
        cursor.parenthesised()
        return options
    if word not in {"COLLATE", "ENGINE", "AUTO_INCREMENT", "COMMENT", *_KEPT, *_FORGOTTEN}:
        return None
    cursor.next()
    cursor.accept("=")
    match word:
        case "COLLATE":
            return replace(options, collation=_or_none(cursor.word_or_string()))
        case "ENGINE":
            return replace(options, engine=read_engine(cursor))
        case "AUTO_INCREMENT":
            return replace(options, auto_increment=cursor.integer())
        case "COMMENT":
            return replace(options, comment=cursor.string())
    value = cursor.word_or_string()
    return replace(options, kept=(*options.kept, (word, value.upper()))) if word in _KEPT else options


def read_options(cursor: TokenReader) -> TableOptions:
    """All options up to the end, and PARTITION BY …"""
    options = TableOptions()
    while not cursor.at_end:
        cursor.accept(",")
        found = read_option(cursor, options)
        if found is None:
            if cursor.at("PARTITION", "BY"):
                return replace(options, partitioning=read_partitioning(cursor))
            raise cursor.error()
        options = found
    return options


def _or_none(name: str) -> str | None:
    return None if name.upper() == "DEFAULT" else name
