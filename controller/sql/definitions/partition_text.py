"""PARTITION BY as text: its grammar, and how SHOW CREATE TABLE shows it."""

from __future__ import annotations

from controller.sql.definitions.engines import read_engine
from controller.sql.text.cursor import RESERVED, TokenReader
from controller.sql.text.lexer import quoted
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import Partition, Partitioning

PARTITIONS_MAX = 8192
MAXVALUE = "MAXVALUE"
LESS_THAN, IN = "LESS THAN", "IN"


def read_partitioning(cursor: TokenReader) -> Partitioning:
    """From PARTITION BY on. Expressions and values are as they were written."""
    cursor.expect("PARTITION", "BY")
    method, sql, columns = _divider(cursor, ("RANGE", "LIST", "HASH", "KEY"))
    count = _count(cursor, "PARTITIONS")
    sub_method, sub_sql, sub_columns, sub_count = "", "", tuple[str, ...](), None
    if cursor.accept("SUBPARTITION", "BY"):
        sub_method, sub_sql, sub_columns = _divider(cursor, ("HASH", "KEY"))
        sub_count = _count(cursor, "SUBPARTITIONS")
        if method not in ("RANGE", "LIST"):
            raise InvalidStatement(Condition.WRONG_SUBPARTITIONS)
    partitions = read_partitions(cursor, method, bool(columns)) if cursor.at("(") else ()
    if method in ("RANGE", "LIST") and not partitions:
        raise InvalidStatement(Condition.PARTITIONS_NOT_DEFINED, method)
    if partitions and count is not None and len(partitions) != count:
        raise cursor.error()
    counts = {len(each.subpartitions) for each in partitions}
    if counts - {0} and not sub_method:
        raise InvalidStatement(Condition.WRONG_SUBPARTITIONS)
    if len(counts) > 1 or (sub_count is not None and counts - {0, sub_count}):
        raise cursor.error()
    sub_count = sub_count or max(counts, default=0) or 1
    count = len(partitions) or count or 1
    if count * sub_count > PARTITIONS_MAX:
        raise InvalidStatement(Condition.TOO_MANY_PARTITIONS)
    return Partitioning(method, sql, columns, partitions, count, sub_method, sub_sql, sub_columns, sub_count)


def _divider(cursor: TokenReader, methods: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    """The method, and the expression or the columns that it is of."""
    linear = "LINEAR " if "HASH" in methods and cursor.accept("LINEAR") else ""
    method = cursor.accept_any(*methods)
    if not method or (linear and method in ("RANGE", "LIST")):
        raise cursor.error()
    if method == "KEY" and cursor.accept("ALGORITHM"):
        cursor.expect("=")
        cursor.integer()
    if method != "KEY" and not (method in ("RANGE", "LIST") and cursor.accept("COLUMNS")):
        sql = cursor.parenthesised()
        if not sql:
            raise cursor.error()
        return linear + method, sql, ()
    cursor.expect("(")
    names = []
    while not cursor.at(")"):
        names.append(cursor.identifier())
        if not cursor.accept(","):
            break
    cursor.expect(")")
    if not names and method != "KEY":
        raise cursor.error()
    return linear + method, "", tuple(names)


def _count(cursor: TokenReader, word: str) -> int | None:
    if not cursor.accept(word):
        return None
    count = cursor.integer()
    if count == 0:
        raise InvalidStatement(Condition.NO_PARTITIONS, word.lower())
    if count > PARTITIONS_MAX:
        raise InvalidStatement(Condition.TOO_MANY_PARTITIONS)
    return count


def read_partitions(cursor: TokenReader, method: str, by_columns: bool) -> tuple[Partition, ...]:
    """The definitions in parentheses."""
    cursor.expect("(")
    found: list[Partition] = []
    while True:
        cursor.expect("PARTITION")
        name = _name(cursor)
        values = _values(cursor, method, by_columns)
        comment = _options(cursor)
        found.append(Partition(name, values, comment, _subpartitions(cursor)))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    names = [name.lower() for each in found for name in (each.subpartitions or (each.name,))]
    repeated = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if repeated is not None:
        raise InvalidStatement(Condition.REPEATED_PARTITION, repeated)
    return tuple(found)


def _name(cursor: TokenReader) -> str:
    name = cursor.identifier()
    if not name or name.endswith(" "):
        raise InvalidStatement(Condition.WRONG_PARTITION_NAME)
    return name


def _values(cursor: TokenReader, method: str, by_columns: bool) -> tuple[tuple[str, ...], ...]:
    wanted = {"RANGE": LESS_THAN, "LIST": IN}.get(method)
    given = ""
    if cursor.accept("VALUES"):
        given = LESS_THAN if cursor.accept("LESS", "THAN") else IN if cursor.accept("IN") else ""
        if not given:
            raise cursor.error()
    if given and given != wanted:
        raise InvalidStatement(Condition.WRONG_PARTITION_VALUES, "RANGE" if given == LESS_THAN else "LIST", given)
    if wanted and not given:
        raise InvalidStatement(Condition.PARTITION_NEEDS_VALUES, method, wanted)
    if not given:
        return ()
    if given == LESS_THAN:
        return ((MAXVALUE,),) if cursor.accept(MAXVALUE) else (pieces(cursor),)
    if by_columns and cursor.at("(", "("):
        cursor.expect("(")
        rows = [pieces(cursor)]
        while cursor.accept(","):
            rows.append(pieces(cursor))
        cursor.expect(")")
        return tuple(rows)
    return tuple([(each,) for each in pieces(cursor)])


def pieces(cursor: TokenReader) -> tuple[str, ...]:
    """What stands between the commas of a list in parentheses."""
    cursor.expect("(")
    found, depth, start = [], 0, cursor.token.start
    while not cursor.at_end:
        token = cursor.next()
        if depth == 0 and token.text in (",", ")"):
            found.append(cursor.sql[start : token.start].strip())
            if not found[-1]:
                raise cursor.error()
            if token.text == ")":
                return tuple(each.upper() if each.upper() == MAXVALUE else each for each in found)
            start = token.end
        depth += (token.text == "(") - (token.text == ")")
    raise cursor.error()


def _options(cursor: TokenReader) -> str:
    """Of a partition: all but its comment is read and forgotten."""
    comment = ""
    while True:
        cursor.accept("STORAGE")
        if cursor.accept("ENGINE"):
            cursor.accept("=")
            if read_engine(cursor) in ("MRG_MYISAM", "CSV", "FEDERATED"):
                raise InvalidStatement(Condition.ENGINE_WITHOUT_PARTITIONS)
        elif cursor.accept("COMMENT"):
            cursor.accept("=")
            comment = cursor.string()
        elif cursor.accept("DATA", "DIRECTORY") or cursor.accept("INDEX", "DIRECTORY"):
            cursor.accept("=")
            cursor.string()
        elif cursor.accept_any("MAX_ROWS", "MIN_ROWS", "TABLESPACE", "NODEGROUP"):
            cursor.accept("=")
            cursor.word_or_string()
        else:
            return comment


def _subpartitions(cursor: TokenReader) -> tuple[str, ...]:
    if not cursor.accept("("):
        return ()
    names = []
    while True:
        cursor.expect("SUBPARTITION")
        names.append(_name(cursor))
        _options(cursor)
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(names)


def show_partitioning(found: Partitioning) -> str:
    """As SHOW CREATE TABLE has it, in a comment that MySQL reads."""
    lines = [f"PARTITION BY {_shown(found.method, found.sql, found.columns)}"]
    if found.sub_method:
        lines.append(f"SUBPARTITION BY {_shown(found.sub_method, found.sub_sql, found.sub_columns)}")
        if not any(each.subpartitions for each in found.partitions):
            lines.append(f"SUBPARTITIONS {found.sub_count}")
    if found.partitions:
        lines.append("(" + ",\n ".join([_partition(each, found) for each in found.partitions]) + ")")
    elif found.count > 1:
        lines.append(f"PARTITIONS {found.count}")
    version = "50500" if found.columns and found.method in ("RANGE", "LIST") else "50100"
    return f"/*!{version} " + "\n".join(lines) + " */"


def _shown(method: str, sql: str, columns: tuple[str, ...]) -> str:
    if sql:
        return f"{method} ({sql})"
    names = ",".join([_plain(each) for each in columns])
    return f"{method} ({names})" if method.endswith("KEY") else f"{method}  COLUMNS({names})"


def _partition(partition: Partition, found: Partitioning) -> str:
    pieces = [f"PARTITION {_plain(partition.name)}"]
    if found.method == "RANGE":
        pieces.append("VALUES LESS THAN " + described(partition, found, True))
    elif found.method == "LIST":
        pieces.append(f"VALUES IN ({described(partition, found, True)})")
    comment = " COMMENT = '" + partition.comment.replace("\\", "\\\\").replace("'", "\\'") + "'" if partition.comment else ""
    if partition.subpartitions:
        pieces.append("\n (" + ",\n  ".join([f"SUBPARTITION {_plain(each)} ENGINE = InnoDB" for each in partition.subpartitions]) + ")")
        return " ".join(pieces[:-1]) + comment + pieces[-1]
    return " ".join(pieces) + comment + " ENGINE = InnoDB"


def described(partition: Partition, found: Partitioning, in_text: bool) -> str:
    """The values, as SHOW CREATE TABLE has them and, without parentheses around one, information_schema."""
    if found.method == "RANGE":
        values = ",".join(partition.values[0])
        return f"({values})" if in_text and (found.columns or values != MAXVALUE) else values
    return ",".join([f"({','.join(each)})" if len(found.columns) > 1 else each[0] for each in partition.values])


def _plain(name: str) -> str:
    word = name.isascii() and name.replace("_", "a").replace("$", "a").isalnum() and not name.isdigit()
    return name if word and name.upper() not in RESERVED else quoted(name)


