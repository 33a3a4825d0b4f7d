"""The commands that read a running cluster as of one moment: `millrace export` and `millrace verify`.

What they need is imported when they run: the other commands start without it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from backend.commands import manual

_url = click.option(
    "--url", envvar="MILLRACE_URL", default="mysql://root@127.0.0.1:3307", show_default=True, help="mysql://user:password@host:port/database"
)


@click.command(epilog=manual.EXPORT, short_help="Write tables and views to files, as of one moment.")
@_url
@click.option("--format", "kind", type=click.Choice(["parquet", "csv", "sql"]), default="parquet", show_default=True, help="The format of the files.")
@click.option("--to", "folder", default=".", show_default=True, help="The folder for the files.")
@click.argument("tables", nargs=-1)
def export(url: str, kind: str, folder: str, tables: tuple[str, ...]) -> None:
    """Write TABLES and views of a running cluster, or all tables of the database, to files, as of one moment."""
    import pymysql

    from backend.commands.export import export as export_tables
    from backend.spark.options import address_of

    def told(name: str, rows: int) -> None:
        click.echo(f"{name}: {rows:,} rows")

    try:
        epoch = export_tables(address_of({"url": url}), list(tables), Path(folder), kind, told)
    except (pymysql.err.Error, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"as of epoch {epoch}")


@click.command(epilog=manual.VERIFY, short_help="Compare maintained views with the tables.")
@_url
@click.option("--sample", type=click.IntRange(min=0), default=0, help="Number of keys of each view to compare, chosen by chance; 0: all.")
@click.argument("views", nargs=-1)
def verify(url: str, sample: int, views: tuple[str, ...]) -> None:
    """Compare maintained VIEWS, or all, with their queries evaluated from the base tables, key by key; exit code 1 if they differ.

    VIEWS are names of views, or those that millrace.views shows. Nothing is held up meanwhile.
    """
    import pymysql

    from backend.commands.verify import verify as verify_views
    from backend.spark.options import address_of

    try:
        differs = verify_views(address_of({"url": url}), views, sample, click.echo)
    except (pymysql.err.Error, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(1 if differs else 0)
