"""The command `millrace import`."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import click
import pymysql
from rich.console import Console

from backend.imports.journal import Journal, Rejected
from backend.imports.loader import ImportConflict, error_of
from backend.imports.server import ServerAddress

SHOWN_MAX = 20
SCHEMES = ("mysql://", "mariadb://")

console = Console(highlight=False, stderr=True)


@click.command("import")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE…")
@click.option("--host", envvar="MILLRACE_HOST", default="127.0.0.1", show_default=True, help="The millrace to import into.")
@click.option("--mysql-port", envvar="MILLRACE_MYSQL_PORT", type=int, default=3307, show_default=True)
@click.option("--user", default="root", show_default=True)
@click.option("--password", envvar="MILLRACE_PASSWORD", default="", help="Of the user; or in MILLRACE_PASSWORD.")
@click.option("--database", help="The database to import into; made if it is not there. Else the source's name.")
@click.option("--exclude", multiple=True, metavar="TABLE", help="A table or view that is not wanted; may be repeated.")
@click.option("--jobs", type=click.IntRange(1, 64), default=4, show_default=True, help="Connections that read and store at once.")
@click.option("--chunk-rows", type=click.IntRange(1, 100_000), default=10_000, show_default=True, help="Rows that are one transaction.")
@click.option("--rejected", "report", type=click.Path(dir_okay=False), help="A file for the rows that are refused, as JSON lines.")
@click.option("--forget", is_flag=True, help="Forget how far an import of this source was; what it has stored stays.")
def import_command(
    sources: tuple[str, ...],
    host: str,
    mysql_port: int,
    user: str,
    password: str,
    database: str | None,
    exclude: tuple[str, ...],
    jobs: int,
    chunk_rows: int,
    report: str | None,
    forget: bool,
) -> None:
    """Import a live MySQL or MariaDB: mysql://user:password@host:port/database.

    An import that was interrupted goes on when the same command is given again.
    """
    from backend.imports.live import CannotImport, LiveImport
    from backend.imports.mysql_source import LiveSource
    from backend.imports.progress import ImportMeter

    target = ServerAddress(host, mysql_port, user, password)
    try:
        address = ServerAddress.parse(sources[0])
        target = target.within(database or address.database)
        journal = Journal(job_name(address.name, target.database or ""))
        if forget:
            _forget(target, journal)
            return
        source = LiveSource(address)
        with ImportMeter(console) as meter:
            importing = LiveImport(source, target, journal, jobs, chunk_rows, meter)
            importing.run(exclude)
        for line in importing.warnings:
            console.print(f"warning: {line}", style="yellow", soft_wrap=True)
        for line in importing.left_out:
            console.print(f"not imported: {line}", style="yellow", soft_wrap=True)
        sys.exit(finish(target, journal, report))
    except (CannotImport, ImportConflict, ValueError) as error:
        raise click.ClickException(str(error)) from None
    except pymysql.MySQLError as error:
        code, message = error_of(error)
        raise click.ClickException(f"{message} ({code}); the same command goes on from here") from None


def job_name(*parts: str) -> str:
    """The same for the same sources and target."""
    return hashlib.sha256(os.fsencode("\n".join(parts))).hexdigest()[:32]


def _forget(target: ServerAddress, journal: Journal) -> None:
    with target.within(None).connect() as connection:
        journal.open(connection)
        journal.end(connection)


def finish(target: ServerAddress, journal: Journal, report: str | None) -> int:
    """Say what was stored and what was not, forget the journal; the exit code: 1 if rows were rejected."""
    with target.within(None).connect() as connection:
        marks, rejected = journal.marks(connection), journal.rejected(connection)
        click.echo(f"{sum(mark.stored for mark in marks.values()):,} rows stored, {len(rejected):,} rejected")
        _report(rejected, report)
        journal.end(connection)
    return 1 if rejected else 0


def _report(rejected: list[Rejected], report: str | None) -> None:
    if report is not None:
        Path(report).write_text("".join(json.dumps(asdict(each)) + "\n" for each in rejected))
    for each in rejected[:SHOWN_MAX]:
        click.echo(f"rejected: {each.table} {each.key}: {each.message} ({each.code})")
    if len(rejected) > SHOWN_MAX:
        click.echo(f"rejected: {len(rejected) - SHOWN_MAX:,} more{'' if report is None else f', all of them in {report}'}")
