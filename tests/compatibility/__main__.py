"""SQLAlchemy's and Django's own test suites, two applications, and MariaDB's test files, on millrace and on MariaDB.

    python -m tests.compatibility [--suite apps|sqlalchemy|django] [--only millrace|mariadb] [label …]
    python -m tests.compatibility --suite mariadb-test [--workers 2] [--repeat 3] [--document] [file …]

The suites come from the projects' source distributions, in the versions of
requirements-compatibility.lock, and run from a venv of their own under --folder. Nothing in
them is changed or left out. What failed is in the logs there.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pymysql

from tests.compatibility.mariadb_test import run as mariadb_test
from tests.compatibility.mariadb_test.document import (
    ASKED_ONCE,
    ASKED_THREE_TIMES,
    TWO_WORKERS,
    write_document,
)
from tests.mariadb import MariaDB
from tests.serving import MillraceServer

LOCK = Path(__file__).parents[2] / "requirements-compatibility.lock"
LABELS = (
    "backends", "basic", "queries", "aggregation", "annotations", "transactions", "migrations", "schema", "introspection",
)  # fmt: skip
DJANGO_SETTINGS = """
DATABASES = {{
    alias: {{
        "ENGINE": "django.db.backends.mysql", "HOST": "127.0.0.1", "PORT": "{port}", "USER": "root",
        "NAME": "django_" + alias, "TEST": {{"CHARSET": "utf8mb4"}},
    }}
    for alias in ("default", "other")
}}
SECRET_KEY = "for tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
"""
DATABASES = ("test", "test_schema", "django_default", "django_other", "shop", "library")


@dataclass(frozen=True, slots=True)
class Score:
    passed: int
    failed: int
    skipped: int

    def __str__(self) -> str:
        share = 100 * self.passed / max(1, self.passed + self.failed)
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped: {share:.1f} %"


def version_of(package: str) -> str:
    found = re.search(rf"^{package}==(.+)$", LOCK.read_text(), re.MULTILINE | re.IGNORECASE)
    assert found is not None, package
    return found[1]


def prepare(folder: Path) -> Path:
    """The venv's Python, with the suites' sources unpacked beside it."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", LOCK], check=True)
    for package in ("sqlalchemy", "django"):
        exact = f"{package}-{version_of(package)}"
        if not (folder / exact).exists():
            subprocess.run(
                [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", package, "-d", folder,
                 f"{package}=={version_of(package)}"], check=True,
            )  # fmt: skip
            with tarfile.open(folder / f"{exact}.tar.gz") as archive:
                archive.extractall(folder, filter="data")
    return python


def run_sqlalchemy(python: Path, folder: Path, port: int, log: Path, labels: tuple[str, ...]) -> Score:
    command = [
        python, "-m", "pytest", "-q", "test/dialect/test_suite.py", "-p", "no:cacheprovider", "-p", "no:logging",
        "--maxfail=100000", "--dburi", f"mysql+pymysql://root@127.0.0.1:{port}/test?charset=utf8mb4",
    ]  # fmt: skip
    text = _logged(command, folder / f"sqlalchemy-{version_of('sqlalchemy')}", log)
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", text[-2000:])}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    return Score(counts.get("passed", 0), failed, counts.get("skipped", 0))


def run_django(python: Path, folder: Path, port: int, log: Path, labels: tuple[str, ...]) -> Score:
    tests = folder / f"django-{version_of('django')}" / "tests"
    settings = f"settings_{port}"
    (tests / f"{settings}.py").write_text(DJANGO_SETTINGS.format(port=port))
    command = [python, "runtests.py", f"--settings={settings}", "--noinput", "--parallel=1", *(labels or LABELS)]
    text = _logged(command, tests, log)
    ran = re.search(r"Ran (\d+) tests?", text)
    if ran is None:
        return Score(0, 1, 0)
    found = re.findall(r"(?<!expected )(failures|errors|skipped)=(\d+)", text[-2000:])
    counts = {word: int(number) for word, number in found}
    failed = counts.get("failures", 0) + counts.get("errors", 0)
    skipped = counts.get("skipped", 0)
    return Score(int(ran[1]) - failed - skipped, failed, skipped)


def _logged(command: list[object], folder: Path, log: Path) -> str:
    with log.open("w") as output:
        subprocess.run(
            list(map(str, command)), cwd=folder, stdout=output, stderr=subprocess.STDOUT, check=False,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    return log.read_text(errors="replace")


def run_apps(python: Path, folder: Path, port: int, log: Path, labels: tuple[str, ...]) -> Score:
    """The applications under apps/: each tells the same story on both servers."""
    shop = LOCK.parent / "apps" / "django_shop"
    commands: tuple[tuple[list[object], Path], ...] = (
        ([python, "manage.py", "migrate", "--verbosity=0"], shop),
        ([python, "manage.py", "scenario"], shop),
        ([python, "-m", "apps.sqlalchemy_library", f"mysql+pymysql://root@127.0.0.1:{port}/library"], LOCK.parent),
    )
    os.environ["DATABASE_PORT"] = str(port)
    story = "".join(_logged(command, place, log) for command, place in commands)
    log.write_text(story)
    told = STORIES.setdefault("apps", story)
    return Score(int(told == story and "Traceback" not in story), int(told != story or "Traceback" in story), 0)


STORIES: dict[str, str] = {}
SUITES = {"apps": run_apps, "sqlalchemy": run_sqlalchemy, "django": run_django}


@contextmanager
def server(name: str) -> Iterator[int]:
    """The port of a fresh server, with the databases that the suites want."""
    folder = Path(tempfile.mkdtemp(prefix="millrace-compatibility-"))
    running = MillraceServer(folder) if name == "millrace" else MariaDB(folder)
    port = running.mysql_port if isinstance(running, MillraceServer) else running.port
    try:
        with pymysql.connect(host="127.0.0.1", port=port, user="root") as connection:
            for database in DATABASES:
                connection.cursor().execute(f"CREATE DATABASE {database}")
        yield port
    finally:
        running.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("labels", nargs="*", help="Django's test labels, or files of mariadb-test; all of docs/compatibility.md by default")
    parser.add_argument("--suite", choices=(*SUITES, "mariadb-test"), action="append")
    parser.add_argument("--only", choices=("millrace", "mariadb"), action="append")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "millrace-compatibility")
    parser.add_argument("--workers", type=int, default=1, help="mariadb-test: more than one is a real cluster")
    parser.add_argument("--repeat", type=int, default=1, help="mariadb-test: ask every SELECT so often, the last time of its view")
    parser.add_argument("--processes", type=int, default=2, help="mariadb-test: files at once, each with servers of its own")
    parser.add_argument("--differences", type=Path, help="mariadb-test: where all differences go, a line of JSON each")
    parser.add_argument("--document", action="store_true", help="mariadb-test: write the figures to docs/compatibility.md")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.suite == ["mariadb-test"]:
        options = mariadb_test.Options(workers=given.workers, repeats=given.repeat)
        differences = given.differences or given.folder / "differences.jsonl"
        reports = mariadb_test.main(given.labels, options, given.processes, differences)
        if given.document:
            write_document(reports, TWO_WORKERS if given.workers > 1 else ASKED_THREE_TIMES if given.repeat > 1 else ASKED_ONCE)
        return
    python = prepare(given.folder)
    for name in given.only or ("mariadb", "millrace"):
        for suite in [each for each in given.suite or SUITES if each in SUITES]:
            with server(name) as port:
                log = given.folder / f"{suite}-{name}.log"
                score = SUITES[suite](python, given.folder, port, log, tuple(given.labels))
                print(f"{suite:<12}{name:<10}{score}   {log}", flush=True)


if __name__ == "__main__":
    main()
