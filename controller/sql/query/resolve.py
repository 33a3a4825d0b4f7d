"""First pass: sqlglot's tree of any query as a block, every name resolved, every type known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlglot import exp

from controller.catalog import Catalog, CatalogView
from controller.sql.clauses import limits, order_items
from controller.sql.expressions.facts import TODAY
from controller.sql.expressions.operators import calls_aggregate
from controller.sql.expressions.scope import FIELD_LIST, ORDER_CLAUSE
from controller.sql.expressions.translate import Parameters
from controller.sql.expressions.zone import dated, localised
from controller.sql.plan import OutputColumn
from controller.sql.query.block import AnyBlock, Block, Inner, SetBlock, Subquery
from controller.sql.query.documents import Documents
from controller.sql.query.expressions import QueryTranslator
from controller.sql.query.fields import Field, Numbering, computed_output
from controller.sql.query.names import CommonTable, Names
from controller.sql.query.recursion import Recursions, refers_to_itself
from controller.sql.query.selects import SelectResolver, positional
from controller.sql.query.wrapping import numbered, wrapped
from controller.sql.settings import Settings
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Column, Expression, Literal
from dataflow.plan.node import Order
from dataflow.schema import Table
from dataflow.values.inference import merged_type
from dataflow.values.types import DATES, DATETIME, TEXTS, Kind, SqlType

_SET_OPERATORS: dict[Any, str] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
_MISSING = (Condition.UNKNOWN_TABLE, Condition.UNKNOWN_COLUMN, Condition.UNKNOWN_DATABASE)
_CLAUSES_AROUND = ("order", "limit", "offset")


class Resolver:
    """Resolves the queries of one statement. `tables` collects every base table it reads."""

    def __init__(self, catalog: Catalog, settings: Settings, parameters: Parameters) -> None:
        self.catalog = catalog
        self.settings = settings
        self.parameters = parameters
        self.numbering = Numbering()
        self.tables: dict[int, Table] = {}
        self.views: list[CatalogView] = []
        self.recursions = Recursions(self, {})
        self.documents: list[Documents] = []
        self._open_views: list[CatalogView] = []

    def query(self, node: Any, names: Names) -> AnyBlock:
        """`names` has what is around the query; its own FROM is added to it."""
        names = self.with_common(node, names)
        while isinstance(node, exp.Subquery):
            around = [name for name in _CLAUSES_AROUND if node.args.get(name)]
            inner = node.this
            if around:
                if any(inner.args.get(name) for name in ("limit", "offset")):
                    return self._ordered(wrapped(self.query(inner, names), self.numbering), node, names)
                inner = inner.copy()
                for name in around:
                    inner.set(name, node.args[name])
            node = inner
            names = self.with_common(node, names)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, names)
        if isinstance(node, exp.Values):
            return self._values(node, names)
        if not isinstance(node, exp.Select):
            raise Unsupported(f"{type(node).__name__} statements")
        return SelectResolver(self, node, names).resolve()

    def translator(self, names: Names, clause: str, subqueries: dict[int, Subquery], **options: Any) -> QueryTranslator:
        return QueryTranslator(self, names, clause, subqueries, **options)

    # -- names of queries

    def with_common(self, node: Any, names: Names) -> Names:
        clause = node.args.get("with_")
        if clause is None:
            return names
        common = dict(names.common)
        for each in clause.expressions:
            name = each.alias.lower()
            recursive = bool(clause.args.get("recursive")) and refers_to_itself(name, each.this)
            columns = tuple(column.name for column in each.args["alias"].args.get("columns") or [])
            common[name] = CommonTable(each.this, columns, dict(common), recursive)
        return Names(names.parent, names.database, common, hidden=names.hidden)

    def view(self, database: str | None, name: str) -> CatalogView | None:
        found = self.catalog.views.get((database, name)) if database else None
        if found is not None:
            self.views.append(found)
        return found

    def use(self, *fields: Field) -> None:
        """The statement names these columns. What a view names is its definer's business."""
        if not self._open_views:
            self.parameters.uses.update(("SELECT", *each.origin) for each in fields if each.origin is not None)

    def use_all(self, fields: Iterable[Field]) -> None:
        """`*` stands for these columns."""
        named = [each for each in fields if each.origin is not None]
        self.use(*named, *(replace(each, origin=(*each.origin[:2], "*")) for each in named if each.origin is not None))

    @contextmanager
    def inside_view(self, view: CatalogView) -> Iterator[None]:
        """While the view's own query is resolved: in its settings, without temporary tables, and never in itself."""
        if view in self._open_views:
            raise InvalidStatement(Condition.VIEW_RECURSION, view.database, view.name)
        settings, catalog = self.settings, self.catalog
        self.settings, self.catalog = replace(settings, collation=view.collation, client_codec="utf-8"), catalog.stored or catalog
        self._open_views.append(view)
        try:
            yield
        except InvalidStatement as error:
            if error.condition in _MISSING:
                raise InvalidStatement(Condition.VIEW_INVALID, view.database, view.name) from None
            raise
        self._open_views.pop()
        self.settings, self.catalog = settings, catalog

    # -- UNION, INTERSECT, EXCEPT, VALUES

    def _set_operation(self, node: Any, names: Names) -> AnyBlock:
        left = self.query(node.this, Names(names.parent, names.database, names.common))
        right = self.query(node.expression, Names(names.parent, names.database, names.common))
        return self._ordered(self._combined(_SET_OPERATORS[type(node)], bool(node.args.get("distinct")), left, right), node, names)

    def _ordered(self, block: AnyBlock, node: Any, names: Names) -> AnyBlock:
        """`block` with the ORDER BY and LIMIT of `node`, which know its outputs by name and number."""
        subqueries: dict[int, Subquery] = {}
        aliases: dict[str, Expression] = {}
        for (_, value), output in zip(block.outputs, block.columns):
            aliases.setdefault(output.name.lower(), value)
        inside = Names(names.parent, names.database, names.common, selected=aliases.get)
        translator = self.translator(inside, ORDER_CLAUSE, subqueries, aliases=aliases, aliases_first=True)
        outputs: list[Expression] = [value for _, value in block.outputs]
        for number, item in enumerate(order_items(node), 1):
            if calls_aggregate(item):
                raise InvalidStatement(Condition.AGGREGATE_OF_UNION, number)
        order_by = [
            Order(positional(item.this, outputs, ORDER_CLAUSE) or translator.translate(item.this), bool(item.args.get("desc")))
            for item in order_items(node)
        ]
        if subqueries:
            block = wrapped(block, self.numbering) if isinstance(block, SetBlock) else block
            block.subqueries = subqueries
        block.order_by = order_by
        block.limit, block.offset = limits(node, translator)
        return block

    def _combined(self, operator: str, distinct: bool, left: AnyBlock, right: AnyBlock) -> AnyBlock:
        if len(left.outputs) != len(right.outputs):
            raise InvalidStatement(Condition.SET_COLUMN_COUNT)
        if not distinct and operator != "union":
            return self._counted(operator, left, right)
        outputs: list[tuple[Column, Expression]] = []
        columns: list[OutputColumn] = []
        self._localise(left, right)
        for one, other, output, beside in zip(left.outputs, right.outputs, left.columns, right.columns):
            nullable = output.nullable or beside.nullable
            column = self.numbering.fresh(_union_type(one, other), nullable)
            outputs.append((column, column))
            columns.append(computed_output(output.name, column, nullable))
        return SetBlock(operator, distinct, (left, right), outputs, columns)

    def _counted(self, operator: str, left: AnyBlock, right: AnyBlock) -> AnyBlock:
        """INTERSECT ALL and EXCEPT ALL: equal rows are told apart by a number, which is not shown."""
        self._localise(left, right)
        kinds = [_union_type(one, other) for one, other in zip(left.outputs, right.outputs)]
        branches = [numbered(each, kinds, self.numbering) for each in (left, right)]
        both = self._combined(operator, True, *branches)
        for place, kind in enumerate(kinds):  # as without the numbers: two branches of one ENUM would be a text
            column = Column(both.outputs[place][0].index, kind)
            both.outputs[place] = (column, column)
            both.columns[place] = replace(both.columns[place], type=kind)
        found = wrapped(both, self.numbering)
        del found.outputs[-1:], found.columns[-1:]
        return found

    def _localise(self, left: AnyBlock, right: AnyBlock) -> None:
        """A TIMESTAMP beside something else is a DATETIME of the session's zone, a TIME beside a date that time of today."""
        for number, kinds in enumerate(zip(*([each[0].type.kind for each in block.outputs] for block in (left, right)))):
            if Kind.TIMESTAMP in kinds and len({*kinds} - {Kind.NULL}) > 1:
                for block in (left, right):
                    _change_output(block, number, lambda value: localised(value, self.settings.time_zone))
            if Kind.TIME in kinds and DATES & {*kinds}:
                for block in (left, right):
                    _change_output(block, number, self._of_today)

    def _of_today(self, value: Expression) -> Expression:
        return dated([value, Literal(None, DATETIME)], lambda: self.parameters.fact(*TODAY))[0]

    def _values(self, node: Any, names: Names) -> AnyBlock:
        found: AnyBlock | None = None
        for row in node.expressions:
            values = row.expressions if isinstance(row, exp.Tuple) else [row]
            if len(values) == 1 and isinstance(values[0], exp.Anonymous) and str(values[0].this).lower() == "row":
                values = values[0].expressions
            subqueries: dict[int, Subquery] = {}
            translator = self.translator(names, FIELD_LIST, subqueries)
            block = Block(Inner([], []), [], [], [], subqueries=subqueries)
            for number, value in enumerate(values):
                self.add_output(block, translator.translate(value), f"column_{number}")
            found = block if found is None else self._combined("union", False, found, block)
        assert found is not None
        return found

    def add_output(self, block: Block, value: Expression, name: str, described: OutputColumn | None = None) -> None:
        nullable = self.numbering.may_be_null(value) if described is None else described.nullable
        column = self.numbering.fresh(value.type, nullable)
        block.outputs.append((column, value))
        block.columns.append(described or computed_output(name, value, nullable))


def _change_output(block: AnyBlock, number: int, change: Callable[[Expression], Expression]) -> None:
    column, value = block.outputs[number]
    if isinstance(block, Block):
        value = change(value)
        block.outputs[number] = (Column(column.index, value.type), value)
        return
    for branch in block.branches:
        _change_output(branch, number, change)
    column = Column(column.index, _union_type(*(branch.outputs[number] for branch in block.branches)))
    block.outputs[number] = (column, column)


def _union_type(left: tuple[Column, Expression], right: tuple[Column, Expression]) -> SqlType:
    """A branch of NULLs leaves the type of the other as it is; a literal takes the collation that it meets."""
    kinds = {left[0].type.kind, right[0].type.kind}
    if Kind.NULL in kinds:
        return right[0].type if left[0].type.kind is Kind.NULL else left[0].type
    return merged_type((left[1], right[1]) if kinds <= TEXTS | {Kind.ENUM, Kind.SET} else (left[0], right[0]), "UNION")
