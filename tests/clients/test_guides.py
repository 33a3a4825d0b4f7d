"""The guides of the site do what they say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.guides import GUIDES, Reader
from tests.clients.programs import FOLDER, install_packages
from tests.serving import MillraceServer

LOCK = GUIDES.parents[1] / "requirements-compatibility.lock"
STAND_INS = {
    "rails": ("bin/rails", FOLDER / "ruby" / "rails.rb", ("ruby-activerecord", "ruby-mysql2")),
    "laravel": ("artisan", FOLDER / "php" / "artisan.php", ("php-cli", "php-mysql", "php-illuminate-database")),
}
"""The command that each page has from its framework, what stands for it here, and the packages that it needs."""


@pytest.fixture(scope="module")
def frameworks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with Django and SQLAlchemy: its folder of programs."""
    folder = tmp_path_factory.mktemp("frameworks")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", "-r", LOCK], check=True, capture_output=True)
    return folder / "bin"


@pytest.mark.slow
def test_every_guide_is_followed_here() -> None:
    assert {path.stem for path in GUIDES.glob("*.md")} == {"django", "sqlalchemy", "node", *STAND_INS}


@pytest.mark.slow
@pytest.mark.parametrize("guide", ["django", "sqlalchemy"])
def test_the_guide_of_a_python_framework_is_right(guide: str, frameworks: Path, millrace: MillraceServer, tmp_path: Path) -> None:
    assert Reader(tmp_path, millrace.mysql_port, [frameworks]).follow(guide)


@pytest.mark.slow
def test_the_guide_of_node_is_right(millrace: MillraceServer, tmp_path: Path) -> None:
    assert Reader(tmp_path, millrace.mysql_port, []).follow("node")


@pytest.mark.slow
@pytest.mark.parametrize("guide", STAND_INS)
def test_the_guide_of_a_framework_that_is_not_packaged_whole_is_right(guide: str, millrace: MillraceServer, tmp_path: Path) -> None:
    name, program, packages = STAND_INS[guide]
    install_packages(packages)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    shutil.copy(program, tmp_path / name)
    (tmp_path / name).chmod(0o755)
    assert Reader(tmp_path, millrace.mysql_port, []).follow(guide)
