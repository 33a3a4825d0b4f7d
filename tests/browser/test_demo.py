"""The demo in a browser: the site's pages, what stands at their foot, a vote, a story, and millrace's page beside it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.browser import Browser
from tests.tidy.repository import ROOT

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Those of the site and of the page."""
    data: Path = tmp_path_factory.mktemp("demo")
    ports = [f"--{name}-port={free_port()}" for name in ("mysql", "http", "web", "mariadb")]
    command = [sys.executable, "-m", "apps.lobsters.demo", f"--data={data}", "--scale=0.01", "--rate=10", *ports]
    process = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if "Ctrl-C" in line:
            break
    site, page = re.search(r"the site +(\S+)", said), re.search(r"the page +(\S+)", said)
    assert site is not None and page is not None, said
    yield site[1], page[1]
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def test_pages_say_where_their_rows_came_from(addresses: tuple[str, str], browser: Browser) -> None:
    site, _ = addresses
    browser.open(site)
    assert len(browser.all("li.story")) > 10
    for _ in range(5):
        browser.open(site)
    assert int(browser.find("#memory").text) >= 5 and browser.find("#took").text.endswith(" ms")
    browser.photograph("site-front")
    browser.find("a.title").click()
    browser.until_text("Leave a comment")
    before = len(browser.all(".comment"))
    browser.find("form.write button").click()
    browser.until(lambda: len(browser.all(".comment")) == before + 1)
    browser.photograph("site-story")
    browser.find(".comment a").click()
    browser.until_text("writes most about")


def test_a_story_is_submitted_and_voted_for(addresses: tuple[str, str], browser: Browser) -> None:
    site, _ = addresses
    browser.open(site + "/submit")
    browser.type("[name=title]", "A <i>fine</i> story")
    browser.find("form.write button").click()
    browser.until_text("A <i>fine</i> story")
    assert browser.find(".vote b").text == "1"  # its author's own
    browser.open(site)
    [first, *_] = [each for each in browser.all("li.story") if each.find_elements("css selector", ".vote button:not([disabled])")]
    name, score = first.find_element("css selector", "a.title").get_attribute("href"), int(first.find_element("css selector", ".vote b").text)
    first.find_element("css selector", ".vote button").click()
    browser.open(str(name))
    assert int(browser.find(".vote b").text) >= score + 1


def test_the_same_pages_from_mariadb_stand_beside(addresses: tuple[str, str], browser: Browser) -> None:
    site, _ = addresses
    browser.open(site + "/mariadb/")
    browser.until_text("on MariaDB")
    assert len(browser.all("li.story")) > 10 and not browser.all("#memory")
    browser.open(site + "/beside")
    browser.until(lambda: len(browser.all("iframe")) == 2)
    browser.photograph("site-beside")


def test_the_page_shows_the_visitors_queries(addresses: tuple[str, str], browser: Browser) -> None:
    _, page = addresses
    browser.log_in(page)
    browser.until(lambda: "ready" in browser.find("#health").text)
    browser.press("3")
    browser.until_text("frontpage_ids")
