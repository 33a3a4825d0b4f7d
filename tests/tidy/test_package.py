"""What `pip install` gets: the packages that belong to millrace, with their data, and a command that works from any folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.tidy.repository import PACKAGES, ROOT

BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
DATA_SUFFIXES = {".sql", ".json", ".dat", ".bin", ".toml", ".html", ".js", ".css", ".svg", ".txt"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution, built from a copy of the repository."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    source.mkdir()
    for name in (*PACKAGES, "pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    for what in ("build_sdist", "build_wheel"):
        subprocess.run([sys.executable, "-c", BUILD, what, str(folder)], cwd=source, check=True, capture_output=True)
    return folder


def test_a_wheel_has_all_modules_and_data_and_nothing_else(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {
        str(path.relative_to(ROOT)).replace("millrace/pyspark_millrace", "pyspark_millrace")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix in {".py", *DATA_SUFFIXES} or path.name == "py.typed"
    }
    assert names == wanted
    assert any(name.endswith("licenses/LICENSE") for name in zipfile.ZipFile(wheel).namelist())


def test_the_installed_command_works_from_any_folder(built: Path, tmp_path: Path) -> None:
    [wheel] = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(built / "installed")
    environment = os.environ | {"PYTHONPATH": str(built / "installed")}
    command = [sys.executable, "-P", "-m", "backend.cli", "serve", "--help"]
    shown = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert "--mysql-port" in shown.stdout
    command = [sys.executable, "-P", "-c", "import millrace; print(millrace.connect.__module__, millrace.__file__)"]
    shown = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert shown.stdout.startswith(f"backend.client.database {built}")
    command = [sys.executable, "-P", "-c", "import pyspark_millrace; print(pyspark_millrace.DefaultSource.name(), pyspark_millrace.__file__)"]
    shown = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert shown.stdout.startswith(f"millrace {built}")


def test_a_source_distribution_has_what_a_wheel_is_built_from(built: Path) -> None:
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "apps/lobsters/queries.json", "backend/cli.py"} <= names
    assert {name.partition("/")[0] for name in names if name} == {
        *PACKAGES, "LICENSE", "README.md", "PKG-INFO", "pyproject.toml", "setup.cfg", "millrace.egg-info"
    }  # fmt: skip
