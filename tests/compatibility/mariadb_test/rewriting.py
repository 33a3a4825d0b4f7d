"""Statements as the two servers get them: the same, but for what would only show that they are two products."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.compatibility.mariadb_test.script import Pair
from tests.compatibility.mariadb_test.servers import SQL_MODE

ENGINE = re.compile(r"\b(engine|type|default_storage_engine|storage_engine)\s*=?\s*(\"|')?(myisam|aria|maria|memory|heap)\b(\"|')?", re.IGNORECASE)
LOAD = re.compile(r"\b(LOAD\s+DATA\s+)(?:LOW_PRIORITY\s+|CONCURRENT\s+)?(?:LOCAL\s+)?INFILE\s+(['\"])(.*?)\2", re.IGNORECASE)
NAMES = re.compile(r"^\s*(SET\s+NAMES\s+['\"]?utf8mb4['\"]?)\s*$", re.IGNORECASE)
FOR_ONE_STATEMENT = re.compile(r"^\s*SET\s+STATEMENT\s.*?\sFOR\s+(?=[A-Za-z(])", re.IGNORECASE | re.DOTALL)
GLOBAL_MODE = re.compile(r"^(\s*SET\s+(?:GLOBAL\s+|@@GLOBAL\.)sql_mode\s*=\s*)DEFAULT\s*$", re.IGNORECASE)
SEQUENCE = re.compile(
    r"(?<![\w.])seq_(\d+)_to_(\d+)\b(?!\s*\.)(\s+(?:AS\s+)?(?!(?:WHERE|CROSS|LEFT|RIGHT|INNER|JOIN|ORDER|GROUP|LIMIT|ON|UNION|USING|HAVING|WINDOW)\b)\w+)?",
    re.IGNORECASE,
)
NOTES = re.compile(r"^\s*SET\s+note_verbosity\b.*", re.IGNORECASE | re.DOTALL)
ONLINE = re.compile(r"^(\s*ALTER\s+)ONLINE\s", re.IGNORECASE)


DEFAULT_CALL = re.compile(
    r"\bDEFAULT\s+(?=(?!NOW\b|CURRENT_TIMESTAMP\b|LOCALTIME|VALUE\b|CHARACTER\b|CHARSET\b|COLLATE\b)\w+\s*\()", re.IGNORECASE
)
DEFINES_COLUMNS = re.compile(r"\s*(CREATE\s+(TEMPORARY\s+)?TABLE|ALTER\s+TABLE)\b", re.IGNORECASE)
CHARSET = re.compile(r"\b((?:CHARACTER\s+SET|CHARSET)\s*=?\s*utf8mb4)\b(?!\s*(?:DEFAULT\s+)?COLLATE)", re.IGNORECASE)


def parenthesised_defaults(text: str) -> str:
    """DEFAULT f(x) of MariaDB as MySQL 8.0 wants it: DEFAULT (f(x))."""
    parts, at = [], 0
    while (found := DEFAULT_CALL.search(text, at)) is not None:
        end = _end_of_call(text, found.end())
        parts += [text[at : found.end()], f"({text[found.end() : end]})"]
        at = end
    return "".join(parts) + text[at:]


def _end_of_call(text: str, start: int) -> int:
    depth, quote = 0, ""
    for index in range(start, len(text)):
        character = text[index]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                return index + 1
    return len(text)


def _sequence(found: re.Match[str]) -> str:
    first, last = found[1], found[2]
    numbers = f"WITH RECURSIVE s (seq) AS (SELECT {first} UNION ALL SELECT seq + 1 FROM s WHERE seq < {last}) SELECT seq FROM s"
    return f"({numbers}){found[3] or f' AS seq_{first}_to_{last}'}"


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Tables are InnoDB's, so that both have transactions; files are read by the client; utf8mb4 is of one collation; what
    MariaDB's SET STATEMENT would set for a statement is not set, and ONLINE not said; a default that is a call has parentheses;
    the default sql_mode is that of the files; tables of numbers are recursive queries; MariaDB gives no
    more notes than MySQL would.
    """

    data: Path
    scratch: Path

    def rewrite(self, statement: Pair) -> Pair:
        first, second = (
            LOAD.sub(self._load, ENGINE.sub(r"\1=InnoDB", ONLINE.sub(r"\1", FOR_ONE_STATEMENT.sub("", text)))) for text in statement
        )
        if DEFINES_COLUMNS.match(second):
            second = parenthesised_defaults(second)
            if "collate" not in second.lower():
                second = CHARSET.sub(r"\1 COLLATE utf8mb4_general_ci", second)
        first, second = NOTES.sub("DO 0", first), SEQUENCE.sub(_sequence, second)
        return first, GLOBAL_MODE.sub(rf"\1'{SQL_MODE}'", NAMES.sub(r"\1 COLLATE utf8mb4_general_ci", second))

    def _load(self, found: re.Match[str]) -> str:
        name = Path(found[3]).name
        path = self.data / name
        if not path.exists():
            path = self.scratch / name
        return f"{found[1]}LOCAL INFILE '{path}'"
