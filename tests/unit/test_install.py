"""The installer of `make` says what it does, in few lines, and shows what pip said only if that failed."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALL = ROOT / "deploy" / "install.py"


def install(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(INSTALL), "--dry-run", *arguments], capture_output=True, text=True)


def test_nothing_is_said_of_what_goes_well() -> None:
    done = install("click")  # which is there
    assert done.returncode == 0 and not done.stdout and not done.stderr


def test_what_failed_is_shown(tmp_path: Path) -> None:
    done = install("--no-index", "--no-deps", str(tmp_path))  # no project
    assert done.returncode != 0 and "pyproject.toml" in done.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Collecting aiohttp==3.9 (from -r requirements.lock (line 1))", "looking for aiohttp==3.9"),
        ("  Downloading https://files.example.org/pyspark-4.0.1.tar.gz (434.2 MB)", "downloading pyspark-4.0.1.tar.gz (434.2 MB)"),
        ("Building wheel for pyspark (pyproject.toml): started", "building pyspark"),
        ("Installing collected packages: a, b, c", "installing 3 packages"),
        ("Installing collected packages: millrace", "installing millrace"),
        ("WARNING: whatever", "None"),
    ],
)
def test_a_line_of_pip_becomes_a_short_one(line: str, said: str) -> None:
    assert str(runpy.run_path(str(INSTALL))["described"](line)) == said
