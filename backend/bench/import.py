"""`millrace bench import`: a file of TPC-H line items by `millrace import`, beside MariaDB's LOAD DATA LOCAL of the same file.

Processor time is that of the server, for each row; that of the importer, which reads and types the file, comes apart.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import psutil
from rich.console import Console

from backend.bench import Advance, Measurement
from backend.bench.cluster import scratch
from backend.bench.mariadb import mariadb
from backend.bench.options import option
from backend.bench.servers import MeasuredServer, millrace, processor_s
from backend.imports.file_import import FileImport
from backend.imports.files import Dialect, find_files
from backend.imports.journal import Journal
from backend.imports.progress import ImportMeter
from backend.imports.server import rows_of
from backend.network.server_address import ServerAddress

NAMES = (
    "l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount", "l_tax", "l_returnflag",
    "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode", "l_comment",
)  # fmt: skip
LINES = 4
"""Of an order."""
SCHEMA = Path(__file__).parents[2] / "apps" / "tpch" / "schema.sql"


@dataclass(frozen=True, slots=True)
class Options:
    rows: int = option(100_000, "line items; scale factor 1 has six million")
    jobs: int = option(2, "files, and connections that import at once")


def run(advance: Advance, options: Options) -> Iterator[Measurement]:
    with scratch() as folder:
        advance("writing files", 0.05)
        files = [write_lines(folder / f"lineitem{part}.csv", part, options) for part in range(options.jobs)]
        table = next(each for each in SCHEMA.read_text().split(";") if "CREATE TABLE lineitem" in each)
        advance("millrace", 0.2)
        with millrace(folder / "millrace") as server:
            ours = _ours(server, table, files, options)
        (folder / "mariadb").mkdir()
        advance("MariaDB", 0.7)
        with mariadb(folder / "mariadb") as port:
            theirs = _theirs(port, table, files, options.rows) if port is not None else {}
    for metric, unit in (("rows", "rows/s"), ("server_cpu", "µs/row"), ("client_cpu", "µs/row")):
        peers = {"MariaDB LOAD DATA": theirs[metric]} if metric in theirs else {}
        yield Measurement("import", metric, ours[metric], unit, peers)


def write_lines(path: Path, part: int, options: Options) -> Path:
    """One of as many files as there are jobs, of line items that are about as long as those of TPC-H."""
    chance = random.Random(part)
    first, end = options.rows * part // options.jobs, options.rows * (part + 1) // options.jobs
    with path.open("w") as file:
        file.write(",".join(NAMES) + "\n")
        for number in range(first, end):
            day = date(1992, 1, 1) + timedelta(days=chance.randrange(2_400))
            file.write(
                f"{number // LINES + 1},{chance.randint(1, 200_000)},{chance.randint(1, 10_000)},{number % LINES + 1},{chance.randint(1, 50)}.00,"
                f"{chance.randint(900, 99_999)}.{chance.randint(0, 99):02},0.0{chance.randint(0, 9)},0.0{chance.randint(0, 8)},{chance.choice('RAN')},"
                f"{chance.choice('OF')},{day},{day + timedelta(days=30)},{day + timedelta(days=9)},DELIVER IN PERSON,AIR REG,"
                f"carefully final deposits {number}\n"
            )
    return path


def _ours(server: MeasuredServer, table: str, files: list[Path], options: Options) -> dict[str, float]:
    target = ServerAddress("127.0.0.1", server.port, "root", "", "bench")
    _make(target, table)
    meter = ImportMeter(Console(quiet=True))
    importing = FileImport(target, Journal("bench"), options.jobs, 10_000, meter)
    started, used, own = time.perf_counter(), server.cpu_s(), time.process_time()
    importing.run(find_files([str(file) for file in files]), "lineitem", (), Dialect(), True)
    assert (meter.stored, meter.rejected) == (options.rows, 0)
    return {
        "rows": options.rows / (time.perf_counter() - started),
        "server_cpu": (server.cpu_s() - used) / options.rows * 1e6,
        "client_cpu": (time.process_time() - own) / options.rows * 1e6,
    }


def _theirs(port: int, table: str, files: list[Path], rows: int) -> dict[str, float]:
    target = ServerAddress("127.0.0.1", port, "root", "", "bench")
    _make(target, table)
    server = next(psutil.Process(each.pid) for each in psutil.net_connections("tcp") if each.laddr and each.laddr.port == port and each.status == "LISTEN")
    with target.connect(local_infile=True) as connection:
        started, used = time.perf_counter(), processor_s(server)
        for file in files:
            rows_of(connection, f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE lineitem FIELDS TERMINATED BY ',' IGNORE 1 LINES")
        took = time.perf_counter() - started
        assert rows_of(connection, "SELECT COUNT(*) FROM lineitem") == [(rows,)]
    return {"rows": rows / took, "server_cpu": (processor_s(server) - used) / rows * 1e6}


def _make(target: ServerAddress, table: str) -> None:
    with target.within(None).connect() as connection:
        rows_of(connection, "CREATE DATABASE bench")
        rows_of(connection, "USE bench")
        rows_of(connection, table)
