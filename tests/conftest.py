"""Fixtures that every kind of test may use."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.mariadb import MariaDB

ROOT = Path(__file__).parent

# Machines that run tests are busy: how long one example took says nothing.
settings.register_profile("millrace", deadline=None, print_blob=True)
settings.load_profile("millrace")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write files of expected texts anew")


SERVER_FOLDERS = frozenset({"adversary", "cluster"})
"""Their files start clusters, and wait for them."""
SPREAD = 0.8


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that wait for clusters beside files that compute, and none of them at the end, when another test process would wait."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [path for path in files if path.relative_to(ROOT).parts[0] in SERVER_FOLDERS]
    others = [path for path in files if path not in set(waiting)]
    places = {path: place * SPREAD * len(others) / len(waiting) for place, path in enumerate(waiting)}
    places |= {path: float(place) for place, path in enumerate(others)}
    items[:] = [item for path in sorted(files, key=places.__getitem__) for item in files[path]]


@pytest.fixture(autouse=True)
def views_follow(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Views that could not follow an epoch start anew and are right again, so only the log tells."""
    yield
    records = caplog.get_records("call")
    assert not [each for each in records if each.name == "backend.views.view_host" and each.levelno >= logging.ERROR]


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """A running MariaDB, one for each test process, started when the first test asks for it.

    Its folder is not pytest's: the path of a Unix socket may only have 107 characters.
    """
    with MariaDB(Path(tempfile.mkdtemp(prefix="millrace-mariadb-"))) as server:
        yield server
