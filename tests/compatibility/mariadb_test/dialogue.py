"""A test file's statements, put to both servers: what each answered, and what that means for the statements that follow.

After a write the tables that it names are read from both servers through connections of their own, which see what is committed.
A table whose content differs is made the same again (`mending.py`); so are, after a definition that only one server
has taken, the tables and views that it names and those that only one server has. What cannot be made the same is *doubtful*,
and so are a view, variable or prepared statement that came of it and a table that a statement apart has written. A statement that
differs and names something doubtful has followed from an earlier difference.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.compatibility.mariadb_test.apart import Rules
from tests.compatibility.mariadb_test.comparison import Kind, judge, leaves_open, same_rows
from tests.compatibility.mariadb_test.lines import Address, Answer, Line
from tests.compatibility.mariadb_test.mending import Relation, copy_rows, reconcile, relations, remake_table
from tests.compatibility.mariadb_test.rewriting import Rewriting
from tests.compatibility.mariadb_test.script import Ended, Pair
from tests.compatibility.mariadb_test.servers import MODES_OF_MARIADB, ROUNDING

UNKNOWN_FUNCTION = 1305
OF_VIEWS = "warnings about a value are given where it is computed, not where it comes from a view (docs/status.md)"
COMPARED_ROWS_MAX = 1_000
COUNTED_ROWS_MAX = 50_000
WORD = re.compile(r"@?@?[\w$]+")
CREATED = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:\w+\s*=\s*\S+\s+)*(?:SQL\s+SECURITY\s+\w+\s+)?(?:TEMPORARY\s+|UNIQUE\s+|FULLTEXT\s+|AGGREGATE\s+)?"
    r"(\w+)\s+(?:IF\s+NOT\s+EXISTS\s+)?([`\w$.]+)",
    re.IGNORECASE,
)
DEFINES = re.compile(r"\s*(CREATE|ALTER|DROP|RENAME|EXECUTE)\b", re.IGNORECASE)
TEMPORARY = re.compile(r"\s*CREATE\s+(OR\s+REPLACE\s+)?TEMPORARY\b", re.IGNORECASE)
COMMENTS = re.compile(r"\A(\s*(/\*(?!M?!).*?\*/|\#[^\n]*\n))+", re.DOTALL)
CALLS = re.compile(r"\s*(CALL|FOR|BEGIN\s+NOT|LOOP|WHILE|REPEAT|IF|EXECUTE\s+IMMEDIATE)\b", re.IGNORECASE)
NUMBERS_ROWS = re.compile(r"\s*((INSERT|REPLACE)\b.*\bSELECT|ALTER\b.*\bAUTO_INCREMENT)\b", re.IGNORECASE | re.DOTALL)
LISTS_TABLES = re.compile(r"\s*SHOW\s+(FULL\s+)?TABLES\b", re.IGNORECASE)
SETS_MODE = re.compile(r"\s*SET\b.*\bsql_mode", re.IGNORECASE | re.DOTALL)
DROPS = re.compile(r"\s*DROP\s+(TEMPORARY\s+)?(TABLES?|VIEWS?|PREPARE)\b|\s*DEALLOCATE\b", re.IGNORECASE)
WRITES = re.compile(r"\s*(FOR|INSERT|REPLACE|UPDATE|DELETE|LOAD|TRUNCATE|ALTER|CREATE|RENAME|CALL|EXECUTE|WITH|COMMIT|ROLLBACK|XA|BEGIN|START|UNLOCK)\b", re.IGNORECASE)
ENDS_TRANSACTION = re.compile(r"\s*(COMMIT|ROLLBACK|BEGIN|START|CREATE|ALTER|XA|UNLOCK|SET\s+autocommit)\b", re.IGNORECASE)
ASSIGNED = re.compile(r"(@[\w$]+)\s*:?=|INTO\s+((?:@[\w$]+\s*,?\s*)+)", re.IGNORECASE)
PREPARED = re.compile(r"\s*PREPARE\s+(\w+)\s+FROM\s+(.*)", re.IGNORECASE | re.DOTALL)
EXECUTED = re.compile(r"\s*EXECUTE\s+(\w+)", re.IGNORECASE)
USED = re.compile(r"\s*USE\s+`?(\w+)`?", re.IGNORECASE)
READS = re.compile(r"\s*(\(|SELECT|WITH|EXECUTE|TABLE|VALUES)", re.IGNORECASE)
REPEATABLE = re.compile(r"\s*\(*\s*SELECT\b", re.IGNORECASE)
UNREPEATABLE = re.compile(r":=|\bINTO\b|LOCK|RAND|UUID|SLEEP|NOW|SYSDATE|CURTIME|CURRENT_|FOUND_ROWS|ROW_COUNT|LAST_INSERT_ID|NEXT|FOR\s+UPDATE|@@", re.IGNORECASE)


def created_table(statement: str) -> str:
    """The table that a statement would make, "" for other statements."""
    found = CREATED.match(statement)
    return found[2] if found and found[1].upper() in ("TABLE", "VIEW") else ""


def _own_name(name: str) -> str:
    """Without its database, in small letters."""
    return name.replace("`", "").split(".")[-1].lower()


Stored = tuple[str, Answer, Answer]
"""A table, and its rows on both servers."""


@dataclass(frozen=True, slots=True)
class Verdict:
    place: str
    statement: str
    kind: Kind
    expected: str = ""
    found: str = ""
    reason: str = ""


class Dialogue:
    def __init__(
        self, oracle: Address, millrace: Address, rewriting: Rewriting, rules: Rules, timeout_s: float, repeats: int,
        record: Callable[[Verdict], None],
    ) -> None:  # fmt: skip
        self._addresses = oracle, millrace
        self._rewriting, self._rules, self._timeout_s, self._repeats, self._record = rewriting, rules, timeout_s, repeats, record
        self._lines: dict[str, tuple[Line, Line]] = {}
        self._databases: dict[str, str] = {}
        self._current = "default"
        self._sent: dict[str, tuple[Pair, str]] = {}
        self._doubtful: set[str] = set()
        self._tables: set[str] = set()
        self._temporary: set[str] = set()
        self._pending: set[str] = set()
        self._excused: set[str] = set()
        self._prepared: dict[str, str] = {}
        self.connect("default", "root", "", "test")
        self._observers = self._pair("root", "", "test")
        self._observers[0].ask("SET lock_wait_timeout = 0")

    def close(self) -> None:
        for pair in (*self._lines.values(), self._observers):
            for line in pair:
                line.close()

    def _pair(self, user: str, password: str, database: str) -> tuple[Line, Line]:
        first, second = self._addresses
        return Line(first, user, password, database, self._timeout_s), Line(second, user, password, database, self._timeout_s)

    def connect(self, name: str, user: str, password: str, database: str) -> None:
        with contextlib.suppress(Exception):  # an account that one of them does not have: nothing is asked there
            self._lines[name] = self._pair(user, password, database)
        self._databases[name] = database
        self._current = name

    def use(self, name: str) -> None:
        self._current = name

    def disconnect(self, name: str) -> None:
        for line in self._lines.pop(name, ()):
            line.close()

    def look_up(self, query: Pair, column: str, row: int) -> Pair:
        if self._current not in self._lines:
            return "", ""
        values = []
        for line, sql in zip(self._lines[self._current], query):
            answer = line.ask(sql)
            rows = answer.rows or []
            names = [name.lower() for name in answer.columns]
            index = names.index(column.lower()) if column.lower() in names else 0
            found = len(rows) >= row and len(rows[row - 1]) > index
            cell = rows[row - 1][index] if found else None
            values.append("" if cell is None else cell.decode("utf-8", "surrogateescape"))
        return values[0], values[1] or values[0]

    def send(self, statement: Pair, place: str) -> None:
        if self._current in self._lines:
            self._sent[self._current] = statement, place
            for line, sql in zip(self._lines[self._current], self._rewriting.rewrite(statement)):
                line.send(sql)

    def reap(self) -> None:
        if self._current in self._lines and self._current in self._sent:
            statement, place = self._sent.pop(self._current)
            first, second = self._lines[self._current]
            self._weigh(statement[0], place, first.reap(), second.reap(), ())

    def ask(self, statement: Pair, place: str, hidden: Sequence[int]) -> Pair:
        if self._current not in self._lines:
            return "0", "0"
        if any(line.is_waiting for line in self._lines[self._current]):
            self.reap()
        first, second = self._lines[self._current]
        texts = self._rewriting.rewrite(statement)
        expected = first.ask(texts[0])
        found = second.ask(texts[1])
        if SETS_MODE.match(texts[0]):
            self._settle_mode(first, second, refused=bool(found.code and not expected.code))
        if (name := created_table(texts[1])) and 1050 in (expected.code, found.code) and expected.code != found.code:
            expected, found = self._made_again(name, texts, expected, found)
        if self._repeats > 1 and found.rows is not None and REPEATABLE.match(texts[1]) and not UNREPEATABLE.search(texts[1]):
            again = self._repeated(second, texts[1], found, hidden)
            if judge(texts[1], found, again, hidden) is Kind.WARNINGS and judge(texts[0], expected, found, hidden) is Kind.SAME:
                self._record(Verdict(place, texts[0], Kind.LIMIT, str(expected), str(again), OF_VIEWS))
                return str(expected.code), str(found.code)
            found = again
        self._weigh(texts[0], place, expected, found, hidden)
        if found.timed_out and not self._observers[1].ask("SELECT 1").rows:
            raise Ended  # the server does nothing else any more
        return str(expected.code), str(found.code)

    def _settle_mode(self, first: Line, second: Line, refused: bool) -> None:
        """Fractions of a second are rounded as before; a mode that only MariaDB has keeps millrace from none of the others."""
        first.ask(ROUNDING)
        if refused and (rows := first.ask("SELECT @@sql_mode").rows):
            modes = [mode for mode in (rows[0][0] or b"").decode().split(",") if mode not in MODES_OF_MARIADB]
            second.ask(f"SET sql_mode = '{','.join(modes)}'")

    def _made_again(self, name: str, texts: Pair, expected: Answer, found: Answer) -> tuple[Answer, Answer]:
        """The answers to CREATE TABLE without the table that only one server has from before."""
        first, second = self._lines[self._current]
        if expected.code == 1050:
            first.ask(f"DROP TABLE {name}")
            return first.ask(texts[0]), found
        second.ask(f"DROP TABLE {name}")
        return expected, second.ask(texts[1])

    def _repeated(self, line: Line, text: str, found: Answer, hidden: Sequence[int]) -> Answer:
        """The answer of the view that the query has become, if it is another one."""
        for _ in range(self._repeats - 1):
            again = line.ask(text)
            if judge(text, found, again, hidden) is not Kind.SAME:
                return again
        return found

    def _weigh(self, statement: str, place: str, expected: Answer, found: Answer, hidden: Sequence[int]) -> None:
        if (used := USED.match(statement)) is not None:
            self._databases[self._current] = used[1]
        whole = ruled = COMMENTS.sub("", statement)
        if (prepared := PREPARED.match(statement)) is not None:
            self._prepared[prepared[1].lower()] = prepared[2]
        elif (executed := EXECUTED.match(statement)) is not None:
            whole = f"{statement} {self._prepared.get(executed[1].lower(), '')}"
            ruled = self._prepared.get(executed[1].lower(), "").strip(" \t\n'\"") or statement
        kind = judge(statement, expected, found, hidden)
        words = {word.lower() for word in WORD.findall(whole)}
        doubtful = bool(words & self._doubtful)
        before = set(self._doubtful)
        checked = set(self._pending)
        difference = self._follow(statement, words, kind, doubtful, found.code or expected.code)
        shown = str(expected), str(found)
        compared: Sequence[Answer] = expected, found
        if difference and kind in (Kind.SAME, Kind.WARNINGS, Kind.COUNTS):
            table, *compared = difference
            kind, shown = Kind.STORED, (f"{table} has {compared[0]}", f"{table} has {compared[1]}")
        if WRITES.match(statement) and self._rules.rule(place, statement, Kind.STORED, expected, found):
            self._excused |= words & self._tables
            if (created := created_table(statement)) and not expected.code:
                self._doubtful.add(_own_name(created))
        if kind is Kind.SAME:
            self._forget_excused(statement)
            return self._record(Verdict(place, statement, kind))
        rules = (self._rules.rule(place, each, kind, expected, found, shown) for each in (whole, ruled))
        rule = next(filter(None, rules), None)
        reason = rule.reason if rule else ""
        if rule:
            kind = rule.kind
        elif kind in (Kind.ROWS, Kind.STORED) and self._is_arbitrary(ruled, *compared):
            kind, reason = Kind.APART, "the rows of a group, or their order, leave the answer open"
        elif words & before or (before and LISTS_TABLES.match(statement)) or (kind is Kind.STORED and (words | checked) & self._excused):
            kind = Kind.FOLLOWED
        self._forget_excused(statement)
        self._record(Verdict(place, statement, kind, *shown, reason))

    def _forget_excused(self, statement: str) -> None:
        if ENDS_TRANSACTION.match(statement):
            self._excused = set()

    def _is_arbitrary(self, statement: str, expected: Answer, found: Answer) -> bool:
        """Whether both answers are right, or MySQL refuses the statement where there must be one answer."""
        if leaves_open(statement, expected, found):
            return True
        line = self._lines[self._current][1]
        line.ask("SET @mode_before = @@sql_mode, sql_mode = CONCAT(@@sql_mode, ',ONLY_FULL_GROUP_BY')")
        answer = line.ask(statement if READS.match(statement) else f"EXPLAIN {statement}")
        line.ask("SET sql_mode = @mode_before")
        return answer.code in (1055, 1140)

    def _follow(self, statement: str, words: set[str], kind: Kind, doubtful: bool, code: int) -> Stored | None:
        """`code`: of either server's error. Keep what is doubtful up to date; what is stored differently because of this statement."""
        before = set(self._doubtful)
        refused = kind in (Kind.REFUSED_HERE, Kind.REFUSED_THERE, Kind.TIME_OUT)
        created = CREATED.match(statement)
        name = _own_name(created[2]) if created else ""
        if created_table(statement):
            self._tables.add(name)
            self._temporary.discard(name)
            if TEMPORARY.match(statement):
                self._temporary.add(name)
        named = words & self._tables
        if (drops := DROPS.match(statement)) is not None:
            if code:
                self._drop_rest("TEMPORARY " if drops[1] else "", named)
            self._doubtful -= words
        elif DEFINES.match(statement) and refused:
            if created and created[1].upper() not in ("TABLE", "VIEW", "INDEX"):  # a function, trigger, user …
                self._doubtful |= named | {name}
            else:
                self._reconcile(statement, words, name)
        elif doubtful and created and created[1].upper() == "VIEW":
            self._doubtful.add(name)
        elif kind is Kind.SAME and created:
            self._doubtful -= {name}
        if CALLS.match(statement):
            self._doubtful |= {word for word in words if word.startswith("@")}
        if refused or kind is Kind.ROWS or doubtful:
            assigned = {each.lower() for pair in ASSIGNED.findall(statement) for part in pair for each in WORD.findall(part)}
            self._doubtful |= assigned
            if (prepared := PREPARED.match(statement)) is not None and refused:
                self._doubtful.add(prepared[1].lower())
        calls = CALLS.match(statement) is not None or code == UNKNOWN_FUNCTION
        if not (WRITES.match(statement) or calls):
            return None
        self._pending |= named
        checked = self._tables if calls else self._pending if ENDS_TRANSACTION.match(statement) else named
        if checked and (views := checked & self._views()):  # what is written through a view is in other tables
            checked = self._tables - views
        difference = None
        for table in sorted(checked):
            known = table in before
            found = self._stored_difference(table, NUMBERS_ROWS.match(statement) is not None)
            difference = difference or (None if known else found)
        if kind is Kind.TIME_OUT:  # it may still be at work
            self._doubtful |= named
        if ENDS_TRANSACTION.match(statement):
            self._pending = set()
        return difference

    def _reconcile(self, statement: str, words: set[str], created: str) -> None:
        """After a definition that one server has refused: let millrace have what MariaDB has, as far as that can be done."""
        database = self._databases.get(self._current, "test")
        if TEMPORARY.match(statement):
            self._doubtful.discard(created)
            if not remake_table(*self._lines[self._current], f"`{created}`"):
                self._doubtful.add(created)
            return
        self._doubtful -= words & self._tables
        different = reconcile(*self._observers, database, words)
        self._doubtful |= different
        self._tables |= different

    def _views(self) -> set[str]:
        found = relations(self._observers[0], self._databases.get(self._current, "test"))
        return {name.lower() for name, relation in found.items() if relation is Relation.VIEW}

    def _numbered(self, name: str) -> list[int]:
        """Where a table's AUTO_INCREMENT column is."""
        columns = self._observers[0].ask(f"SHOW COLUMNS FROM {name}").rows or []
        return [index for index, column in enumerate(columns) if column[-1] == b"auto_increment"]

    def _drop_rest(self, kind: str, names: set[str]) -> None:
        """MariaDB drops the tables that are there, MySQL 8.0 all or none: let both have none."""
        for line in self._lines[self._current]:
            for name in names:
                line.ask(f"DROP {kind}TABLE IF EXISTS `{name}`")

    def _stored_difference(self, table: str, selected: bool) -> Stored | None:
        """`selected`: the rows are those of a SELECT, so that which of them gets which AUTO_INCREMENT number is open."""
        name = f"`{self._databases.get(self._current, 'test')}`.`{table}`"
        lines = self._observers
        if table in self._temporary and self._lines[self._current][0].ask(f"SHOW CREATE TABLE {name}").message == "":
            lines = self._lines[self._current]
        counted = lines[0].ask(f"SELECT COUNT(*) FROM {name}")
        if counted.rows is None:
            return None  # not there, temporary, or locked: as far as can be seen it is the same
        count = int(counted.rows[0][0] or 0)
        compared_max = COUNTED_ROWS_MAX if selected else COMPARED_ROWS_MAX
        if count > COUNTED_ROWS_MAX:
            return None
        sql = f"SELECT {'COUNT(*)' if count > compared_max else '*'} FROM {name}"
        expected, found = (line.ask(sql) for line in lines)
        if expected.rows is None or found.timed_out or (found.rows is not None and same_rows(sql, expected, found, ())):
            return None
        self._doubtful.add(table)
        if found.code == 1049:
            return None  # its database was refused before
        if count <= compared_max and copy_rows(*lines, name, expected):
            self._doubtful.discard(table)
        if selected and found.rows is not None and same_rows(sql, expected, found, self._numbered(name)):
            return None
        return table, expected, found
