"""The command `millrace import`."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pymysql
from rich.console import Console

from backend.commands import manual
from backend.imports.journal import BINLOG_UNIT, Journal, Rejected
from backend.imports.server import CannotImport, ImportConflict, error_of
from backend.network.server_address import ServerAddress

if TYPE_CHECKING:
    from backend.imports.progress import ImportMeter

SHOWN_MAX = 20
SCHEMES = ("mysql://", "mariadb://")
CHANGES = "changes"

console = Console(highlight=False, stderr=True)


@click.command("import", epilog=manual.IMPORT, short_help="Import a live MySQL or MariaDB, dumps, CSV, JSON, Parquet.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE…")
@click.option("--host", envvar="MILLRACE_HOST", default="127.0.0.1", show_default=True, help="The millrace to import into.")
@click.option("--mysql-port", envvar="MILLRACE_MYSQL_PORT", type=int, default=3307, show_default=True, help="Its port for MySQL clients.")
@click.option("--user", default="root", show_default=True, help="The account to log in with.")
@click.option("--password", envvar="MILLRACE_PASSWORD", default="", help="The password of the user; or in MILLRACE_PASSWORD.")
@click.option("--database", help="The database to import into, created if it does not exist; by default that of the source.")
@click.option("--table", help="The table for all files; by default each file has a table of its name.")
@click.option("--primary-key", metavar="COLUMN,…", default="", help="The primary key of a table that is created for a file.")
@click.option("--format", "file_format", type=click.Choice(["csv", "tsv", "json", "parquet", "sql"]), help="The format of the files; by default from their names.")
@click.option("--delimiter", default=",", show_default=True, help="The character between the fields of CSV.")
@click.option("--no-header", is_flag=True, help="The first line of CSV is a row; its fields are the table's columns in order.")
@click.option("--exclude", multiple=True, metavar="TABLE", help="A table or view to leave out; may be repeated.")
@click.option("--jobs", type=click.IntRange(1, 64), default=4, show_default=True, help="Connections that read and store at the same time.")
@click.option("--chunk-rows", type=click.IntRange(1, 100_000), default=10_000, show_default=True, help="Rows of one transaction.")
@click.option("--follow", is_flag=True, help="Then apply the row changes of the source's binlog. After Ctrl-C the import ends once it has caught up.")
@click.option("--rejected", "report", type=click.Path(dir_okay=False), help="Write refused rows to this file, as JSON lines.")
@click.option("--forget", is_flag=True, help="Remove the journal of an import from this source; rows that it has stored stay.")
def import_command(
    sources: tuple[str, ...],
    host: str,
    mysql_port: int,
    user: str,
    password: str,
    database: str | None,
    table: str | None,
    primary_key: str,
    file_format: str | None,
    delimiter: str,
    no_header: bool,
    exclude: tuple[str, ...],
    jobs: int,
    chunk_rows: int,
    follow: bool,
    report: str | None,
    forget: bool,
) -> None:
    """Import a live MySQL or MariaDB, mysql://user:password@host:port/database, or files: mysqldump, CSV, JSON lines, Parquet.

    Files may be patterns, and URLs such as s3://bucket/folder/*.parquet. An import that was interrupted goes on when the same
    command is given again.
    """
    from backend.imports.progress import ImportMeter

    target = ServerAddress(host, mysql_port, user, password)
    is_live = sources[0].startswith(SCHEMES)
    try:
        address = ServerAddress.parse(sources[0], port=3306) if is_live else None
        if address is not None and address.database is None:
            raise ValueError("the source has to be mysql://user:password@host:port/database")
        target = target.within(database or (address.database if address is not None else None))
        journal = Journal(job_name(target.database or "", table or "", *([str(address)] if address is not None else sources)))
        if forget:
            _forget(target, journal)
            return
        with ImportMeter(console) as meter:
            if address is not None:
                said = _import_live(address, target, journal, jobs, chunk_rows, meter, exclude, follow)
            elif follow:
                raise ValueError("only a live MySQL or MariaDB can be followed")
            else:
                options = FileOptions(table, tuple(filter(None, primary_key.split(","))), file_format, delimiter, not no_header)
                said = _import_files(sources, target, journal, jobs, chunk_rows, meter, options)
        for line in said:
            console.print(line, style="yellow", soft_wrap=True)
        sys.exit(finish(target, journal, report, ends=not follow))
    except (CannotImport, ImportConflict, ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    except pymysql.MySQLError as error:
        code, message = error_of(error)
        raise click.ClickException(f"{message} ({code}); the same command goes on from here") from None


@dataclass(frozen=True, slots=True)
class FileOptions:
    table: str | None
    key: tuple[str, ...]
    format: str | None
    delimiter: str
    has_header: bool


def _import_live(
    address: ServerAddress,
    target: ServerAddress,
    journal: Journal,
    jobs: int,
    chunk_rows: int,
    meter: ImportMeter,
    exclude: Sequence[str],
    follow: bool,
) -> list[str]:
    from backend.imports.live import LiveImport
    from backend.imports.mysql_source import LiveSource

    source = LiveSource(address)
    if follow:
        from backend.imports.follow import Following, check_binlog

        check_binlog(source)
    importing = LiveImport(source, target, journal, jobs, chunk_rows, meter)
    plan = importing.run(exclude)
    if follow:
        meter.expect(CHANGES, 0)
        following = Following(source, target, journal, plan, lambda count: meter.told(CHANGES, count, 0))
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        console.print(f"following the binlog from {following.place}; stop writing to the source and press Ctrl-C to switch over", soft_wrap=True)
        console.print(f"caught up with the source at {following.run(stop)}", soft_wrap=True)
    return [f"warning: {line}" for line in importing.warnings] + [f"not imported: {line}" for line in importing.left_out]


def _import_files(
    sources: Sequence[str], target: ServerAddress, journal: Journal, jobs: int, chunk_rows: int, meter: ImportMeter, options: FileOptions
) -> list[str]:
    from backend.imports.file_import import FileImport
    from backend.imports.files import Dialect, find_files

    importing = FileImport(target, journal, jobs, chunk_rows, meter)
    files = find_files(sources, options.format)
    importing.run(files, options.table, options.key, Dialect(options.delimiter), options.has_header)
    return [f"not imported: {line}" for line in importing.left_out]


def job_name(*parts: str) -> str:
    """The same for the same sources and target."""
    return hashlib.sha256(os.fsencode("\n".join(parts))).hexdigest()[:32]


def _forget(target: ServerAddress, journal: Journal) -> None:
    with target.within(None).connect() as connection:
        journal.open(connection)
        journal.end(connection)


def finish(target: ServerAddress, journal: Journal, report: str | None, ends: bool) -> int:
    """Say what was stored and what was not, forget the journal if that `ends` it; the exit code: 1 if rows were rejected."""
    with target.within(None).connect() as connection:
        marks, rejected = journal.marks(connection), journal.rejected(connection)
        changes = marks.pop(BINLOG_UNIT, None)
        if changes is not None:
            click.echo(f"{changes.stored:,} changes applied")
        click.echo(f"{sum(mark.stored for mark in marks.values()):,} rows stored, {len(rejected):,} rejected")
        _report(rejected, report)
        if ends:
            journal.end(connection)
    return 1 if rejected else 0


def _report(rejected: list[Rejected], report: str | None) -> None:
    if report is not None:
        Path(report).write_text("".join(json.dumps(asdict(each)) + "\n" for each in rejected))
    for each in rejected[:SHOWN_MAX]:
        click.echo(f"rejected: {each.table} {each.key}: {each.message} ({each.code})")
    if len(rejected) > SHOWN_MAX:
        click.echo(f"rejected: {len(rejected) - SHOWN_MAX:,} more{'' if report is None else f', all of them in {report}'}")
