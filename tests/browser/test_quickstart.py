"""docs/quickstart.md, done by a script: its statements are sent, and its last picture is looked for in the browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.browser.browser import Browser
from tests.serving import MillraceServer
from tests.tidy.repository import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("quickstart"), "--durability=os")
    yield server
    server.kill()


def test_ones_own_query_is_seen_as_a_maintained_view(server: MillraceServer, browser: Browser) -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text()
    blocks = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3, "tables and rows, the query, a write"
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in filter(str.strip, blocks[0].split(";")):
            cursor.execute(statement)
        query = blocks[1].strip().rstrip(";")
        for _ in range(3):
            cursor.execute(query)
        before = cursor.fetchall()
        browser.log_in(server.http_address)
        browser.until(lambda: "ready" in browser.find("#health").text)
        browser.press("3")
        row = browser.until(
            lambda: next((each for each in browser.all("tr.opens") if "GROUP BY" in each.text and "view" in each.text), None)
        )
        row.click()
        browser.find("a[href^='#graph/']").click()
        browser.until(lambda: browser.all(".node.chosen.view"))
        browser.until(lambda: "hit rate" in browser.find("aside").text and "GROUP BY" in browser.find("aside").text)
        browser.photograph("quickstart")
        cursor.execute(blocks[2].strip().rstrip(";"))
        cursor.execute(query)
        assert cursor.fetchall() != before, "the view follows the write"
