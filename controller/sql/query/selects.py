"""One SELECT as a `Block`: its clauses resolved in the order in which MySQL lets them see each other."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from controller.sql.clauses import limits, order_items
from controller.sql.expressions.scope import (
    FIELD_LIST,
    GROUP_CLAUSE,
    HAVING_CLAUSE,
    ORDER_CLAUSE,
    WHERE_CLAUSE,
)
from controller.sql.output import NOT_NULL, default_name
from controller.sql.query.block import Block, Inner, Subquery, outer_ids, rewritten
from controller.sql.query.conditions import conditions
from controller.sql.query.expressions import QueryTranslator
from controller.sql.query.fields import Field, all_columns
from controller.sql.query.grouped import GroupedClauses
from controller.sql.query.names import Names, Visible
from controller.sql.query.sources import FromClause
from controller.sql.query.windows import WindowClauses
from controller.sql.query.wrapping import beyond_windows, ordered_by_any
from controller.sql.text.long_strings import syntax_error
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Call, Column, Expression, columns_of
from dataflow.functions import is_volatile
from dataflow.plan.node import Order

if TYPE_CHECKING:
    from controller.sql.query.resolve import Resolver

_UNSUPPORTED = {
    "laterals": "LATERAL",
    "qualify": "QUALIFY",
    "connect": "CONNECT BY",
    "sample": "TABLESAMPLE",
}

COLUMNS = "columns"
"""Where a planned `*` has what it stands for: a function without arguments that names the columns."""


def _named(names: Names, everything: list[Visible]) -> Callable[[], list[tuple[str, ...]]]:
    """A function, as what copies a tree copies all else that is in it, too."""
    return lambda: [names.written(each) for each in everything]


def positional(node: Any, outputs: list[Expression], clause: str) -> Expression | None:
    """ORDER BY 2 is the second output; other constants stand for themselves."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdigit():
        return None
    number = int(node.this)
    if not 1 <= number <= len(outputs):
        raise InvalidStatement(Condition.UNKNOWN_COLUMN, number, clause)
    return outputs[number - 1]


class SelectResolver:
    """Resolves one SELECT, clause by clause."""

    def __init__(self, resolver: Resolver, node: Any, names: Names) -> None:
        for name, feature in _UNSUPPORTED.items():
            if node.args.get(name):
                raise Unsupported(feature)
        if node.args.get("into"):  # of a query inside another
            raise syntax_error("INTO", 0)
        self._resolver = resolver
        self._node = node
        self._names = names
        self._subqueries: dict[int, Subquery] = {}
        self._aliases: dict[str, Expression] = {}
        self._ambiguous: set[str] = set()
        self._block_outputs: list[tuple[Column, Expression]] = []
        self._has_keys = False

    def resolve(self) -> Block:
        node, resolver = self._node, self._resolver
        clause = node.args.get("from_")
        block = Block(Inner([], []), [], [], [], subqueries=self._subqueries)
        before = len(resolver.documents)
        if clause is not None:
            joins = node.args.get("joins") or []
            block.source = FromClause(resolver, self._names, self._subqueries).resolve(clause.this, joins)
        self._fields = {each.id: each for each in self._names.fields()}
        strict = "ONLY_FULL_GROUP_BY" in resolver.settings.sql_mode
        self._grouped = GroupedClauses(resolver.numbering, block.source, self._fields, strict)
        self._windows = WindowClauses(resolver.numbering, node.args.get("windows") or [])
        where = node.args.get("where")
        if where is not None:
            block.where = conditions(self._translator(WHERE_CLAUSE).translate(where.this))
        for each in resolver.documents[before:]:
            each.narrow(block)
        self._grouped.where = block.where
        known = set(self._subqueries)
        self._block_outputs = block.outputs
        self._names.aggregates = self._grouped.add
        self._outputs(block)
        self._group_by()
        self._having(block)
        self._order_by(block)
        self._names.aggregates = None
        block.windows = self._windows.found
        block.distinct = node.args.get("distinct") is not None
        if self._grouped.is_grouped:
            self._over_groups(block, known)
        elif block.having:
            # Without groups, HAVING is a second WHERE that may use aliases.
            if all_columns(block.having) & {window.id for window in block.windows}:
                raise InvalidStatement(Condition.WINDOW_MISPLACED, "window")
            block.where += block.having
            block.having = []
        if block.distinct:
            block = self._order_over_outputs(block, strict)
        block.limit, block.offset = limits(node, self._translator(FIELD_LIST))
        return beyond_windows(block, resolver.numbering)

    def _translator(self, clause: str, **options: Any) -> QueryTranslator:
        return self._resolver.translator(self._names, clause, self._subqueries, **options)

    def _outputs(self, block: Block) -> None:
        translator = self._translator(
            FIELD_LIST, collect=self._grouped.collect, windows=self._windows.collect, levels=self._level
        )
        repeated: set[str] = set()
        fields: dict[str, Expression | None] = {}
        self._names.selected = self._selected
        for item in self._node.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                table, database = ("", "") if isinstance(item, exp.Star) else (item.table, item.text("db"))
                everything = self._names.star(table, database)
                self._resolver.use_all(each.field for each in everything)
                item.meta[COLUMNS] = _named(self._names, everything)
                for each in everything:
                    self._add(block, each.value, each.field.name, each.field)
                    self._note_field(each.field.name, each.value, fields)
                    if self._aliases.setdefault(each.field.name.lower(), each.value) != each.value and fields[each.field.name.lower()] is not None:
                        repeated.add(each.field.name.lower())
                continue
            value = translator.translate(item)
            name = item.alias if isinstance(item, exp.Alias) else default_name(item)
            self._add(block, value, name, self._field(value))
            if not isinstance(item, exp.Alias | exp.Column):
                continue  # what it is called is no name to refer to it by
            is_first = fields.get(name.lower(), value) is not None
            self._note_field(name, value, fields)
            if fields[name.lower()] is None:  # a computed value comes before columns of its name
                if is_first and isinstance(item, exp.Alias):
                    self._aliases[name.lower()] = value
                    repeated.discard(name.lower())
                continue
            if self._aliases.setdefault(name.lower(), value) != value:
                if isinstance(item, exp.Column):
                    repeated.add(name.lower())
                elif name.lower() in repeated:
                    self._aliases[name.lower()] = value
        for name in repeated:  # two columns of this name: it means none of them
            del self._aliases[name]

    def _note_field(self, name: str, value: Expression, fields: dict[str, Expression | None]) -> None:
        """Two columns under one name: ORDER BY and HAVING cannot mean both; a computed value comes before them."""
        if not isinstance(value, Column) or value.index not in self._fields:
            self._ambiguous.discard(name.lower())
            fields[name.lower()] = None
        elif fields.setdefault(name.lower(), value) not in (None, value):
            self._ambiguous.add(name.lower())

    def _selected(self, name: str) -> Expression | None:
        """What the name of an item means in subqueries that follow it."""
        value = self._aliases.get(name)
        if value is None and any(isinstance(item, exp.Alias) and item.alias.lower() == name for item in self._node.expressions):
            raise InvalidStatement(Condition.ILLEGAL_REFERENCE, name, "forward reference in item list")
        if value is None or columns_of(value) & self._subqueries.keys():
            return None
        if self._grouped.is_aggregate(value):
            raise InvalidStatement(Condition.ILLEGAL_REFERENCE, name, "reference to group function")
        return value

    def _add(self, block: Block, value: Expression, name: str, found: Field | None) -> None:
        described = None if found is None else replace(found.output, name=name)
        self._resolver.add_output(block, value, name, described)

    def _field(self, value: Expression) -> Field | None:
        """The field that an output is, here or in a query around."""
        if not isinstance(value, Column):
            return None
        for names in (self._names, *self._names.around()):
            for each in names.fields():
                if each.id == value.index:
                    return each
        return None

    def _level(self, node: Any, translator: QueryTranslator) -> Expression:
        self._group_by()
        return self._grouped.level(translator.translate(node))

    def _group_by(self) -> None:
        """Read once, and early if there is a GROUPING() in the SELECT list, which needs the keys."""
        clause = self._node.args.get("group")
        if self._has_keys or clause is None:
            return
        self._has_keys = True
        rollups = [each for each in clause.expressions if isinstance(each, exp.Rollup)]
        if any(clause.args.get(name) for name in ("cube", "grouping_sets", "totals", "all")) or rollups:
            raise Unsupported("GROUP BY other than by expressions or WITH ROLLUP")
        self._grouped.found.rollup = bool(clause.args.get("rollup"))
        self._grouped.found.explicit = True
        translator = self._translator(GROUP_CLAUSE, aliases=self._aliases)
        outputs = [value for _, value in self._block_outputs]
        allowed, self._names.aggregates = self._names.aggregates, None
        for item in clause.expressions:
            found = positional(item, outputs, GROUP_CLAUSE) or translator.translate(item)
            if self._grouped.is_aggregate(found):
                raise InvalidStatement(Condition.CANT_GROUP_ON, item.sql("mysql"))
            known = self._fields.keys() | self._subqueries.keys()
            self._grouped.add_key(found, isinstance(found, Column) and found.index not in known, self._number_of(item, found))
        self._names.aggregates = allowed

    def _number_of(self, item: Any, value: Expression) -> int | None:
        """Which item of the SELECT list a position or a name in GROUP BY means."""
        if isinstance(item, exp.Literal) and not item.is_string and item.this.isdigit():
            return int(item.this)
        if not isinstance(item, exp.Column) or item.table:
            return None
        names = [each.alias if isinstance(each, exp.Alias) else default_name(each) for each in self._node.expressions]
        found = next((number for number, name in enumerate(names, 1) if name.lower() == item.name.lower()), None)
        is_it = found is not None and found <= len(self._block_outputs) and self._block_outputs[found - 1][1] == value
        return found if is_it else None

    def _having(self, block: Block) -> None:
        clause = self._node.args.get("having")
        if clause is None:
            return
        grouped = {
            self._fields[known.index].name.lower(): known
            for _, known in self._grouped.found.keys
            if isinstance(known, Column) and known.index in self._fields
        }
        translator = self._translator(
            HAVING_CLAUSE, collect=self._grouped.collect, aliases={**self._aliases, **grouped}, aliases_first=True,
            ambiguous=self._ambiguous, levels=self._level, readable=self._named_columns(),
        )  # fmt: skip
        block.having = conditions(translator.translate(clause.this))

    def _named_columns(self) -> Set[int]:
        """The columns that HAVING may name: those of the SELECT list and of GROUP BY."""
        values = [value for _, value in self._block_outputs] + [known for _, known in self._grouped.found.keys]
        return {value.index for value in values if isinstance(value, Column)}

    def _order_by(self, block: Block) -> None:
        translator = self._translator(
            ORDER_CLAUSE, collect=self._grouped.collect, aliases=self._aliases, aliases_first=True, ambiguous=self._ambiguous,
            windows=self._windows.collect, levels=self._level,
        )  # fmt: skip
        outputs = [value for _, value in block.outputs]
        for item in order_items(self._node):
            value = positional(item.this, outputs, ORDER_CLAUSE) or translator.translate(item.this)
            if columns_of(value) or is_volatile(value):
                block.order_by.append(Order(value, bool(item.args.get("desc"))))

    def _over_groups(self, block: Block, before: set[int]) -> None:
        over = self._grouped.over
        block.grouping = self._grouped.found
        within = set()
        for _, function in block.grouping.functions:
            within |= all_columns((*function.arguments, *(each.expression for each in function.order)))
        for _, key in block.grouping.keys:
            within |= columns_of(key)
        self._grouped.before = {each: outer_ids(self._subqueries[each].block) for each in within & self._subqueries.keys()}
        block.outputs = [
            (column, self._grouped.named.get(number) or over(value, (number, "SELECT list")))
            for number, (column, value) in enumerate(block.outputs, 1)
        ]
        if block.grouping.rollup or not block.grouping.explicit:
            self._let_be_null(block)
        block.having = [over(each, (1, "HAVING clause")) for each in block.having]
        block.order_by = [
            Order(over(each.expression, (number, "ORDER BY")), each.descending)
            for number, each in enumerate(block.order_by, 1)
        ]
        for window in block.windows:
            place = (1, "SELECT list")
            arguments = tuple(over(each, place) for each in window.function.arguments)
            window.function = replace(window.function, arguments=arguments)
            window.partition = tuple(over(each, place) for each in window.partition)
            window.order = tuple(Order(over(each.expression, place), each.descending) for each in window.order)
        for number, subquery in self._subqueries.items():
            if number not in before and number not in within:
                subquery.operands = tuple(over(each, (1, "SELECT list")) for each in subquery.operands)
                read = self._grouped.read_by_subquery(outer_ids(subquery.block), (1, "SELECT list"))
                subquery.block = rewritten(subquery.block, read)
        if not block.grouping.explicit:
            block.order_by = []  # one row needs no order
        elif block.grouping.rollup and not block.order_by and not block.distinct:
            for column, _ in block.grouping.keys:  # a sum comes after what it is the sum of
                block.order_by += [Order(self._grouped.level_of(column)), Order(column)]

    def _let_be_null(self, block: Block) -> None:
        """In the rows that ROLLUP adds, and in the one row of a group without rows, columns are NULL that else never are."""
        for place, (column, value) in enumerate(block.outputs):
            if self._resolver.numbering.may_be_null(value):
                self._resolver.numbering.set_nullable([column.index])
                shown = block.columns[place]
                block.columns[place] = replace(shown, nullable=True, flags=shown.flags & ~NOT_NULL)

    def _order_over_outputs(self, block: Block, strict: bool) -> Block:
        """ORDER BY of a DISTINCT reads what is selected, nothing else, under ONLY_FULL_GROUP_BY."""
        known = [(value, column) for column, value in block.outputs]
        if not strict and not all(_is_over(item.expression, known) for item in block.order_by):
            return ordered_by_any(block, self._resolver.numbering)
        items: list[Order] = []
        for number, item in enumerate(block.order_by, 1):
            items.append(Order(self._over_outputs(item.expression, known, number), item.descending))
        block.order_by = items
        return block

    def _over_outputs(self, expression: Expression, known: list[tuple[Expression, Column]], number: int) -> Expression:
        for value, column in known:
            if value == expression:
                return column
        match expression:
            case Column(index=index):
                name = self._fields[index].name if index in self._fields else "?"
                raise InvalidStatement(Condition.ORDER_NOT_IN_DISTINCT, number, name)
            case Call(function=function, arguments=arguments, type=found):
                return Call(function, tuple([self._over_outputs(each, known, number) for each in arguments]), found)
            case _:
                return expression


def _is_over(expression: Expression, known: list[tuple[Expression, Column]]) -> bool:
    """Whether the expression reads nothing but what is known."""
    if any(value == expression for value, _ in known):
        return True
    if isinstance(expression, Call):
        return all(_is_over(each, known) for each in expression.arguments)
    return not isinstance(expression, Column)
