"""Rows inserted all at once are what they are when inserted one by one, and so is what is refused."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from backend.execution.outcome import Done
from backend.execution.writes.arrow_rows import read_rows
from backend.execution.writes.bulk_insert import AT_ONCE_MIN
from backend.execution.writes.insert import CompiledInsert
from controller.sql.settings import DEFAULT_SETTINGS
from dataflow.errors import MillraceError
from dataflow.values.modes import Modes
from tests.unit.backend.execution.engine import Engine, run

COLUMNS = (
    "a INT {key}, b VARCHAR(6) NOT NULL, c DECIMAL(5,2), d BIGINT UNSIGNED NOT NULL DEFAULT 7, e VARBINARY(4), f TEXT,"
    " g DATETIME DEFAULT '2001-02-03', UNIQUE KEY (b, c), KEY (d DESC), KEY (e, f(2))"
)
VALUES = (
    ["1", "2", "3", "17", "-5", "NULL", "'6'", "2147483647", "2147483648"],
    ["'x'", "'X '", "'yy'", "'zzzzzzz'", "'é'", "''", "NULL", "'abc'", "12"],
    ["1.25", "NULL", "1.255", "1", "99999", "'x'"],
    ["1", "0", "-1", "18446744073709551615", "'2'"],
    ["'ab'", "NULL", "'abcde'", "x'00ff'"],
    ["'text'", "NULL", "'ümlaut'", "7"],
)


def stored(engine: Engine, table_id: int) -> dict[bytes, bytes]:
    """Everything that the shards have of a table, without the table's id."""
    name = table_id.to_bytes(4, "big")
    entries = [entry for shard in engine.store.shards for chunk in shard.view().scan(b"g", b"v") for entry in chunk]
    return {key[:1] + key[5:]: value for key, _, value in entries if key[1:5] == name}


async def outcome(engine: Engine, sql: str, alone: bool) -> object:
    transaction = None if alone else engine.database.begin()
    try:
        done = await engine.done(sql, transaction)
        if transaction is not None:
            await transaction.commit()
        return done
    except MillraceError as error:
        if transaction is not None:
            transaction.rollback()
        return error.condition, error.arguments


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
@pytest.mark.parametrize("shard_count", [1, 3])
def test_rows_inserted_at_once_are_stored_as_one_by_one(tmp_path: Path, key: str, shard_count: int) -> None:
    chance = random.Random(shard_count)
    at_once = 0

    async def scenario(engine: Engine) -> None:
        nonlocal at_once
        await engine.define(f"CREATE TABLE t ({COLUMNS.format(key=key)})", f"CREATE TABLE u ({COLUMNS.format(key=key)})")
        tables = [engine.database.catalog.table("d", name) for name in ("t", "u")]
        for number in range(300):
            engine.modes = Modes(strict=chance.random() < 0.7)
            tame = chance.random() < 0.6
            rows = []
            for place in range(chance.choice([1, 2, 3, 8])):
                if tame:
                    row = [str(number * 10 + place), f"'{chance.choice('abcé')}{number * 10 + place}'", "1.25", "3", "NULL", "'t'"]
                else:
                    row = [chance.choice(some) for some in VALUES]
                rows.append("(" + ", ".join(row) + ")")
            sql = f"INSERT INTO {{}} (a, b, c, d, e, f) VALUES {', '.join(rows)}"
            plan, _ = engine.plans.plan_text(sql.format("t"), engine.database.catalog, "d", DEFAULT_SETTINGS)
            compiled = engine.database._compile(plan)
            assert isinstance(compiled, CompiledInsert)
            together = await outcome(engine, sql.format("t"), True)
            at_once += compiled.bulk is not None and isinstance(together, Done)
            assert together == await outcome(engine, sql.format("u"), False) or _names_its_table(together), sql
        if key:
            assert stored(engine, tables[0].id) == stored(engine, tables[1].id)
        ordered = "ORDER BY a, b, c, d, e, f, g"
        everything = await engine.rows(f"SELECT * FROM t {ordered}")
        assert len(everything) > 100 and everything == await engine.rows(f"SELECT * FROM u {ordered}")
        for (a,) in await engine.rows("SELECT a FROM t WHERE a IS NOT NULL"):  # each is on its shard
            assert await engine.rows(f"SELECT a FROM t WHERE a = {a}")
        by_index = [await engine.rows(f"SELECT a, b FROM {name} WHERE d = 3 ORDER BY a, b") for name in "tu"]
        assert by_index[0] == by_index[1] and len(by_index[0]) > 50

    run(tmp_path, scenario, shard_count)
    assert at_once > 50


def _names_its_table(outcome: object) -> bool:
    """Only the message of a duplicate key has the table's name."""
    return isinstance(outcome, tuple) and any("t." in str(each) for each in outcome[1])


def test_constants_and_facts_beside_parameters_are_the_same_for_all_rows(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(9), d INT DEFAULT 4)")
        for sql in ("INSERT INTO t (c, a, b) VALUES (?, ?, 5)", "INSERT INTO t (a, b, c) VALUES (?, ?, ?)"):
            values = ["x", 1] if "5" in sql else [2, None, "y"]
            plan = engine.plans.plan_prepared(sql, engine.database.catalog, "d", DEFAULT_SETTINGS, ("n",) * len(values))
            await engine.database.execute(plan, values)
        assert await engine.rows("SELECT * FROM t") == [(1, 5, "x", 4), (2, None, "y", 4)]

    run(tmp_path, scenario)


def test_a_duplicate_within_the_rows_or_with_a_stored_one_is_error_1062_and_nothing_is_stored(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (a INT PRIMARY KEY, b INT UNIQUE)")
        await engine.run("INSERT INTO t VALUES (1, 1)")
        for rows, duplicate in (("(2, 2), (2, 3)", "2"), ("(2, 2), (3, 2)", "2"), ("(2, 2), (3, 1)", "1"), ("(2, 2), (1, 9)", "1")):
            with pytest.raises(MillraceError, match=f"Duplicate entry '{duplicate}'"):
                await engine.run(f"INSERT INTO t VALUES {rows}")
        assert (await engine.done("INSERT INTO t VALUES (2, NULL), (3, NULL)")).affected == 2
        assert await engine.rows("SELECT * FROM t") == [(1, 1), (2, None), (3, None)]

    run(tmp_path, scenario)


MANY = (
    "a INT NOT NULL, b BIGINT NOT NULL DEFAULT 5, c SMALLINT, d BIGINT UNSIGNED NOT NULL, e VARCHAR(3), {key}"
    " KEY (c), KEY (b DESC, a), KEY (d, c)"
)
ODD: tuple[tuple[int, object], ...] = (
    (0, None), (0, "7"), (0, True), (0, 1 << 31), (0, 2.5), (0, "x"), (1, -(1 << 63)), (1, 1 << 63), (1, Decimal(9)),
    (2, None), (2, -(1 << 15)), (2, 1 << 15), (3, (1 << 64) - 1), (3, -1), (3, 1 << 64), (4, None), (4, "four"), (4, 5),
)  # fmt: skip
"""A column, and a value that is not like the others in it."""


@pytest.mark.parametrize("key", ["", "PRIMARY KEY (a, b),", "PRIMARY KEY (a), UNIQUE KEY (c, b),"])
@pytest.mark.parametrize("shard_count", [1, 3])
def test_many_rows_of_numbers_are_stored_as_one_by_one(tmp_path: Path, key: str, shard_count: int) -> None:
    rows_at_once = AT_ONCE_MIN + 2

    async def scenario(engine: Engine) -> None:
        await engine.define(*(f"CREATE TABLE {name} ({MANY.format(key=key)})" for name in "tu"))
        chance, tables = random.Random(shard_count), [engine.database.catalog.table("d", name) for name in "tu"]
        outcomes = []
        for number, odd in enumerate((None, *ODD, (0, number_of_the_first := -40_000))):
            rows: list[list[object]] = []
            for place in range(rows_at_once):
                some = number * rows_at_once + place - 500
                rows.append([some, chance.choice([-1, 0, 1 << 40]), some % 20_000 - 10_000, chance.randrange(1 << 50), "e"])
            if odd is not None:
                rows[chance.randrange(rows_at_once)][odd[0]] = odd[1]
                if odd[1] == number_of_the_first:
                    rows[-1][:4] = rows[0][:4]  # a duplicate, where that matters
            done = []
            for name, transaction in (("t", None), ("u", engine.database.begin())):
                sql = f"INSERT INTO {name} (a, b, c, d, e) VALUES (?, ?, ?, ?, ?)"
                plan = engine.plans.plan_prepared(sql, engine.database.catalog, "d", DEFAULT_SETTINGS, ("n",) * 5)
                values = [value for row in rows for value in row]
                try:
                    done.append(await engine.database.execute(replace(plan, batch=(0, 5)), values, transaction))  # type: ignore[arg-type]
                    if transaction is not None:
                        await transaction.commit()
                except MillraceError as error:
                    done.append((error.condition, str(error).replace("'u.", "'t.")))
                    if transaction is not None:
                        transaction.rollback()
            assert done[0] == done[1], odd
            outcomes.append(isinstance(done[0], Done))
        assert outcomes[0] and 5 < sum(outcomes) < len(outcomes) - 4
        if key:
            assert stored(engine, tables[0].id) == stored(engine, tables[1].id)
        for sql in ("SELECT * FROM {} ORDER BY a, b, c, d", "SELECT a FROM {} WHERE c = -9000 ORDER BY a, b", "SELECT a FROM {} WHERE b > 0 ORDER BY a"):
            found = await engine.rows(sql.format("t"))
            assert found and found == await engine.rows(sql.format("u"))

    run(tmp_path, scenario, shard_count)


def test_numbers_given_for_auto_increment_are_stored_at_once_while_they_are_below_the_counter(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT) AUTO_INCREMENT = 1000")
        for first, last in ((1, 300), (900, 1200), (-3, -1)):
            values = ", ".join(f"({number}, {number})" for number in range(first, last + 1))
            done = await engine.done(f"INSERT INTO t VALUES {values}")
            assert done.affected == last - first + 1
        await engine.done("INSERT INTO t (n) VALUES (0)")
        assert await engine.rows("SELECT COUNT(*), MIN(id), MAX(id) FROM t") == [(300 + 301 + 3 + 1, -3, 1201)]
        with pytest.raises(MillraceError) as raised:
            await engine.done("INSERT INTO t VALUES (301, 1), (300, 1)")
        assert raised.value.condition.code == 1062

    run(tmp_path, scenario)


@pytest.mark.parametrize("count", [3, 2 * AT_ONCE_MIN])
def test_generated_numbers_are_those_of_rows_inserted_one_by_one(tmp_path: Path, count: int) -> None:
    async def scenario(engine: Engine) -> None:
        columns = "(id SMALLINT AUTO_INCREMENT, b VARCHAR(9), c INT, PRIMARY KEY (id), UNIQUE KEY (c), KEY (b, id))"
        await engine.define(f"CREATE TABLE t {columns} AUTO_INCREMENT = 5", f"CREATE TABLE u {columns} AUTO_INCREMENT = 5")
        first = 0
        for fails in (False, True, False):
            rows = [f"('b{number % 7}', {first + number})" for number in range(count)]
            if fails:
                rows[-1] = "('b', 1)"
            sql = f"INSERT INTO {{}} (b, c) VALUES {', '.join(rows)}"
            plan, _ = engine.plans.plan_text(sql.format("t"), engine.database.catalog, "d", DEFAULT_SETTINGS)
            compiled = engine.database._compile(plan)
            assert isinstance(compiled, CompiledInsert) and compiled.bulk is not None
            together = await outcome(engine, sql.format("t"), True)
            assert together == await outcome(engine, sql.format("u"), False) or (fails and _names_its_table(together))
            assert isinstance(together, Done) is not fails
            if isinstance(together, Done):
                assert together.generated_id == together.last_insert_id > 0 and together.affected == count
            first += count
        assert await engine.rows("SELECT * FROM t ORDER BY id") == await engine.rows("SELECT * FROM u ORDER BY id")
        tables = [engine.database.catalog.table("d", name) for name in ("t", "u")]
        assert stored(engine, tables[0].id) == stored(engine, tables[1].id)
        await engine.define("ALTER TABLE t AUTO_INCREMENT = 32767", "ALTER TABLE u AUTO_INCREMENT = 32767")
        sql = "INSERT INTO {} (b, c) VALUES ('y', -1), ('z', -2)"
        beyond = [await outcome(engine, sql.format("t"), True), await outcome(engine, sql.format("u"), False)]
        assert not isinstance(beyond[0], Done) and (beyond[0] == beyond[1] or _names_its_table(beyond[0])), "the column has no more"

    run(tmp_path, scenario)


ARROW_COLUMNS = (
    "a INT, b VARCHAR(6) NOT NULL, c DECIMAL(5,2), d DATE NOT NULL, e VARBINARY(4), f CHAR(3), g DATETIME(3), h DOUBLE, i TIMESTAMP NULL, j DECIMAL(6,3) UNSIGNED,"
    " k TEXT CHARACTER SET latin1, l SMALLINT UNSIGNED, m TIME, PRIMARY KEY (a)"
)
ODD_VALUES: tuple[list[object], ...] = (
    [None, 2**31, -1], [None, "seven77", "é", "end "], [None, Decimal("-999.99")], [None, date(1, 1, 1)], [None, b"12345", b"\xff"], [None, "abcd", "ab ", "é"],
    [None, datetime(2024, 2, 29, 1, 2, 3, 4000), datetime(2024, 1, 1, 0, 0, 0, 1)], [None, float("inf"), -0.0], [None, datetime(2040, 1, 1), datetime(1969, 1, 1)],
    [None, Decimal("-1.000")], [None, "é", "☃", "x" * 70_000], [None, 65_536, -1, 65_535], [None, timedelta(hours=-900), timedelta(hours=5)],
)  # fmt: skip


def test_rows_that_come_as_arrow_columns_are_stored_as_one_by_one(tmp_path: Path) -> None:
    chance = random.Random(3)
    kinds = (
        pa.int64(), pa.string(), pa.decimal128(5, 2), pa.date32(), pa.binary(), pa.string(), pa.timestamp("us"), pa.float64(), pa.timestamp("us", "UTC"),
        pa.decimal128(6, 3), pa.large_string(), pa.int32(), pa.duration("us"),
    )  # fmt: skip
    count = AT_ONCE_MIN + 5

    def plain(first: int) -> list[list[object]]:
        return [
            [first + n, f"b{n}", Decimal(n).scaleb(-2), date(2020, 1, 1) + timedelta(days=n), b"e%d" % (n % 9), "f", datetime(2021, 5, 6, n % 24), n / 8,
             datetime(2022, 1, 1, n % 24), Decimal(n).scaleb(-3), "k" * n, n, timedelta(minutes=n)] for n in range(count)
        ]  # fmt: skip

    async def scenario(engine: Engine) -> None:
        await engine.define(f"CREATE TABLE t ({ARROW_COLUMNS})", f"CREATE TABLE u ({ARROW_COLUMNS})")
        changes = [None, *((place, value) for place, values in enumerate(ODD_VALUES) for value in values)]
        stored_count = 0
        for number, odd in enumerate(changes):
            rows = plain(number * 1000)
            if odd is not None:
                rows[chance.randrange(count)][odd[0]] = odd[1]
            table = pa.table([pa.array(values, kind) for values, kind in zip(zip(*rows), kinds)], [f"c{n}" for n in range(len(kinds))])
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
            codes, values, found = read_rows(sink.getvalue().to_pybytes(), 1 << 26)
            assert found == count
            done = []
            for name, transaction in (("t", None), ("u", engine.database.begin())):
                plan = engine.plans.plan_prepared(f"INSERT INTO {name} VALUES ({', '.join('?' * len(kinds))})", engine.database.catalog, "d", DEFAULT_SETTINGS, codes)
                given = values if transaction is None else list(values)
                try:
                    done.append(await engine.database.execute(replace(plan, batch=(0, len(kinds))), given, transaction))
                    if transaction is not None:
                        await transaction.commit()
                except MillraceError as error:
                    done.append((error.condition, str(error).replace("'u.", "'t.")))
                    if transaction is not None:
                        transaction.rollback()
            assert done[0] == done[1], odd
            stored_count += isinstance(done[0], Done)
        assert stored_count > len(ODD_VALUES)
        assert await engine.rows("SELECT * FROM t ORDER BY a") == await engine.rows("SELECT * FROM u ORDER BY a")

    run(tmp_path, scenario)
