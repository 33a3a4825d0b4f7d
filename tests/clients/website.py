"""Applications in PHP, served by PHP's own web server, and a visitor who reads, fills in forms and stays logged in.

One application runs twice, on MariaDB and on millrace, at the same address. So its pages are the same but for times and the random
texts that it puts into forms; `comparable` takes these out.
"""

from __future__ import annotations

import html
import http.cookiejar
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from types import TracebackType

START_TIMEOUT_S = 30.0
PAGE_TIMEOUT_S = 120.0
PHP_WORKERS = "3"  # pages ask for others of the same site


class PhpSite:
    """`folder` at `port`, from the constructor until `stop`. Use it as a context manager."""

    def __init__(self, folder: Path, port: int, log: Path, environment: dict[str, str]) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self._log = log
        settings = ["-d", "display_errors=0", "-d", "log_errors=1", "-d", "memory_limit=512M", "-d", "max_execution_time=120"]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["php", *settings, "-S", f"127.0.0.1:{port}", "-t", str(folder)],
                env=os.environ | {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PHP_CLI_SERVER_WORKERS": PHP_WORKERS} | environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                urllib.request.urlopen(f"{self.address}/no-such-file.txt", timeout=5).close()
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                try:
                    self._process.wait(0.05)
                except subprocess.TimeoutExpired:
                    if time.monotonic() < deadline:
                        continue
                raise RuntimeError(f"php did not start:\n{self.log()}") from None

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, 9)  # its workers, too
        self._process.wait()

    def __enter__(self) -> PhpSite:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


@dataclass(slots=True)
class Form:
    action: str = ""
    values: dict[str, str] = field(default_factory=dict)
    area: str | None = None


class _Forms(HTMLParser):
    """The forms of a page, with the values that a browser would send."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._open: Form | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._open = Form(found.get("action", ""))
            self.forms.append(self._open)
        elif self._open is not None and "name" in found:
            kind = found.get("type", "text")
            if tag == "textarea":
                self._open.area = found["name"]
                self._open.values[found["name"]] = ""
            elif tag == "input" and (kind not in ("checkbox", "radio", "submit", "button", "file") or "checked" in found):
                self._open.values[found["name"]] = found.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._open is not None and self._open.area is not None:
            self._open.values[self._open.area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._open is not None:
            self._open.area = None
        elif tag == "form":
            self._open = None


class Visitor:
    """A browser's cookies, links and forms, without its scripts."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def get(self, path: str, status: int = 200) -> str:
        return self._ask(urllib.request.Request(self._at(path)), status)

    def post(self, path: str, values: dict[str, str], status: int = 200) -> str:
        return self._ask(urllib.request.Request(self._at(path), urllib.parse.urlencode(values).encode()), status)

    def send_json(self, path: str, value: object, headers: dict[str, str], method: str = "POST") -> str:
        body = json.dumps(value).encode()
        return self._ask(
            urllib.request.Request(self._at(path), body, {"Content-Type": "application/json"} | headers, method=method), 0
        )

    def fill_in(self, path: str, marker: str, values: dict[str, str]) -> str:
        """Open `path`, fill `values` into the form that has a field `marker`, send it; the page that answers."""
        page = _Forms()
        page.feed(self.get(path))
        form = next((each for each in page.forms if marker in each.values), None)
        assert form is not None, f"{path} has no form with {marker}: {[each.values for each in page.forms]}"
        return self.post(urllib.parse.urljoin(path, form.action), form.values | values)

    def _at(self, path: str) -> str:
        return urllib.parse.urljoin(self.address, path)

    def _ask(self, request: urllib.request.Request, status: int) -> str:
        try:
            with self._opener.open(request, timeout=PAGE_TIMEOUT_S) as answer:
                code, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            code, body = error.code, error.read()
        text: str = body.decode("utf-8", "replace")
        expected = code == status if status else 200 <= code < 300
        assert expected, f"{request.get_method()} {request.full_url}: {code}\n{words(text)[-3000:]}"
        return text


def words(page: str) -> str:
    """What a reader sees of a page, a line each. Not the hours, minutes and seconds that WordPress keeps hidden for its scripts."""
    page = re.sub(r"(?s)<(script|style)\b.*?</\1>|<!--.*?-->|<div class=\"(?:hh|mn|ss)\">\d+</div>", "", page)
    page = html.unescape(re.sub(r"(?s)<[^>]*>", "\n", page))
    return "\n".join(line for line in (re.sub(r"\s+", " ", each).strip() for each in page.split("\n")) if line)


CHANGING = [
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[ T][\d:]+Z?)?|\b\d{14}\b|\b1[789]\d{8}\b"), "MOMENT"),
    (re.compile(r"\b\d+\.\d+ seconds"), "DURATION"),
    (re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]m)?\b", re.I), "TIME"),
    (re.compile(r"\b[0-9a-f]{10}\b|\b[0-9a-f]{32,40}\b"), "RANDOM"),
    (re.compile(r"\b\d+ (?:seconds?|secs?|mins?|minutes?) ago\b"), "LATELY"),
]


def comparable(page: str) -> list[str]:
    """A page's words without times and random texts."""
    text = words(page)
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    return text.splitlines()
