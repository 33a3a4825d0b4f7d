"""Type declarations: every spelling MySQL knows, read from tokens into an `SqlType`.

A text type's collation depends on defaults that come later in the statement (those of the
table), so reading gives a `TypeDeclaration`, which `resolve` completes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from controller.sql.settings import DEFAULT_SETTINGS, Settings
from controller.sql.text.cursor import TokenReader
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.values.collation import CHARSETS, canonical, collation, collation_key
from dataflow.values.collation.names import charset_of
from dataflow.values.conversion import decode
from dataflow.values.result_limits import planned
from dataflow.values.types import JSON, STRINGS, TEXTS, Kind, SqlType

_INTEGERS = {
    "TINYINT": Kind.TINYINT, "INT1": Kind.TINYINT,
    "SMALLINT": Kind.SMALLINT, "INT2": Kind.SMALLINT,
    "MEDIUMINT": Kind.MEDIUMINT, "INT3": Kind.MEDIUMINT, "MIDDLEINT": Kind.MEDIUMINT,
    "INT": Kind.INT, "INTEGER": Kind.INT, "INT4": Kind.INT,
    "BIGINT": Kind.BIGINT, "INT8": Kind.BIGINT,
}  # fmt: skip
_ZEROFILL_WIDTHS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.MEDIUMINT: 8, Kind.INT: 10, Kind.BIGINT: 20}
_FIXED_TEXTS = {"TINYTEXT": Kind.TINYTEXT, "MEDIUMTEXT": Kind.MEDIUMTEXT, "LONGTEXT": Kind.LONGTEXT}
_FIXED_BLOBS = {"TINYBLOB": Kind.TINYBLOB, "MEDIUMBLOB": Kind.MEDIUMBLOB, "LONGBLOB": Kind.LONGBLOB}
_TEXTS_BY_SIZE = ((255, Kind.TINYTEXT), (65535, Kind.TEXT), (16777215, Kind.MEDIUMTEXT), (4294967295, Kind.LONGTEXT))
_BLOB_OF_TEXT = {
    Kind.CHAR: Kind.BINARY, Kind.VARCHAR: Kind.VARBINARY, Kind.TINYTEXT: Kind.TINYBLOB, Kind.TEXT: Kind.BLOB,
    Kind.MEDIUMTEXT: Kind.MEDIUMBLOB, Kind.LONGTEXT: Kind.LONGBLOB,
}  # fmt: skip
_GEOMETRIES = frozenset(
    "GEOMETRY POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON GEOMETRYCOLLECTION GEOMCOLLECTION".split()  # noqa: SIM905
)
ROW_BYTES_MAX = 65535
WIDTH_MAX = 255
"""Of the numbers that a column shows."""


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """A type without its collation, and what was said about that."""

    type: SqlType
    charset: str | None = None
    collation: str | None = None
    binary: bool = False
    serial: bool = False
    members: tuple[str | bytes, ...] = ()
    """Of an ENUM or SET."""

    def resolve(self, column: str, default_collation: str, strict: bool = True) -> SqlType:
        """Unless `strict`, a column that is too long becomes a TEXT or a BLOB."""
        if self.type.kind is Kind.VARBINARY:
            return _fitting(self.type, column, 1, strict)
        if self.type.kind not in TEXTS and self.type.kind not in (Kind.ENUM, Kind.SET):
            return self.type
        name = column_collation(self.charset, self.collation, default_collation)
        if name == "binary" and self.type.kind in _BLOB_OF_TEXT:
            return replace(self.type, kind=_BLOB_OF_TEXT[self.type.kind])
        if self.binary:
            name = f"{collation(name).charset}_bin"
        found = replace(self.type, collation=name)
        if self.members:
            found = replace(found, members=_resolved_members(self.members, name, column, found.kind))
        width = CHARSETS[collation(name).charset].bytes_max
        if found.kind is Kind.VARCHAR and not column and (found.length or 0) * width > ROW_BYTES_MAX:
            return replace(found, kind=Kind.LONGTEXT)
        return _fitting(found, column, width, strict) if found.kind is Kind.VARCHAR else found


def _fitting(found: SqlType, column: str, width: int, strict: bool) -> SqlType:
    size = (found.length or 0) * width
    if size <= ROW_BYTES_MAX:
        return found
    if strict:
        raise InvalidStatement(Condition.COLUMN_TOO_LONG, column, ROW_BYTES_MAX // width)
    kind = _text_by_size(size)
    return replace(found, kind=kind if found.kind is Kind.VARCHAR else _BLOB_OF_TEXT[kind], length=None)


def column_collation(charset: str | None, name: str | None, default: str) -> str:
    """The collation that CHARACTER SET and COLLATE clauses ask for."""
    if name is not None and name.upper() != "DEFAULT":
        found = canonical(name)
        if charset is not None and collation(found).charset != charset_name(charset):
            raise InvalidStatement(Condition.COLLATION_CHARSET_MISMATCH, name, charset)
        return found
    return default if charset is None else default_collation(charset_name(charset))


def default_collation(charset: str) -> str:
    """Of a character set, in the session that is planned for."""
    return planned().utf8mb4_collation if charset == "utf8mb4" else CHARSETS[charset].default_collation


def charset_name(name: str) -> str:
    lowered = name.lower()
    lowered = "utf8mb3" if lowered == "utf8" else lowered
    if lowered not in CHARSETS:
        raise InvalidStatement(Condition.UNKNOWN_CHARACTER_SET, name)
    return lowered


def type_of_text(text: str, settings: Settings = DEFAULT_SETTINGS) -> TypeDeclaration:
    """The type in CAST(… AS text): SIGNED and UNSIGNED are types there, CHAR has no bound."""
    cursor = TokenReader(text, settings)
    if word := cursor.accept_any("SIGNED", "UNSIGNED"):
        cursor.accept_any("INTEGER", "INT")
        cursor.expect_end()
        return TypeDeclaration(SqlType(Kind.BIGINT, unsigned=word == "UNSIGNED"))
    national = "utf8mb3" if cursor.at("NCHAR") else None
    unbounded = cursor.at("CHAR") or cursor.at("BINARY") or cursor.at("NCHAR") or cursor.at("CHARACTER")
    if unbounded and cursor.ahead(1).text != "(":
        kind = Kind.LONGBLOB if cursor.next().upper == "BINARY" else Kind.LONGTEXT
        found = _with_charset(cursor, TypeDeclaration(SqlType(kind), national))
    elif unbounded:
        kind = Kind.BINARY if cursor.next().upper == "BINARY" else Kind.VARCHAR
        found = _with_charset(cursor, TypeDeclaration(SqlType(kind, length=_length(cursor, "", None, 4294967295)), national))
    else:
        found = read_type(cursor, "", settings)
    cursor.expect_end()
    return found


def read_type(cursor: TokenReader, column: str, settings: Settings = DEFAULT_SETTINGS) -> TypeDeclaration:
    token = cursor.next()
    word = token.upper
    if word in _INTEGERS:
        return TypeDeclaration(_integer(cursor, column, _INTEGERS[word]))
    match word:
        case "BOOL" | "BOOLEAN":
            return TypeDeclaration(SqlType(Kind.TINYINT, length=1))
        case "SERIAL":
            return TypeDeclaration(SqlType(Kind.BIGINT, unsigned=True), serial=True)
        case "BIT":
            return TypeDeclaration(SqlType(Kind.BIT, length=_length(cursor, column, 1, 64, Condition.DISPLAY_WIDTH_TOO_BIG)))
        case "DECIMAL" | "DEC" | "NUMERIC" | "FIXED":
            return TypeDeclaration(_decimal(cursor, column))
        case "FLOAT" | "FLOAT4" | "DOUBLE" | "FLOAT8" | "REAL":
            if word == "DOUBLE":
                cursor.accept("PRECISION")
            single = word in ("FLOAT", "FLOAT4") or (word == "REAL" and "REAL_AS_FLOAT" in settings.sql_mode)
            return TypeDeclaration(_real(cursor, column, single))
        case "DATE":
            return TypeDeclaration(SqlType(Kind.DATE))
        case "DATETIME" | "TIMESTAMP" | "TIME":
            digits = _length(cursor, column, 0, 6)
            return TypeDeclaration(SqlType(Kind[word], scale=digits))
        case "YEAR":
            if cursor.accept("("):
                if cursor.integer() != 4:
                    raise InvalidStatement(Condition.INVALID_YEAR_LENGTH)
                cursor.expect(")")
            _sign(cursor)
            return TypeDeclaration(SqlType(Kind.YEAR))
        case "BINARY":
            return TypeDeclaration(SqlType(Kind.BINARY, length=_length(cursor, column, 1, 255)))
        case "VARBINARY":
            return TypeDeclaration(SqlType(Kind.VARBINARY, length=_length(cursor, column, None, 4294967295)))
        case "BLOB":
            size = _length(cursor, column, 65535, 4294967295)
            return TypeDeclaration(SqlType(_BLOB_OF_TEXT[_text_by_size(size)]))
        case "JSON":
            return TypeDeclaration(JSON)
        case "ENUM" | "SET":
            return _with_charset(cursor, TypeDeclaration(SqlType(Kind[word]), members=_members(cursor)))
    if word in _FIXED_BLOBS:
        return TypeDeclaration(SqlType(_FIXED_BLOBS[word]))
    if word in _GEOMETRIES:
        raise Unsupported(f"{word} columns")
    return _text(cursor, column, word)


def _text(cursor: TokenReader, column: str, word: str) -> TypeDeclaration:
    national = False
    if word == "NATIONAL":
        national, word = True, cursor.next().upper
    if word in ("NCHAR", "NVARCHAR"):
        national, word = True, word[1:]
    if word in ("CHAR", "CHARACTER"):
        word = "VARCHAR" if cursor.accept_any("VARYING", "VARCHAR", "VARCHARACTER") else "CHAR"
    if word == "LONG":
        if cursor.accept("VARBINARY"):
            return TypeDeclaration(SqlType(Kind.MEDIUMBLOB))
        cursor.accept_any("VARCHAR", "VARCHARACTER")
        word = "MEDIUMTEXT"
    if word in ("VARCHAR", "VARCHARACTER"):
        found = SqlType(Kind.VARCHAR, length=_length(cursor, column, None, 4294967295))
    elif word == "CHAR":
        found = SqlType(Kind.CHAR, length=_length(cursor, column, 1, 255))
    elif word == "TEXT":
        found = SqlType(_text_by_size(_length(cursor, column, 16383, 4294967295 // 4) * 4))
    elif word in _FIXED_TEXTS:
        found = SqlType(_FIXED_TEXTS[word])
    else:
        cursor.back()
        raise cursor.error()
    declared = _with_charset(cursor, TypeDeclaration(found))
    return replace(declared, charset="utf8mb3") if national else declared


def _with_charset(cursor: TokenReader, found: TypeDeclaration) -> TypeDeclaration:
    """Read CHARACTER SET, COLLATE, BINARY, ASCII and UNICODE, in any order."""
    while True:
        if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
            found = replace(found, charset=cursor.word_or_string())
        elif cursor.accept("COLLATE"):
            found = replace(found, collation=cursor.word_or_string())
        elif cursor.accept("BINARY"):
            found = replace(found, binary=True)
        elif cursor.accept("ASCII"):
            found = replace(found, charset="latin1")
        elif cursor.accept("UNICODE"):
            found = replace(found, charset="ucs2")
        elif cursor.accept("BYTE"):
            found = replace(found, charset="binary")
        else:
            return found


def _sign(cursor: TokenReader) -> tuple[bool, bool]:
    """(unsigned, zerofill)"""
    unsigned = zerofill = False
    while word := cursor.accept_any("UNSIGNED", "SIGNED", "ZEROFILL"):
        unsigned = unsigned or word != "SIGNED"
        zerofill = zerofill or word == "ZEROFILL"
    return unsigned, zerofill


def _integer(cursor: TokenReader, column: str, kind: Kind) -> SqlType:
    width = _length(cursor, column, 0, WIDTH_MAX, Condition.DISPLAY_WIDTH_TOO_BIG)
    unsigned, zerofill = _sign(cursor)
    if zerofill:
        return SqlType(kind, length=width or _ZEROFILL_WIDTHS[kind], unsigned=True, zerofill=True)
    # MySQL 8 forgets display widths, except TINYINT(1), which clients take for a boolean.
    keeps_width = kind is Kind.TINYINT and width == 1 and not unsigned
    return SqlType(kind, length=1 if keeps_width else None, unsigned=unsigned)


def _decimal(cursor: TokenReader, column: str) -> SqlType:
    precision, scale = _two(cursor)
    scale = scale or 0
    precision = 10 if precision is None or (precision == 0 and scale == 0) else precision
    _check_scale(column, precision, scale)
    if precision > 65:
        raise InvalidStatement(Condition.PRECISION_TOO_BIG, precision, column, 65)
    unsigned, zerofill = _sign(cursor)
    return SqlType(Kind.DECIMAL, length=precision, scale=scale, unsigned=unsigned, zerofill=zerofill)


def _real(cursor: TokenReader, column: str, single: bool) -> SqlType:
    precision, scale = _two(cursor)
    if precision is not None and scale is None:
        if precision > 53:
            raise InvalidStatement(Condition.WRONG_COLUMN_SPECIFIER, column)
        single, precision = single and precision <= 24, None
    if precision is not None:
        if precision > WIDTH_MAX:
            raise InvalidStatement(Condition.DISPLAY_WIDTH_TOO_BIG, column, WIDTH_MAX)
        _check_scale(column, precision, scale or 0)
    unsigned, zerofill = _sign(cursor)
    kind = Kind.FLOAT if single else Kind.DOUBLE
    return SqlType(kind, precision, -1 if precision is None else scale or 0, unsigned, zerofill)


def _check_scale(column: str, precision: int, scale: int) -> None:
    if scale > 30:
        raise InvalidStatement(Condition.SCALE_TOO_BIG, scale, column, 30)
    if scale > precision:
        raise InvalidStatement(Condition.SCALE_ABOVE_PRECISION, column)


def _two(cursor: TokenReader) -> tuple[int | None, int | None]:
    """(), (n) or (n, m)."""
    if not cursor.accept("("):
        return None, None
    first, second = cursor.integer(), None
    if cursor.accept(","):
        second = cursor.integer()
    cursor.expect(")")
    return first, second


def _length(
    cursor: TokenReader, column: str, default: int | None, most: int, condition: Condition = Condition.COLUMN_TOO_LONG
) -> int:
    if not cursor.accept("("):
        if default is None:
            raise cursor.error()
        return default
    length = cursor.integer()
    cursor.expect(")")
    if length > most:
        if most == 6:
            raise InvalidStatement(Condition.PRECISION_TOO_BIG, length, column, most)
        raise InvalidStatement(condition, column, most)
    return length


def _text_by_size(size: int) -> Kind:
    return next(kind for most, kind in _TEXTS_BY_SIZE if size <= most)


def _members(cursor: TokenReader) -> tuple[str | bytes, ...]:
    cursor.expect("(")
    members: list[str | bytes] = []
    while not members or cursor.accept(","):
        value = cursor.literal()
        if not isinstance(value, str | bytes):
            raise cursor.error()
        members.append(value)
    cursor.expect(")")
    return tuple(members)


def _resolved_members(members: tuple[str | bytes, ...], collation_name: str, column: str, kind: Kind) -> tuple[str, ...]:
    """The members as texts without spaces at their ends; those that were written as digits are bytes of the character set."""
    charset = charset_of(collation_name)
    key = collation_key(collation_name)
    found: dict[bytes, str] = {}
    for member in members:
        if isinstance(member, bytes):
            text = decode(member) if charset.name == "binary" else charset.read(member)[0]
        else:
            text = member
        text = text if charset.name == "binary" else text.rstrip(" ")
        if key(text) in found:
            raise InvalidStatement(Condition.DUPLICATE_MEMBER, column, found[key(text)], kind.name)
        if kind is Kind.SET and "," in text:
            raise InvalidStatement(Condition.ILLEGAL_VALUE, "set", text)
        found[key(text)] = text
    return tuple(found.values())


assert _BLOB_OF_TEXT.keys() <= STRINGS
