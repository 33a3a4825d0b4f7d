"""Expressions compiled to Python source, once, and run as plain functions.

`compile_scalar`, `compile_predicate` and `compile_row` are for whoever evaluates; `Emitter` is
for other code generators that put an expression's source into their own functions:

    emitter = Emitter(row="left", parameters="p")
    source = f"def f(left, p):\\n    return {emitter.output(expression)}"
    exec(source, emitter.namespace)

Emitted source is one Python expression. NULL is None; temporaries are bound by `:=`, so it may
stand in any function body, also in the condition or element of a comprehension (not in its
iterable). Integers that SQL calls booleans are 0 and 1.

DECIMAL division keeps more digits than its type has, as in MySQL, until the value leaves the
expression: `emit` gives the inner value, `output` the one with the digits of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Column, Expression, Literal, Parameter, columns_of, walk
from dataflow.expressions.fragment import Fragment
from dataflow.expressions.notices import overheard, said_once
from dataflow.functions.registry import is_volatile, lookup
from dataflow.values import numerals
from dataflow.values.conversion import Domain, conversion
from dataflow.values.conversion.moments import NUMERIC_DOMAINS, written_moment
from dataflow.values.inference import is_unsettled
from dataflow.values.result_limits import PACKET_BYTES_MAX, Size, bounded
from dataflow.values.types import NUMBERS, TEMPORALS, TEXTS, Kind, Row, SqlType, Value

Parameters = Sequence[Value]
Emitted = TypeVar("Emitted")
NULL_FRAGMENT = Fragment("None", nullable=True, atomic=True)
_DEPTH_MAX = 20
"""Deeper expressions are split into several functions: Python's parser has a limit."""
FOLDED_LENGTH_MAX = 1 << 16
"""Longer constants are computed when they are needed, and not kept with the plan."""

LEVELS_TRIED_MAX = 2
"""What is made of a constant that is too long to be kept is computed, once, to see whether that is short; but not level by level."""


class Emitter:
    """Turns expressions into source that reads the given variables.

    `columns` maps row positions to the source that reads them; without it they are read from
    the variable `row`. `namespace` collects the constants the source refers to by name. With
    `hoist`, conversions of parameters go to `prelude`, statements that the caller puts at
    the top of its function, once for all rows. With `division_errors`, dividing by zero is
    error 1365 instead of NULL: what strict mode wants for values that are to be stored. What is
    longer than `packet_bytes_max` is NULL.
    """

    def __init__(
        self,
        row: str = "r",
        parameters: str = "p",
        columns: Mapping[int, str] | Sequence[str] | None = None,
        namespace: dict[str, Any] | None = None,
        hoist: bool = False,
        division_errors: bool = False,
        packet_bytes_max: int = PACKET_BYTES_MAX,
    ) -> None:
        self.row = row
        self.parameters = parameters
        self.columns = columns
        self.namespace: dict[str, Any] = {} if namespace is None else namespace
        self.hoist = hoist
        self.division_errors = division_errors
        self.packet_bytes_max = packet_bytes_max
        self.prelude: list[str] = []
        self._hoisted: dict[str, Fragment] = {}
        self._names: dict[int, str] = {}
        self._kept: list[object] = []
        self._temporaries = 0
        self._depth = 0
        self._not_folded: dict[int, tuple[Expression, int]] = {}
        """With how many levels below are not folded, either."""
        self.bound: dict[int, str] = {}
        """The variables that have the values of expressions, by identity."""
        self._apart: dict[int, Expression] = {}

    # -- what code generators call

    def source(self, expression: Expression) -> str:
        """The value inside an expression; see `output`."""
        return self.emit(expression).source

    def output(self, expression: Expression) -> str:
        """The value as a result column or a stored one has it."""
        return self.settled(expression).source

    def truth(self, expression: Expression) -> str:
        """A Python condition that holds exactly where `expression` is true (not NULL, not 0)."""
        if isinstance(expression, Call):
            emit = lookup(expression.function).truth
            if emit is not None and not self._is_deep(expression) and not _is_foldable(expression):
                return self._nested(lambda: emit(self, expression))
        return self.condition(expression).source

    def falsity(self, expression: Expression) -> str:
        """A Python condition that holds exactly where `expression` is 0; NULL is not."""
        if isinstance(expression, Call):
            emit = lookup(expression.function).falsity
            if emit is not None and not self._is_deep(expression) and not _is_foldable(expression):
                return self._nested(lambda: emit(self, expression))
        fragment = self.condition(expression)
        if not fragment.nullable:
            return f"(not {fragment.source})"
        if fragment.atomic:
            return f"({fragment.source} is not None and not {fragment.source})"
        name = self.temporary()
        return f"(({name} := {fragment.source}) is not None and not {name})"

    # -- what functions call

    def emit(self, expression: Expression) -> Fragment:
        match expression:
            case Literal(value=value):
                return self.literal(value)
            case Column(index=index):
                if self.columns is None:
                    return Fragment(f"{self.row}[{index}]", nullable=True, atomic=True)
                return Fragment(self.columns[index], nullable=True, atomic=True)
            case Parameter(index=index):
                return Fragment(f"{self.parameters}[{index}]", nullable=True, atomic=True)
            case Call() if id(expression) in self.bound:
                return Fragment(self.bound[id(expression)], nullable=True, atomic=True)
            case Call():
                folded = self._fold(expression)
                if folded is not None:
                    return folded
                if self._is_deep(expression):
                    return self._outline(expression)
                function = lookup(expression.function)
                return self._nested(lambda: function.emit(self, expression))

    def settled(self, expression: Expression) -> Fragment:
        """`emit`, with a DECIMAL brought to the digits of its type."""
        fragment = self.emit(expression)
        if expression.type.kind is not Kind.DECIMAL or not is_unsettled(expression):
            return fragment
        known = self.namespace.get(fragment.source)
        if isinstance(known, Decimal):
            return self.literal(numerals.settle(known, numerals.quantum(expression.type.scale)))
        unit = self.constant(numerals.quantum(expression.type.scale))
        settle = self.constant(numerals.settle)
        return self.propagate([fragment], lambda value: f"{settle}({value}, {unit})")

    def convert(self, expression: Expression, domain: Domain, key: Callable[[Any], Any] | None = None, is_compared: bool = False) -> Fragment:
        """The value of `expression` in a domain, then `key` of it. Constants are converted now, or say once what is wrong with them."""
        found = conversion(expression.type, domain)
        function, nullable = found.function, found.nullable
        if domain is Domain.JSON_VALUE and not isinstance(expression, Column) and _is_boolean(expression):
            function = _json_boolean
        if domain in NUMERIC_DOMAINS and expression.type.kind in TEXTS and _is_date_sum(expression):
            function = written_moment(domain)
        if isinstance(expression, Literal):
            value: Any = expression.value
            with overheard() as heard:
                for step in (function, key):
                    if step is not None and value is not None:
                        value = step(value)
            if not heard:
                return self.literal(value)
        inner = self.settled(expression) if domain in (Domain.TEXT, Domain.BYTES, Domain.ANY) else self.emit(expression)
        for step in (function, key):
            if step is None or inner.source == "None":
                continue
            if self.hoist and is_constant(expression):
                inner = self._hoist(inner, step)
            else:
                once = said_once(step) if is_compared and is_constant(expression) else step
                inner = self.apply(once, [inner], result_nullable=nullable and step is function)
        return inner

    def condition(self, expression: Expression) -> Fragment:
        """Source that Python finds true exactly where SQL does; None where NULL."""
        if expression.type.kind in NUMBERS or expression.type.kind in TEMPORALS:
            return self.emit(expression)
        return self.convert(expression, Domain.NUMBER)

    def apply(
        self, function: Callable[..., Any], fragments: Sequence[Fragment], *, nulls: bool = False, result_nullable: bool = True
    ) -> Fragment:
        """A call of a Python function; unless it wants to see `nulls`, a NULL argument is a NULL result."""
        name = self.constant(function)
        if nulls:
            return Fragment(f"{name}({', '.join(f.source for f in fragments)})", result_nullable)
        return self.propagate(
            fragments, lambda *names: f"{name}({', '.join(names)})", result_nullable=result_nullable
        )

    def bounded(self, node: Call, body: Callable[..., Any], size: Size | None) -> Callable[..., Any]:
        """`body` of a function that can make long values of short ones; see `dataflow.values.result_limits`."""
        length = node.type.length
        if length is not None and length * 4 <= self.packet_bytes_max:
            return partial(body, bytes_max=self.packet_bytes_max) if size is None else body
        return bounded(node.function, body, size, self.packet_bytes_max)

    def propagate(
        self,
        fragments: Sequence[Fragment],
        body: Callable[..., str],
        *,
        result_nullable: bool = False,
        repeat: bool = False,
    ) -> Fragment:
        """`body` of the fragments' values where none of them is NULL, else NULL.

        `body` is given source for each value, which it may use once; any number of times
        with `repeat`.
        """
        checked, names = self.guarded(fragments, repeat)
        if checked is None:
            return NULL_FRAGMENT
        source = body(*names)
        if not checked:
            return Fragment(f"({source})", result_nullable)
        return Fragment(f"(None if {' or '.join(f'{name} is None' for name in checked)} else {source})", nullable=True)

    def guarded(self, fragments: Sequence[Fragment], repeat: bool = False) -> tuple[list[str] | None, list[str]]:
        """What has to be evaluated, in order, and be other than None; and source for the values then.

        The first is None if a fragment is always NULL.
        """
        checked: list[str] = []
        names: list[str] = []
        for fragment in fragments:
            if fragment.source == "None":
                return None, []
            if fragment.atomic:
                names.append(fragment.source)
                if fragment.nullable and fragment.source not in checked:
                    checked.append(fragment.source)
            elif fragment.nullable or repeat:
                name = self.temporary()
                names.append(name)
                checked.append(f"({name} := {fragment.source})")
            else:
                names.append(fragment.source)
        return checked, names

    def literal(self, value: Value) -> Fragment:
        if value is None:
            return NULL_FRAGMENT
        if isinstance(value, bool):
            value = int(value)
        if isinstance(value, int) or (isinstance(value, str | bytes) and len(value) < 200):
            source = repr(value) if not isinstance(value, int) or value >= 0 else f"({value!r})"
            return Fragment(source, nullable=False, atomic=True)
        return Fragment(self.constant(value), nullable=False, atomic=True)

    def constant(self, value: object) -> str:
        """A name for `value` in the namespace."""
        name = self._names.get(id(value))
        if name is None:
            name = f"k{len(self.namespace)}"
            while name in self.namespace:
                name += "_"
            self.namespace[name] = value
            self._names[id(value)] = name
            self._kept.append(value)
        return name

    def temporary(self) -> str:
        """The name of a fresh local variable."""
        self._temporaries += 1
        return f"t{self._temporaries}_"

    def set_apart(self, expressions: Iterable[Call]) -> None:
        """Each of these becomes a function of its own."""
        self._apart.update((id(each), each) for each in expressions)

    # -- inside

    def _nested(self, emit: Callable[[], Emitted]) -> Emitted:
        self._depth += 1
        try:
            return emit()
        finally:
            self._depth -= 1

    def _is_deep(self, expression: Call) -> bool:
        if self._depth >= _DEPTH_MAX and any(isinstance(argument, Call) for argument in expression.arguments):
            return True
        return id(expression) in self._apart

    def _outline(self, expression: Call) -> Fragment:
        """The expression as a function of its own."""
        inner = self._inner()
        used = sorted(columns_of(expression))
        inner.columns = {index: f"r[{position}]" for position, index in enumerate(used)}
        body = inner.emit(expression).source
        function = self.constant(_define("scalar", f"    return {body}", inner.namespace))
        row = ", ".join(self.emit(Column(index, SqlType(Kind.NULL))).source for index in used)
        return Fragment(f"{function}(({row}{',' if used else ''}), {self.parameters})")

    def _fold(self, expression: Call) -> Fragment | None:
        """The value of a call on constants, unless computing it is an error or has something to say (both when it is run)."""
        if not _is_foldable(expression) or id(expression) in self._not_folded:
            return None
        inner, function, levels = self._inner(), lookup(expression.function), 1
        try:
            with overheard() as heard:
                source = self._nested(lambda: function.emit(inner, expression)).source
                levels = 1 + max([self._not_folded[id(each)][1] for each in expression.arguments if id(each) in self._not_folded], default=0)
                if levels > LEVELS_TRIED_MAX:
                    raise OverflowError
                value = _define("constant", f"    return {source}", inner.namespace)((), ())
            if not heard and not (isinstance(value, str | bytes) and len(value) > FOLDED_LENGTH_MAX):
                return self.literal(value)
        except Exception:
            pass
        self._not_folded[id(expression)] = (expression, levels)
        return None

    def _inner(self) -> Emitter:
        """For a part of the expression that becomes a function of its own."""
        inner = Emitter(division_errors=self.division_errors, packet_bytes_max=self.packet_bytes_max)
        inner._not_folded = self._not_folded
        return inner

    def _hoist(self, inner: Fragment, function: Callable[[Any], Any]) -> Fragment:
        source = self.apply(function, [inner]).source
        if source not in self._hoisted:
            name = f"h{len(self._hoisted)}_"
            self.prelude.append(f"{name} = {source}")
            self._hoisted[source] = Fragment(name, nullable=True, atomic=True)
        return self._hoisted[source]

def _is_foldable(expression: Expression) -> bool:
    """Whether the value is the same wherever and whenever it is computed."""
    pending = [expression]
    while pending:
        match pending.pop():
            case Literal():
                pass
            case Call(function=function, arguments=arguments) if function != "row" and lookup(function).deterministic:
                pending.extend(arguments)
            case _:
                return False
    return True


def _is_date_sum(expression: Expression) -> bool:
    """'2000-01-01' + INTERVAL 1 DAY: a text, but as a number that of the date."""
    return isinstance(expression, Call) and expression.function in ("date_add", "date_sub", "adddate", "subdate")


def _is_boolean(expression: Expression) -> bool:
    return expression.type.kind is Kind.TINYINT and expression.type.length == 1


def _json_boolean(value: object) -> str:
    return "true" if value else "false"


def _define(name: str, body: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    try:
        exec(f"def {name}(r, p):\n{body}\n", namespace)
    except (SyntaxError, MemoryError) as error:  # Python's compiler has a limit of its own
        if "nested" not in str(error) and not isinstance(error, MemoryError):
            raise
        raise InvalidStatement(Condition.STACK_OVERRUN, 0, 0, 0) from None
    function: Callable[..., Any] = namespace[name]
    return function


def compile_scalar(expression: Expression, division_errors: bool = False) -> Callable[[Row, Parameters], Value]:
    """`f(row, parameters)`: the expression's value."""
    if isinstance(expression, Parameter):  # lists of thousands are not worth compiling
        index = expression.index
        return lambda row, parameters: parameters[index]
    emitter = Emitter(division_errors=division_errors)
    return _define("scalar", f"    return {emitter.output(expression)}", emitter.namespace)


def compile_predicate(expression: Expression) -> Callable[[Row, Parameters], bool]:
    """`f(row, parameters)`: whether the expression is true; NULL is not."""
    emitter = Emitter()
    return _define("predicate", f"    return True if {emitter.truth(expression)} else False", emitter.namespace)


def compile_row(expressions: Sequence[Expression], division_errors: bool = False) -> Callable[[Row, Parameters], Row]:
    """`f(row, parameters)`: the values of several expressions as one row."""
    emitter = Emitter(division_errors=division_errors)
    values = "".join(f"{emitter.output(expression)}, " for expression in expressions)
    return _define("values", f"    return ({values})", emitter.namespace)


def is_constant(expression: Expression) -> bool:
    """Whether the value depends on parameters at most, not on a row."""
    return not any(isinstance(node, Column) for node in walk(expression)) and not is_volatile(expression)
