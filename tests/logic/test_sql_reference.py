"""The reference of SQL on the site is what the tests have."""

from __future__ import annotations

import pytest

from tests.logic.sql_reference import PAGE, written


def test_the_reference_is_written_from_the_tests(pytestconfig: pytest.Config) -> None:
    text = written()
    if pytestconfig.getoption("--rewrite"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text, "write it anew: pytest tests/logic/test_sql_reference.py --rewrite"
    assert len(text.splitlines()) > 400
