"""GROUP BY of a query: aggregates collected, expressions over rows turned into ones over groups.

A grouped column that is a plain column keeps its number; a computed key gets one, and so does
each aggregate. What is neither inside an aggregate nor determined by the keys is error 1055
or 1140 under ONLY_FULL_GROUP_BY, and any value of the group without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from controller.sql.expressions.aggregation import read_aggregate
from controller.sql.query.block import From, Grouping, own_ids
from controller.sql.query.dependence import determined
from controller.sql.query.expressions import QueryTranslator
from controller.sql.query.fields import Field, Numbering
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Column, Expression, Literal, columns_of
from dataflow.functions import call
from dataflow.plan.node import AggregateFunction
from dataflow.values.types import BIGINT, NULL, STRINGS, text


class GroupedClauses:
    """The GROUP BY and the aggregates of one query while its clauses are read."""

    def __init__(
        self, numbering: Numbering, source: From, fields: dict[int, Field], strict: bool
    ) -> None:
        self._numbering = numbering
        self._source = source
        self._own = own_ids(source)
        self._fields = fields
        self._strict = strict
        self._determined: set[int] | None = None
        self.where: list[Expression] = []
        self.found = Grouping()
        self.named: dict[int, Column] = {}
        """The key that names an item of the SELECT list, by the item's number: it may not be the only one of its value."""
        self.before: dict[int, set[int]] = {}
        """The subqueries that are evaluated for each row, not for each group, and the columns around them that they read."""

    @property
    def is_grouped(self) -> bool:
        return self.found.explicit or bool(self.found.functions)

    def collect(self, name: str, node: Any, translator: QueryTranslator) -> Expression:
        function = read_aggregate(name, node, translator.without_aggregates())
        if function.function == "json_objectagg" and self._numbering.may_be_null(function.arguments[0]):
            return self._named(function)
        return self.add(self._counted(function))

    def _counted(self, function: AggregateFunction) -> AggregateFunction:
        """COUNT of a column that is never NULL counts rows, for which none has to be looked at."""
        if function.function != "count" or function.distinct or not isinstance(function.arguments[0], Column):
            return function
        is_certain = not self._numbering.may_be_null(function.arguments[0])
        return AggregateFunction("count_star", (), function.type) if is_certain else function

    def _named(self, function: AggregateFunction) -> Expression:
        """JSON_OBJECTAGG of names that may be NULL, which is an error where one is: when it is read."""
        member, document = function.arguments
        missing = call("case", call("is null", member), Literal(1, BIGINT), Literal(None, NULL))
        count = self.add(AggregateFunction("count", (missing,), BIGINT))
        kind = member.type if member.type.kind in STRINGS else text()
        named = Call("coalesce", (member, Literal("", kind)), kind)
        return call("named members", count, self.add(replace(function, arguments=(named, document))))

    def add(self, function: AggregateFunction) -> Column:
        for column, known in self.found.functions:
            if known == function:
                return column
        column = self._numbering.fresh(function.type, function.function not in ("count", "count_star"))
        self.found.functions.append((column, function))
        return column

    def add_key(self, expression: Expression, is_outer: bool, named: int | None) -> None:
        """A key that is repeated makes another level of a ROLLUP, and no difference otherwise.

        `is_outer`: a column of a query around this one, which this one does not make. `named`: the item that it names.
        """
        if not self.found.rollup and any(known == expression for _, known in self.found.keys):
            return
        nullable = self._numbering.may_be_null(expression)
        plain = isinstance(expression, Column) and not self.found.rollup and not is_outer
        column = expression if plain else self._numbering.fresh(expression.type, nullable or self.found.rollup)
        assert isinstance(column, Column)
        self.found.keys.append((column, expression))
        if named is not None:
            self.named[named] = column

    def level(self, expression: Expression) -> Expression:
        """GROUPING(expression): 1 in the rows that ROLLUP adds over it."""
        for column, known in reversed(self.found.keys):
            if known == expression:
                if not self.found.rollup:
                    break
                return self.level_of(column)
        raise InvalidStatement(Condition.INVALID_GROUP_FUNCTION)

    def level_of(self, key: Column) -> Expression:
        return self.found.levels.setdefault(key.index, self._numbering.fresh(BIGINT, False))

    def is_aggregate(self, expression: Expression) -> bool:
        functions = {column.index for column, _ in self.found.functions}
        return bool(columns_of(expression) & functions)

    def over(self, expression: Expression, place: tuple[int, str]) -> Expression:
        """`expression` reading the group's row. `place` is for the error: (number, clause)."""
        for column, known in reversed(self.found.keys):
            if known == expression:
                return column
        match expression:
            case Column(index=index) if index in self._own or index in self.before:
                return self._column(expression, place)
            case Call(function=function, arguments=arguments, type=found):
                return Call(function, tuple([self.over(each, place) for each in arguments]), found)
            case _:
                return expression

    def read_by_subquery(self, ids: Iterable[int], place: tuple[int, str]) -> dict[int, Expression]:
        """What a subquery beside the groups reads in place of these columns, where that is something else."""
        found: dict[int, Expression] = {}
        for index in ids:
            if index in self._own:
                column = self._fields[index].column
                value = self.over(column, place)
                if value != column:
                    found[index] = value
        return found

    def _column(self, column: Column, place: tuple[int, str]) -> Column:
        grouping = self.found
        if column in grouping.dependents:
            return column
        if self._determined is None:
            keys = {known.index for _, known in grouping.keys if isinstance(known, Column)}
            outside: set[int] = set()
            for condition in self.where:
                outside |= columns_of(condition) - self._own
            self._determined = determined(keys, self._source, self.where, outside)
        if column.index in self._determined and not grouping.rollup and grouping.explicit:
            grouping.dependents.append(column)
            return column
        read = self.before.get(column.index, {column.index}) & self._own
        if self._strict and not read <= self._determined:
            raise self._not_grouped(min(read - self._determined), place)
        function = AggregateFunction("any_value", (column,), column.type)
        for made, known in grouping.arbitrary:
            if known == function:
                return made
        made = self._numbering.fresh(column.type, True)
        grouping.arbitrary.append((made, function))
        return made

    def _not_grouped(self, index: int, place: tuple[int, str]) -> InvalidStatement:
        output = self._fields[index].output
        name = ".".join(part for part in (output.database, output.table, self._fields[index].name) if part)
        condition = Condition.NOT_IN_GROUP_BY if self.found.explicit else Condition.MIXED_GROUPING
        return InvalidStatement(condition, place[0], place[1], name)
