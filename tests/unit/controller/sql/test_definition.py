"""Definitions: what they change, what they refuse, what they leave alone."""

from __future__ import annotations

import pymysql
import pytest

from controller.catalog import CatalogChange
from controller.sql.definitions.show_create import show_create_database, show_create_table
from controller.sql.definitions.table_draft import is_hidden
from controller.sql.settings import DEFAULT_SETTINGS, Settings
from dataflow.errors import InvalidStatement, MillraceError, Unsupported
from dataflow.expressions.expression import Call, Column
from dataflow.schema import ROW_ID_NAME, Table
from dataflow.values.temporal import pack
from tests.mariadb import MariaDB
from tests.unit.controller.sql.world import World

BASE = (
    "create table p (id int primary key, n varchar(20), unique key by_n (n))",
    "create table c (id int auto_increment primary key, pid int, a int, b varchar(10), t text,"
    " key by_a (a), constraint fk_p foreign key (pid) references p (id), constraint positive check (a > 0))",
)

WRONG = [
    ("create database db", 1007),
    ("drop database nope", 1008),
    ("create table p (a int)", 1050),
    ("drop table nope", 1051),
    ("create table x (a int, A int)", 1060),
    ("create table x (a int, key k (a), key K (a))", 1061),
    ("create table x (a int default 'x')", 1067),
    ("create table x (a int not null default null)", 1067),
    ("create table x (a date default '2020-02-30')", 1067),
    ("create table x (a varchar(2) default 'long')", 1067),
    ("create table x (a enum('x') default 'y')", 1067),
    ("create table x (a int primary key, b int primary key)", 1068),
    ("create table x (a int, key (b))", 1072),
    ("create table x (a int, primary key (b))", 1072),
    ("create table x (a int auto_increment)", 1075),
    ("create table x (a int auto_increment primary key, b int auto_increment unique)", 1075),
    ("create table x (a varchar(10) auto_increment primary key)", 1063),
    ("create table x (a int on update now())", 1294),
    ("create table x (a varchar(5), key (a(6)))", 1089),
    ("create table x (a int, key (a(2)))", 1089),
    ("create table x (a varchar(20000))", 1074),
    ("create table x (a char(300))", 1074),
    ("create table x (a decimal(5,6))", 1427),
    ("create table x (a datetime(7))", 1426),
    ("create table x (a enum('x','x'))", 1291),
    ("create table x (a varchar(10) collate nope)", 1273),
    ("create table x (a varchar(10) character set nope)", 1115),
    ("create table x (a varchar(10) character set latin1 collate utf8mb4_bin)", 1253),
    ("create table x (a int, index `PRIMARY` (a))", 1280),
    ("create table x (a int, b int as (nope + 1))", 1054),
    ("create table nope.x (a int)", 1049),
    ("create table x like nope", 1146),
    ("create table x", 1113),
    ("create table x (a)", 1064),
    ("create table x (a varchar)", 1064),
    ("create table x (a int,)", 1064),
    ("create table (a int)", 1064),
    ("create tabel x (a int)", 1064),
    ("alter table nope add a int", 1146),
    ("alter table p add n int", 1060),
    ("alter table p drop nope", 1091),
    ("alter table p drop index nope", 1091),
    ("alter table p add index by_n (n)", 1061),
    ("alter table p add primary key (n)", 1068),
    ("alter table p add x int after nope", 1054),
    ("alter table p rename column nope to x", 1054),
    ("alter table p rename column n to id", 1060),
    ("alter table p rename index nope to x", 1176),
    ("alter table p change nope x int", 1054),
    ("alter table p rename to c", 1050),
    ("alter table p add key (nope)", 1072),
    ("alter table p alter column nope set default 1", 1054),
    ("alter table p add x int add y int", 1064),
    ("rename table nope to x", 1146),
    ("rename table p to c", 1050),
    ("create index x on nope (a)", 1146),
    ("create index by_n on p (id)", 1061),
    ("drop index nope on p", 1091),
    ("drop index fk_p on c", 1553),
    ("truncate table nope", 1146),
    ("truncate table p", 1701),
    ("alter table c drop column pid", 1828),
    ("alter table p drop column id", 1829),
]

OURS = [
    ("create table x (a text, key (a))", 1170),
    ("create table x (a int null, primary key (a))", 1171),
    ("create table x (a datetime default current_timestamp(6))", 1067),
    ("drop table p", 3730),
    ("create table x (a text default 'x')", 1101),
    ("create table x (a int, foreign key (a) references nope (id))", 1824),
    ("create table x (a int, foreign key (a) references c (a, b))", 1822),
    ("create table x (a varchar(9), foreign key (a) references p (id))", 3780),
    ("create table x (a int, constraint fk_p foreign key (a) references p (id))", 1826),
    ("alter table c drop foreign key nope", 1091),
    ("alter table c drop check nope", 3821),
    ("alter table c drop constraint nope", 3940),
]


def failure(world: World, sql: str) -> int:
    with pytest.raises(MillraceError) as raised:
        world.run(sql)
    return raised.value.condition.code


@pytest.mark.parametrize(("sql", "code"), WRONG + OURS)
def test_wrong_definitions_have_mysql_s_code(sql: str, code: int) -> None:
    assert failure(World(*BASE), sql) == code


def test_mariadb_refuses_the_same_definitions(mariadb: MariaDB) -> None:
    """It refuses with other codes now and then; that it refuses is what counts."""
    database = mariadb.fresh_database()
    with mariadb.connect(database) as connection, connection.cursor() as cursor:
        for statement in BASE:
            cursor.execute(statement)
        for sql, _ in WRONG:
            with pytest.raises(pymysql.MySQLError):
                cursor.execute(sql.replace("database db", f"database {database}"))


def test_if_exists_and_if_not_exists_leave_a_note() -> None:
    world = World(*BASE)
    for sql, code in (
        ("create database if not exists db", 1007),
        ("drop database if exists nope", 1008),
        ("create table if not exists p (a int)", 1050),
        ("drop table if exists nope, nada", 1051),
    ):
        change = world.run(sql)
        assert change.is_empty
        assert {note.condition.code for note in change.notes} == {code}
        assert {note.level for note in change.notes} == {"Note"}


def test_databases_have_a_collation_that_tables_inherit() -> None:
    world = World("create database d2 character set utf8mb4 collate utf8mb4_bin", "create table d2.t (a varchar(5))")
    assert world.table("t", "d2").columns[0].type.collation == "utf8mb4_bin"
    world.run("alter database d2 charset latin1")
    assert world.catalog.databases["d2"].collation == "latin1_swedish_ci"
    assert show_create_database(world.catalog.databases["db"]) == (
        "CREATE DATABASE `db` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */"
        " /*!80016 DEFAULT ENCRYPTION='N' */"
    )
    change = world.run("drop database d2")
    assert change.databases_dropped == ("d2",)
    assert len(change.tables_dropped) == 1


def test_a_table_without_a_primary_key_has_a_hidden_one() -> None:
    table = World("create table t (a int)").table("t")
    assert [column.name for column in table.columns] == ["a", ROW_ID_NAME]
    assert is_hidden(table.columns[-1])
    assert table.primary_key.parts[0].column_id == table.columns[-1].id
    assert "millrace_row_id" not in show_create_table(table)


def test_adding_and_dropping_columns_adds_formats_and_keeps_ids() -> None:
    world = World("create table t (a int primary key, b int)")
    world.run("alter table t add c varchar(5) not null, add d int default 7 first, add e datetime(3) default now(3)")
    table = world.table("t")
    assert [column.name for column in table.columns] == ["d", "a", "b", "c", "e"]
    assert table.formats == ((1, 2), (4, 1, 2, 3, 5))
    missing = {column.name: column.missing for column in table.columns}
    assert missing == {"d": 7, "a": None, "b": None, "c": "", "e": pack(2024, 5, 6, 7, 8, 9, 123000)}
    world.run("alter table t drop b")
    world.run("alter table t add b text")
    table = world.table("t")
    assert table.formats[2:] == ((4, 1, 3, 5), (4, 1, 3, 5, 6))
    assert table.version == 4
    assert table.columns[-1].id == 6, "ids are not used again"


def test_a_change_that_keeps_the_columns_adds_no_format() -> None:
    world = World(*BASE)
    before = world.table("p").formats
    world.run("alter table p comment 'x', alter column n set default 'q', rename column n to m")
    table = world.table("p")
    assert table.formats == before
    assert (table.columns[1].name, table.columns[1].default, table.comment) == ("m", "q", "x")


def test_indexes_on_stored_rows_are_built() -> None:
    world = World(*BASE)
    change = world.run("create unique index u on c (b)")
    index = next(each for each in world.table("c").indexes if each.name == "u")
    assert index.building and index.unique
    assert change.builds == ((world.table("c").id, index.id),)
    fulltext = world.run("alter table c add fulltext (t)")
    assert fulltext.builds == ()


def test_dropping_a_column_of_a_composite_index_builds_the_rest_anew() -> None:
    world = World("create table t (a int primary key, b int, c int, key k (b, c))")
    old = world.table("t").indexes[0]
    change = world.run("alter table t drop column b")
    [index] = world.table("t").indexes
    assert index.name == "k" and index.id != old.id and index.building
    assert change.builds == ((1, index.id),)


def test_expressions_follow_their_columns() -> None:
    world = World("create table t (a int, b int as (a + 1) stored, check (a < 5))")

    def generated(table: Table) -> tuple[int, str]:
        column = next(each for each in table.columns if each.name == "b")
        assert isinstance(column.generated, Call) and isinstance(column.generated.arguments[0], Column)
        return column.generated.arguments[0].index, column.generated_sql

    assert generated(world.table("t")) == (0, "`a` + 1")
    world.run("alter table t add z int first")
    assert generated(world.table("t")) == (1, "`a` + 1")
    world.run("alter table t rename column a to `odd name`")
    assert generated(world.table("t")) == (1, "`odd name` + 1")
    assert world.table("t").checks[0].sql == "`odd name` < 5"
    assert failure(world, "alter table t drop column `odd name`") == 3108


def test_truncate_gives_the_table_a_new_id() -> None:
    world = World(*BASE)
    old = world.table("c")
    change = world.run("truncate c")
    new = world.table("c")
    assert change.tables_dropped == (old.id,)
    assert new.id == 3
    assert new.columns == old.columns and new.foreign_keys == old.foreign_keys
    relaxed = World(*BASE, settings=Settings(foreign_key_checks=False))
    relaxed.run("truncate table p")


def test_tables_swap_names_in_one_statement() -> None:
    world = World("create table a (x int)", "create table b (x int)")
    world.run("rename table a to t, b to a, t to b")
    assert (world.table("b").id, world.table("a").id) == (1, 2)


def test_foreign_keys_follow_a_renamed_parent() -> None:
    world = World(*BASE)
    world.run("rename table p to q")
    world.run("alter table q rename column id to key_id")
    [key] = world.table("c").foreign_keys
    assert (key.parent_table, key.parent_columns) == ("q", ("key_id",))
    world.run("alter table c drop foreign key fk_p, drop index fk_p")
    world.run("drop table q")


@pytest.mark.parametrize(
    "sql",
    [
        "alter table c modify a bigint",
        "alter table c change a aa int default 5 comment 'x'",
        "alter table c modify b varchar(500)",
        "alter table c modify b text",
        "alter table c modify b varchar(10) first",
        "alter table c modify column id bigint auto_increment",
        "alter table c convert to character set utf8mb4",
        "alter table c engine=InnoDB row_format=dynamic",
        "alter table c auto_increment = 50, algorithm=inplace, lock=none",
        "alter table c disable keys",
        "alter table c add constraint u unique (b), drop constraint positive",
        "alter table c add check (a < 100)",
    ],
)
def test_changes_that_leave_stored_values_alone_are_made(sql: str) -> None:
    world = World(*BASE)
    change = world.run(sql)
    assert change != CatalogChange()
    assert world.table("c").version == 2


@pytest.mark.parametrize(
    "sql",
    [
        "create table x (p point)",
        "create table x select 1",
        "create trigger x before insert on c for each row set a = 1",
    ],
)
def test_what_cannot_be_done_yet_is_said(sql: str) -> None:
    world = World(*BASE)
    with pytest.raises(Unsupported):
        world.run(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "alter table c modify b varchar(5)",
        "alter table c modify b varchar(10) not null",
        "alter table c add x int as (a + 1)",
    ],
)
def test_what_changes_stored_values_stores_all_rows_anew(sql: str) -> None:
    world = World(*BASE)
    [copy] = world.run(sql).copies
    assert (copy.table_id, copy.table.id) == (world.table("c").id, world.catalog.next_table_id)


def test_zero_dates_may_be_defaults_without_strict_mode() -> None:
    lenient = World(settings=Settings(sql_mode=frozenset()))
    lenient.run("create table t (a datetime not null default '0000-00-00 00:00:00')")
    assert lenient.table("t").columns[0].default == 0
    assert failure(World(), "create table t (a datetime not null default '0000-00-00 00:00:00')") == 1067


def test_syntax_errors_quote_from_the_offending_token() -> None:
    with pytest.raises(InvalidStatement, match=r"near '\(a int\)\)' at line 2"):
        World().run("create table x (\n nope (a int))")
    with pytest.raises(InvalidStatement, match=r"near '' at line 1"):
        World().run("create table x (a int")


def test_ansi_quotes_name_tables() -> None:
    world = World(settings=Settings(DEFAULT_SETTINGS.sql_mode | {"ANSI_QUOTES"}))
    world.run("create table \"t\" (\"a b\" int, check (\"a b\" > 0))")
    assert world.table("t").checks[0].sql == "`a b` > 0"
