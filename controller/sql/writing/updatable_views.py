"""INSERT, UPDATE and DELETE of a view of one table, as the same statement about that table.

A view can be written through if its rows are rows of one table, or of such a view: no joins, groups, DISTINCT, LIMIT or
set operations. Its columns are replaced by what they stand for, and its conditions are added. WITH CHECK OPTION
makes its conditions constraints of the statement. A view of one table may be joined with others; views of several tables are in `joined_views`.
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
from controller.sql.text.precedence import called
from controller.sql.writing.joined_views import is_inserted_value, joined_through
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import Table

_PLAIN = frozenset({"expressions", "from_", "where", "order", "operation_modifiers", "kind"})
"""What the SELECT of such a view may have."""

Checks = tuple[Any, ...]
"""The conditions of views WITH CHECK OPTION, which a row has to fulfil."""


@dataclass(frozen=True, slots=True)
class _Written:
    """`columns` are the view's, each as an expression over the table's; names in there have no table."""

    database: str
    table: str
    columns: dict[str, Any]
    conditions: tuple[Any, ...]
    checks: Checks


def written_through(node: Any, catalog: Catalog, database: str | None, views: list[CatalogView]) -> Any:
    """The statement about the table of the view that it names; the statement itself if it names a table.

    `views` collects the definitions that it was made of.
    """
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    if not isinstance(target, exp.Table) or target.args.get("joins") or node.args.get("tables") or node.args.get("using"):
        return node if isinstance(node, exp.Insert) else _in_join(node, catalog, database, views)
    name = (target.text("db") or database or "", target.name)
    view = catalog.views.get(name)
    if view is None or catalog.find_table(*name) is not None:
        return node
    verb = type(node).__name__.upper()
    found = _written(view, catalog, views)
    inserting = isinstance(node, exp.Insert)
    joined = joined_through(node, target, view, catalog, lambda each: _written(each, catalog, views)) if found is None else None
    if joined is not None:
        return joined
    if found is None or (inserting and not _is_insertable(found)):
        condition = Condition.NON_INSERTABLE_TABLE if inserting else Condition.NON_UPDATABLE_TABLE
        raise InvalidStatement(condition, target.alias or target.name, verb)
    alias = target.alias or target.name
    node = node.copy()
    base = exp.to_table(exp.table_(found.table, found.database, quoted=True), copy=False)
    base.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    base.meta["checks"] = (view, _checks(node, alias, found, catalog))
    if inserting:
        base.meta["seen"] = {value.name.lower() for value in found.columns.values() if isinstance(value, exp.Column)}
        given = node.this.expressions if isinstance(node.this, exp.Schema) else None
        names = [each.name for each in given] if given is not None else list(found.columns)
        columns = [exp.to_identifier(_base_column(found, each), quoted=True) for each in names]
        node.set("this", exp.Schema(this=base, expressions=columns))
        conflict = node.args.get("conflict")
        if conflict is not None:
            conflict.set("expressions", [_assignment(each, found, alias) for each in conflict.expressions])
        return node
    node.set("this", base)
    if isinstance(node, exp.Update):
        node.set("expressions", [_assignment(each, found, alias) for each in node.expressions])
    conditions = [_of_table(each, alias) for each in found.conditions]
    where = node.args.get("where")
    if where is not None:
        conditions.insert(0, _over_table(where.this, found, alias))
    if conditions:
        node.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
    if node.args.get("order") is not None:
        node.set("order", _over_table(node.args["order"], found, alias))
    return node


def _checks(node: Any, alias: str, found: _Written, catalog: Catalog) -> Checks:
    """What the row has to fulfil. A subquery still holds for a row of the view in which nothing changes that it reads."""
    if not isinstance(node, exp.Update):
        return found.checks
    targets = [each.this for each in node.expressions if isinstance(each, exp.EQ) and each.this.table in ("", alias)]
    changed = {_base_column(found, each.name).lower() for each in targets if each.name.lower() in found.columns}
    columns = catalog.table(found.database, found.table).columns
    changed |= {each.name.lower() for each in columns if each.generated is not None or each.on_update_now}
    terms = [term for each in found.checks for term in (each.flatten() if isinstance(each, exp.And) else [each])]
    return tuple(each for each in terms if each.find(exp.Query) is None or changed & {column.name.lower() for column in each.find_all(exp.Column)})


def _in_join(node: Any, catalog: Catalog, database: str | None, views: list[CatalogView]) -> Any:
    """A statement about several tables with the table of each view in it that it changes, where that is joined by INNER JOIN alone."""
    using = node.args.get("using")
    node = node.copy() if catalog.views else node
    source = node.args["using"][0] if using else node.this
    if not isinstance(source, exp.Table) or not catalog.views:
        return node
    joins = source.args.get("joins") or []
    is_inner = not any(each.args.get("side") or each.args.get("using") or each.args.get("method") for each in joins)
    for table in [source, *(each.this for each in joins)]:
        name = (table.text("db") or database or "", table.name)
        view = catalog.views.get(name) if isinstance(table, exp.Table) and catalog.find_table(*name) is None else None
        if view is None:
            continue
        found = _written(view, catalog, views)
        if not _is_changed(node, table.alias or table.name, found):
            continue
        if found is None or not is_inner:
            raise InvalidStatement(Condition.NON_UPDATABLE_TABLE, table.alias or table.name, type(node).__name__.upper())
        table.meta["checks"] = (view, _checks(node, table.alias or table.name, found, catalog))
        _put_table(node, source, table, found)
    return node


def _is_changed(node: Any, alias: str, found: _Written | None) -> bool:
    if isinstance(node, exp.Update):
        columns = {} if found is None else found.columns
        targets = [each.this for each in node.expressions if isinstance(each, exp.EQ)]
        return any(each.table == alias or (not each.table and each.name.lower() in columns) for each in targets)
    named = node.args.get("tables") or [node.this, *(each.this for each in node.this.args.get("joins") or [])]
    return any((each.alias or each.name) == alias for each in named)


def _put_table(node: Any, source: Any, table: Any, found: _Written) -> None:
    """The table of a view in the place of the view, under its name, and what the view says of it in WHERE and ON."""
    alias = table.alias or table.name
    if isinstance(node, exp.Update):
        changed = [each for each in node.expressions if isinstance(each, exp.EQ) and (each.this.table == alias or each.this.name.lower() in found.columns)]
        kept = {id(each): _assignment(each, found, alias) for each in changed}
        node.set("expressions", [kept.get(id(each)) or _over_table(each, found, alias) for each in node.expressions])
    for join in source.args.get("joins") or []:
        if join.args.get("on") is not None:
            join.set("on", _over_table(join.args["on"], found, alias))
    where = node.args.get("where")
    conditions = [_of_table(each, alias) for each in found.conditions]
    if where is not None:
        conditions.insert(0, _over_table(where.this, found, alias))
    if conditions:
        node.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
    table.set("this", exp.to_identifier(found.table, quoted=True))
    table.set("db", exp.to_identifier(found.database, quoted=True))
    table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def is_updatable(view: CatalogView, catalog: Catalog) -> bool:
    try:
        return _written(view, catalog, []) is not None
    except InvalidStatement:
        return False  # what it was made of is gone


def loaded_table(catalog: Catalog, database: str, name: str) -> tuple[Table, dict[str, str]]:
    """What LOAD DATA writes to: the table of that name, or that of the view, and its columns by their names in the view."""
    view = catalog.views.get((database, name))
    if view is None or catalog.find_table(database, name) is not None:
        table = catalog.table(database, name)
        return table, {column.name: column.name for column in table.columns if not column.invisible}
    found = _written(view, catalog, [])
    if found is None:
        tree = parse_view(view.select)
        if isinstance(tree, exp.Select) and tree.args.get("joins"):
            raise InvalidStatement(Condition.WRONG_USAGE, "Multi-table VIEW", "LOAD")
    if found is None or not _is_insertable(found):
        raise InvalidStatement(Condition.NON_UPDATABLE_TABLE, name, "LOAD")
    return catalog.table(found.database, found.table), {each: str(column.name) for each, column in found.columns.items()}


def _written(view: CatalogView, catalog: Catalog, views: list[CatalogView]) -> _Written | None:
    """What the view is a view of, if it can be written through."""
    views.append(view)
    tree = parse_view(view.select).unnest()
    if view.algorithm == "TEMPTABLE" or not isinstance(tree, exp.Select) or any(value for name, value in tree.args.items() if name not in _PLAIN):
        return None
    clause = tree.args.get("from_")
    source = None if clause is None else clause.this
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier) or source.args.get("joins"):
        return None
    if any(each.find(exp.Query, exp.Window) is not None or calls_aggregate(each) for each in tree.expressions):
        return None
    name = (source.text("db") or view.default_database, source.name)
    inner: _Written | None
    if name in catalog.views:
        inner = _written(catalog.views[name], catalog, views)
    else:
        table = catalog.table(*name)
        plain = {each.name.lower(): exp.column(exp.to_identifier(each.name, quoted=True)) for each in table.columns if not each.invisible}
        inner = _Written(*name, plain, (), ())
    if inner is None:
        return None
    items: list[tuple[str, Any]] = []
    for item in tree.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            items += [(each, value.copy()) for each, value in inner.columns.items()]
        else:
            value = item.this if isinstance(item, exp.Alias) else item
            items.append((item.alias if isinstance(item, exp.Alias) else default_name(item), _mapped(value, inner)))
    names = view.columns or tuple(each for each, _ in items)
    where = tree.args.get("where")
    if where is not None and name in _read(where, view, catalog):
        return None  # a subquery reads the table that would be changed
    own = () if where is None else (_mapped(where.this, inner),)
    checks = inner.checks
    if view.check:
        checks = (*checks, *own) if view.check == "LOCAL" else (*inner.conditions, *own)
    columns = {name.lower(): value for name, (_, value) in zip(names, items)}
    return _Written(inner.database, inner.table, columns, (*inner.conditions, *own), checks)


def _read(node: Any, view: CatalogView, catalog: Catalog) -> set[tuple[str, str]]:
    """The tables and views that an expression of a view reads, and those that these are made of."""
    names = {(each.text("db") or view.default_database, each.name) for each in node.find_all(exp.Table)}
    for name in list(names):
        if name in catalog.views:
            names |= _read(parse_view(catalog.views[name].select), catalog.views[name], catalog)
    return names


def _is_insertable(found: _Written) -> bool:
    plain = [each.name.lower() for each in found.columns.values() if isinstance(each, exp.Column)]
    return len(plain) == len(found.columns) == len(set(plain))


def _mapped(node: Any, inner: _Written) -> Any:
    """An expression of a view's SELECT over what that reads."""

    def replaced(each: Any) -> Any:
        if not isinstance(each, exp.Column) or each.find_ancestor(exp.Query) not in (None, node):
            return each
        value = inner.columns.get(each.name.lower())
        return each if value is None else _alone(value)

    return node.transform(replaced)


def _alone(value: Any) -> Any:
    return value.copy() if isinstance(value, exp.Column) else exp.Paren(this=value.copy())


def _base_column(found: _Written, name: str) -> str:
    value = found.columns.get(name.lower())
    if value is None:
        raise InvalidStatement(Condition.UNKNOWN_COLUMN, name, FIELD_LIST)
    if not isinstance(value, exp.Column):
        raise InvalidStatement(Condition.NON_UPDATABLE_COLUMN, name)
    return str(value.name)


def _assignment(node: Any, found: _Written, alias: str) -> Any:
    if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
        return node
    target = exp.column(exp.to_identifier(_base_column(found, node.this.name), quoted=True), table=exp.to_identifier(alias, quoted=True))
    return exp.EQ(this=target, expression=_over_table(node.expression, found, alias))


def _over_table(node: Any, found: _Written, alias: str) -> Any:
    """An expression of the statement over the columns of the table. Names without a table are the view's, unless a subquery has them."""

    def replaced(each: Any) -> Any:
        if is_inserted_value(each):
            return called("VALUES", exp.to_identifier(_base_column(found, each.expressions[0].name), quoted=True))
        if not isinstance(each, exp.Column) or each.table not in ("", alias):
            return each
        if not each.table and each.find_ancestor(exp.Query) is not None:
            return each
        value = found.columns.get(each.name.lower())
        if value is None:
            return each
        return _of_table(_alone(value), alias)

    return node.transform(replaced)


def _of_table(node: Any, alias: str) -> Any:
    """The columns of a view's expression, as those of the table under its name in the statement."""

    def named(each: Any) -> Any:
        if isinstance(each, exp.Column) and not each.table and each.find_ancestor(exp.Query) is None:
            return exp.column(each.this.copy(), table=exp.to_identifier(alias, quoted=True))
        return each

    return node.transform(named)
