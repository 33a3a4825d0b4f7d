"""Result columns are described as MariaDB describes them."""

from __future__ import annotations

from typing import Any

import pytest

from controller.sql.output import MULTIPLE_KEY, NO_DEFAULT
from controller.sql.plan import OutputColumn, Query
from controller.sql.planner import PlanCache
from controller.sql.settings import DEFAULT_SETTINGS
from tests.mariadb import MariaDB
from tests.unit.controller.sql.world import World

TABLE = (
    "create table t (id int unsigned not null auto_increment, a int, b varchar(20) not null, c datetime(3), d decimal(10,2),"
    " e text, f enum('x','y'), g set('p','q'), h blob, i bigint zerofill, j timestamp not null default current_timestamp on update"
    " current_timestamp, k varbinary(5), l date, m time, n double, o char(3) collate utf8mb4_bin, primary key (id), unique (a), key (b, c))"
)

NAMES = [
    "select * from t",
    "select t.* from t",
    "select x.ID, B, x.a as q from t as x",
    "select a+1, a  +  1, (a), count(*), COUNT( * ), max(a), 'str', \"dq\", 5, 1.50, null, true from t",
    "select now(), CURRENT_DATE, concat(a,'x'), a is null, -a, not a, a in (1, 2), if(a, 1, 2) from t",
    "select a as 'quoted', b `ticked`, c as cc, d dd from t",
    "select case when a then 1 else 2 end, a between 1 and 2, b like 'x%', cast(a as char(5)) from t",
    "select 1 as one, 'x' as two from dual",
    "select db.t.a from db.t",
    "select a /* comment */, b -- more\n from t",
]


def planned(sql: str) -> tuple[OutputColumn, ...]:
    world = World(TABLE)
    settings = type(DEFAULT_SETTINGS)(sql_mode=frozenset())
    plan, _ = PlanCache().plan_text(sql, world.catalog, "db", settings)
    assert isinstance(plan.statement, Query)
    return plan.statement.columns


def described(mariadb: MariaDB, sql: str) -> list[Any]:
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("create database if not exists db")
        cursor.execute("use db")
        cursor.execute("set sql_mode = ''")
        cursor.execute("drop table if exists t")
        cursor.execute(TABLE)
        cursor.execute(sql)
        return list(cursor._result.fields)


@pytest.mark.parametrize("sql", NAMES)
def test_columns_have_the_names_and_origins_mariadb_gives_them(sql: str, mariadb: MariaDB) -> None:
    ours = [(each.name, each.original_name, each.table, each.original_table, each.database) for each in planned(sql)]
    theirs = [
        (each.name, each.org_name, each.table_name, each.org_table, each.db.decode() if isinstance(each.db, bytes) else each.db)
        for each in described(mariadb, sql)
    ]
    assert ours == theirs


def test_columns_have_the_flags_mariadb_gives_them(mariadb: MariaDB) -> None:
    ours = {each.name: each.flags for each in planned("select * from t")}
    theirs = {each.name: each.flags for each in described(mariadb, "select * from t")}
    # MariaDB marks every column of a composite key, MySQL only the first; JSON and text differ in nothing else.
    mask = ~(MULTIPLE_KEY | NO_DEFAULT)
    assert {name: bin(flags & mask) for name, flags in ours.items()} == {
        name: bin(flags & mask & 0xFFFF) for name, flags in theirs.items()
    }
