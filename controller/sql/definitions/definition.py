"""Definition statements (DDL) as changes of the catalog.

`plan_definition` reads a statement with a parser of its own, over the tokens, and returns what
it changes; nothing happens here. ALTER TABLE is in `alteration`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from controller.catalog import Catalog, CatalogChange, CatalogDatabase, Note
from controller.sql.definitions.alteration import alter_table
from controller.sql.definitions.alteration_clauses import accept_way
from controller.sql.definitions.column_types import column_collation
from controller.sql.definitions.foreign_keys import (
    check_children,
    check_not_referenced,
    check_parents,
    description,
    touched_parents,
    waiting_children,
)
from controller.sql.definitions.renaming import rename_tables
from controller.sql.definitions.table_copies import copied, emptied
from controller.sql.definitions.table_draft import TableDraft
from controller.sql.definitions.table_elements import (
    CheckElement,
    ColumnElement,
    ForeignKeyElement,
    KeyElement,
    read_elements,
    read_key,
)
from controller.sql.definitions.table_options import read_options
from controller.sql.definitions.temporary import is_taken, stored_names, temporary_tables, with_temporary
from controller.sql.definitions.view_definition import at_view, define_view, drop_views
from controller.sql.settings import Settings
from controller.sql.text.cursor import TokenReader
from controller.sql.text.introducers import with_bytes_sent
from controller.sql.text.lexer import TokenKind
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.schema import Index, Table
from dataflow.values.temporal import from_datetime

DEFINITIONS = frozenset({"CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME"})
"""First words of the statements handled here."""

CALLED = frozenset(
    """ADDDATE BIT_AND BIT_OR BIT_XOR CAST COUNT CURDATE CURTIME DATE_ADD DATE_SUB EXTRACT GROUP_CONCAT MAX MID MIN NOW POSITION
    SESSION_USER STD STDDEV STDDEV_POP STDDEV_SAMP SUBDATE SUBSTR SUBSTRING SUM SYSDATE SYSTEM_USER TRIM VARIANCE VAR_POP
    VAR_SAMP""".split()  # noqa: SIM905
)
"""Functions that are called without a space before the parenthesis."""
_NO_KEY = Index(0, "", ())


def plan_definition(
    sql: str, catalog: Catalog, database: str | None, settings: Settings, now: int | None = None
) -> CatalogChange:
    """What a definition statement changes. `now` is the packed time in UTC."""
    if now is None:
        now = from_datetime(datetime.now(UTC))
    if settings.client_codec != "utf-8":
        sql, settings = with_bytes_sent(sql, settings), replace(settings, client_codec="utf-8")
    definition = _Definition(TokenReader(sql, settings), with_temporary(catalog, settings.owner), database, settings, now)
    definition.stored = catalog
    definition.temporary = set(temporary_tables(catalog, settings.owner)) if settings.owner else set()
    return stored_names(definition.plan(), settings.owner, definition.temporary)


class _Definition:
    def __init__(self, cursor: TokenReader, catalog: Catalog, database: str | None, settings: Settings, now: int) -> None:
        self.cursor = cursor
        self.catalog = catalog
        self.database = database
        self.settings = settings
        self.now = now
        self.stored = catalog
        self.temporary: set[int] = set()
        """The ids of the session's temporary tables."""

    def plan(self) -> CatalogChange:
        cursor = self.cursor
        match cursor.next().upper:
            case "CREATE":
                return self._create()
            case "DROP":
                return self._drop()
            case "ALTER":
                return self._alter()
            case "TRUNCATE":
                cursor.accept("TABLE")
                return self._truncate()
            case "RENAME":
                if not cursor.accept_any("TABLE", "TABLES"):
                    raise cursor.error()
                return rename_tables(cursor, self.catalog, self._name)
        cursor.back()
        raise cursor.error()

    def _create(self) -> CatalogChange:
        cursor = self.cursor
        if cursor.accept_any("DATABASE", "SCHEMA"):
            return self._create_database()
        if cursor.accept("TABLE"):
            return self._create_table()
        if at_view(cursor):
            return define_view(cursor, self.catalog, self.database, self.settings, alter=False)
        if cursor.accept("TEMPORARY"):
            cursor.expect("TABLE")
            return self._create_table(temporary=True)
        kind = cursor.accept_any("UNIQUE", "FULLTEXT", "SPATIAL") or "KEY"
        if cursor.accept("INDEX"):
            return self._create_index(kind)
        raise self._other("CREATE")

    def _drop(self) -> CatalogChange:
        cursor = self.cursor
        if cursor.accept_any("DATABASE", "SCHEMA"):
            return self._drop_database()
        if cursor.accept("VIEW"):
            return drop_views(cursor, self.stored, self.database)
        if cursor.accept("TEMPORARY", "TABLE") or cursor.accept("TEMPORARY", "TABLES"):
            return self._drop_tables(temporary=True)
        if cursor.accept_any("TABLE", "TABLES"):
            return self._drop_tables()
        if cursor.accept("INDEX"):
            name = cursor.identifier()
            cursor.expect("ON")
            draft = self._draft(self._table(self._name()))
            draft.drop_key(name)
            self._algorithm()
            old, table = draft.table, draft.finish()
            check_children(old, table, self.catalog, self.settings.foreign_key_checks)
            return copied(old, table, self.catalog, self.settings) if draft.copies else CatalogChange(tables_put=(table,))
        raise self._other("DROP")

    def _alter(self) -> CatalogChange:
        cursor = self.cursor
        if cursor.accept_any("DATABASE", "SCHEMA"):
            name = cursor.identifier() if cursor.at_identifier() and not cursor.at("CHARSET") else self.database
            found = self.catalog.database(name)
            return CatalogChange(databases_put=(replace(found, collation=self._database_collation(found.collation)),))
        if at_view(cursor):
            return define_view(cursor, self.catalog, self.database, self.settings, alter=True)
        cursor.accept("IGNORE")
        if cursor.accept("TABLE"):
            table = self._table(self._name())
            return alter_table(cursor, table, self.catalog, self.settings, self.now, self.database)
        raise self._other("ALTER")

    def _other(self, verb: str) -> Exception:
        """What follows is either valid and not supported, or no statement at all."""
        word = self.cursor.token.upper
        if word in ("TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "USER", "ROLE", "SERVER", "TABLESPACE", "SEQUENCE"):
            return Unsupported(f"{verb} {word}")
        return self.cursor.error()

    # -- names

    def _name(self) -> tuple[str, str]:
        database, name = self.cursor.qualified_name()
        database = database or self.database
        if not database:
            raise InvalidStatement(Condition.NO_DB_SELECTED)
        if not name or name != name.rstrip(" "):
            raise InvalidStatement(Condition.WRONG_TABLE_NAME, name)
        return database, name

    def _table(self, name: tuple[str, str]) -> Table:
        if name in self.catalog.views and self.catalog.find_table(*name) is None:
            raise InvalidStatement(Condition.WRONG_OBJECT, *name, "BASE TABLE")
        return self.catalog.table(*name)

    def _draft(self, table: Table) -> TableDraft:
        return TableDraft(table, self.settings, self.now, created=False)

    def _exists(self) -> bool:
        if self.cursor.accept("IF"):
            self.cursor.expect("EXISTS")
            return True
        return False

    def _not_exists(self) -> bool:
        if self.cursor.accept("IF"):
            self.cursor.expect("NOT", "EXISTS")
            return True
        return False

    # -- databases

    def _create_database(self) -> CatalogChange:
        optional = self._not_exists()
        name = self.cursor.identifier()
        collation = self._database_collation(self.settings.server_collation)
        if not name or name != name.rstrip(" "):
            raise InvalidStatement(Condition.WRONG_DATABASE_NAME, name)
        if name in self.catalog.databases:
            return _noted(optional, Condition.DB_CREATE_EXISTS, name)
        return CatalogChange(databases_put=(CatalogDatabase(name, collation),))

    def _database_collation(self, default: str) -> str:
        cursor = self.cursor
        charset = collation = None
        while not cursor.at_end:
            cursor.accept("DEFAULT")
            if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
                cursor.accept("=")
                charset = cursor.word_or_string()
            elif cursor.accept("COLLATE"):
                cursor.accept("=")
                collation = cursor.word_or_string()
            elif cursor.accept_any("ENCRYPTION", "COMMENT"):
                cursor.accept("=")
                cursor.string()
            elif cursor.accept("READ", "ONLY"):
                cursor.accept("=")
                cursor.next()
            else:
                raise cursor.error()
        return column_collation(charset, collation, default)

    def _drop_database(self) -> CatalogChange:
        optional = self._exists()
        name = self.cursor.identifier()
        self.cursor.expect_end()
        if name not in self.catalog.databases:
            return _noted(optional, Condition.DB_DROP_MISSING, name)
        tables = self.catalog.tables_of(name)
        dropped = {table.id for table in tables}
        for table in tables:
            check_not_referenced(table, self.catalog, dropped, self.settings.foreign_key_checks)
        return CatalogChange(databases_dropped=(name,), tables_dropped=tuple(sorted(dropped)))

    # -- tables

    def _create_table(self, temporary: bool = False) -> CatalogChange:
        cursor = self.cursor
        optional = self._not_exists()
        database, name = self._name()
        self._check_no_call(name)
        owner = self.catalog.database(database)
        taken = self._is_taken(database, name, temporary)
        like = self._like()
        if like is not None:
            if taken:
                return _noted(optional, Condition.TABLE_EXISTS, name)
            return self._created(self._copied(self._table(like), database, name), temporary)
        if cursor.at_end:
            raise InvalidStatement(Condition.TABLE_WITHOUT_COLUMNS)
        elements = read_elements(cursor, self.settings)
        if cursor.at("SELECT") or cursor.at("AS") or cursor.at("IGNORE") or cursor.at("REPLACE"):
            raise Unsupported("CREATE TABLE … SELECT")
        options = read_options(cursor)
        if taken:
            return _noted(optional, Condition.TABLE_EXISTS, name)
        empty = Table(self.catalog.next_table_id, database, name, (), _NO_KEY, collation=owner.collation)
        if temporary and options.partitioning is not None:
            raise InvalidStatement(Condition.TEMPORARY_PARTITIONED)
        draft = TableDraft(options.apply(empty), self.settings, self.now, created=True)
        for element in elements:
            if isinstance(element, ColumnElement):
                draft.add_column(element)
        for element in elements:
            match element:
                case ColumnElement():
                    draft.add_column_keys(element)
                case KeyElement():
                    draft.add_key(element)
                case CheckElement():
                    draft.add_check(element)
                case ForeignKeyElement():
                    pass
        for element in elements:  # an index that fits a foreign key may be declared after it
            if isinstance(element, ForeignKeyElement):
                draft.add_foreign_key(element, database)
        table = draft.finish()
        check_parents(table, table.foreign_keys, self.catalog, self.settings.foreign_key_checks)
        if temporary:
            return self._created(replace(table, foreign_keys=()), temporary)
        touched = [*touched_parents(table.foreign_keys, table, self.catalog), *waiting_children(table, self.catalog)]
        return CatalogChange(tables_put=(table, *{each.id: each for each in touched}.values()))

    def _check_no_call(self, name: str) -> None:
        """CREATE TABLE count(…) begins like a call: a space has to be between them, or quotes around the name."""
        before, opening = self.cursor.ahead(-1), self.cursor.token
        beside = opening.start == before.end or "IGNORE_SPACE" in self.settings.sql_mode
        if opening.text == "(" and beside and before.kind is TokenKind.WORD and name.upper() in CALLED:
            raise self.cursor.error()

    def _is_taken(self, database: str, name: str, temporary: bool) -> bool:
        if temporary:
            found = self.catalog.find_table(database, name)
            return found is not None and found.id in self.temporary
        return is_taken(self.catalog, (database, name))

    def _created(self, table: Table, temporary: bool) -> CatalogChange:
        if temporary:
            self.temporary.add(table.id)
        return CatalogChange(tables_put=(table,))

    def _like(self) -> tuple[str, str] | None:
        cursor = self.cursor
        wrapped = cursor.at("(", "LIKE") and cursor.accept("(")
        if not cursor.accept("LIKE"):
            if cursor.at("SELECT") or cursor.at("AS"):
                raise Unsupported("CREATE TABLE … SELECT")
            return None
        found = self._name()
        if wrapped:
            cursor.expect(")")
        cursor.expect_end()
        return found

    def _copied(self, table: Table, database: str, name: str) -> Table:
        """CREATE TABLE … LIKE: everything but the rows and the foreign keys."""
        checks = tuple(
            replace(check, name=f"{name}_chk_{number}") for number, check in enumerate(table.checks, 1)
        )
        return replace(
            emptied(table, self.catalog.next_table_id),
            database=database,
            name=name,
            foreign_keys=(),
            checks=checks,
            auto_increment_start=1,
        )

    def _drop_tables(self, temporary: bool = False) -> CatalogChange:
        cursor = self.cursor
        optional = self._exists()
        names = [self._name()]
        while cursor.accept(","):
            names.append(self._name())
        cursor.accept_any("RESTRICT", "CASCADE")
        cursor.expect_end()
        repeated = next((name for number, (_, name) in enumerate(names) if names[number] in names[:number]), None)
        if repeated is not None:
            raise InvalidStatement(Condition.NONUNIQUE_TABLE, repeated)
        found = [self.catalog.find_table(*name) for name in names]
        if temporary:
            found = [table if table is not None and table.id in self.temporary else None for table in found]
        missing = [f"{database}.{name}" for (database, name), table in zip(names, found) if table is None]
        if missing and not optional:
            raise InvalidStatement(Condition.UNKNOWN_TABLE_DROP, ",".join(missing))
        tables = [table for table in found if table is not None]
        dropped = {table.id for table in tables}
        for table in tables:
            check_not_referenced(table, self.catalog, dropped, self.settings.foreign_key_checks)
        notes = tuple(_note(Condition.UNKNOWN_TABLE_DROP, name) for name in missing)
        return CatalogChange(tables_dropped=tuple(sorted(dropped)), notes=notes)

    def _truncate(self) -> CatalogChange:
        table = self.catalog.table(*self._name())
        self.cursor.expect_end()
        if self.settings.foreign_key_checks:
            for child, key in self.catalog.references_to(table.database, table.name):
                if child.id != table.id:
                    raise InvalidStatement(Condition.TRUNCATE_REFERENCED, description(child, key, qualified=True))
        fresh = emptied(table, self.catalog.next_table_id)
        if table.id in self.temporary:
            self.temporary.add(fresh.id)
        return CatalogChange(tables_put=(replace(fresh, auto_increment_start=1),), tables_dropped=(table.id,))

    # -- indexes

    def _create_index(self, kind: str) -> CatalogChange:
        cursor = self.cursor
        name = cursor.identifier()
        if cursor.accept("USING"):
            cursor.word_or_string()
        cursor.expect("ON")
        table = self._table(self._name())
        element = read_key(cursor, kind, name)
        self._algorithm()
        draft = self._draft(table)
        index = draft.add_key(element)
        if draft.copies:
            return copied(table, draft.finish(), self.catalog, self.settings)
        builds = ((table.id, index.id),) if index.building else ()
        return CatalogChange(tables_put=(draft.finish(),), builds=builds)

    def _algorithm(self) -> None:
        while accept_way(self.cursor):
            pass
        self.cursor.expect_end()


def _note(condition: Condition, *arguments: object) -> Note:
    return Note("Note", condition, condition.template.format(*arguments))


def _noted(optional: bool, condition: Condition, *arguments: object) -> CatalogChange:
    """Nothing to do: a note with IF [NOT] EXISTS, the error without."""
    if not optional:
        raise InvalidStatement(condition, *arguments)
    return CatalogChange(notes=(_note(condition, *arguments),))
