"""`millrace bench scan`: a whole table into Arrow, and into an aggregate of Spark, beside MariaDB.

Into Arrow: all parts, one after the other, in one process; MariaDB's rows come through PyMySQL. Into Spark: the same aggregate over the data
source, and over Spark's JDBC source with as many partitions, if a driver is given with `--jdbc-jar`. Each is run once to warm up.
A value is one column of one row. Processor time into Spark is that of all who take part: the server, Spark's JVM and its Python processes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pymysql

from backend.bench import Advance, Measurement
from backend.bench.cluster import scratch
from backend.bench.mariadb import connect, mariadb
from backend.bench.options import option
from backend.bench.servers import millrace, processor_s
from backend.network.server_address import ServerAddress
from backend.spark.scanning import parts_of, read_part

COLUMNS = ("id", "user", "story", "score", "title")
TABLE = "CREATE TABLE bench.votes (id INT NOT NULL PRIMARY KEY, user INT NOT NULL, story INT NOT NULL, score INT, title VARCHAR(80))"
INSERT_ROWS = 5_000
PARTS = 4
QUERY = "SELECT * FROM votes"


@dataclass(frozen=True, slots=True)
class Options:
    rows: int = option(300_000, "rows of the table")
    jdbc_jar: str = option("/usr/share/java/mariadb-java-client.jar", "MariaDB's JDBC driver")
    spark: str = option("local[2]", "the Spark master that reads")


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    with scratch() as folder:
        advance("starting millrace", 0.05)
        with millrace(folder / "millrace", "--durability=os") as server:
            advance("filling millrace", 0.1)
            _fill(server.port, options.rows)
            advance("into Arrow", 0.3)
            ours, cpu = _best(lambda: _arrow(server.port), server.cpu_s)
            advance("into Spark", 0.4)
            ours_spark, ours_spark_cpu = _best(_aggregate(options, {"url": f"mysql://root@127.0.0.1:{server.port}/bench"}), all_cpu_s)
        (folder / "mariadb").mkdir()
        advance("starting MariaDB", 0.6)
        with mariadb(folder / "mariadb") as port:
            theirs, theirs_spark, theirs_spark_cpu = _theirs(port, options, advance) if port is not None else ({}, {}, {})
    values = options.rows * len(COLUMNS)
    yield Measurement("scan", "into_arrow", values / ours, "values/s", {name: values / each for name, each in theirs.items()})
    yield Measurement("scan", "into_arrow_server_cpu", cpu / options.rows * 1e6, "µs/row")
    yield Measurement("scan", "into_spark", values / ours_spark, "values/s", {name: values / each for name, each in theirs_spark.items()})
    peers = {name: each / options.rows * 1e6 for name, each in theirs_spark_cpu.items()}
    yield Measurement("scan", "into_spark_cpu", ours_spark_cpu / options.rows * 1e6, "µs/row", peers)


def _theirs(port: int, options: Options, advance: Advance) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Seconds into Arrow, seconds and processor seconds into Spark."""
    advance("filling MariaDB", 0.65)
    _fill(port, options.rows)
    advance("MariaDB into Arrow", 0.8)
    arrow = {"MariaDB, PyMySQL": _best(lambda: _pymysql(port))[0]}
    if not Path(options.jdbc_jar).exists():
        return arrow, {}, {}
    advance("MariaDB into Spark", 0.9)
    jdbc = {"url": f"jdbc:mysql://127.0.0.1:{port}/bench", "user": "root", "password": "", "driver": "org.mariadb.jdbc.Driver", "fetchsize": "10000"}
    bounds = {"partitionColumn": "id", "lowerBound": "0", "upperBound": str(options.rows), "numPartitions": str(PARTS)}
    spark, spark_cpu = _best(_aggregate(options, jdbc | bounds, "jdbc"), all_cpu_s)
    return arrow, {"MariaDB, JDBC": spark}, {"MariaDB, JDBC": spark_cpu}


def _fill(port: int, rows: int) -> None:
    with connect(port) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench")
        cursor.execute(TABLE)
        for first in range(0, rows, INSERT_ROWS):
            values = (f"({n},{n % 1000},{n % 50_000},{n % 11},'a title of some length {n}')" for n in range(first, min(first + INSERT_ROWS, rows)))
            cursor.execute("INSERT INTO bench.votes VALUES " + ",".join(values))


def _best(work: Callable[[], None], cpu_s: Callable[[], float] = time.process_time) -> tuple[float, float]:
    """Seconds that it takes, and processor seconds meanwhile, each the least of three after a first time."""
    work()
    found = []
    for _ in range(3):
        started, used = time.perf_counter(), cpu_s()
        work()
        found.append((time.perf_counter() - started, cpu_s() - used))
    return min(took for took, _ in found), min(used for _, used in found)


def all_cpu_s() -> float:
    """Processor time that this process and all that it has started have used until now."""
    this = psutil.Process()
    return sum(processor_s(each) for each in (this, *this.children(recursive=True)))


def _arrow(port: int) -> None:
    address = ServerAddress("127.0.0.1", port, "root", "", "bench", "DISABLED")
    with address.connect() as connection:
        parts = parts_of(connection, QUERY, PARTS, 60)
    for part in parts:
        for batch in read_part(address, part):
            assert batch.num_columns == len(COLUMNS)


def _pymysql(port: int) -> None:
    with connect(port, "bench") as connection, connection.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute(QUERY)
        while rows := cursor.fetchmany(10_000):
            pa.RecordBatch.from_arrays([pa.array(each) for each in zip(*rows)], list(COLUMNS))


def _aggregate(options: Options, source: dict[str, str], kind: str = "millrace") -> Callable[[], None]:
    from pyspark.sql import SparkSession, functions

    folders = [Path(__file__).parents[2], Path(__file__).parents[2] / "millrace"]
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder.master(options.spark).appName("bench").config("spark.ui.enabled", "false")
    if Path(options.jdbc_jar).exists():
        builder = builder.config("spark.jars", options.jdbc_jar)
    spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def work() -> None:
        frame = spark.read.format(kind).options(**source).option("dbtable", "votes").option("numPartitions", str(PARTS)).load()
        counts = [functions.count(each) for each in COLUMNS]
        [found] = frame.agg(functions.sum("score"), functions.max("title"), *counts).collect()
        assert found[2:] == (options.rows,) * len(COLUMNS)

    return work
