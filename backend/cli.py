"""The `millrace` command."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import shutil
import signal
import socket
import sys
import tomllib
from collections.abc import Callable
from http.client import HTTPException
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import get_completion_class
from rich.console import Console

from backend.commands import manual
from backend.commands.job_commands import export, verify
from backend.commands.status_tables import show_status
from backend.imports.command import import_command
from backend.processes.process_log import FORMATS, configure_logging
from backend.processes.settings import SECRET_VARIABLE, ClusterSettings, parse_bytes
from controller.passwords import DEFAULT_PLUGIN, PLUGINS

PORT = click.IntRange(0, 65535)

console = Console(highlight=False)
Command = TypeVar("Command", bound=Callable[..., object])


def _read_file(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Take the file's values as defaults: the command line and the environment come first."""
    if path is not None:
        try:
            values = tomllib.loads(Path(path).read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise click.BadParameter(f"cannot read {path}: {error}") from error
        values = values.get("serve", values)
        known = {option.name for option in context.command.params}
        for name in values:
            if name.replace("-", "_") not in known:
                raise click.BadParameter(f"{path}: unknown setting {name!r}")
        context.default_map = {name.replace("-", "_"): value for name, value in values.items()}
    return path


def _option(name: str, **attributes: Any) -> Callable[[Command], Command]:
    """An option that can also be given as MILLRACE_<NAME>."""
    variable = "MILLRACE_" + name.removeprefix("--").replace("-", "_").upper()
    return click.option(name, envvar=variable, show_envvar=True, show_default=True, **attributes)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=manual.MILLRACE)
@click.version_option(package_name="millrace", message="%(version)s")
def main() -> None:
    """A MySQL-speaking database that keeps the answer of every query up to date."""


@main.command(epilog=manual.SERVE, short_help="Start a cluster and serve it.")
@click.option(
    "--config",
    show_envvar=True,
    envvar="MILLRACE_CONFIG",
    type=click.Path(dir_okay=False),
    callback=_read_file,
    is_eager=True,
    expose_value=False,
    help="A TOML file with any of the settings below, e.g. mysql-port = 3306.",
)
@_option("--mysql-port", type=PORT, default=3307, help="Where MySQL clients connect; 0 takes any free port.")
@_option("--host", default="127.0.0.1", help="The address to listen on.")
@_option("--data", default="./millrace-data", help="The data directory; created if it does not exist.")
@_option(
    "--workers",
    type=click.IntRange(1, 256),
    default=1,
    help="Number of shards, each served by a worker in Spark. Fixed once the data directory is made.",
)
@_option(
    "--adapters",
    type=click.IntRange(1, 256),
    default=1,
    help="Processes that speak MySQL; they share the port.",
)
@_option("--controllers", type=click.IntRange(1, 9), default=2, help="One leads, the others stand by.")
@_option(
    "--master",
    default="local[*]",
    help="The Spark master that runs the workers: local[*], spark://host:port, yarn, k8s://…",
)
@_option("--zookeeper", default="embedded", help="'embedded' or an existing ensemble host:port,…")
@_option("--memory", default="2G", help="Limit of the memory for views and the state below them.")
@_option("--statement-memory", default="512M", help="Limit of the memory that the rows of one statement may take.")
@_option(
    "--spark-rows",
    type=click.IntRange(min=0),
    default=5_000_000,
    help="A query that is asked once is a job of Spark, where that is exact, if more rows of a table than these are read.",
)
@_option(
    "--durability",
    type=click.Choice(["fsync", "os"]),
    default="fsync",
    help="fsync: an acknowledged write is on disk. os: the operating system decides when it writes.",
)
@_option(
    "--idle-view-s",
    type=click.FloatRange(min=1),
    default=600.0,
    help="A query that nobody has sent for this many seconds loses its view, unless it reads a named view.",
)
@_option("--http-port", type=PORT, default=6033, help="The page, HTTP/JSON, status and metrics; 0 takes any free port.")
@_option("--tls-cert", default="", help="A certificate (PEM) for both ports; HTTP becomes HTTPS. A new file is noticed.", metavar="FILE")
@_option("--tls-key", default="", help="The certificate's private key (PEM, without a passphrase).", metavar="FILE")
@_option(
    "--watchdog-s",
    type=click.FloatRange(min=0),
    default=15.0,
    help="A process that gives no sign of life for this many seconds is ended and replaced; 0: never.",
)
@_option(
    "--default-authentication",
    type=click.Choice(PLUGINS),
    default=DEFAULT_PLUGIN,
    help="Login plugin of users created without IDENTIFIED WITH; mysql_native_password for old clients.",
)
@_option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    help="text: lines of text. json: JSON lines, each with the id of its statement.",
)
@_option(
    "--internal-host",
    default="127.0.0.1",
    help="Address on which the processes of the cluster listen for each other; 'auto' if Spark has several machines.",
)
def serve(memory: str, statement_memory: str, **options: Any) -> None:
    """Start a cluster and serve it until Ctrl-C.

    All processes run on this machine; with another Spark master than local, the workers run where Spark puts them. The cluster is
    ready when the line "millrace ready" is printed, with the addresses for MySQL clients and for browsers.
    """
    settings = ClusterSettings(
        memory_bytes=_size("--memory", memory),
        statement_memory_bytes=_size("--statement-memory", statement_memory),
        **options,
    )
    import backend.processes.supervisor  # noqa: F401  # which is most of what the other processes need, too
    from backend.processes.data_directory import close_umask
    from backend.processes.fork_server import fork_early

    close_umask()
    sys.exit(asyncio.run(_serve(settings, fork_early())))


def _size(option: str, value: str) -> int:
    try:
        return parse_bytes(value)
    except ValueError:
        raise click.BadParameter(f"not a size: {value!r} (e.g. 512M or 2G)", param_hint=option) from None


def _first_signal() -> asyncio.Future[str]:
    """The name of the first signal to stop. More of them change nothing: stopping ends soon anyway."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[str] = loop.create_future()

    def stop(number: signal.Signals) -> None:
        if not first.done():
            first.set_result(number.name)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    # To MySQL it says that logs are to be opened anew; here every log does so when its file was moved away.
    loop.add_signal_handler(signal.SIGHUP, logging.getLogger(__name__).info, "SIGHUP: files of logs that were moved away are begun anew")
    return first


async def _serve(settings: ClusterSettings, forked: tuple[int, socket.socket]) -> int:
    signalled = _first_signal()  # before anything that would be left behind

    from backend.processes.supervisor import CannotStart, Supervisor

    logging.getLogger("kazoo").setLevel(logging.ERROR)  # it complains until ZooKeeper is up
    supervisor = Supervisor(settings, lambda line: console.print(f"  {line}", style="dim", soft_wrap=True), forked)
    code = 0
    console.print(f"millrace {package_version('millrace')}, data in {settings.data}")
    try:
        starting = asyncio.ensure_future(supervisor.start())
        awaited: list[asyncio.Future[Any]] = [starting, signalled]
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait([starting])
        else:
            starting.result()
            configure_logging(settings.data_path / "logs" / "supervisor.log", settings.log_format)
            deployment = supervisor.deployment
            assert deployment is not None
            for line in await supervisor.account_warnings():
                console.print(f"  warning: {line}", style="yellow", soft_wrap=True)
            click.echo(
                f"millrace ready  mysql://root@{settings.host}:{deployment.mysql_port}"
                f"  {deployment.http_address}"
            )
            name = await signalled
            console.print(f"  {name}: stopping", style="dim")
    except CannotStart as error:
        click.echo(f"millrace: {error}", err=True)
        code = 1
    finally:
        await supervisor.stop()
    if code == 0:
        console.print("  stopped", style="dim")
    return code


@main.command(epilog=manual.STATUS, short_help="Show processes and shards.")
@_option("--http", default="http://127.0.0.1:6033", help="Where the cluster shows its status.")
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
def status(http: str, as_json: bool) -> None:
    """Show the processes and shards of a running cluster.

    Your own clusters on this machine need no secret; for others set MILLRACE_SECRET.
    """
    from backend.client.status import ask_status, token_for

    try:
        found = ask_status(http, token_for(http)[0], 10)
    except (OSError, HTTPException, ValueError) as error:
        click.echo(f"millrace: no cluster answers at {http}: {error}", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(found))
        return
    if "mysql" not in found:
        console.print(f"{'ready' if found['ready'] else 'not ready'}; the user who runs the cluster, and whoever has its secret in {SECRET_VARIABLE}, see more")
        return
    show_status(found, console)


@main.command(epilog=manual.TOP, short_help="Watch rates, shards and queries.")
@_option("--http", default="http://127.0.0.1:6033", help="Where the cluster shows its status.")
@click.option("--every", default=2.0, show_default=True, type=click.FloatRange(min=0.2), help="Seconds between two refreshes.")
@click.option("--once", is_flag=True, help="Print once, and end.")
def top(http: str, every: float, once: bool) -> None:
    """Watch a running cluster in the terminal: rates, shards, and the queries that take most time. Ctrl-C ends it."""
    from backend.commands.top import watch

    try:
        watch(http, every, once, console)
    except (OSError, HTTPException, ValueError) as error:
        raise click.ClickException(f"no cluster answers at {http}: {error}") from None


@main.command(epilog=manual.REPORT, short_help="Write a support bundle, without rows and secrets.")
@_option("--http", default="http://127.0.0.1:6033", help="Where the cluster shows its status.")
@click.option("--output", default="millrace-report.zip", show_default=True, type=click.Path(dir_okay=False), help="The file to write.")
@click.option("--data", default=None, type=click.Path(exists=True, file_okay=False), help="The data directory of the cluster, which need not run; in place of --http.")
def report(http: str, output: str, data: str | None) -> None:
    """Write a support bundle: versions, settings, status, metrics, queries with ? for values, and logs, in one file.

    It has no rows, passwords or secrets. Look into the file before you pass it on: logs may have the text of statements that failed.
    """
    from backend.commands.report import write_report

    for line in write_report(http, Path(output), None if data is None else Path(data)):
        click.echo(line)


@main.command(epilog=manual.SQL, short_help="Open a SQL shell.")
@_option("--host", default="127.0.0.1", help="Where the cluster listens.")
@_option("--mysql-port", type=int, default=3307, help="Its port for MySQL clients.")
@click.option("--user", default="root", show_default=True, help="The account to log in with.")
@click.argument("arguments", nargs=-1)
def sql(host: str, mysql_port: int, user: str, arguments: tuple[str, ...]) -> None:
    """Open a SQL shell: the mysql or mariadb client if there is one, a simple prompt otherwise.

    ARGUMENTS are passed on to the client, e.g. `millrace sql -- -e "SHOW DATABASES"`. The prompt knows -e, --password and a database.
    """
    client = shutil.which("mysql") or shutil.which("mariadb")
    if client is not None:
        os.execv(client, [client, f"--host={host}", f"--port={mysql_port}", f"--user={user}", *arguments])
    from backend.commands.prompt import run_prompt

    run_prompt(host, mysql_port, user, arguments)


@main.command(context_settings={"ignore_unknown_options": True}, epilog=manual.BENCH, short_help="Run benchmarks.")
@click.argument("name", default="all")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def bench(name: str, as_json: bool, options: tuple[str, ...]) -> None:
    """Run a benchmark: NAME, or all of them.

    OPTIONS are those of the benchmark: `millrace bench vote -- --help` lists them.
    """
    from backend.bench import run_benchmarks

    sys.exit(run_benchmarks(name, as_json, options))


@main.command(epilog=manual.REPAIR, short_help="Keep what is left of damaged shards.")
@click.argument("data", type=click.Path(exists=True, file_okay=False))
def repair(data: str) -> None:
    """Keep what is left of damaged shards in the data directory DATA, and say what is lost.

    Files that are removed go to the folder "lost" of their shard. If you have a backup, restore it instead.
    """
    from backend.processes.data_directory import close_umask
    from persistence.files.repair import repair as repair_shard

    close_umask()
    with Path(data, "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise click.ClickException(f"a `millrace serve` is using the data directory {data}") from None
        found = 0
        for shard in sorted(Path(data, "shards").glob("*")):
            for line in repair_shard(shard):
                click.echo(line)
                found += 1
    if not found:
        click.echo("nothing is damaged")


@main.command(short_help="Print settings for a standalone Spark cluster.")
@_option("--data", default="./millrace-data", help="The data directory; made if it is not there.")
def spark_secret(data: str) -> None:
    """Print the lines that spark-defaults.conf of a standalone Spark cluster needs for `millrace serve --master spark://…`."""
    from backend.processes import settings
    from backend.processes.data_directory import close_umask

    close_umask()
    path = ClusterSettings(data=data).data_path
    path.mkdir(parents=True, exist_ok=True)
    click.echo("spark.authenticate true\nspark.network.crypto.enabled true")
    click.echo(f"spark.authenticate.secret {settings.spark_secret(bytes.fromhex(settings.cluster_secret(path)))}")


@main.command(short_help="Print the versions of millrace and Python.")
def version() -> None:
    """Print the version of millrace, and of the Python that runs it."""
    from backend.processes import interpreter

    click.echo(package_version("millrace"))
    click.echo(interpreter.description())


@main.command(epilog=manual.COMPLETION)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands and options."""
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "millrace", "_MILLRACE_COMPLETE").source())


main.add_command(import_command)
main.add_command(export)
main.add_command(verify)

if __name__ == "__main__":
    main()
