"""Fixtures that every kind of test may use."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.mariadb import MariaDB

# Machines that run tests are busy: how long one example took says nothing.
settings.register_profile("millrace", deadline=None, print_blob=True)
settings.load_profile("millrace")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write files of expected texts anew")


@pytest.fixture(autouse=True)
def views_follow(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Views that could not follow an epoch start anew and are right again, so only the log tells."""
    yield
    records = caplog.get_records("call")
    assert not [each for each in records if each.name == "backend.view_host" and each.levelno >= logging.ERROR]


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """A running MariaDB, one for each test process, started when the first test asks for it.

    Its folder is not pytest's: the path of a Unix socket may only have 107 characters.
    """
    with MariaDB(Path(tempfile.mkdtemp(prefix="millrace-mariadb-"))) as server:
        yield server
