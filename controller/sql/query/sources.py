"""FROM: tables, derived tables, common table expressions and views, joined in every way MySQL has.

Fills the `Names` of the query and returns the tree of joins. RIGHT JOIN is a LEFT JOIN with
its sides swapped; NATURAL is USING over the common names; conditions of inner joins are kept
where they stand and flattened later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from controller.sql.expressions.full_text import with_matches
from controller.sql.expressions.json_table import read_json_table
from controller.sql.expressions.stored_zone import local_values
from controller.sql.output import NOT_NULL, column_flags
from controller.sql.plan import OutputColumn
from controller.sql.query.block import AnyBlock, Block, From, Inner, Leaf, Left, Subquery, own_ids
from controller.sql.query.conditions import conditions
from controller.sql.query.documents import document_leaf
from controller.sql.query.fields import Field, Relation, renamed_output
from controller.sql.query.names import NamedSource, Names, PassingTable, Visible
from controller.sql.text.parse import is_comma, parse_view, syntax_error
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.expressions.expression import Call, Column, Expression, Literal
from dataflow.expressions.rewriting import mapped
from dataflow.functions import call
from dataflow.plan.node import Base
from dataflow.schema import Table, is_internal
from dataflow.values.types import BIGINT, Kind

if TYPE_CHECKING:
    from controller.sql.query.resolve import Resolver

ON_CLAUSE = "on clause"
FROM_CLAUSE = "from clause"
FUNCTION_ARGUMENT = "a table function argument"

Item = tuple[From, list[Visible]]


class FromClause:
    """Resolves one FROM into `names`; subqueries of its conditions go to `subqueries`."""

    def __init__(self, resolver: Resolver, names: Names, subqueries: dict[int, Subquery]) -> None:
        self._resolver = resolver
        self._names = names
        self._subqueries = subqueries
        self._before: list[Visible] = []
        """What a LATERAL here may read."""
        self._trees: list[From] = []
        """The tables that have it."""
        self._links: list[Expression] = []
        """What joins a JSON_TABLE to those before it."""

    def resolve(self, first: Any, joins: list[Any]) -> From:
        """The FROM that begins with `first`."""
        found, visible = self._joined(self._item(first), joins)
        self._names.visible = visible
        return found

    def _joined(self, item: Item, joins: list[Any]) -> Item:
        """JOIN binds more tightly than the comma."""
        items: list[Item] = []
        before, trees, links = self._before, self._trees, len(self._links)
        for join in joins:
            if is_comma(join):
                items.append(item)
                self._before, self._trees = self._before + item[1], [*self._trees, item[0]]
                item = self._item(join.this)
            else:
                item = self._join(item, join)
        self._before, self._trees = before, trees
        if not items:
            return item
        items.append(item)
        found = Inner([each for each, _ in items], self._links[links:])
        del self._links[links:]
        return found, [each for _, visible in items for each in visible]

    # -- items

    def _item(self, node: Any) -> Item:
        joins = node.args.get("joins") or []
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous) and str(node.this.this).upper() == "JSON_TABLE":
            found = self._json_table(node)
        elif isinstance(node, exp.Table):
            found = self._named(node)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery) and not node.alias:
            found = self._item(node.this)
        elif isinstance(node, exp.Subquery | exp.Values):
            if not node.alias:
                raise InvalidStatement(Condition.DERIVED_NEEDS_ALIAS)
            names = [each.name for each in node.args["alias"].args.get("columns") or []]
            query = node if isinstance(node, exp.Values) else node.this
            found = self._derived(self._resolver.query(query, self._names.beside()), node.alias, "", names)
        elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            columns = [each.name for each in node.args["alias"].args.get("columns") or []]
            around = replace(self._names, sources=list(self._names.sources), visible=self._before)
            found = self._derived(self._resolver.query(node.this, around.inside()), node.alias, "", columns)
        else:
            raise Unsupported(f"{type(node).__name__} in FROM")
        return self._joined(found, joins)

    def _named(self, node: Any) -> Item:
        if not isinstance(node.this, exp.Identifier):
            raise Unsupported("table functions")
        name, given = node.name, node.text("db")
        alias = node.args.get("alias")
        names = [each.name for each in (alias.args.get("columns") if alias is not None else None) or []]
        common = None if given else self._names.common.get(name.lower())
        if common is not None and (common.rows is not None or common.recursive):
            rows = common.rows or self._resolver.recursions.rows(name, common, self._names.database)
            return self._rows(rows, node.alias or name, names)
        if common is not None:
            block = self._resolver.query(common.query, Names(None, self._names.database, common.scope))
            drawn = self._resolver.recursions.drawn(common, block)
            if drawn is not None:
                return self._rows(drawn, node.alias or name, names or list(common.columns))
            return self._derived(block, node.alias or name, "", names or list(common.columns))
        if not given and name.upper() == "DUAL" and not node.this.args.get("quoted"):
            return Inner([], []), []
        database = given or self._names.database
        view = self._resolver.view(database, name)
        if view is not None:
            _check_hints(node, frozenset())
            with self._resolver.inside_view(view):
                home = view.default_database or None
                tree = with_matches(parse_view(view.select), self._resolver.catalog, home)
                block = self._resolver.query(tree, Names(None, home))
                return self._derived(block, node.alias or name, view.database, names or list(view.columns), view.name)
        table = self._resolver.catalog.table(database, name)
        self._resolver.tables[table.id] = table
        _check_hints(node, frozenset({"primary", *(index.name.lower() for index in table.indexes)}))
        return self._table(table, node.alias or name)

    def _table(self, table: Table, alias: str) -> Item:
        fields = []
        for column in table.columns:
            number = self._resolver.numbering.fresh(column.type, column.nullable)
            output = OutputColumn(
                column.name, column.type, column.nullable, alias, table.name, column.name, table.database,
                column_flags(table, column),
            )  # fmt: skip
            hidden = is_internal(column)
            fields.append(Field(number.index, column.name, column.type, column.nullable, output, hidden, (table.database, table.name, column.name)))
        leaf = Leaf(tuple(fields), table)
        local = {} if self._names.hidden else local_values(table, self._resolver.settings.time_zone)
        if "PAD_CHAR_TO_FULL_LENGTH" in self._resolver.settings.sql_mode and not self._names.hidden:
            local |= {place: _padded(Column(place, column.type)) for place, column in enumerate(table.columns) if column.type.kind is Kind.CHAR}
        if local:
            leaf, fields = self._localised(leaf, local)
        self._names.add(NamedSource(alias, table.database, tuple(fields)))
        visible = [
            Visible(each, each.column)
            for each, column in zip(fields, table.columns)
            if not column.invisible and not each.hidden
        ]
        return leaf, visible

    def _localised(self, leaf: Leaf, values: dict[int, Expression]) -> tuple[Leaf, list[Field]]:
        """A derived table of the table's rows, some columns of which have these values."""
        block = Block(leaf, [], [], [])
        for place, field in enumerate(leaf.fields):
            value = mapped(values[place], lambda column: leaf.fields[column.index].column) if place in values else field.column
            self._resolver.add_output(block, value, field.name, field.output)
        fields = [replace(field, id=column.index) for field, (column, _) in zip(leaf.fields, block.outputs)]
        return Leaf(tuple(fields), derived=block), fields

    def _derived(self, block: AnyBlock, alias: str, database: str, names: list[str], view: str = "") -> Item:
        if names and len(names) != len(block.outputs):
            raise InvalidStatement(Condition.COLUMN_COUNT_IN_VIEW)
        fields: list[Field] = []
        seen: set[str] = set()
        for place, ((column, _), output) in enumerate(zip(block.outputs, block.columns)):
            name = names[place] if names else output.name
            if name.lower() in seen:
                raise InvalidStatement(Condition.DUPLICATE_COLUMN, name)
            seen.add(name.lower())
            described = renamed_output(output, name, alias)
            origin = (database, view, name) if view else None
            fields.append(Field(column.index, name, column.type, output.nullable, described, origin=origin))
        self._names.add(NamedSource(alias, database, tuple(fields)))
        return Leaf(tuple(fields), derived=block), [Visible(each, each.column) for each in fields]

    def _json_table(self, node: Any) -> Item:
        if not node.alias:
            raise InvalidStatement(Condition.TABLE_FUNCTION_ALIAS)
        document, clause = node.this.expressions
        around = replace(self._names, sources=list(self._names.sources), visible=self._before)
        subqueries: dict[int, Subquery] = {}
        value = self._resolver.translator(around, FUNCTION_ARGUMENT, subqueries).operand(document)
        if subqueries:
            raise Unsupported("subqueries in JSON_TABLE")
        table = read_json_table(clause.this, self._resolver.settings)
        leaf, fields, links = document_leaf(self._resolver, table, value, self._trees, node.alias)
        self._links += links
        self._names.add(NamedSource(node.alias, "", tuple(fields)))
        return leaf, [Visible(each, each.column) for each in fields if not each.hidden]

    def _rows(self, rows: PassingTable, alias: str, names: list[str]) -> Item:
        """A table that is at hand when the statement runs."""
        if names and len(names) != len(rows.columns):
            raise InvalidStatement(Condition.COLUMN_COUNT_IN_VIEW)
        fields: list[Field] = []
        for place, output in enumerate(rows.columns):
            column = self._resolver.numbering.fresh(output.type)
            name = names[place] if names else output.name
            fields.append(Field(column.index, name, output.type, True, renamed_output(output, name, alias)))
        base = Base(rows.table, tuple(each.type for each in fields), ())
        self._names.add(NamedSource(alias, "", tuple(fields)))
        leaf = Leaf(tuple(fields), relation=Relation(base, tuple(each.id for each in fields)))
        return leaf, [Visible(each, each.column) for each in fields]

    # -- joins

    def _join(self, left: Item, node: Any) -> Item:
        side = (node.args.get("side") or "").upper()
        before, trees, mark = self._before, self._trees, len(self._links)
        if side != "RIGHT":
            self._before, self._trees = before + left[1], [*trees, left[0]]
        right = self._item(node.this)
        self._before, self._trees = before, trees
        links = self._links[mark:]
        del self._links[mark:]
        if side not in ("", "LEFT", "RIGHT"):
            raise syntax_error(f"{side} JOIN", 0)
        using = node.args.get("using")
        names = [each.name for each in using] if using else None
        if (node.args.get("method") or "").upper() == "NATURAL":
            theirs = {each.field.name.lower() for each in right[1]}
            names = [each.field.name for each in left[1] if each.field.name.lower() in theirs]
        if names is not None:
            conditions, visible = self._using(left[1], right[1], names, side)
        else:
            visible = left[1] + right[1]
            conditions = self._conditions(node.args.get("on"), visible, own_ids(left[0]) | own_ids(right[0]))
        if not side:
            return Inner([left[0], right[0]], [*links, *conditions]), visible
        if not conditions and node.args.get("on") is None and names is None:
            raise syntax_error("", 0)
        kept, optional = (left[0], right[0]) if side == "LEFT" else (right[0], left[0])
        return Left(kept, optional, [*links, *conditions]), self._optional(optional, visible)

    def _conditions(self, node: Any, visible: list[Visible], ids: set[int]) -> list[Expression]:
        """An ON sees the tables that it joins, which have the columns `ids`, and no others of the FROM."""
        if node is None:
            return []
        joined = [each for each in self._names.sources if each.fields[0].id in ids]
        names = replace(self._names, sources=joined, visible=visible)
        return conditions(self._resolver.translator(names, ON_CLAUSE, self._subqueries).translate(node))

    def _using(
        self, left: list[Visible], right: list[Visible], names: list[str], side: str
    ) -> tuple[list[Expression], list[Visible]]:
        conditions: list[Expression] = []
        merged: list[Visible] = []
        taken: list[Visible] = []
        for name in names:
            pair: list[Visible] = []
            for visible in (left, right):
                found = [each for each in visible if each.field.name.lower() == name.lower()]
                if len(found) != 1:
                    condition = Condition.AMBIGUOUS_COLUMN if found else Condition.UNKNOWN_COLUMN
                    raise InvalidStatement(condition, name, FROM_CLAUSE)
                pair.append(found[0])
                self._resolver.use(found[0].field)
            conditions.append(call("=", pair[0].value, pair[1].value))
            merged.append(pair[1] if side == "RIGHT" else pair[0])
            taken += pair
        first, second = (right, left) if side == "RIGHT" else (left, right)
        order = {id(each): place for place, each in enumerate(first)}
        merged.sort(key=lambda each: order[id(each)])
        rest = [each for each in first + second if not any(each is other for other in taken)]
        return conditions, merged + rest

    def _optional(self, source: From, visible: list[Visible]) -> list[Visible]:
        """The columns of the optional side of an outer join may be NULL."""
        ids = own_ids(source)
        self._resolver.numbering.set_nullable(ids)

        def nullable(found: Field) -> Field:
            if found.id not in ids:
                return found
            output = replace(found.output, nullable=True, flags=found.output.flags & ~NOT_NULL)
            return replace(found, nullable=True, output=output)

        for place, each in enumerate(self._names.sources):
            self._names.sources[place] = replace(each, fields=tuple(nullable(found) for found in each.fields))
        return [Visible(nullable(each.field), each.value) for each in visible]


def _check_hints(node: Any, known: frozenset[str]) -> None:
    """USE INDEX and its like name indexes of the table, or the beginning of one's name; they change nothing."""
    for hint in node.args.get("hints") or ():
        for each in hint.expressions if isinstance(hint, exp.IndexTableHint) else ():
            name = each.name.lower()
            if name not in known and sum(index.startswith(name) for index in known) != 1:
                raise InvalidStatement(Condition.KEY_DOES_NOT_EXIST, each.name, node.alias or node.name)


def _padded(column: Column) -> Expression:
    """A CHAR as PAD_CHAR_TO_FULL_LENGTH shows it: with spaces up to its length."""
    padded = call("rpad", column, Literal(column.type.length or 1, BIGINT), Literal(" ", column.type))
    return Call(padded.function, padded.arguments, column.type)
