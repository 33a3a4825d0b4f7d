"""One browser for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.browser import Browser, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found
