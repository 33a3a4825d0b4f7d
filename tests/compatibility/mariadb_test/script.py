"""What the commands of a test file do, with two servers at the other end.

Variables have a value for each server, since each may have answered a query in its own way; what
happens next is decided by MariaDB's. What only formats a result, waits for a state of the server or looks into
its files is passed over. A file that says it needs what is not compared here (`SKIPPING`) is left.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.compatibility.mariadb_test.language import Command, read

LOOPS_MAX = 20_000
Pair = tuple[str, str]
"""A text for MariaDB, and one for millrace."""

SKIPPING = re.compile(
    r"have_(debug\w*|log_bin|binlog_\w+|ssl\w*|\w*plugin|udf|wsrep|perfschema|metadata_lock_info|archive|blackhole|csv|federated\w*"
    r"|xtradb|cassandra|profiling|openssl|des|32bit|windows|lowercase1|case_insensitive_file_system)$"
    r"|master-slave|big_test|long_test|^windows$|not_linux|^not_asan$|have_file_key_management"
)
PASSED_OVER = re.compile(
    r"^(have|not|no|wait|check|count|expect|show|restart|start|kill|shutdown|default_optimizer|search_pattern|running|valgrind|diff|write"
    r"|protocol|linux|testdb_only|assert|have_|is_|mysqld|analyze-format|explain-no-costs|histogram|maria_|get_|update_use|write_var)"
)
_VARIABLE = re.compile(r"\\?\$(\w+)|\\?\$\{(\w+)\}")
_VALUE_OF_QUERY = re.compile(r"query_get_value\(\s*(.*)\s*,\s*([^,]+?)\s*,\s*(\d+)\s*\)\s*$", re.DOTALL | re.IGNORECASE)
_COMPARISON = re.compile(r"^(.*?)\s*(==|!=|<=|>=|<|>)\s*(.*)$", re.DOTALL)


class Conversation(Protocol):
    """Both servers, with the connections of the file."""

    def connect(self, name: str, user: str, password: str, database: str) -> None: ...
    def use(self, name: str) -> None: ...
    def disconnect(self, name: str) -> None: ...
    def ask(self, statement: Pair, place: str, hidden: Sequence[int]) -> Pair: ...
    def send(self, statement: Pair, place: str) -> None: ...
    def reap(self) -> None: ...
    def look_up(self, query: Pair, column: str, row: int) -> Pair: ...


class Skipped(Exception):
    """The file is not for these two servers."""


class Ended(Exception):
    """`exit`, or more than can be done."""


@dataclass(slots=True)
class Script:
    conversation: Conversation
    root: Path
    scratch: Path
    variables: dict[str, Pair] = field(default_factory=dict)
    hidden: list[int] = field(default_factory=list)
    parsing: bool = True
    files: list[Path] = field(default_factory=list)

    def run(self, path: Path) -> None:
        for name in ("MYSQLTEST_VARDIR", "MYSQL_TMP_DIR", "MYSQL_TEST_DIR", "MYSQLD_DATADIR"):
            self.variables[name] = (str(self.scratch), str(self.scratch))
        with contextlib.suppress(Ended):
            self._source(path)

    def _source(self, path: Path) -> None:
        if len(self.files) > 16:
            raise Ended
        self.files.append(path)
        self._run(read(path))
        self.files.pop()

    def _run(self, commands: Sequence[Command]) -> None:
        for command in commands:
            self._obey(command)

    def _obey(self, command: Command) -> None:
        word, text = command.word, command.text
        if not self.parsing:
            self.parsing = word == "enable_parsing"
            return
        place = f"{self.files[0].stem if len(self.files) == 1 else self.files[-1].name}:{command.line}"
        match word:
            case "":
                self._ask((text, text), place)
            case "eval" | "evalp":
                self._ask(self._filled(text), place)
            case "query" | "query_vertical" | "query_horizontal":
                self._ask(self._filled(text), place)
            case "send" | "send_eval":
                self.conversation.send(self._filled(text) if word == "send_eval" else (text, text), place)
            case "reap":
                self.conversation.reap()
            case "let":
                self._let(text)
            case "inc" | "dec":
                name = text.strip().lstrip("$").rstrip(";")
                step = 1 if word == "inc" else -1
                self._set(name, tuple(str(_number(value) + step) for value in self.variables.get(name, ("0", "0"))))
            case "if":
                if self._holds(text):
                    self._run(command.body)
            case "while":
                for _ in range(LOOPS_MAX):
                    if not self._holds(text):
                        break
                    self._run(command.body)
            case "source":
                self._include(self._filled(text)[0].strip())
            case "connect":
                parts = [part.strip().strip("'\"") for part in self._filled(text)[0].strip().strip("()").split(",")] + [""] * 5
                self.conversation.connect(parts[0], parts[2] or "root", parts[3], parts[4] or "test")
            case "connection":
                self.conversation.use(self._filled(text)[0].strip())
            case "disconnect" | "dirty_close":
                self.conversation.disconnect(self._filled(text)[0].strip())
            case "replace_column":
                self.hidden = [int(each) - 1 for each in re.findall(r"(?:^|\s)(\d+)\s+\S+", text)]
            case "disable_parsing":
                self.parsing = False
            case "write_file" | "append_file":
                self._write(self._filled(text)[0], command.lines, word == "append_file")
            case "remove_file":
                self._scratch_path(self._filled(text)[0]).unlink(missing_ok=True)
            case "skip":
                raise Skipped(text)
            case "exit" | "die":
                raise Ended

    def _ask(self, statement: Pair, place: str) -> None:
        hidden, self.hidden = self.hidden, []
        self._set("mysql_errno", self.conversation.ask(statement, place, hidden))

    def _include(self, name: str) -> None:
        stem = Path(name).stem
        if SKIPPING.search(stem):
            raise Skipped(stem)
        if PASSED_OVER.match(stem):
            return
        for folder in (self.root, self.files[-1].parent, self.root / "include"):
            if (folder / name).is_file():
                return self._source(folder / name)

    def _let(self, text: str) -> None:
        name, _, value = text.partition("=")
        value = value.strip().removesuffix(";")
        name = name.strip().lstrip("$")
        found = _VALUE_OF_QUERY.match(value)
        if found is not None:
            query = found[1].strip()
            if query[:1] in ("'", '"'):
                query = query[1:-1]
            self._set(name, self.conversation.look_up(self._filled(query), found[2].strip("\"' "), int(found[3])))
        else:
            self._set(name, self._value(value))

    def _value(self, text: str) -> Pair:
        text = text.strip()
        if text.startswith("`") and text.endswith("`") and len(text) > 1:
            return self.conversation.look_up(self._filled(text[1:-1]), "", 1)
        return self._filled(text)

    def _set(self, name: str, value: Sequence[str]) -> None:
        self.variables[name] = (value[0], value[1])

    def _filled(self, text: str) -> Pair:
        def fill(side: int) -> str:
            def replace(found: re.Match[str]) -> str:
                if found[0].startswith("\\"):
                    return found[0][1:]
                return self.variables.get(found[1] or found[2], ("", ""))[side]

            return _VARIABLE.sub(replace, text)

        return fill(0), fill(1)

    def _holds(self, condition: str) -> bool:
        condition = condition.strip()
        if condition.startswith("!"):
            return not self._holds(condition[1:])
        compared = None if condition.startswith("`") else _COMPARISON.match(condition)
        if compared is None:
            value = self._value(condition)[0].strip()
            return value not in ("", "0") and (not value.lstrip("-").isdigit() or int(value) != 0)
        left, right = (self._value(part)[0].strip().strip("'\"") for part in (compared[1], compared[3]))
        if compared[2] in ("==", "!="):
            return (left.lower() == right.lower()) == (compared[2] == "==")
        a, b = _number(left), _number(right)
        return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[compared[2]]

    def _scratch_path(self, text: str) -> Path:
        name = text.split()[0] if text.split() else "nothing"
        return self.scratch / Path(name.rstrip(";")).name

    def _write(self, text: str, content: str, append: bool) -> None:
        with self._scratch_path(text).open("ab" if append else "wb") as file:
            file.write(content.encode("utf-8", "surrogateescape"))


def _number(text: str) -> int:
    found = re.match(r"\s*-?\d+", text)
    return int(found[0]) if found else 0
