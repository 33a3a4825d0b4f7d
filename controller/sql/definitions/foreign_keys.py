"""Foreign keys against the tables they point at, as far as definitions are concerned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller.catalog import Catalog
from dataflow.errors import Condition, InvalidStatement
from dataflow.schema import ForeignKey, Table, TableColumn, declared_keys, leads_with
from dataflow.values.types import INTEGERS, TEXTS


def check_parents(table: Table, keys: Iterable[ForeignKey], catalog: Catalog, enforced: bool) -> None:
    """Each key's parent exists and has an index that begins with the referenced columns."""
    taken = {
        key.name.lower(): other
        for other in catalog.tables.values()
        if other.database == table.database and other.id != table.id
        for key in other.foreign_keys
    }
    seen: set[str] = set()
    for key in table.foreign_keys:
        if key.name.lower() in taken or key.name.lower() in seen:
            raise InvalidStatement(Condition.DUPLICATE_FOREIGN_KEY, key.name)
        seen.add(key.name.lower())
    for key in keys:
        if "SET DEFAULT" in (key.on_delete, key.on_update):
            raise InvalidStatement(Condition.CANNOT_ADD_FOREIGN)
        if "SET NULL" in (key.on_delete, key.on_update):
            names = {name.lower() for name in key.columns}
            for column in table.columns:
                if column.name.lower() in names and not column.nullable:
                    raise InvalidStatement(Condition.FOREIGN_COLUMN_NOT_NULL, column.name, key.name)
        _check_parent(table, key, catalog, enforced)


def _check_parent(table: Table, key: ForeignKey, catalog: Catalog, enforced: bool) -> None:
    itself = (key.parent_database, key.parent_table) == (table.database, table.name)
    parent = table if itself else catalog.find_table(key.parent_database, key.parent_table)
    if parent is None:
        if enforced:
            raise InvalidStatement(Condition.PARENT_TABLE_MISSING, key.parent_table)
        return
    names = {column.name.lower(): column for column in parent.columns}
    own = {column.name.lower(): column for column in table.columns}
    wanted = [name.lower() for name in key.parent_columns]
    if len(wanted) != len(key.columns) or any(name not in names for name in wanted):
        raise InvalidStatement(Condition.PARENT_INDEX_MISSING, key.name, key.parent_table)
    for name, referenced in zip(key.columns, wanted):
        if not _is_compatible(own[name.lower()], names[referenced]):
            raise InvalidStatement(Condition.FOREIGN_KEY_INCOMPATIBLE, name, names[referenced].name, key.name)
    ids: list[int | None] = [names[name].id for name in wanted]
    if not any(leads_with(index, ids) for index in declared_keys(parent)):
        raise InvalidStatement(Condition.PARENT_INDEX_MISSING, key.name, key.parent_table)


def check_children(old: Table, new: Table, catalog: Catalog, enforced: bool) -> None:
    """Whatever points at the table still finds an index that begins with the columns it names."""
    if not enforced:
        return
    ids = {column.name.lower(): column.id for column in old.columns}
    kept = {column.id for column in new.columns}
    for other in catalog.tables.values():
        for key in other.foreign_keys:
            if (key.parent_database, key.parent_table) != (old.database, old.name):
                continue
            wanted = [ids.get(name.lower()) for name in key.parent_columns]
            before = next((index for index in declared_keys(old) if leads_with(index, wanted)), None)
            if before and kept.issuperset(wanted) and not any(leads_with(index, wanted) for index in declared_keys(new)):
                raise InvalidStatement(Condition.INDEX_NEEDED_BY_FOREIGN_KEY, before.name or "PRIMARY")


def _is_compatible(child: TableColumn, parent: TableColumn) -> bool:
    one, two = child.type, parent.type
    if one.kind in INTEGERS:
        return one.kind is two.kind and one.unsigned == two.unsigned
    if one.kind in TEXTS:
        return two.kind in TEXTS and one.collation == two.collation
    return one.kind is two.kind


def related_tables(table: Table, catalog: Catalog) -> tuple[Table, ...]:
    """All tables that enforcing foreign keys may have to look at when `table` is written to, itself among them.

    Those it points at; those that point at it, and so on, as changes cascade, with what they
    point at. None if there is no foreign key.
    """
    found = {table.id: table}
    pending = [table]
    while pending:
        parent = pending.pop()
        for child, _ in catalog.references_to(parent.database, parent.name):
            if child.id not in found:
                found[child.id] = child
                pending.append(child)
    if len(found) == 1 and not table.foreign_keys:
        return ()
    for child in list(found.values()):
        for key in child.foreign_keys:
            named = catalog.find_table(key.parent_database, key.parent_table)
            if named is not None:
                found[named.id] = named
    return tuple(found.values())


def touched_parents(keys: Iterable[ForeignKey], table: Table, catalog: Catalog) -> list[Table]:
    """The tables that new keys of `table` point at, in a version of their own.

    Whoever writes to a parent without knowing of the key finds its schema stale.
    """
    found: dict[int, Table] = {}
    for key in keys:
        parent = catalog.find_table(key.parent_database, key.parent_table)
        if parent is not None and parent.id != table.id:
            found[parent.id] = replace(parent, version=parent.version + 1)
    return list(found.values())


def waiting_children(table: Table, catalog: Catalog) -> list[Table]:
    """The tables that already point at a table about to be made, in a version of their own."""
    children = {child.id: child for child, _ in catalog.references_to(table.database, table.name)}
    return [replace(child, version=child.version + 1) for child in children.values() if child.id != table.id]


def check_not_referenced(table: Table, catalog: Catalog, dropped: set[int], enforced: bool) -> None:
    """Error 3730 if another table that stays points at `table`."""
    if not enforced:
        return
    for child, key in catalog.references_to(table.database, table.name):
        if child.id != table.id and child.id not in dropped:
            raise InvalidStatement(Condition.TABLE_IS_REFERENCED, table.name, key.name, child.name)


def description(table: Table, key: ForeignKey, qualified: bool = False) -> str:
    """The constraint as errors 1451 and 1452 quote it; 1701 always says the parent's database."""
    columns = ", ".join(f"`{name}`" for name in key.columns)
    parents = ", ".join(f"`{name}`" for name in key.parent_columns)
    parent = f"`{key.parent_table}`"
    if qualified or key.parent_database != table.database:
        parent = f"`{key.parent_database}`.{parent}"
    actions = "".join(
        f" ON {event} {action}"
        for event, action in (("DELETE", key.on_delete), ("UPDATE", key.on_update))
        if action != "NO ACTION"
    )
    return (
        f"`{table.database}`.`{table.name}`, CONSTRAINT `{key.name}` FOREIGN KEY ({columns})"
        f" REFERENCES {parent} ({parents}){actions}"
    )


def followers(old: Table, table: Table, catalog: Catalog, renamed_columns: Mapping[str, str]) -> list[Table]:
    """Other tables whose foreign keys follow new names of `old`, which is `table` now, and of its columns (by old names in small letters)."""
    if not renamed_columns and (old.database, old.name) == (table.database, table.name):
        return []
    changed: list[Table] = []
    for other in catalog.tables.values():
        keys = tuple(
            replace(
                key,
                parent_database=table.database,
                parent_table=table.name,
                parent_columns=tuple(renamed_columns.get(each.lower(), each) for each in key.parent_columns),
            )
            if (key.parent_database, key.parent_table) == (old.database, old.name)
            else key
            for key in other.foreign_keys
        )
        if other.id != table.id and keys != other.foreign_keys:
            changed.append(replace(other, foreign_keys=keys, version=other.version + 1))
    return changed
