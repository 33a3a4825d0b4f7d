"""sqlglot's expressions as ours: names resolved, types known, one row in sight.

Operators map by node class, functions by the name they were called by; session facts become
parameters (see `facts`). Aggregates are given to a collector, where the clause allows any;
subqueries and window functions are refused here until the planner brings them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from sqlglot import exp

from controller.sql.definitions.column_types import charset_name, type_of_text
from controller.sql.expressions import facts, operators, user_variables
from controller.sql.expressions.constants import check_moment, digits, introduced, number, unit
from controller.sql.expressions.operators import BINARY, COMPARISONS, NO_PARENTHESES, UNARY
from controller.sql.expressions.scope import Scope
from controller.sql.expressions.waiting import waiting
from controller.sql.expressions.zone import aligned, called, dated, localised, without_zeros
from controller.sql.parameters import Parameters
from controller.sql.settings import Settings
from controller.sql.text import operands
from controller.sql.text.parse import syntax_error
from dataflow import schema
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Call, Expression, Literal
from dataflow.functions import call, is_function
from dataflow.functions.casts import as_texts, cast, collated, in_one_collation
from dataflow.functions.date_parts import fraction_digits
from dataflow.functions.registry import check_single
from dataflow.functions.waiting import WAITING_FUNCTIONS
from dataflow.values.collation import canonical
from dataflow.values.types import BIGINT, DATES, DATETIME, NULL, SqlType, text
from dataflow.values.types import Kind as TypeKind

__all__ = ["Parameters", "Translator"]

_SUBQUERIES = (exp.Query, exp.Exists, exp.Any, exp.All)

_ZERO_IS_NULL = frozenset({TypeKind.DATE, TypeKind.DATETIME})
"""The condition IS NULL on a column of such a type that cannot be NULL finds '0000-00-00', in MySQL for the sake of ODBC."""


class Translator:
    """Translates expressions of one clause. `values` gives VALUES(column) of ON DUPLICATE KEY UPDATE."""

    def __init__(
        self,
        scope: Scope,
        clause: str,
        parameters: Parameters,
        settings: Settings,
        values: Callable[[str], Expression] | None = None,
    ) -> None:
        self.scope = scope
        self.clause = clause
        self.parameters = parameters
        self.settings = settings
        self._values = values
        self._depth = 0

    def translate(self, node: Any, hint: SqlType | None = None) -> Expression:
        """`hint` is the type a parameter would have here."""
        self._depth += 1
        try:
            found = self._translate(node, hint)
        finally:
            self._depth -= 1
        if self._depth:
            return localised(found, self.settings.time_zone)
        check_single(found)
        return found

    def operand(self, node: Any) -> Expression:
        """As `translate`, for something that is not handed out as it is."""
        return localised(self.translate(node), self.settings.time_zone)

    def _translate(self, node: Any, hint: SqlType | None) -> Expression:
        kind = type(node)
        if kind in BINARY:
            return self._binary(node, BINARY[kind])
        if kind in UNARY:
            return self._unary(node)
        if kind in NO_PARENTHESES:
            return self._function(NO_PARENTHESES[kind], [], node)
        method = getattr(self, f"visit_{kind.__name__.lower()}", None)
        if method is not None:
            found: Expression = method(node, hint)
            return found
        if isinstance(node, _SUBQUERIES):
            raise Unsupported("subqueries")
        if isinstance(node, exp.Window):
            raise Unsupported("window functions")
        raise Unsupported(f"{kind.__name__} in an expression")

    # -- leaves

    def visit_placeholder(self, node: Any, hint: SqlType | None) -> Expression:
        if not node.this.isdigit():  # :name
            raise syntax_error(f":{node.this}", 0)
        return self.parameters.parameter(int(node.this), hint)

    def visit_literal(self, node: Any, hint: SqlType | None) -> Expression:
        if node.is_string:
            return self.text(node.this)
        try:
            return number(node.this)
        except ValueError:
            if node.this[:-1].isdigit():  # 1E is a name
                raise InvalidStatement(Condition.UNKNOWN_COLUMN, node.this, self.clause) from None
            raise syntax_error(node.this, 0) from None

    def visit_null(self, node: Any, hint: SqlType | None) -> Expression:
        return Literal(None, NULL)

    def visit_boolean(self, node: Any, hint: SqlType | None) -> Expression:
        return Literal(int(node.this), BIGINT)

    def visit_hexstring(self, node: Any, hint: SqlType | None) -> Expression:
        return digits(bytes.fromhex("0" * (len(node.this) % 2) + node.this))

    def visit_bitstring(self, node: Any, hint: SqlType | None) -> Expression:
        return digits(int(node.this or "0", 2).to_bytes((len(node.this) + 7) // 8, "big"))

    def visit_national(self, node: Any, hint: SqlType | None) -> Expression:
        return Literal(node.this, text(len(node.this), "utf8mb3_general_ci"))

    def visit_introducer(self, node: Any, hint: SqlType | None) -> Expression:
        inner = self.translate(node.expression)
        assert isinstance(inner, Literal) and isinstance(inner.value, str | bytes)
        return introduced(inner.value, charset_name(node.this[1:]), self.settings.client_codec)

    def visit_column(self, node: Any, hint: SqlType | None) -> Expression:
        name, table, database = node.name, node.table, node.text("db")
        if not table and not node.this.args.get("quoted") and name.lower() in facts.WITHOUT_PARENTHESES:
            return self._function(name.lower(), [], node)
        if isinstance(node.this, exp.Star):
            raise syntax_error("*", 0)
        return self.parameters.read(*self.scope.resolve(name, table, database, self.clause), self.settings.time_zone)

    def visit_identifier(self, node: Any, hint: SqlType | None) -> Expression:
        return self.parameters.read(*self.scope.resolve(node.name, "", "", self.clause), self.settings.time_zone)

    def visit_parameter(self, node: Any, hint: SqlType | None) -> Expression:
        return user_variables.read(node, self.parameters, self.settings)

    def visit_propertyeq(self, node: Any, hint: SqlType | None) -> Expression:
        return user_variables.assigned(node, self.operand(node.expression), self.parameters)

    def visit_sessionparameter(self, node: Any, hint: SqlType | None) -> Expression:
        return self.parameters.fact(*facts.system_variable(node.text("kind"), node.name))

    def text(self, value: str) -> Expression:
        return Literal(value, text(len(value), self.settings.collation))

    # -- operators

    def visit_paren(self, node: Any, hint: SqlType | None) -> Expression:
        return self._translate(node.this, hint)  # it is handed out as what is in it

    visit_alias = visit_paren

    def visit_tuple(self, node: Any, hint: SqlType | None) -> Expression:
        return call("row", *(self.translate(each) for each in node.expressions))

    def _unary(self, node: Any) -> Expression:
        inner = node.this
        if type(node) is exp.Not:
            return self._negated(inner)
        return call(UNARY[type(node)], self.translate(inner))

    def _negated(self, inner: Any) -> Expression:
        """NOT, as the negated operator where there is one."""
        found = self.translate(inner)
        if isinstance(found, Call) and not isinstance(inner, exp.Paren):
            opposite = f"not {found.function}"
            if found.function.startswith("is ") and not found.function.startswith("is not "):
                opposite = "is not " + found.function[3:]
            if is_function(opposite):
                return call(opposite, *found.arguments)
        return call("not", found)

    def _binary(self, node: Any, operator: str) -> Expression:
        left, right = node.this, node.expression
        if operator in ("+", "-") and (isinstance(left, exp.Interval) or isinstance(right, exp.Interval)):
            interval, date = (left, right) if isinstance(left, exp.Interval) else (right, left)
            return self._shifted("date_add" if operator == "+" else "date_sub", date, interval)
        if node.args.get("negate"):
            return call(f"not {operator}", *as_texts(self._alike([left, right])))
        if operator in COMPARISONS:
            found = aligned(self.dated(as_texts(self._alike([left, right]))), self.settings.time_zone)
            return call(operator, *operands.with_fitting_literals(operator, found, (left, right)))
        if operator in ("like", "regexp"):
            return call(operator, *as_texts(self._alike([left, right])))
        if operator in ("+", "-", "*", "/", "%", "div"):
            if operator == "-" and "NO_UNSIGNED_SUBTRACTION" in self.settings.sql_mode:
                operator = "signed -"
            return call(operator, *self._alike([left, right]))
        if operator in ("and", "or"):
            return call(operator, *(self.translate(each) for each in operands.flattened(node)))
        return call(operator, self.translate(left), self.translate(right))

    def _alike(self, nodes: list[Any]) -> list[Expression]:
        """Translate operands of one operator; a parameter of no known type takes the others'."""
        found: dict[int, Expression] = {}
        hint: SqlType | None = None
        for index, node in enumerate(nodes):
            if not isinstance(node, exp.Placeholder):
                found[index] = self.translate(node)
                hint = hint or found[index].type
        if hint is not None and hint.kind is TypeKind.NULL:
            hint = None
        for index, node in enumerate(nodes):
            if index not in found:
                found[index] = self.visit_placeholder(node, hint)
        return [found[index] for index in range(len(nodes))]

    def visit_escape(self, node: Any, hint: SqlType | None) -> Expression:
        pattern = node.this
        operator = ("not " if pattern.args.get("negate") else "") + BINARY[type(pattern)]
        return call(operator, *as_texts(self._alike([pattern.this, pattern.expression])), self.translate(node.expression))

    def visit_between(self, node: Any, hint: SqlType | None) -> Expression:
        found = operands.as_texts_alone(self._alike([node.this, node.args["low"], node.args["high"]]))
        return call("between", *aligned(operands.as_list(self.dated(found)), self.settings.time_zone))

    def visit_in(self, node: Any, hint: SqlType | None) -> Expression:
        if node.args.get("query") is not None:
            raise Unsupported("subqueries")
        if not node.expressions:
            raise syntax_error(")", 0)
        found = in_one_collation(operands.as_texts_alone(self._alike([node.this, *operands.each_alone(node.expressions)])))
        if self.dated(found) != found:  # each compares in its own way
            first, *others = found
            return call("or", *(call("=", *self.dated([first, each])) for each in others), Literal(0, BIGINT))
        return call("in", *aligned(operands.as_list(found), self.settings.time_zone))

    def visit_is(self, node: Any, hint: SqlType | None) -> Expression:
        value = self.translate(node.this)
        negated = isinstance(node.expression, exp.Not)
        test = node.expression.this if negated else node.expression
        if isinstance(test, exp.Null):
            name = "null"
        elif isinstance(test, exp.Boolean):
            name = "true" if test.this else "false"
        elif isinstance(test, exp.Column) and test.name.upper() == "UNKNOWN":
            name = "unknown"
        else:
            raise syntax_error(test.sql("mysql"), 0)
        found = call(f"is not {name}" if negated else f"is {name}", value)
        if name == "null" and not negated and value.type.kind in _ZERO_IS_NULL and operators.is_condition(node) and self._never_null(node.this):
            return call("or", found, call("=", value, Literal(0, BIGINT)))
        return found

    def _never_null(self, node: Any) -> bool:
        """Whether it is a column of a table that was declared NOT NULL."""
        try:
            return isinstance(node, exp.Column) and not self.stored_column(node).nullable
        except InvalidStatement:
            return False

    def visit_collate(self, node: Any, hint: SqlType | None) -> Expression:
        return collated(self.translate(node.this), canonical(node.expression.name), self.settings.collation)

    def visit_case(self, node: Any, hint: SqlType | None) -> Expression:
        branches = node.args["ifs"]
        conditions = [self._case_condition(node.this, branch.this) for branch in branches]
        values = [self.translate(branch.args["true"], hint) for branch in branches]
        otherwise = node.args.get("default")
        values.append(Literal(None, NULL) if otherwise is None else self.translate(otherwise, hint))
        *values, last = as_texts(self.dated(values))
        return call("case", *chain.from_iterable(zip(conditions, values)), last)

    def _case_condition(self, operand: Any, value: Any) -> Expression:
        if operand is None:
            return self.translate(value)
        found = self.translate(exp.EQ(this=operand.copy(), expression=value))
        if isinstance(found, Call) and found.function == "=" and len(found.arguments) == 2:
            left, right = found.arguments
            if left.type.kind is TypeKind.JSON and right.type.kind is not TypeKind.JSON:
                return call("=", self.cast(left, "CHAR"), right)  # CASE compares documents as texts
        return found

    # -- functions with a syntax of their own

    def visit_cast(self, node: Any, hint: SqlType | None) -> Expression:
        """DATE '…', TIMESTAMP '…' and BINARY x: the casts that sqlglot makes by itself."""
        value, to = self.translate(node.this), node.args["to"].this.name
        to = {"TIMESTAMPTZ": "DATETIME", "TIMESTAMP": "DATETIME"}.get(to, to)
        if isinstance(node.this, exp.Literal) and to in ("DATE", "DATETIME", "TIME"):
            check_moment(to, node.this.this, self.settings.sql_mode)
        return self.cast(value, f"{to}({fraction_digits(value)})" if to in ("DATETIME", "TIME") else to, literal=True)

    def cast(self, value: Expression, type_text: str, literal: bool = False) -> Expression:
        """`literal`: of DATE '…' and the like, which is checked elsewhere."""
        found = type_of_text(type_text).resolve("", self.settings.collation)
        given = cast(self.dated([value, Literal(None, found)])[0], found)
        return given if literal or found.kind not in DATES else without_zeros(given, value, self.settings)

    def dated(self, among: list[Expression]) -> list[Expression]:
        """The operands, each TIME among dates as that time of the current day."""
        return dated(among, lambda: self.parameters.fact(*facts.TODAY))

    def visit_extract(self, node: Any, hint: SqlType | None) -> Expression:
        return call("extract", unit(node.name), self.translate(node.expression))

    def visit_interval(self, node: Any, hint: SqlType | None) -> Expression:
        raise syntax_error(node.sql("mysql"), 0)

    def _shifted(self, function: str, date: Any, interval: Any) -> Expression:
        return call(function, self.translate(date), self.translate(interval.this), unit(interval.args["unit"].name))

    def visit_trim(self, node: Any, hint: SqlType | None) -> Expression:
        value = self.translate(node.this)
        marks = [self.translate(node.expression)] if node.expression is not None else []
        position = (node.args.get("position") or "").upper()
        if position in ("LEADING", "TRAILING"):
            name = f"trim_{position.lower()}" if marks else ("ltrim" if position == "LEADING" else "rtrim")
            return call(name, value, *marks)
        return call("trim", value, *marks)

    def visit_substring(self, node: Any, hint: SqlType | None) -> Expression:
        parts = [node.this, node.args.get("start"), node.args.get("length")]
        return call("substring", *(self.translate(part) for part in parts if part is not None))

    def visit_strposition(self, node: Any, hint: SqlType | None) -> Expression:
        return call("locate", self.translate(node.args["substr"]), self.translate(node.this))

    def visit_matchagainst(self, node: Any, hint: SqlType | None) -> Expression:
        raise Unsupported("MATCH … AGAINST here")

    def visit_groupconcat(self, node: Any, hint: SqlType | None) -> Expression:
        return self._aggregate("group_concat", node)

    def visit_jsonarraycontains(self, node: Any, hint: SqlType | None) -> Expression:
        nodes = (node.this, node.expression)
        return call("member of", *operands.fitting_arguments("json_", nodes, [self.translate(each) for each in nodes], self.dated))

    def visit_anonymous(self, node: Any, hint: SqlType | None) -> Expression:
        return self._function(str(node.this).lower(), node.expressions, node)

    def _function(self, name: str, arguments: list[Any], node: Any) -> Expression:
        if name in operators.AGGREGATES:
            return self._aggregate(name, node)
        places = None
        if len(arguments) == 1 and isinstance(arguments[0], exp.Literal) and not arguments[0].is_string:
            places = int(arguments[0].this) if arguments[0].this.isdigit() else None
        fact = facts.fact_of(name, places, len(arguments))
        if fact is not None:
            return self.parameters.fact(*fact)
        if name == "cast":
            return self.cast(self.translate(arguments[0]), arguments[1].this)
        if name == "default" and len(arguments) == 1:
            return operands.default_of(self.stored_column(arguments[0]), self.parameters)
        if name == "values" and self._values is not None:
            if isinstance(arguments[0], exp.Column):
                self.translate(arguments[0])  # of the table that is written
            return self._values(arguments[0].name)
        if name in operators.DATE_ARITHMETIC and len(arguments) == 2:
            amount = arguments[1]
            if not isinstance(amount, exp.Interval):
                if name in ("date_add", "date_sub"):
                    raise syntax_error(amount.sql("mysql") + ")", 0)
                amount = exp.Interval(this=amount, unit=exp.var("DAY"))
            return self._shifted(operators.DATE_ARITHMETIC[name], arguments[0], amount)
        if name in operators.UNIT_FIRST and arguments:
            values = [*map(self.translate, arguments[1:]), Literal(None, DATETIME if name == "timestampdiff" else NULL)]
            return call(name, unit(arguments[0].name), *self.dated(values)[:-1])
        if name == "last_insert_id":
            return user_variables.last_insert_id([self.operand(each) for each in arguments], self.parameters)
        for argument in arguments:
            if isinstance(argument, exp.Distinct | exp.Star):
                raise syntax_error(argument.sql("mysql"), 0)
            if isinstance(argument, exp.Alias):
                raise InvalidStatement(Condition.WRONG_PARAMETERS, name)
        if name in operators.REFUSED:
            raise Unsupported(name.upper())
        if not is_function(name) and name not in WAITING_FUNCTIONS:
            raise operators.unknown_function(node.this if isinstance(node.this, str) else name)
        translated = operands.fitting_arguments(name, arguments, [self.translate(each) for each in arguments], self.dated)
        if name == "nullif" and (apart := self.dated(translated)) != translated:
            return call("case", call("=", *apart), Literal(None, NULL), translated[0])
        special = waiting(name, translated, self.parameters) or user_variables.special(name, translated, self.parameters, self.settings)
        return special or called(name, translated, self.settings)

    def stored_column(self, node: Any) -> schema.TableColumn:
        """The column of a table that a name means."""
        source, position = self.scope.resolve(node.name, node.text("table"), node.text("db"), self.clause)
        self.parameters.use("SELECT", source.table, position)
        return source.table.columns[position]

    def visit_concat(self, node: Any, hint: SqlType | None) -> Expression:
        """Strings side by side, or several values of GROUP_CONCAT."""
        return call("concat", *as_texts([self.translate(each) for each in node.expressions]))

    def _aggregate(self, name: str, node: Any) -> Expression:
        raise InvalidStatement(Condition.INVALID_GROUP_FUNCTION)
