"""The programs of this folder, one for each language, and what they need to be run.

`prepare` installs what is missing where it may (Debian packages as root, npm packages into a
folder of the test's own) and otherwise says what is missing: a client that cannot be run is a
failed test, never a skipped one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent
INSTALL_TIMEOUT_S = 900
RUN_TIMEOUT_S = 280
GO_PATH = "/usr/share/gocode"
CONNECTOR_J = "/usr/share/java/mariadb-java-client.jar"

NPM_PACKAGES = ("mysql2@3.24.5", "mysql@2.18.1", "mariadb@3.5.4")


@dataclass(frozen=True, slots=True)
class Command:
    """`arguments` of the program without those that say where the server is."""

    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, host: str, port: int, database: str) -> str:
        """Its transcript."""
        done = subprocess.run(
            [*self.arguments, host, str(port), database],
            env=os.environ | {"TZ": "UTC", "LC_ALL": "C.UTF-8"} | self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=RUN_TIMEOUT_S,
        )
        transcript = done.stdout.decode("utf-8", "backslashreplace")
        assert done.returncode == 0, transcript[-3000:]
        return transcript


def php(_: Path) -> Command:
    return Command(("php", str(FOLDER / "php" / "client.php")))


def perl(_: Path) -> Command:
    return Command(("perl", str(FOLDER / "perl" / "client.pl")))


def ruby(_: Path) -> Command:
    return Command(("ruby", "-W0", str(FOLDER / "ruby" / "client.rb")))


def node(folder: Path) -> Command:
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *NPM_PACKAGES]
    _run(install, os.environ.copy())
    return Command(("node", str(FOLDER / "node" / "client.js")), {"NODE_PATH": str(folder / "node_modules")})


def java(folder: Path) -> Command:
    _run(["javac", "-encoding", "UTF-8", "-d", str(folder), str(FOLDER / "java" / "Client.java")], os.environ.copy())
    return Command(("java", "-Dfile.encoding=UTF-8", "-cp", f"{folder}:{CONNECTOR_J}", "Client"))


def go(folder: Path) -> Command:
    target = folder / "client"
    settings = {"GOPATH": GO_PATH, "GO111MODULE": "off", "GOFLAGS": "", "GOCACHE": str(folder / "cache")}
    _run(["go", "build", "-o", str(target), str(FOLDER / "go" / "client.go")], os.environ | settings)
    return Command((str(target),))


Build = Callable[[Path], Command]

PROGRAMS: dict[str, tuple[Build, tuple[str, ...]]] = {
    "php": (php, ("php-cli", "php-mysql")),
    "perl": (perl, ("libdbd-mysql-perl", "libdbd-mariadb-perl")),
    "node": (node, ()),
    "java": (java, ("libmariadb-java",)),
    "go": (go, ("golang-go", "golang-github-go-sql-driver-mysql-dev")),
    "ruby": (ruby, ("ruby-activerecord", "ruby-mysql2")),
}
"""How each is built, and the Debian packages it needs."""

TOOLS = {"node": ("node", "npm"), "java": ("java", "javac")}
"""What has to be there already: these come in more than one way."""


def prepare(language: str, folder: Path) -> Command:
    """The command that runs the program of `language`; `folder` is for what is built."""
    build, packages = PROGRAMS[language]
    install_packages(packages)
    missing = [tool for tool in TOOLS.get(language, ()) if shutil.which(tool) is None]
    assert not missing, f"{', '.join(missing)} is not installed; the {language} client is tested with it"
    return build(folder)


def install_packages(packages: tuple[str, ...]) -> None:
    missing = [each for each in packages if not _is_installed(each)]
    if not missing:
        return
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    assert os.geteuid() == 0 and shutil.which("apt-get"), f"please install them:  sudo {' '.join(command)}"
    _run(command, os.environ | {"DEBIAN_FRONTEND": "noninteractive"})


def _is_installed(package: str) -> bool:
    if shutil.which("dpkg-query") is None:
        return False
    found = subprocess.run(["dpkg-query", "-W", "-f=${Status}", package], capture_output=True, text=True)
    return found.stdout.endswith("ok installed")


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
