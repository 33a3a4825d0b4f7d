"""The archives of classes that make a JVM's start short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backend.processes.java import class_options, find_java


def test_make_has_written_them() -> None:
    assert class_options("spark")
    assert class_options("zookeeper")


def test_a_damaged_archive_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert class_options("spark") == ()
    archive = tmp_path / "share" / "millrace" / "spark.jsa"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"no archive" * 1000)
    java = find_java(tmp_path)
    assert java is not None
    ran = subprocess.run([java, *class_options("spark"), "-version"], capture_output=True, text=True, check=True)
    assert ran.stdout == "" and "archive" not in ran.stderr
