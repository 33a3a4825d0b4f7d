"""`millrace version`: which version, and on which Python."""

from __future__ import annotations

import platform
from importlib.metadata import version

from click.testing import CliRunner

from backend.cli import main


def test_the_version_says_what_it_runs_on() -> None:
    first, second = CliRunner().invoke(main, ["version"]).output.splitlines()
    assert first == version("millrace")
    assert platform.python_version() in second and ("PGO" in second or "built with LTO" in second)
