"""`python -m apps.lobsters.web PORT DATABASE [MARIADB_PORT]` serves the site on port 8080, or WEB_PORT.

Every thread has a connection of its own. With MariaDB beside it, /beside shows the same pages of both servers, side by side.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from random import randrange
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql

from apps.lobsters.pages import Result, Statement, Visit, pages, run_page
from apps.lobsters.plain_connection import PlainConnection
from apps.lobsters.sampling import SLUGS, slug
from apps.lobsters.web import html

READER = {"user_id": 1, "username": "user0", "uid": "0"}
"""Everybody who visits is this user."""
BESIDE = '<!doctype html><title>Side by side</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css"><body class="beside"><iframe src="/"></iframe><iframe src="/mariadb/"></iframe>'


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    port: int
    database: str
    root: str

    @property
    def is_mariadb(self) -> bool:
        return self.root != ""


class Site:
    """Pages of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._pages = pages("natural", server.is_mariadb)
        self._own = threading.local()

    def _connection(self) -> PlainConnection:
        if not hasattr(self._own, "connection"):
            self._own.connection = PlainConnection("127.0.0.1", self._server.port, self._server.database)
        found: PlainConnection = self._own.connection
        return found

    def show(self, title: str, page: str, request: Mapping[str, object], body: Callable[[Visit, str], str]) -> str | None:
        """The page as HTML; None if what it is about is not there."""
        before, took, count = self._sources(), time.perf_counter(), 0
        connection = self._connection()

        def execute(statement: Statement, values: list[object]) -> Result:
            nonlocal count
            count += 1
            return connection.execute(statement, values)

        try:
            visit = self._run(page, request, execute)
        except IndexError:  # the first statement has found nothing for the next
            return None
        seconds = time.perf_counter() - took
        after = self._sources()
        sources = None if before is None or after is None else {name: after[name] - before[name] for name in after}
        foot = html.Foot(self._server.name, seconds, count, sources)
        return html.shell(title, body(visit, self._server.root), foot, self._server.root)

    def write(self, page: str, request: Mapping[str, object]) -> Visit:
        return self._run(page, request, self._connection().execute)

    def _run(self, page: str, request: Mapping[str, object], execute: Callable[[Statement, list[object]], Result]) -> Visit:
        return run_page(self._pages[page], READER | {"now": datetime.now().replace(microsecond=0)} | dict(request), execute)

    def _sources(self) -> dict[str, int] | None:
        """How many SELECTs of this connection were answered from where."""
        if self._server.is_mariadb:
            return None
        found = self._connection().query("SHOW SESSION STATUS LIKE 'Millrace_reads_%'")
        return {str(name).removeprefix("Millrace_reads_"): int(value) for name, value in found.rows}

    def lose_connection(self) -> None:
        self._own.__dict__.pop("connection", None)


class Handler(BaseHTTPRequestHandler):
    sites: dict[str, Site] = {}  # noqa: RUF012
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/style.css":
            return self._send(resources.files("apps.lobsters.web").joinpath("style.css").read_text(), "text/css")
        if path == "/beside" and "/mariadb" in self.sites:
            return self._send(BESIDE)
        site, parts = self._place(path)
        match parts:
            case []:
                found = site.show("Lobsters", "frontpage", {}, html.front_page)
            case ["story", name]:
                found = site.show("Story", "story", {"story_short_id": name}, html.story_page)
            case ["user", name]:
                found = site.show(name, "user", {"target_username": name}, lambda visit, root: html.user_page(visit))
            case ["submit"]:
                found = site.show("Submit", "logout", {}, lambda visit, root: html.submit_page(root))
            case _:
                found = None
        self._send(found or "not found", status=200 if found else 404)

    def do_POST(self) -> None:
        sent = parse_qs(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
        path = urlsplit(self.path).path
        site, parts = self._place(path)
        root = "/mariadb" if path.startswith("/mariadb/") else ""
        new = {"new_short_id": slug(randrange(SLUGS // 2, SLUGS))}
        match parts:
            case ["story", name, "vote"]:
                site.write("story_upvote", {"story_short_id": name})
                target = self.headers.get("Referer") or f"{root}/story/{name}"
            case ["story", name, "comment"]:
                site.write("comment_new", new | {"story_short_id": name})
                target = f"{root}/story/{name}"
            case ["submit"]:
                site.write("submit", new | {"title": sent.get("title", ["untitled"])[0][:100]})
                target = f"{root}/story/{new['new_short_id']}"
            case _:
                return self._send("not found", status=404)
        self._send("", status=303, Location=target)

    def _place(self, path: str) -> tuple[Site, list[str]]:
        parts = [unquote(each) for each in path.split("/") if each]
        if parts[:1] == ["mariadb"] and "/mariadb" in self.sites:
            return self.sites["/mariadb"], parts[1:]
        return self.sites[""], parts

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except pymysql.err.MySQLError as error:
            for site in self.sites.values():
                site.lose_connection()
            self._send(f"the database says: {error}", "text/plain", 503)

    def _send(self, text: str, kind: str = "text/html", status: int = 200, **headers: str) -> None:
        content = text.encode()
        self.send_response(status)
        for name, value in {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *values: object) -> None:
        """Pages are not logged."""


def main() -> None:
    port, database, *beside = sys.argv[1:]
    Handler.sites[""] = Site(Server("millrace", int(port), database, ""))
    if beside:
        Handler.sites["/mariadb"] = Site(Server("MariaDB", int(beside[0]), database, "/mariadb"))
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("WEB_PORT", "8080"))), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
