"""The data source `millrace`, in a Spark session of its own: what is read, what is written, and what is said when something is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.serving import MillraceServer

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    paths = [str(ROOT), str(ROOT / "millrace")]  # as pip installs pyspark_millrace
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("test").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.driver.host", "127.0.0.1")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def server(d_server: MillraceServer) -> MillraceServer:
    return d_server


def execute(server: MillraceServer, *statements: str) -> list[tuple[Any, ...]]:
    with server.connect("d") as connection, connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)
        return list(cursor.fetchall())


def url(server: MillraceServer, user: str = "root", password: str = "") -> str:
    return f"mysql://{user}:{password}@{server.host}:{server.mysql_port}/d"


def source(spark: Any, server: MillraceServer, **options: str) -> Any:
    return spark.read.format("millrace").option("url", url(server)).options(**options)


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted([tuple(each) for each in frame.collect()], key=repr)


def test_tables_views_and_queries_are_read_at_one_epoch(spark: Any, server: MillraceServer) -> None:
    execute(
        server,
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, name VARCHAR(20))",
        "INSERT INTO t VALUES " + ", ".join(f"({n}, {n % 7}, 'name {n % 50}')" for n in range(2000)),
        "CREATE VIEW v AS SELECT a, COUNT(*) AS c FROM t GROUP BY a",
    )
    frame = source(spark, server, dbtable="t").load()
    assert frame.count() == 2000
    assert frame.groupBy("a").count().orderBy("a").collect() == spark.sql("SELECT id % 7 AS a, COUNT(*) AS count FROM range(2000) GROUP BY 1 ORDER BY 1").collect()
    assert rows(source(spark, server, dbtable="v").load()) == rows(frame.groupBy("a").count())
    assert rows(source(spark, server, query="SELECT a, MAX(id) AS m FROM t WHERE id < 100 GROUP BY a").load()) == sorted([(n, 99 - (1 - n) % 7) for n in range(7)], key=repr)
    narrow = source(spark, server, dbtable="t").schema("name STRING, id LONG").load()
    assert rows(narrow.where("id < 3")) == [("name 0", 0), ("name 1", 1), ("name 2", 2)]
    both = frame.union(source(spark, server, dbtable="(SELECT * FROM t WHERE id < 10) AS few").load())
    assert both.count() == 2010


def test_filters_are_pushed_where_spark_does(spark: Any, server: MillraceServer) -> None:
    execute(
        server,
        "CREATE TABLE f (id INT PRIMARY KEY, a INT, name VARCHAR(20), amount DECIMAL(8, 2), at DATE, done TINYINT(1))",
        "SET sql_mode = ''",
        "INSERT INTO f VALUES (1, 1, 'x', 1.5, '2020-01-01', 1), (2, NULL, 'X', 2.5, '0000-00-00', 2), (3, 3, 'it''s', NULL, '2021-02-03', 0)",
    )
    everything = source(spark, server, dbtable="f").load().cache()
    conditions = (
        "id > 0 AND NOT a = 3 AND id IN (1, 2, 3)", "name = 'x' AND amount >= 1.50", "at < DATE'2021-01-01' AND a IS NOT NULL", "at IS NULL AND done"
    )  # fmt: skip
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition in conditions:
            pushed = source(spark, server, dbtable="f").load().where(condition)
            assert rows(pushed) == rows(everything.where(condition)), condition
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert rows(source(spark, server, dbtable="f").load().where("a = 1")) == rows(everything.where("a = 1"))


TYPES = {
    "TINYINT": ("tinyint", "-5", -5),
    "TINYINT(1)": ("boolean", "1", True),
    "TINYINT UNSIGNED": ("smallint", "200", 200),
    "SMALLINT": ("smallint", "-3", -3),
    "SMALLINT UNSIGNED": ("int", "60000", 60000),
    "MEDIUMINT": ("int", "-8000000", -8000000),
    "MEDIUMINT UNSIGNED": ("int", "16000000", 16000000),
    "INT": ("int", "-7", -7),
    "INT UNSIGNED": ("bigint", "4000000000", 4000000000),
    "BIGINT": ("bigint", "-9000000000000000000", -9000000000000000000),
    "BIGINT UNSIGNED": ("decimal(20,0)", "18446744073709551615", Decimal("18446744073709551615")),
    "BIT(1)": ("boolean", "b'1'", True),
    "BIT(12)": ("binary", "b'101010101010'", b"\x0a\xaa"),
    "FLOAT": ("float", "1.5", 1.5),
    "FLOAT UNSIGNED": ("double", "1.5", 1.5),
    "DOUBLE": ("double", "0.1", 0.1),
    "DECIMAL(10,2)": ("decimal(10,2)", "-1.25", Decimal("-1.25")),
    "DECIMAL(65,2)": ("decimal(38,2)", "123456789.25", Decimal("123456789.25")),
    "DATE": ("date", "'2024-02-29'", date(2024, 2, 29)),
    "DATETIME(6)": ("timestamp", "'2024-02-29 12:34:56.789012'", datetime(2024, 2, 29, 12, 34, 56, 789012)),
    "TIMESTAMP(6) NULL": ("timestamp", "'2024-02-29 12:34:56.5'", datetime(2024, 2, 29, 12, 34, 56, 500000)),
    "TIME": ("timestamp", "'12:34:56'", datetime(1970, 1, 1, 12, 34, 56)),
    "YEAR": ("date", "2024", date(2024, 1, 1)),
    "CHAR(5)": ("string", "'abc'", "abc"),
    "VARCHAR(20) CHARACTER SET latin1": ("string", "'é'", "é"),
    "TEXT": ("string", "REPEAT('ü', 300)", "ü" * 300),
    "ENUM('a','b')": ("string", "'b'", "b"),
    "SET('a','b')": ("string", "'a,b'", "a,b"),
    "JSON": ("string", "'{\"a\": 1}'", '{"a": 1}'),
    "BINARY(3)": ("binary", "'ab'", b"ab\0"),
    "VARBINARY(10)": ("binary", "x'00ff'", b"\0\xff"),
    "LONGBLOB": ("binary", "REPEAT('b', 300)", b"b" * 300),
}


def test_types_are_those_of_the_jdbc_source(spark: Any, server: MillraceServer) -> None:
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(TYPES))
    values = ", ".join(value for _, value, _ in TYPES.values())
    execute(server, f"CREATE TABLE types (id INT PRIMARY KEY, {columns})", "SET time_zone = '+00:00'", f"INSERT INTO types VALUES (1, {values})", "INSERT INTO types (id) VALUES (2)")
    frame = source(spark, server, dbtable="types", timeZone="UTC").load()
    found = {kind: name for kind, (_, name) in zip(TYPES, frame.dtypes[1:])}
    assert found == {kind: name for kind, (name, _, _) in TYPES.items()}
    first, second = frame.orderBy("id").collect()
    assert [bytes(each) if isinstance(each, bytearray) else each for each in first[1:]] == [value for _, _, value in TYPES.values()]
    assert list(second[1:]) == [None] * len(TYPES)
    other = source(spark, server, dbtable="types", tinyInt1isBit="false", yearIsDateType="false", preferTimestampNTZ="true").load()
    names = {kind: name for kind, (_, name) in zip(TYPES, other.dtypes[1:])}
    assert [names[each] for each in ("TINYINT(1)", "YEAR", "DATETIME(6)", "TIME", "TIMESTAMP(6) NULL")] == ["tinyint", "int", "timestamp_ntz", "timestamp_ntz", "timestamp"]
    assert other.orderBy("id").first()[20] == datetime(2024, 2, 29, 12, 34, 56, 789012)


def write(frame: Any, server: MillraceServer, mode: str, table: str, **options: str) -> None:
    frame.write.format("millrace").option("url", url(server)).option("dbtable", table).options(**options).mode(mode).save()


def test_rows_are_appended_overwritten_and_upserted(spark: Any, server: MillraceServer) -> None:
    execute(server, "CREATE TABLE w (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, at DATETIME(6), KEY (name))", "INSERT INTO w VALUES (1, 'old', NULL)")
    frame = spark.createDataFrame([(n, f"n{n}", datetime(2024, 1, n)) for n in range(2, 6)], "id INT, name STRING, at TIMESTAMP").repartition(3)
    write(frame, server, "append", "w", timeZone="UTC")
    expected = [(1, "old", None), *((n, f"n{n}", datetime(2024, 1, n)) for n in range(2, 6))]
    assert execute(server, "SELECT * FROM w ORDER BY id") == expected
    with pytest.raises(PySparkException, match="Duplicate entry"):
        write(frame.unionAll(spark.createDataFrame([(9, "new", None)], frame.schema)), server, "append", "w")
    assert execute(server, "SELECT COUNT(*) FROM w") == [(5,)], "all of a job or nothing"
    changed = spark.createDataFrame([(1, "changed"), (7, "new")], "id INT, name STRING")
    write(changed, server, "append", "w", upsert="true")
    assert execute(server, "SELECT id, name FROM w WHERE id IN (1, 7) ORDER BY id") == [(1, "changed"), (7, "new")]
    write(changed, server, "overwrite", "w", truncate="true")
    assert execute(server, "SELECT * FROM w ORDER BY id") == [(1, "changed", None), (7, "new", None)]
    assert "KEY" in execute(server, "SHOW CREATE TABLE w")[0][1]
    write(changed, server, "overwrite", "w")
    assert execute(server, "SELECT * FROM w ORDER BY id") == [(1, "changed"), (7, "new")]
    assert {name for (name,) in execute(server, "SHOW TABLES")} == {"w"}, "nothing is left of staging"


def test_a_job_that_is_run_again_writes_once(spark: Any, server: MillraceServer) -> None:
    frame = spark.createDataFrame([(1,), (2,)], "n INT")
    for version, count in ((1, 2), (1, 2), (2, 4)):
        write(frame, server, "append", "once", txnAppId="loader", txnVersion=str(version))
        assert execute(server, "SELECT COUNT(*) FROM once") == [(count,)]


def test_strangers_get_nothing(spark: Any, server: MillraceServer) -> None:
    execute(server, "CREATE TABLE s (id INT PRIMARY KEY)", "DROP USER IF EXISTS stranger", "CREATE USER stranger IDENTIFIED BY 'known'")
    for password, message in (("wrong", "Access denied"), ("known", "denied")):
        with pytest.raises(PySparkException, match=message):
            spark.read.format("millrace").option("url", url(server, "stranger", password)).option("dbtable", "s").load().collect()
    execute(server, "GRANT SELECT ON d.s TO stranger")
    options = {"url": f"jdbc:mysql://{server.host}:{server.mysql_port}/d", "user": "stranger", "password": "known", "dbtable": "s"}
    assert spark.read.format("millrace").options(**options).load().count() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "dbtable"),
        ({"dbtable": "t", "query": "SELECT 1"}, "dbtable"),
        ({"dbtable": "t", "url": "postgres://host/d"}, "url"),
        ({"dbtable": "t", "numPartitions": "many"}, "numPartitions"),
        ({"dbtable": "missing"}, "missing"),
    ],
)
def test_wrong_options_are_named(spark: Any, server: MillraceServer, options: dict[str, str], message: str) -> None:
    execute(server, "CREATE TABLE t (id INT PRIMARY KEY)")
    with pytest.raises(PySparkException, match=message):
        source(spark, server, **options).load().count()


@pytest.mark.slow
def test_a_read_goes_on_when_workers_and_adapters_die(spark: Any, server: MillraceServer) -> None:
    execute(server, "CREATE TABLE big (id INT PRIMARY KEY, text VARCHAR(200))")
    for first in range(0, 60_000, 10_000):
        execute(server, "INSERT INTO big VALUES " + ", ".join(f"({n}, '{'x' * 150}')" for n in range(first, first + 10_000)))
    frame = source(spark, server, dbtable="big", numPartitions="6").load()

    planned = frame.select("id").rdd
    assert planned.getNumPartitions() >= 2  # the epoch is kept from here on
    adapter = next(each for each in server.processes() if "adapter-0" in " ".join(each.cmdline()))
    adapter.kill()
    assert sorted(each.id for each in planned.collect()) == list(range(60_000))
    worker = next(each["process"] for each in server.status()["shards"] if each["shard"] == 1)
    psutil.Process(worker).kill()
    assert frame.count() == 60_000
