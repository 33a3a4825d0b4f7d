"""The names of engines; all tables are stored alike."""

from __future__ import annotations

from controller.sql.text.cursor import TokenReader
from dataflow.errors import Condition, InvalidStatement

_ENGINES = {
    name.lower(): name
    for name in ("InnoDB", "MyISAM", "MEMORY", "CSV", "ARCHIVE", "BLACKHOLE", "MRG_MYISAM", "FEDERATED", "ndbcluster")
} | {"heap": "MEMORY", "merge": "MRG_MYISAM", "ndb": "ndbcluster", **dict.fromkeys(("innobase", "aria", "maria", "rocksdb", "tokudb"), "InnoDB")}


def read_engine(cursor: TokenReader) -> str:
    """The engine that SHOW CREATE TABLE tells."""
    name = cursor.word_or_string()
    known = _ENGINES.get(name.lower())
    if known is None and cursor.refuses_unknown_engines:
        raise InvalidStatement(Condition.UNKNOWN_ENGINE, name)
    return known or "InnoDB"
