"""The clauses of an ALTER TABLE in the order in which they hold.

MySQL reads all of them against the table as it was: what is dropped goes first, then names and definitions change, then
comes what is added. So `CHANGE a b INT, CHANGE b a INT` swaps two columns, and
`ADD INDEX i (c), RENAME INDEX i TO j` renames the index that was there.
"""

from __future__ import annotations

from collections.abc import Sequence

from controller.sql.text.cursor import TokenReader
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import TableColumn

_FIRST = frozenset({"DROP"})
_SECOND = frozenset({"CHANGE", "MODIFY", "RENAME", "ALTER"})
_CHOICES = {
    "ALGORITHM": (frozenset({"DEFAULT", "INSTANT", "INPLACE", "COPY"}), Condition.UNKNOWN_ALTER_ALGORITHM),
    "LOCK": (frozenset({"DEFAULT", "NONE", "SHARED", "EXCLUSIVE"}), Condition.UNKNOWN_ALTER_LOCK),
}


def ordered_clauses(cursor: TokenReader) -> list[int]:
    """The marks where clauses begin. The cursor stays where it is."""
    start = cursor.mark()
    found: list[tuple[int, int]] = []
    depth, begins = 0, True
    while not cursor.at_end:
        token = cursor.token
        if begins:
            found.append((0 if token.upper in _FIRST else 1 if token.upper in _SECOND else 2, cursor.mark()))
            if token.upper == "ORDER":
                break  # its columns are separated by commas, too
        cursor.next()
        depth += (token.text == "(") - (token.text == ")")
        begins = depth == 0 and token.text == ","
    cursor.back_to(start)
    return [mark for _, mark in sorted(found)]


def read_order(cursor: TokenReader, columns: Sequence[TableColumn]) -> None:
    """ORDER BY columns: rows are kept in the order of their key all the same."""
    cursor.expect("ORDER", "BY")
    while True:
        _, name = cursor.qualified_name()
        if name.lower() not in (column.name.lower() for column in columns):
            raise InvalidStatement(Condition.UNKNOWN_COLUMN, name, "order clause")
        cursor.accept_any("ASC", "DESC")
        if not cursor.accept(","):
            break


def accept_way(cursor: TokenReader) -> bool:
    """ALGORITHM = … or LOCK = …: which way is ours to choose, but it must be one that MySQL has."""
    word = cursor.accept_any(*_CHOICES)
    if not word:
        return False
    cursor.accept("=")
    allowed, condition = _CHOICES[word]
    chosen = cursor.next()
    if chosen.upper not in allowed:
        raise InvalidStatement(condition, chosen.text)
    return True
