"""Every operator and scalar function by lower-case name, and how to add one.

A `Function` knows its argument count, the type of its result, and how to emit its code.
`call(name, *arguments)` is the only way expressions are built: it checks the count (1582),
infers the type and returns a `Call`. What a name means in SQL text is the planner's business.

**A plain function.** Most functions are a Python function over values of declared domains:

    @function("lower", "lcase", arguments=(Domain.TEXT,), result=text_like)
    def lower(value: str) -> str:
        return value.lower()

    @function("substr", "substring", "mid", arguments=(Domain.TEXT, Domain.INTEGER, Domain.INTEGER),
              optional=1, result=text_like)
    def substr(value: str, start: int, length: int = 1 << 62) -> str: ...

- `arguments` are the domains of the positional arguments; the compiler emits the conversion
  from each argument's static type, and constants are converted when compiling. `optional` of
  the last ones may be missing (use Python defaults). `rest` is the domain of any further ones.
- NULL: if any argument is NULL the result is NULL and the function is not called. With
  `nulls=True` it is called with None instead. Returning None gives NULL. A value that cannot
  be converted (an invalid date for `Domain.DATETIME`) counts as NULL too.
- `result` is an `SqlType`, or a function of the argument expressions that returns one. The
  returned Python value must be what `dataflow.values.types` says for it: a DECIMAL has exactly
  `scale` digits, text is str, BLOB types are bytes, dates are packed ints.
- `deterministic=False` forbids folding a call on constants, and views of what it is in. So does
  `volatile=True` (RAND, UUID), which has another value for each row even if it reads none.
- `size` is for a function whose result can be longer than its arguments: see `dataflow.values.result_limits`. With
  `limited=True` the function is given the limit itself, as `bytes_max`.
- `specialise=True`: the decorated function is given the argument *expressions* and returns
  the plain function; for what depends on types or collations, or is prepared once:

    @function("strcmp", arguments=(Domain.TEXT, Domain.TEXT), result=BIGINT, specialise=True)
    def strcmp(arguments: tuple[Expression, ...]) -> Callable[..., int]:
        key = collation_key(merged_collation(arguments, "strcmp"))
        return lambda left, right: (key(left) > key(right)) - (key(left) < key(right))

**A special one** emits its own source, e.g. to evaluate arguments lazily:

    @special("ifnull", least=2, most=2, result=merged_type)
    def ifnull(emitter: Emitter, call: Call) -> Fragment: ...

See `dataflow.expressions.compile.Emitter` for what it may use. Files in this package are imported by
`dataflow.functions`, so a new module needs no registration of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Expression, Literal, walk
from dataflow.expressions.fragment import Fragment
from dataflow.values.collation.coercion import OF_THEIR_OWN, merged_collation
from dataflow.values.conversion import Domain
from dataflow.values.inference import merged_length
from dataflow.values.result_limits import PACKET_BYTES_MAX, Size, planned
from dataflow.values.types import BIGINT, BLOBS, DEFAULT_COLLATION, STRINGS, TEXTS, SqlType, text

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

__all__ = [
    "Domain",
    "Fragment",
    "Function",
    "call",
    "function",
    "is_deterministic",
    "is_function",
    "is_volatile",
    "lookup",
    "special",
    "text_like",
]


OF_ROWS = frozenset({"=", "<>", "!=", "<", "<=", ">", ">=", "<=>", "in", "not in", "row"})
"""Functions whose arguments may be rows of several values; of the others each is one value (error 1241)."""

Arguments = tuple[Expression, ...]
Infer = Callable[[Arguments], SqlType]
Emit = Callable[["Emitter", Call], Fragment]


@dataclass(frozen=True, slots=True)
class Function:
    """`truth` and `falsity`, where given, emit a Python condition that holds exactly when the
    call is true, or false (NULL is neither); without them it is derived from the value. What `grows` can be
    longer than its arguments: the session's limit belongs to the call."""

    name: str
    least: int
    most: int | None
    infer: Infer
    emit: Emit
    deterministic: bool = True
    truth: Callable[[Emitter, Call], str] | None = None
    falsity: Callable[[Emitter, Call], str] | None = None
    volatile: bool = False
    grows: bool = False


_functions: dict[str, Function] = {}


def is_function(name: str) -> bool:
    return name.lower() in _functions


def lookup(name: str) -> Function:
    found = _functions.get(name) or _functions.get(name.lower())
    if found is None:
        raise InvalidStatement(Condition.UNKNOWN_FUNCTION, name)
    return found


def is_deterministic(expression: Expression) -> bool:
    """Whether the same columns and parameters always give the same value."""
    return all(lookup(each.function).deterministic for each in walk(expression) if isinstance(each, Call))


def is_volatile(expression: Expression) -> bool:
    """Whether it has another value for each row, even if it reads none."""
    return any(lookup(each.function).volatile for each in walk(expression) if isinstance(each, Call))


def call(name: str, *arguments: Expression) -> Call:
    """The typed call of a function or operator; errors 1305 and 1582 as MySQL's."""
    found = lookup(name)
    if len(arguments) < found.least or (found.most is not None and len(arguments) > found.most):
        raise InvalidStatement(Condition.WRONG_ARGUMENT_COUNT, name.upper())
    if name not in OF_ROWS:
        check_single(*arguments)
    made = Call(found.name, arguments, found.infer(arguments))
    limit = planned().packet_bytes_max
    if not found.grows or limit == PACKET_BYTES_MAX:
        return made
    return Call("limited", (made, Literal(limit, BIGINT)), made.type)


def check_single(*values: Expression) -> None:
    """Error 1241 for what is a row of several values."""
    for each in values:
        if isinstance(each, Call) and each.function == "row":
            raise InvalidStatement(Condition.OPERAND_COLUMNS, 1)


def register(entry: Function, *aliases: str) -> None:
    for name in (entry.name, *aliases):
        assert name not in _functions, f"{name} is registered twice"
        _functions[name] = replace(entry, name=name)


def text_like(arguments: Arguments) -> SqlType:
    """Text in the collation the string arguments agree on; binary if one of them is."""
    collation = merged_collation(arguments, "function")
    if collation == "binary" and any(argument.type.kind in BLOBS for argument in arguments):
        return SqlType(next(a.type.kind for a in arguments if a.type.kind in BLOBS), length=None)
    return text(merged_length([argument.type for argument in arguments if argument.type.kind in STRINGS]) or None, collation)


PlainFunction = TypeVar("PlainFunction", bound=Callable[..., Any])
SpecialFunction = TypeVar("SpecialFunction", bound=Callable[..., Fragment])


def inference(result: SqlType | Infer, *names: str) -> Infer:
    """A text that is given as a type has the connection's collation."""
    if not isinstance(result, SqlType):
        return result
    if result.kind not in TEXTS or result.collation != DEFAULT_COLLATION:
        return lambda arguments: result
    OF_THEIR_OWN.update(names)
    return lambda arguments: replace(result, collation=planned().collation)


def function(
    *names: str,
    arguments: tuple[Domain, ...] = (),
    result: SqlType | Infer,
    optional: int = 0,
    rest: Domain | None = None,
    nulls: bool = False,
    deterministic: bool = True,
    specialise: bool = False,
    volatile: bool = False,
    size: Size | None = None,
    limited: bool = False,
) -> Callable[[PlainFunction], PlainFunction]:
    """Register a plain Python function; see the module's docstring."""

    def decorate(body: PlainFunction) -> PlainFunction:
        def emit(emitter: Emitter, node: Call) -> Fragment:
            target = body(node.arguments) if specialise else body
            if size is not None or limited:
                target = emitter.bounded(node, target, size)
            fragments = []
            for position, argument in enumerate(node.arguments):
                domain = arguments[position] if position < len(arguments) else rest
                assert domain is not None
                fragments.append(emitter.convert(argument, domain))
            return emitter.apply(target, fragments, nulls=nulls)

        register(
            Function(
                names[0],
                len(arguments) - optional,
                len(arguments) if rest is None else None,
                inference(result, *names),
                emit,
                deterministic and not volatile,
                volatile=volatile,
                grows=size is not None or limited,
            ),
            *names[1:],
        )
        return body

    return decorate


def special(
    *names: str,
    least: int,
    most: int | None,
    result: SqlType | Infer,
    deterministic: bool = True,
    truth: Callable[[Emitter, Call], str] | None = None,
    falsity: Callable[[Emitter, Call], str] | None = None,
    grows: bool = False,
) -> Callable[[SpecialFunction], SpecialFunction]:
    """Register a function that emits its own source; one that `grows` bounds itself by `Emitter.bounded`."""

    def decorate(emit: SpecialFunction) -> SpecialFunction:
        entry = Function(names[0], least, most, inference(result, *names), emit, deterministic, truth, falsity, grows=grows)
        register(entry, *names[1:])
        return emit

    return decorate
