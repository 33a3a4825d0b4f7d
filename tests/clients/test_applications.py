"""WordPress and MediaWiki are installed, logged in to, edited and searched, and show the pages that they show on MariaDB."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.clients import mediawiki, wordpress
from tests.clients.programs import install_packages
from tests.clients.website import PhpSite, comparable
from tests.mariadb import MariaDB, free_port
from tests.serving import MillraceServer

USER, PASSWORD = "site", "it's secret"
Pages = list[tuple[str, str]]


def make_account(server: MariaDB | MillraceServer, database: str) -> None:
    """What a hosting company does before an application is installed."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        cursor.execute("CREATE USER IF NOT EXISTS site@'%%' IDENTIFIED BY %s", (PASSWORD,))
        cursor.execute(f"GRANT ALL ON {database}.* TO site@'%'")


def keep(pages: Pages, folder: Path) -> Pages:
    """Write the pages down, for who looks at a difference."""
    folder.mkdir()
    for number, (_, page) in enumerate(pages):
        (folder / f"{number:03}.html").write_text(page)
    return pages


def assert_same(expected: Pages, found: Pages, unordered: tuple[str, ...] = ()) -> None:
    """The pages show the same; those with one of `unordered` in their title in any order."""

    def lines_of(title: str, page: str) -> list[str]:
        found = comparable(page)
        return sorted(found) if any(each in title for each in unordered) else found

    assert [title for title, _ in found] == [title for title, _ in expected]
    differences: list[str] = []
    for (title, wanted), (_, got) in zip(expected, found):
        lines = list(difflib.unified_diff(lines_of(title, wanted), lines_of(title, got), "mariadb", "millrace", n=0, lineterm=""))
        differences += [f"== {title}", *lines[:20]] if lines else []
    assert not differences, "\n".join(differences[:200])


@pytest.mark.slow
def test_wordpress_shows_what_it_shows_on_mariadb(millrace: MillraceServer, mariadb: MariaDB, tmp_path: Path) -> None:
    install_packages(wordpress.PACKAGES)
    folder, port = tmp_path / "site", free_port()
    wordpress.unpack(folder)

    def tour(server: MariaDB | MillraceServer, server_port: int, name: str) -> Pages:
        log = tmp_path / f"{name}.log"
        make_account(server, "wordpress")
        wordpress.configure(folder, log, server.host, server_port, USER, PASSWORD.replace("'", "\\'"))
        with PhpSite(folder, port, tmp_path / f"{name}-php.log", {}) as site:
            pages = wordpress.Tour(site).run()
        errors = [line for line in log.read_text().splitlines() if "database error" in line] if log.exists() else []
        assert not errors, "\n".join(errors)
        return keep(pages, tmp_path / f"{name}-pages")

    assert_same(tour(mariadb, mariadb.port, "mariadb"), tour(millrace, millrace.mysql_port, "millrace"))


@pytest.mark.slow
def test_mediawiki_shows_what_it_shows_on_mariadb(millrace: MillraceServer, mariadb: MariaDB, tmp_path: Path) -> None:
    install_packages(mediawiki.PACKAGES)
    port = free_port()

    def tour(server: MariaDB | MillraceServer, server_port: int, name: str) -> Pages:
        log = tmp_path / f"{name}.log"
        make_account(server, "wiki")
        address = f"http://127.0.0.1:{port}"
        environment = mediawiki.install(tmp_path / name, log, address, server.host, server_port, USER, PASSWORD)
        with PhpSite(mediawiki.SOURCE, port, tmp_path / f"{name}-php.log", environment) as site:
            pages = mediawiki.Tour(site, environment).run()
        assert not log.exists(), log.read_text()
        return keep(pages, tmp_path / f"{name}-pages")

    assert_same(tour(mariadb, mariadb.port, "mariadb"), tour(millrace, millrace.mysql_port, "millrace"), mediawiki.UNORDERED)
