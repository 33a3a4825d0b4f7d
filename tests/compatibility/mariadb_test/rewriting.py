"""Statements as the two servers get them: the same, but for what would only show that they are two products."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.compatibility.mariadb_test.script import Pair

ENGINE = re.compile(r"\b(engine|type)\s*=?\s*(\"|')?(myisam|aria|maria|memory|heap)\b(\"|')?", re.IGNORECASE)
LOAD = re.compile(r"\b(LOAD\s+DATA\s+)(?:LOW_PRIORITY\s+|CONCURRENT\s+)?(?:LOCAL\s+)?INFILE\s+(['\"])(.*?)\2", re.IGNORECASE)
NAMES = re.compile(r"^\s*(SET\s+NAMES\s+['\"]?utf8mb4['\"]?)\s*$", re.IGNORECASE)
FOR_ONE_STATEMENT = re.compile(r"^\s*SET\s+STATEMENT\s.*?\sFOR\s+(?=[A-Za-z(])", re.IGNORECASE | re.DOTALL)
ONLINE = re.compile(r"^(\s*ALTER\s+)ONLINE\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Tables are InnoDB's, so that both have transactions; files are read by the client; utf8mb4 is of one collation; what
    MariaDB's SET STATEMENT would set for a statement is not set, and ONLINE not said.
    """

    data: Path
    scratch: Path

    def rewrite(self, statement: Pair) -> Pair:
        first, second = (
            LOAD.sub(self._load, ENGINE.sub(r"\1=InnoDB", ONLINE.sub(r"\1", FOR_ONE_STATEMENT.sub("", text)))) for text in statement
        )
        return first, NAMES.sub(r"\1 COLLATE utf8mb4_general_ci", second)

    def _load(self, found: re.Match[str]) -> str:
        name = Path(found[3]).name
        path = self.data / name
        if not path.exists():
            path = self.scratch / name
        return f"{found[1]}LOCAL INFILE '{path}'"
