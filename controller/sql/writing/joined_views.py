"""UPDATE and INSERT of a view of several tables, as the same statement about one of them.

The sources are joined by a comma or INNER JOIN, so they and all conditions are one list each. A statement may change columns of one table only,
a base table or that of a view of one table; whatever else the view is made of is only read. There is no DELETE: it would not say of which table.

WITH CHECK OPTION makes those conditions constraints that only read the table; the others hold for a row that was found, unless they read what
is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sqlglot import exp

from controller.catalog import Catalog, CatalogView
from controller.sql.expressions.operators import calls_aggregate
from controller.sql.expressions.scope import FIELD_LIST
from controller.sql.output import default_name
from controller.sql.text.parse import parse_view
from controller.sql.text.precedence import called
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.schema import Table

_PLAIN = frozenset({"expressions", "from_", "joins", "where", "order", "operation_modifiers", "kind"})


class OneTable(Protocol):
    """What a view of one table is a view of: its columns are expressions over the table's, without a table's name."""

    @property
    def database(self) -> str: ...
    @property
    def table(self) -> str: ...
    @property
    def columns(self) -> dict[str, Any]: ...
    @property
    def conditions(self) -> tuple[Any, ...]: ...


@dataclass(frozen=True, slots=True)
class _Joined:
    """`sources` are joined; `columns` are the view's, over the columns of `tables`, which have their names among the sources."""

    sources: list[Any]
    tables: dict[str, Table]
    columns: dict[str, Any]
    conditions: list[Any]


def joined_through(node: Any, target: Any, view: CatalogView, catalog: Catalog, one_table: Callable[[CatalogView], OneTable | None]) -> Any:
    """The statement about the tables of `view`; None if it is not one of several tables that can be written."""
    found = _joined(view, catalog, one_table)
    if found is None:
        return None
    if isinstance(node, exp.Delete):
        raise InvalidStatement(Condition.JOIN_VIEW_DELETE, view.database, view.name)
    node = node.copy()
    alias = target.alias or target.name
    if isinstance(node, exp.Update):
        assigned = [each.this.name for each in node.expressions if isinstance(each, exp.EQ) and isinstance(each.this, exp.Column)]
        owner = _of_one(found, assigned, view, Condition.NON_UPDATABLE_TABLE, alias, "UPDATE")
        if view.check:
            changed = {found.columns[each.lower()].name.lower() for each in assigned}
            _named(found.sources, owner).meta["checks"] = (view, _checks(found, owner, changed))
        node.set("expressions", [_over(each, found, alias) for each in node.expressions])
        where = [] if node.args.get("where") is None else [_over(node.args["where"].this, found, alias)]
        conditions = [*where, *found.conditions]
        if conditions:
            node.set("where", exp.Where(this=exp.and_(*conditions)))
        first, *others = found.sources
        first.set("joins", [exp.Join(this=each) for each in others])
        node.set("this", first)
        return node
    if not isinstance(node.this, exp.Schema):
        raise InvalidStatement(Condition.JOIN_VIEW_FIELDS, view.database, view.name)
    names = [each.name for each in node.this.expressions]
    conflict = node.args.get("conflict")
    assigned = [] if conflict is None else [each.this.name for each in conflict.expressions if isinstance(each, exp.EQ)]
    owner = _of_one(found, [*names, *assigned], view, Condition.NON_INSERTABLE_TABLE, alias, "INSERT")
    table = found.tables[owner]
    base = exp.to_table(exp.table_(table.name, table.database, quoted=True), copy=False)
    base.set("alias", exp.TableAlias(this=exp.to_identifier(owner, quoted=True)))
    if conflict is not None:
        conflict.set("expressions", [_over(each, found, alias) for each in conflict.expressions])
    if view.check:
        if not all(_is_about(each, owner) for each in found.conditions):
            raise InvalidStatement(Condition.VIEW_CHECK_FAILED, view.database, view.name)  # there is no row of the other tables
        base.meta["checks"] = (view, tuple(found.conditions))
    columns = [exp.to_identifier(found.columns[each.lower()].name, quoted=True) for each in names]
    node.set("this", exp.Schema(this=base, expressions=columns))
    return node


def _joined(view: CatalogView, catalog: Catalog, one_table: Callable[[CatalogView], OneTable | None]) -> _Joined | None:
    tree = parse_view(view.select).unnest()
    if view.algorithm == "TEMPTABLE" or not isinstance(tree, exp.Select) or any(value for key, value in tree.args.items() if key not in _PLAIN):
        return None
    if tree.args.get("from_") is None or any(each.find(exp.Query, exp.Window) is not None or calls_aggregate(each) for each in tree.expressions):
        return None
    conditions: list[Any] = [] if tree.args.get("where") is None else [tree.args["where"].this]
    sources = _sources(tree.args["from_"].this, tree.args.get("joins") or [], conditions)
    if sources is None or len(sources) < 2:
        return None
    tables: dict[str, Table] = {}
    columns: dict[str, dict[str, Any]] = {}
    of_views: list[Any] = []
    for place, each in enumerate(sources):
        if not isinstance(each, exp.Table) or not isinstance(each.this, exp.Identifier):
            continue
        alias, name = each.alias or each.name, (each.text("db") or view.default_database, each.name)
        each.set("db", exp.to_identifier(name[0], quoted=True))
        one = one_table(catalog.views[name]) if name in catalog.views and catalog.find_table(*name) is None else None
        table = catalog.find_table(*(name if one is None else (one.database, one.table)))
        if table is None:
            continue
        tables[alias] = table
        columns[alias] = {column.name.lower(): exp.column(exp.to_identifier(column.name, quoted=True)) for column in table.columns}
        if one is not None:
            columns[alias] = one.columns
            of_views += [_qualified(condition, {alias: {}}, alias) for condition in one.conditions]
            sources[place] = exp.alias_(exp.table_(table.name, table.database, quoted=True), alias, table=True, quoted=True)
    sources.sort(key=lambda each: (each.alias or each.name) not in tables)
    if not tables:
        return None
    items = [_qualified(item, columns) for item in tree.expressions]
    names = view.columns or tuple(each.alias if isinstance(each, exp.Alias) else default_name(written) for each, written in zip(items, tree.expressions))
    values = [each.this if isinstance(each, exp.Alias) else each for each in items]
    terms = [term for each in conditions for term in (each.flatten() if isinstance(each, exp.And) else [each])]
    return _Joined(
        sources, tables, {name.lower(): value for name, value in zip(names, values)}, [*(_qualified(each, columns) for each in terms), *of_views]
    )


def _sources(source: Any, joins: list[Any], conditions: list[Any]) -> list[Any] | None:
    """What is joined, and the conditions of its joins besides; None if there is another join than an inner one."""
    found: list[Any] = []
    if any(each.args.get("side") or each.args.get("using") or each.args.get("method") for each in joins):
        return None
    conditions += [each.args["on"] for each in joins if each.args.get("on") is not None]
    for each in [source, *(join.this for join in joins)]:
        is_parenthesis = isinstance(each, exp.Subquery) and not each.alias
        nested = each.args.get("joins") or []
        each.set("joins", None)
        parts = _sources(each.this if is_parenthesis else each, nested, conditions) if is_parenthesis or nested else [each]
        if parts is None:
            return None
        found += parts
    return found


def _named(sources: list[Any], alias: str) -> Any:
    return next(each for each in sources if (each.alias or each.name) == alias)


def _qualified(node: Any, columns: dict[str, dict[str, Any]], alias: str | None = None) -> Any:
    """A copy of the node with the table's column for each of a source, under the source's name; `alias` is that of all without a name."""

    def named(each: Any) -> Any:
        if not isinstance(each, exp.Column) or each.find_ancestor(exp.Query) is not None:
            return each
        name = each.name.lower()
        owners = [each.table] if each.table else [owner for owner, known in columns.items() if name in known] if alias is None else [alias]
        if len(owners) != 1:
            return each
        value = columns.get(owners[0], {}).get(name)
        if value is None or isinstance(value, exp.Column):
            return exp.column((each if value is None else value).this.copy(), table=exp.to_identifier(owners[0], quoted=True))
        return exp.Paren(this=_qualified(value, {owners[0]: {}}, owners[0]))

    return node.transform(named)


def _checks(found: _Joined, owner: str, changed: set[str]) -> tuple[Any, ...]:
    """The conditions that a changed row of a table has to fulfil."""
    computed = {each.name.lower() for each in found.tables[owner].columns if each.generated is not None or each.on_update_now}
    for each in found.conditions:
        reads = {column.name.lower() for column in each.find_all(exp.Column) if column.table in (owner, "")}
        if not _is_about(each, owner) and reads & (changed | computed):
            raise Unsupported("a change of what a view of several tables WITH CHECK OPTION joins by")
    return tuple(each for each in found.conditions if _is_about(each, owner))


def _is_about(condition: Any, owner: str) -> bool:
    """Whether it reads the columns of one table only."""
    return condition.find(exp.Query) is None and all(each.table == owner for each in condition.find_all(exp.Column))


def _of_one(found: _Joined, names: list[str], view: CatalogView, refusal: Condition, alias: str, verb: str) -> str:
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
        raise InvalidStatement(Condition.JOIN_VIEW_TABLES, view.database, view.name)
    owner = owners.pop()
    if owner not in found.tables:
        raise InvalidStatement(refusal, alias, verb)
    return owner


def is_inserted_value(node: Any) -> bool:
    """VALUES(column) of ON DUPLICATE KEY UPDATE, without the name of a table."""
    return isinstance(node, exp.Anonymous) and node.this == "VALUES" and isinstance(node.expressions[0], exp.Identifier)


def _over(node: Any, found: _Joined, alias: str) -> Any:
    """An expression of the statement over the columns of the tables; what has one of their names already is left."""

    def replaced(each: Any) -> Any:
        if is_inserted_value(each) and each.expressions[0].name.lower() in found.columns:
            return called("VALUES", found.columns[each.expressions[0].name.lower()].this.copy())
        if not isinstance(each, exp.Column) or each.table not in ("", alias) or (not each.table and each.find_ancestor(exp.Query) is not None):
            return each
        value = found.columns.get(each.name.lower())
        return each if value is None else value.copy() if isinstance(value, exp.Column) else exp.Paren(this=value.copy())

    return node.transform(replaced)
