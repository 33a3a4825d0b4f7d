"""The changes of a column's type that leave stored values and index entries valid."""

from __future__ import annotations

from dataflow.values.collation.names import UNICODE, charset_of
from dataflow.values.types import INTEGER_BYTES, INTEGERS, TEXTS, Kind, SqlType

_TEXT_SIZE = {
    Kind.TINYTEXT: 255,
    Kind.TEXT: 65_535,
    Kind.MEDIUMTEXT: 16_777_215,
    Kind.LONGTEXT: 4_294_967_295,
    Kind.TINYBLOB: 255,
    Kind.BLOB: 65_535,
    Kind.MEDIUMBLOB: 16_777_215,
    Kind.LONGBLOB: 4_294_967_295,
}
_VARIABLE_BYTES = frozenset({Kind.VARBINARY, Kind.TINYBLOB, Kind.BLOB, Kind.MEDIUMBLOB, Kind.LONGBLOB})


def keeps_stored_values(old: SqlType, new: SqlType, indexed: bool) -> bool:
    """Whether every value of `old` is stored the same under `new`, and `indexed` entries too.

    Texts may grow, integers widen, DECIMALs get more digits before the point, times more
    digits of a second, ENUM and SET more members at the end.
    """
    if old.kind in TEXTS and new.kind in TEXTS:
        same_keys = not indexed or old.collation == new.collation
        return same_keys and _has_characters(new, old) and _capacity(old) <= _capacity(new)
    if old.kind in INTEGERS and new.kind in INTEGERS:
        if old.unsigned == new.unsigned:
            return INTEGER_BYTES[old.kind] <= INTEGER_BYTES[new.kind]
        return old.unsigned and INTEGER_BYTES[old.kind] < INTEGER_BYTES[new.kind]
    if old.kind in _VARIABLE_BYTES and new.kind in _VARIABLE_BYTES:
        return _capacity(old) <= _capacity(new)
    if old.kind is not new.kind:
        return False
    match old.kind:
        case Kind.DECIMAL:
            grows = (old.length or 10) <= (new.length or 10) and old.scale == new.scale
            keeps_sign = old.unsigned or not new.unsigned
            return grows and keeps_sign and (not indexed or old.length == new.length)
        case Kind.ENUM | Kind.SET:
            return new.members[: len(old.members)] == old.members and (not indexed or old.collation == new.collation)
        case Kind.DATETIME | Kind.TIMESTAMP | Kind.TIME:
            return old.scale <= new.scale
        case Kind.BIT:
            return (old.length or 1) <= (new.length or 1)
        case _:
            return old == new


def _has_characters(new: SqlType, old: SqlType) -> bool:
    """Whether the character set of `new` has all characters of that of `old`."""
    wider, other = charset_of(new.collation), charset_of(old.collation)
    if wider is other:
        return True
    return wider.name in UNICODE and (other.name not in UNICODE or wider.point_max >= other.point_max)


def _capacity(found: SqlType) -> int:
    """How much it holds: characters for CHAR and VARCHAR, at most so many bytes for TEXT and BLOB."""
    if found.kind in _TEXT_SIZE:
        return _TEXT_SIZE[found.kind]
    return found.length or 0
