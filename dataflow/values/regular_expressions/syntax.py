"""ICU's pattern language, read once and written for RE2 and for `regex`.

Flags for lines are resolved here: `.`, `^` and `$` are written out for the mode they stand in, so the engines need
to know of upper and lower case only. What is wrong with a pattern gets the error that MySQL 8.0 gives for it. Look-behind
of unbounded length, which ICU refuses, is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dataflow.errors import Condition, InvalidStatement
from dataflow.values.regular_expressions.characters import LINE_ENDS, literal, ranges
from dataflow.values.regular_expressions.reader import PatternReader
from dataflow.values.regular_expressions.sets import Set, read_set


@dataclass(slots=True)
class Translation:
    """`linear` is for RE2, None where it lacks something that the pattern uses.

    RE2 agrees with ICU on a text if: with `has_word_boundary` it is ASCII, with `has_line_end` (a `$` outside of
    multiline mode) it does not end with the end of a line, and with `is_multiline` no line ends but with \\n, nor the text.
    """

    linear: str | None = ""
    backtracking: str = ""
    groups: int = 0
    names: dict[str, int] = field(default_factory=dict)
    has_word_boundary: bool = False
    has_line_end: bool = False
    is_multiline: bool = False

    @property
    def fits_any_text(self) -> bool:
        return not (self.has_word_boundary or self.has_line_end or self.is_multiline)


@dataclass(frozen=True, slots=True)
class Flags:
    multiline: bool
    dot_all: bool
    free_spacing: bool = False


_LOOKING = ("(?=", "(?!", "(?<=", "(?<!", "(?>")


class _Writer:
    """Goes through the pattern from left to right, with a stack of the flags outside of each open group."""

    def __init__(self, pattern: str, flags: Flags, unix_lines: bool) -> None:
        self.reader = PatternReader(pattern)
        self.flags = flags
        self.outer: list[Flags] = []
        self.linear: list[str] | None = []
        self.backtracking: list[str] = []
        self.result = Translation()
        self.references: list[int | str] = []
        self.line_ends = "\n" if unix_lines else LINE_ENDS

    def write(self, linear: str | None, backtracking: str | None = None) -> None:
        """None for `linear` if RE2 has nothing like it; `backtracking` is the same unless given."""
        self.backtracking.append(backtracking if backtracking is not None else linear or "")
        if linear is None:
            self.linear = None
        elif self.linear is not None:
            self.linear.append(linear)

    def run(self) -> Translation:
        reader = self.reader
        while character := reader.take():
            if self.flags.free_spacing and character.isspace():
                continue
            if self.flags.free_spacing and character == "#":
                end = reader.pattern.find("\n", reader.at)
                reader.at = len(reader.pattern) if end < 0 else end + 1
                continue
            if self.term(character):
                self.quantifier()
        if self.outer:
            raise InvalidStatement(Condition.REGULAR_EXPRESSION_PARENTHESIS)
        for reference in self.references:
            if isinstance(reference, int) and reference > self.result.groups:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_REFERENCE)
        self.result.linear = None if self.linear is None else "".join(self.linear)
        self.result.backtracking = "".join(self.backtracking)
        return self.result

    def term(self, character: str) -> bool:
        """Write what starts with `character`; whether it may be repeated."""
        match character:
            case "\\":
                return self.escape()
            case "[" if self.reader.takes("[:<:]]"):
                self.write(None, r"\b(?=\w)")
                return False
            case "[" if self.reader.takes("[:>:]]"):
                self.write(None, r"\b(?<=\w)")
                return False
            case "[":
                self.set(read_set(self.reader))
            case "(":
                return self.open()
            case ")":
                if not self.outer:
                    raise InvalidStatement(Condition.REGULAR_EXPRESSION_PARENTHESIS)
                self.flags = self.outer.pop()
                self.write(")")
            case "|":
                self.write("|")
                return False
            case ".":
                ends = "".join(map(literal, self.line_ends))
                self.write("(?s:.)" if self.flags.dot_all else f"[^{ends}]")
            case "^":
                self.line_start()
                return False
            case "$":
                self.line_end(self.flags.multiline)
                return False
            case "*" | "+" | "?" | "{":
                self.reader.at -= 1
                raise self.reader.syntax_error()
            case _:
                self.write(literal(character))
        return True

    def set(self, found: Set) -> None:
        sign = "^" if found.negated else ""
        linear = None if found.linear is None else f"[{sign}{found.linear}]"
        self.write(linear, f"[{sign}{found.backtracking}]")

    def line_start(self) -> None:
        if not self.flags.multiline:
            self.write(r"\A")
            return
        self.result.is_multiline = True
        ends = "".join(map(literal, self.line_ends))
        crlf = "" if self.line_ends == "\n" else r"(?!(?<=\r)\n)"
        self.write("(?m:^)", rf"(?:\A|(?<=[{ends}]){crlf}(?!\Z))")

    def line_end(self, multiline: bool) -> None:
        ends = "".join(map(literal, self.line_ends))
        crlf = "" if self.line_ends == "\n" else r"(?<!\r(?=\n))"
        if multiline:
            self.result.is_multiline = True
            self.write("(?m:$)", rf"(?:\Z|(?=[{ends}]){crlf})")
        else:
            self.result.has_line_end = True
            pair = "" if self.line_ends == "\n" else r"\r\n|"
            self.write(r"\z", rf"(?:(?=(?:{pair}[{ends}])?\Z){crlf})")

    def escape(self) -> bool:
        reader = self.reader
        character = reader.escaped_character()
        if character is not None:
            self.write(literal(character))
            return True
        known = reader.property()
        if known is not None:
            inside, negated = known
            sign = "^" if negated else ""
            self.write(f"[{sign}{ranges(inside)}]", f"[{sign}{inside}]")
            return True
        letter = reader.take()
        match letter:
            case "A":
                self.write(r"\A")
                return False
            case "Z":
                self.line_end(multiline=False)
                return False
            case "z":
                self.write(r"\z", r"\Z")
                return False
            case "b" | "B":
                self.result.has_word_boundary = True
                self.write("\\" + letter)
                return False
            case "G":
                self.write(None, r"\G")
                return False
            case "R":
                self.write(None, r"(?>\r\n|[\n-\r\x85\u2028\u2029])")
            case "X":
                self.write(None, r"\X")
            case "Q":
                text = reader.pattern[reader.at :].partition("\\E")[0]
                reader.at += len(text) + 2
                self.write("".join(map(literal, text)))
            case "k":
                if not reader.takes("<"):
                    raise InvalidStatement(Condition.REGULAR_EXPRESSION_ESCAPE)
                name = reader.until(">", Condition.REGULAR_EXPRESSION_GROUP_NAME)
                if name not in self.result.names:
                    raise InvalidStatement(Condition.REGULAR_EXPRESSION_REFERENCE)
                self.write(None, rf"\g<{self.result.names[name]}>")
            case _ if letter.isdecimal() and letter.isascii():
                number = int(letter)
                self.references.append(number)
                self.write(None, rf"\g<{number}>")
            case _:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_ESCAPE)
        return True

    def open(self) -> bool:
        """A group, or flags for the rest of the group that is open."""
        reader = self.reader
        if not reader.takes("?"):
            self.outer.append(self.flags)
            self.result.groups += 1
            self.write("(")
            return False
        if reader.takes("#"):
            reader.until(")", Condition.REGULAR_EXPRESSION_PARENTHESIS)
            return False
        if reader.takes(":"):
            self.outer.append(self.flags)
            self.write("(?:")
            return False
        for looking in _LOOKING:
            if reader.takes(looking[2:]):
                self.outer.append(self.flags)
                self.write(None, looking)
                return False
        if reader.takes("<"):
            name = reader.until(">", Condition.REGULAR_EXPRESSION_GROUP_NAME)
            if not (name.isascii() and name.isalnum() and name[0].isalpha()) or name in self.result.names:
                raise InvalidStatement(Condition.REGULAR_EXPRESSION_GROUP_NAME)
            self.outer.append(self.flags)
            self.result.groups += 1
            self.result.names[name] = self.result.groups
            self.write("(")
            return False
        return self.new_flags()

    def new_flags(self) -> bool:
        reader, flags, on, case = self.reader, self.flags, True, ""
        while (letter := reader.take()) not in (")", ":"):
            match letter:
                case "i":
                    case = "(?i" if on else "(?-i"
                case "m":
                    flags = replace(flags, multiline=on)
                case "s":
                    flags = replace(flags, dot_all=on)
                case "x":
                    flags = replace(flags, free_spacing=on)
                case "-" if on:
                    on = False
                case "":
                    raise InvalidStatement(Condition.REGULAR_EXPRESSION_PARENTHESIS)
                case "w":
                    raise InvalidStatement(Condition.REGULAR_EXPRESSION_UNIMPLEMENTED)
                case _:
                    raise InvalidStatement(Condition.REGULAR_EXPRESSION_FLAG)
        if letter == ":":
            self.outer.append(self.flags)
            self.write(f"{case}:" if case else "(?:")
        elif case:
            self.write(f"{case})")
        self.flags = flags
        return False

    def quantifier(self) -> None:
        reader = self.reader
        sign = reader.peek()
        if sign in ("*", "+", "?") and sign:
            reader.take()
        elif sign == "{":
            reader.take()
            sign = self.interval(reader.until("}", Condition.REGULAR_EXPRESSION_INTERVAL))
        else:
            return
        if reader.takes("+"):
            self.write(None, f"{sign}+")
        else:
            self.write(sign + ("?" if reader.takes("?") else ""))

    @staticmethod
    def interval(text: str) -> str:
        least, comma, most = (part.strip() for part in text.partition(","))
        if not (least.isascii() and least.isdecimal()) or (most and not (most.isascii() and most.isdecimal())):
            raise InvalidStatement(Condition.REGULAR_EXPRESSION_INTERVAL)
        if len(least) > 8 or len(most) > 8:
            raise InvalidStatement(Condition.REGULAR_EXPRESSION_SIZE)
        if most and int(most) < int(least):
            raise InvalidStatement(Condition.REGULAR_EXPRESSION_MAXIMUM)
        return f"{{{int(least)}{comma}{int(most) if most else ''}}}"


def translate(pattern: str, multiline: bool = False, dot_all: bool = False, unix_lines: bool = False) -> Translation:
    return _Writer(pattern, Flags(multiline, dot_all), unix_lines).run()
