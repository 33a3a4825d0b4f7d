"""XPath as EXTRACTVALUE and UPDATEXML know it: location paths with predicates, `|`, comparisons, arithmetic and functions.

A path finds nodes in document order, each once. What a predicate compares are texts: an element is its text children, any of which
may fulfil the comparison. Numbers compare as numbers. `$@name` is a user variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil, floor, fmod, inf

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.notices import say
from dataflow.expressions.user_variables import UserVariables
from dataflow.functions.searching import finder
from dataflow.functions.xml_nodes import TEXT, Nodes, XmlNode, in_order, root_of
from dataflow.values.collation.keys import Key
from dataflow.values.conversion.texts import text_of
from dataflow.values.numerals import format_double
from dataflow.values.short_cache import kept_if_short

XmlValue = Nodes | float | str | bool | None
"""None is a user variable that is NULL."""


@dataclass(frozen=True, slots=True)
class Focus:
    """What an expression is about: a node, its position among `size`, the key by which texts compare, and the user variables."""

    node: XmlNode
    position: int
    size: int
    key: Key
    variables: UserVariables | None = None

    def variable(self, name: str) -> XmlValue:
        value = None if self.variables is None else self.variables.get(name)
        return float(value) if isinstance(value, int | float | Decimal) else None if value is None else text_of(value)


Evaluate = Callable[[Focus], XmlValue]
AXES: dict[str, Callable[[XmlNode], Sequence[XmlNode] | Iterator[XmlNode]]] = {
    "child": lambda node: node.children,
    "attribute": lambda node: node.attributes,
    "self": lambda node: (node,),
    "parent": lambda node: () if node.parent is None else (node.parent,),
    "descendant": XmlNode.below,
    "descendant-or-self": lambda node: (node, *node.below()),
    "ancestor": XmlNode.above,
    "ancestor-or-self": lambda node: (node, *node.above()),
}
TOKEN = re.compile(r"\s*(//|::|\.\.|!=|<=|>=|\d+(?:\.\d+)?|[^\W\d][\w.-]*(?::[^\W\d][\w.-]*)?|'[^']*'|\"[^\"]*\"|[/\[\]()@.*|=<>,$+-])")
COMPARED: dict[str, Callable[[object, object], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,  # type: ignore[operator]
    "<=": lambda left, right: left <= right,  # type: ignore[operator]
    ">": lambda left, right: left > right,  # type: ignore[operator]
    ">=": lambda left, right: left >= right,  # type: ignore[operator]
}


@kept_if_short(256)
def xml_path(text: str) -> Evaluate:
    """What a path finds; error 1105, as MySQL's, for what is none."""
    return _Parser(text).parse()


def _number(value: XmlValue) -> float:
    if isinstance(value, float | bool):
        return float(value)
    found = re.match(r"\s*-?\d+(\.\d*)?", _text(value))
    return float(found[0]) if found else 0.0


def _text(value: XmlValue) -> str:
    return format_double(value) if isinstance(value, float) else next(iter(_texts(value)), "")


def _is_true(value: XmlValue, focus: Focus) -> bool:
    if isinstance(value, str) and not value.strip().isdecimal():
        say(Condition.TRUNCATED_VALUE, "INTEGER", value)
    return bool(value) if isinstance(value, bool | list) else _number(value) == focus.position


def _texts(value: XmlValue) -> list[str]:
    return [text.value for node in value for text in node.texts] if isinstance(value, list) else [] if value is None else [str(value)]


def _compared(operator: str, left: XmlValue, right: XmlValue, focus: Focus) -> bool:
    compare = COMPARED[operator]
    if isinstance(left, list) and isinstance(right, list):
        raise InvalidStatement(Condition.UNKNOWN_ERROR, "XPATH error: comparison of two nodesets is not supported")
    if isinstance(left, bool) or isinstance(right, bool):
        return compare(bool(left), bool(right))
    if operator in ("=", "!=") and not isinstance(left, float) and not isinstance(right, float):
        return any(compare(focus.key(one), focus.key(other)) for one in _texts(left) for other in _texts(right))
    first, second = ([each] if isinstance(each, float) else [_number(text) for text in _texts(each)] for each in (left, right))
    return any(compare(one, other) for one in first for other in second)


def _contains(focus: Focus, whole: XmlValue, part: XmlValue) -> bool:
    find = finder(focus.key, False)
    return any(find(one, other, 0) >= 0 for one in _texts(whole) for other in _texts(part))


def _substring(focus: Focus, value: XmlValue, start: XmlValue, length: XmlValue = inf) -> str:
    first = _number(start)
    begin, end = max(first, 1), first + (inf if length == inf else _number(length))
    return "" if first < 1 or end <= begin else _text(value)[int(begin) - 1 : None if end == inf else int(end) - 1]


OF_FOCUS: dict[str, Evaluate] = {
    "position()": lambda focus: float(focus.position),
    "last()": lambda focus: float(focus.size),
    "count(.)": lambda focus: float(focus.size),  # as MySQL has it
    "string-length()": lambda focus: float(len(_text([focus.node]))),
}
"""What only a predicate can ask."""
FUNCTIONS: dict[tuple[str, int], Callable[..., XmlValue]] = {
    ("true", 0): lambda focus: True,
    ("false", 0): lambda focus: False,
    ("not", 1): lambda focus, value: not value,
    ("boolean", 1): lambda focus, value: bool(value),
    ("number", 1): lambda focus, value: _number(value),
    ("count", 1): lambda focus, value: float(len(value)) if isinstance(value, list) else 0.0,
    ("sum", 1): lambda focus, value: float(sum(map(_number, _texts(value)))),
    ("floor", 1): lambda focus, value: float(floor(_number(value))),
    ("ceiling", 1): lambda focus, value: float(ceil(_number(value))),
    ("round", 1): lambda focus, value: float(floor(_number(value) + 0.5)),
    ("string-length", 1): lambda focus, value: float(len(_text(value))),
    ("concat", 2): lambda focus, *values: "".join(map(_text, values)),
    ("concat", 3): lambda focus, *values: "".join(map(_text, values)),
    ("contains", 2): _contains,
    ("substring", 2): _substring,
    ("substring", 3): _substring,
}
COMPUTED: dict[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "div": lambda left, right: left / right if right else 0.0,
    "mod": lambda left, right: fmod(left, right) if right else 0.0,
}


def _computed(compute: Callable[[float, float], float], left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda focus: compute(_number(left(focus)), _number(right(focus)))


class _Parser:
    """Recursive descent; a method for each level of the grammar."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, int]] = []
        self.text, self.at, self.predicates = text, 0, 0
        place = 0
        while text[place:].strip():
            found = TOKEN.match(text, place)
            if found is None:
                raise self._wrong(place)
            self.tokens.append((found[1], found.start(1)))
            place = found.end()

    def _wrong(self, place: int) -> InvalidStatement:
        return InvalidStatement(Condition.UNKNOWN_ERROR, f"XPATH syntax error: '{self.text[place : place + 128]}'")

    @property
    def next(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next token if it is one of those, else nothing."""
        if self.next not in wanted:
            return ""
        self.at += 1
        return self.tokens[self.at - 1][0]

    def demand(self, token: str) -> None:
        if not self.take(token):
            raise self._wrong(self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text))

    def parse(self) -> Evaluate:
        found = self.disjunction()
        if self.next:
            raise self._wrong(self.tokens[self.at][1])
        return found

    def disjunction(self) -> Evaluate:
        parts = [self.conjunction()]
        while self.take("or"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else lambda focus: any(bool(part(focus)) for part in parts)

    def conjunction(self) -> Evaluate:
        parts = [self.comparison()]
        while self.take("and"):
            parts.append(self.comparison())
        return parts[0] if len(parts) == 1 else lambda focus: all(bool(part(focus)) for part in parts)

    def comparison(self) -> Evaluate:
        left = self.sum()
        operator = self.take(*COMPARED)
        if not operator:
            return left
        right = self.sum()
        return lambda focus: _compared(operator, left(focus), right(focus), focus)

    def sum(self) -> Evaluate:
        found = self.product()
        while operator := self.take("+", "-"):
            found = _computed(COMPUTED[operator], found, self.product())
        return found

    def product(self) -> Evaluate:
        found = self.signed()
        while operator := self.take("*", "div", "mod"):
            found = _computed(COMPUTED[operator], found, self.signed())
        return found

    def signed(self) -> Evaluate:
        if not self.take("-"):
            return self.union()
        found = self.signed()
        return lambda focus: -_number(found(focus))

    def union(self) -> Evaluate:
        parts = [self.operand()]
        while self.take("|"):
            parts.append(self.operand())
        if len(parts) == 1:
            return parts[0]

        def evaluate(focus: Focus) -> XmlValue:
            found = [part(focus) for part in parts]
            return in_order(node for each in found if isinstance(each, list) for node in each)

        return evaluate

    def operand(self) -> Evaluate:
        token, after = self.next, self.tokens[self.at + 1][0] if self.at + 1 < len(self.tokens) else ""
        if token[:1] in ("'", '"'):
            self.at += 1
            return lambda focus: token[1:-1]
        if token[:1].isdigit():
            self.at += 1
            return lambda focus: float(token)
        if self.take("$"):
            return self.variable()
        if self.take("("):
            inner = self.disjunction()
            self.demand(")")
            return self.path(inner) if self.next in ("/", "//") else inner
        if after == "(" and token not in ("text", "node"):
            return self.function(token)
        return self.path()

    def variable(self) -> Evaluate:
        """Behind `$`. Those of stored programs are without `@`, and nobody has them."""
        place = self.tokens[self.at][1] - 1 if self.at < len(self.tokens) else len(self.text) - 1
        if not self.take("@"):
            name = self.text[place:]
            raise InvalidStatement(Condition.UNKNOWN_ERROR, f"Unknown XPATH variable at: '{name[:128]}'")
        name = self.next.lower()
        if not re.match(r"[^\W\d]", name):
            raise self._wrong(place + 2)
        self.at += 1
        return lambda focus: focus.variable(name)

    def function(self, name: str) -> Evaluate:
        start = self.at
        self.at += 2
        arguments = []
        while self.next != ")":
            arguments.append(self.disjunction())
            if not self.take(","):
                break
        self.demand(")")
        call = "".join([token for token, _ in self.tokens[start : self.at]])
        if call in OF_FOCUS and self.predicates:
            return OF_FOCUS[call]
        if (name, len(arguments)) not in FUNCTIONS:
            raise self._wrong(self.tokens[start + 1][1])
        function = FUNCTIONS[name, len(arguments)]
        return lambda focus: function(focus, *[each(focus) for each in arguments])

    def path(self, start: Evaluate | None = None) -> Evaluate:
        """`start` finds the nodes that it begins with, in place of the root or of the node in focus."""
        steps: list[Callable[[Focus], Nodes]] = []
        separator = self.take("/", "//")
        absolute = bool(separator)
        if start is None and separator == "/" and (not self.next or self.next in ("|", "]", ")", "=", ",")):
            return lambda focus: [root_of(focus.node)]
        while True:
            if separator == "//":
                steps.append(lambda focus: list(AXES["descendant-or-self"](focus.node)))
            steps.append(self.step())
            separator = self.take("/", "//")
            if not separator:
                break

        def evaluate(focus: Focus) -> XmlValue:
            begun = [root_of(focus.node) if absolute else focus.node] if start is None else start(focus)
            nodes = begun if isinstance(begun, list) else []
            for step in steps:
                nodes = in_order(found for node in nodes for found in step(replace(focus, node=node)))
            return nodes

        return evaluate

    def step(self) -> Callable[[Focus], Nodes]:
        axis = "child"
        if self.take("."):
            axis, name = "self", ""
        elif self.take(".."):
            axis, name = "parent", ""
        else:
            if self.take("@"):
                axis = "attribute"
            elif self.at + 1 < len(self.tokens) and self.tokens[self.at + 1][0] == "::" and self.next in AXES:
                axis = self.take(*AXES)
                self.demand("::")
            name = self.next
            if name != "*" and not name[:1].isalpha() and name[:1] != "_":
                raise self._wrong(self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text))
            self.at += 1
            if name in ("text", "node") and self.take("("):
                self.demand(")")
                name = TEXT if name == "text" else ""
        predicates = []
        while self.take("["):
            self.predicates += 1
            predicates.append(self.disjunction())
            self.predicates -= 1
            self.demand("]")

        def found(focus: Focus) -> Nodes:
            nodes = [each for each in AXES[axis](focus.node) if _is_named(each, name, axis)]
            for predicate in predicates:
                foci = [Focus(each, place, len(nodes), focus.key, focus.variables) for place, each in enumerate(nodes, 1)]
                nodes = [focus.node for focus in foci if _is_true(predicate(focus), focus)]
            return nodes

        return found


def _is_named(node: XmlNode, name: str, axis: str) -> bool:
    if name == "":
        return True
    if axis == "attribute":
        return name in ("*", node.name[1:])
    return node.is_element and node.parent is not None if name == "*" else node.name == name
