"""UPDATE and INSERT of a view of several tables, as the same statement about one of them.

The tables are base tables joined by a comma or INNER JOIN; their columns are what the view shows. A statement may change columns of one
table only. There is no DELETE: it would not say of which table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from controller.catalog import Catalog, CatalogView
from controller.sql.expressions.operators import calls_aggregate
from controller.sql.expressions.scope import FIELD_LIST
from controller.sql.output import default_name
from controller.sql.text.parse import parse_view
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.schema import Table

_PLAIN = frozenset({"expressions", "from_", "joins", "where", "order", "operation_modifiers", "kind"})


@dataclass(frozen=True, slots=True)
class _Joined:
    """`source` is the FROM, `columns` are the view's, over the columns of `tables`, which have their names in the FROM."""

    source: Any
    tables: dict[str, Table]
    columns: dict[str, Any]
    where: Any


def joined_through(node: Any, target: Any, view: CatalogView, catalog: Catalog) -> Any:
    """The statement about the tables of `view`; None if it is not one of several tables that can be written."""
    found = _joined(view, catalog)
    if found is None:
        return None
    name = (view.database, view.name)
    if isinstance(node, exp.Delete):
        raise InvalidStatement(Condition.JOIN_VIEW_DELETE, *name)
    if view.check:
        raise Unsupported("a change of a view of several tables WITH CHECK OPTION")
    node = node.copy()
    alias = target.alias or target.name
    if isinstance(node, exp.Update):
        assigned = [each for each in node.expressions if isinstance(each, exp.EQ) and isinstance(each.this, exp.Column)]
        _of_one(found, [each.this.name for each in assigned], name)
        node.set("expressions", [_over(each, found, alias) for each in node.expressions])
        conditions = [each for each in (node.args["where"].this if node.args.get("where") else None, found.where) if each is not None]
        if conditions:
            node.set("where", exp.Where(this=_over(exp.and_(*conditions), found, alias)))
        node.set("this", found.source)
        return node
    if not isinstance(node.this, exp.Schema):
        raise InvalidStatement(Condition.JOIN_VIEW_FIELDS, *name)
    names = [each.name for each in node.this.expressions]
    table = found.tables[_of_one(found, names, name)]
    base = exp.to_table(exp.table_(table.name, table.database, quoted=True), copy=False)
    columns = [exp.to_identifier(found.columns[each.lower()].name, quoted=True) for each in names]
    node.set("this", exp.Schema(this=base, expressions=columns))
    return node


def _joined(view: CatalogView, catalog: Catalog) -> _Joined | None:
    tree = parse_view(view.select)
    if view.algorithm == "TEMPTABLE" or not isinstance(tree, exp.Select) or any(value for key, value in tree.args.items() if key not in _PLAIN):
        return None
    joins = tree.args.get("joins") or []
    source = None if tree.args.get("from_") is None else tree.args["from_"].this
    if not joins or any(each.args.get("side") or each.args.get("using") or each.args.get("method") for each in joins):
        return None
    if any(each.find(exp.Query, exp.Window) is not None or calls_aggregate(each) for each in tree.expressions):
        return None
    tables: dict[str, Table] = {}
    for each in [source, *(join.this for join in joins)]:
        if not isinstance(each, exp.Table) or not isinstance(each.this, exp.Identifier) or each.args.get("joins"):
            return None
        table = catalog.find_table(each.text("db") or view.default_database, each.name)
        if table is None:
            return None
        tables[each.alias or each.name] = table
        each.set("db", exp.to_identifier(table.database, quoted=True))
    assert source is not None
    source.set("joins", [_qualified(join, tables) for join in joins])
    items = [_qualified(item, tables) for item in tree.expressions]
    names = view.columns or tuple(each.alias if isinstance(each, exp.Alias) else default_name(each) for each in items)
    values = [each.this if isinstance(each, exp.Alias) else each for each in items]
    where = tree.args.get("where")
    return _Joined(
        source, tables, {name.lower(): value for name, value in zip(names, values)}, None if where is None else _qualified(where.this, tables)
    )


def _qualified(node: Any, tables: dict[str, Table]) -> Any:
    """A copy of the node with a table before each column that is not of a query inside it."""

    def named(each: Any) -> Any:
        if not isinstance(each, exp.Column) or each.table or each.find_ancestor(exp.Query) is not None:
            return each
        owners = [alias for alias, table in tables.items() if any(column.name.lower() == each.name.lower() for column in table.columns)]
        return exp.column(each.this.copy(), table=exp.to_identifier(owners[0], quoted=True)) if len(owners) == 1 else each

    return node.transform(named)


def _of_one(found: _Joined, names: list[str], view: tuple[str, str]) -> str:
    """The table whose columns the view's are."""
    owners: set[str] = set()
    for name in names:
        value = found.columns.get(name.lower())
        if value is None:
            raise InvalidStatement(Condition.UNKNOWN_COLUMN, name, FIELD_LIST)
        if not isinstance(value, exp.Column):
            raise InvalidStatement(Condition.NON_UPDATABLE_COLUMN, name)
        owners.add(value.table)
    if len(owners) != 1:
        raise InvalidStatement(Condition.JOIN_VIEW_TABLES, *view)
    return owners.pop()


def _over(node: Any, found: _Joined, alias: str) -> Any:
    """An expression of the statement over the columns of the tables; what has one of their names already is left."""

    def replaced(each: Any) -> Any:
        if not isinstance(each, exp.Column) or each.table not in ("", alias) or (not each.table and each.find_ancestor(exp.Query) is not None):
            return each
        value = found.columns.get(each.name.lower())
        return each if value is None else value.copy() if isinstance(value, exp.Column) else exp.Paren(this=value.copy())

    return node.transform(replaced)
