"""HTTP/JSON of a real cluster: what its OpenAPI document says, shared memory behind it, and who may ask."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

import millrace
from backend.http.description import description
from backend.http.interface import Interface
from backend.http.twins import Twins
from tests.serving import MillraceServer

PROGRAM = """
    CREATE TABLE shop.votes (id INT AUTO_INCREMENT PRIMARY KEY, story INT NOT NULL, KEY (story));
    CREATE VIEW shop.counts AS SELECT story, COUNT(*) AS votes FROM shop.votes GROUP BY story
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("http"))
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("CREATE USER fuzz IDENTIFIED BY 'x'")
        cursor.execute("GRANT ALL ON shop.* TO fuzz")
        cursor.execute("CREATE USER reader IDENTIFIED WITH mysql_native_password BY 'y'")
        cursor.execute("GRANT SELECT ON shop.counts TO reader")
    ask(server, "POST", "/v1/program", {"sql": PROGRAM})
    yield server
    assert server.stop() == 0


def ask(server: MillraceServer, method: str, path: str, body: Any = None, account: str = "root:") -> Any:
    address = f"http://{server.host}:{server.http_port}{path}"
    headers = {"Authorization": "Basic " + b64encode(account.encode()).decode(), "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)["error"]["code"]


def test_writes_are_in_the_lookups_after_them_and_in_shared_memory(server: MillraceServer) -> None:
    counts = "/v1/databases/shop/views/counts?by=story&key=7"
    for number in range(1, 20):
        ask(server, "POST", "/v1/databases/shop/tables/votes/rows", {"rows": [{"story": 7}]})
        assert ask(server, "GET", counts)["rows"] == [[[7, number]]]
    assert ask(server, "GET", f"{counts}&key=8&block=false")["rows"] == [[[7, 19]], None]
    with server.connect("shop") as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM votes WHERE story = 7")
    assert ask(server, "GET", counts)["rows"] == [[]]
    assert any(view["key_count"] for view in ask(server, "GET", "/v1/program")["views"])


def test_writes_happen_once_or_not_at_all_while_the_worker_is_killed(server: MillraceServer) -> None:
    rows = "/v1/databases/shop/tables/votes/rows"

    def write(story: int) -> list[Any]:
        """What each of some writes was answered."""
        answers = []
        for _ in range(60):
            answers.append(ask(server, "POST", rows, {"rows": [{"story": story}, {"story": story}]}))
            progress.release()
        return answers

    progress = threading.Semaphore(0)
    with ThreadPoolExecutor() as threads:
        writers = [threads.submit(write, story) for story in range(9, 12)]
        for _ in range(2):
            for _ in range(40):
                assert progress.acquire(timeout=60)
            os.kill(server.status()["shards"][0]["process"], 9)
        answered = [writer.result() for writer in writers]
    for story, answers in zip(range(9, 12), answered):
        [[(_, votes)]] = ask(server, "GET", f"/v1/databases/shop/views/counts?by=story&key={story}")["rows"]
        done = sum(2 for answer in answers if isinstance(answer, dict))
        unknown = sum(2 for answer in answers if answer == 1180)
        assert done <= votes <= done + unknown and votes % 2 == 0


def test_accounts_may_do_the_same_as_over_mysql(server: MillraceServer) -> None:
    counts = "/v1/databases/shop/views/counts?by=story&key=7"
    assert ask(server, "GET", counts, account="reader:y")["columns"] == ["story", "votes"]
    assert ask(server, "GET", counts, account="reader:x") == 1045
    assert ask(server, "GET", "/v1/databases/shop/tables/votes/row?key=1", account="reader:y") == 1142
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("REVOKE SELECT ON shop.counts FROM reader")
        cursor.execute("GRANT SELECT ON shop.votes TO reader")
        # Another process hears of it in a moment; a changed password is asked for at once.
        cursor.execute("ALTER USER reader IDENTIFIED BY 'z'")
    assert ask(server, "GET", "/v1/databases/shop/tables/votes/row?key=1", account="reader:z") == 1032
    assert ask(server, "GET", counts, account="reader:z") == 1142


def test_the_examples_of_the_documentation_answer_what_they_say(server: MillraceServer) -> None:
    text = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
    [example] = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    example = example.replace("localhost:6033", f"{server.host}:{server.http_port}").replace("shop", "documented")
    shown = subprocess.run(["bash", "-c", example], capture_output=True, text=True, check=True, timeout=120).stdout
    expected = re.findall(r"^# → (.*)$", example, re.MULTILINE)
    assert [json.loads(each) for each in shown.splitlines()] == [json.loads(each) for each in expected]


def test_the_document_is_valid_and_describes_every_request(server: MillraceServer) -> None:
    document = ask(server, "GET", "/openapi.json")
    assert document == json.loads(json.dumps(description()))
    schemathesis.openapi.from_dict(document).validate()
    described = {
        (method.upper(), path) for path, found in document["paths"].items() for method in found if method != "parameters"
    }
    routes = {(route.method, route.path) for each in (Interface, Twins) for route in each.__new__(each).routes()}
    opened = {("GET", path) for path in ("/", "/status", "/health", "/metrics", "/openapi.json")}
    assert described == routes | opened


def test_changes_and_a_key_are_sent_as_events(server: MillraceServer) -> None:
    changes, rows = "/v1/databases/shop/views/counts/changes", "/v1/databases/shop/tables/votes/rows"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE USER listener IDENTIFIED BY 'l'")
        cursor.execute("GRANT SELECT ON shop.counts TO listener")
    assert ask(server, "GET", f"{changes}?since=0", account="listener:l") == 1381
    assert ask(server, "PUT", changes, {}, account="listener:l") == 1142
    since = ask(server, "PUT", changes, {"seconds": 600})["epoch"]
    with listen(server, "GET", f"{changes}?since={since}", account="listener:l") as events:
        assert next(events) == ("position", since, {"columns": ["story", "votes"], "epoch": since, "rows": [], "weights": []})
        ask(server, "POST", rows, {"rows": [{"story": 70}]})
        name, first, found = next(events)
        assert (name, found["rows"], found["weights"]) == ("changes", [[70, 1]], [1])
    ask(server, "POST", rows, {"rows": [{"story": 70}]})
    with listen(server, "GET", changes, last=first) as events:  # as a browser that has lost the connection
        assert next(events)[1] == first
        name, second, found = next(events)
        assert second > first and sorted(zip(found["rows"], found["weights"])) == [([70, 1], -1), ([70, 2], 1)]
    query = {"query": "SELECT COUNT(*) AS n FROM votes WHERE story = ?", "keys": [71]}
    with listen(server, "POST", "/v1/databases/shop/subscribe", query) as events:
        assert next(events)[2]["rows"] == [[0]]
        ask(server, "POST", rows, {"rows": [{"story": 71}]})
        assert next(events)[2]["rows"] == [[1]]
    assert ask(server, "POST", "/v1/databases/shop/subscribe", query, account="listener:l") == 1142
    assert ask(server, "DELETE", changes) == {}
    assert ask(server, "GET", f"{changes}?since={since}") == 1381


@contextmanager
def listen(server: MillraceServer, method: str, path: str, body: Any = None, account: str = "root:", last: int = 0) -> Iterator[Any]:
    """(name, id, data) of events, as they come."""
    headers = {"Authorization": "Basic " + b64encode(account.encode()).decode(), "Content-Type": "application/json"}
    headers |= {"Last-Event-ID": str(last)} if last else {}
    request = urllib.request.Request(server.http_address + path, None if body is None else json.dumps(body).encode(), headers, method=method)

    def events(answer: Any) -> Iterator[tuple[str, int, Any]]:
        fields: dict[str, str] = {}
        for line in answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif "event" in fields:
                yield fields["event"], int(fields.get("id", 0)), json.loads(fields["data"])
                fields = {}

    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        yield events(answer)


def test_the_twins_of_the_pages_show_what_clients_do(server: MillraceServer) -> None:
    query = "SELECT story, COUNT(*) AS votes FROM shop.votes WHERE story = 5 GROUP BY story"
    with server.connect("shop") as connection, connection.cursor() as cursor:
        for _ in range(12):
            cursor.execute(query)
        shown = {each["text"]: each for each in ask(server, "GET", "/v1/queries")["queries"]}
        [found] = [each for text, each in shown.items() if text.startswith("SELECT story, COUNT(*) AS votes FROM shop.votes")]
        assert found["count"] == 12 and found["answered"] == "view" and found["hits"] + found["asked"] + found["evaluated"] == 12
        explained, view = {"kept": None}, None
        while explained["kept"] is None:  # the picture of the cluster that pages share may be some seconds old
            explained = ask(server, "POST", "/v1/databases/shop/explain", {"sql": query})
        assert explained["view"] == found["views"][0] and explained["kept"] >= 1 and "Maintained view" in str(explained["plan"])
        while view is None or view["shared_hits"] < found["hits"]:  # lookups over HTTP read the same view
            graph = ask(server, "GET", "/v1/graph")
            [view] = [each for each in graph["views"] if each["name"] == found["views"][0]]
        nodes = {each["node"]: each for each in graph["nodes"]}
        assert found["text"] in view["queries"] and view["tables"] == ["shop.votes"]
        assert any(nodes[each]["table"] == "shop.votes" for each in nodes[view["node"]]["inputs"] or [view["node"]])
        assert any(each["view"] == view["name"] for each in ask(server, "GET", "/v1/transitions")["past"])
        cursor.execute("SELECT SLEEP(0.15)")
        assert ask(server, "GET", "/v1/slow")["slow"][0]["text"] == "SELECT SLEEP(0.15)"
        overview = ask(server, "GET", "/v1/overview")
        assert overview["ready"] and {each["name"] for each in overview["processes"]} >= {"http", "adapter-0", "worker-0"}
        assert overview["shards"][0]["limit_bytes"] > overview["shards"][0]["view_bytes"] >= 0
        kinds = {each["kind"]: each for each in overview["kinds"]}
        assert kinds["select"]["hits"] >= found["hits"] and len(overview["moments"]["time"]) == len(overview["moments"]["p95_ms"])
        number = connection.thread_id()
        sessions = ask(server, "GET", "/v1/sessions")["sessions"]
        assert [each["user"] for each in sessions if each["id"] == number] == ["root"]
        assert ask(server, "DELETE", f"/v1/sessions/{number}") == {}
        with pytest.raises(pymysql.err.OperationalError):
            cursor.execute("SELECT 1")
    assert "votes" in ask(server, "GET", "/v1/databases")["databases"]["shop"]


def test_statements_of_http_and_of_the_client_library_are_among_the_queries(server: MillraceServer) -> None:
    looked_up = "SELECT story, COUNT(*) AS cast FROM votes WHERE story = ? GROUP BY story"
    evaluated = "SELECT id FROM votes WHERE id > RAND()"

    def shown(text: str) -> dict[str, Any]:
        return next((each for each in ask(server, "GET", "/v1/queries")["queries"] if (each["database"], each["text"]) == ("shop", text)), {})

    for _ in range(5):
        ask(server, "POST", "/v1/databases/shop/lookup", {"query": looked_up, "keys": [7]})
    ask(server, "POST", "/v1/databases/shop/transactions", {"statements": [{"sql": evaluated}]})
    found = shown(looked_up)
    assert found["count"] == 5 == found["hits"] + found["asked"] + found["evaluated"] and found["answered"] == "view" and found["views"]
    assert re.fullmatch(r"http\.\d+", found["last_id"]) and found["p50_ms"] > 0
    found = shown(evaluated)
    assert (found["count"], found["evaluated"], found["answered"]) == (1, 1, "evaluated") and found["why"] and found["last_id"]
    inserted = "INSERT INTO `votes` (`story`) VALUES (?)"
    before = shown(inserted).get("count", 0)  # other tests insert over HTTP
    with millrace.connect(server.data, "shop") as database:
        view = database.view(looked_up)
        for _ in range(10):
            view.lookup(7)
        view.lookup_many([7, 8])
        database.table("votes").insert(story=7)
        with pytest.raises(millrace.MillraceError):
            database.execute("SELECT nothing FROM votes")
    found = shown(looked_up)
    assert found["count"] == 16 == found["hits"] + found["asked"] + found["evaluated"] and found["hits"] >= 9
    assert shown(inserted)["count"] == before + 1


def test_the_twins_are_for_who_has_the_privilege(server: MillraceServer) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE USER onlooker IDENTIFIED WITH mysql_native_password BY 'z'")
        cursor.execute("GRANT SELECT ON shop.counts TO onlooker")
    assert ask(server, "GET", "/v1/overview", account="onlooker:wrong") == 1045
    for path in ("/v1/overview", "/v1/graph", "/v1/queries", "/v1/transitions", "/v1/slow"):
        assert ask(server, "GET", path, account="onlooker:z") == 1227
        with urllib.request.urlopen(server.request(path), timeout=20) as answer:  # the cluster's token will do
            assert answer.status == 200
    assert ask(server, "GET", "/v1/sessions", account="onlooker:z") == {"sessions": []}
    assert ask(server, "GET", "/v1/databases", account="onlooker:z") == {"databases": {"shop": ["counts"]}}
    assert ask(server, "POST", "/v1/databases/shop/explain", {"sql": "SELECT * FROM votes"}, account="onlooker:z") == 1142
    with server.connect() as connection:
        assert ask(server, "DELETE", f"/v1/sessions/{connection.thread_id()}", account="onlooker:z") == 1095
        connection.ping(reconnect=False)
    assert ask(server, "DELETE", "/v1/sessions/999999999") == 1094


def test_the_page_needs_nothing_from_outside(server: MillraceServer) -> None:
    def fetched(path: str, **headers: str) -> Any:
        return urllib.request.urlopen(urllib.request.Request(server.http_address + path, headers=headers), timeout=20)

    with fetched("/", Accept="text/html,*/*") as answer:
        page, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "http" not in page
    waiting, seen = set(re.findall(r'(?:src|href)="(/page/[^"]+)"', page)), set[str]()
    while waiting:
        path = waiting.pop()
        seen.add(path)
        with fetched(path) as answer:
            text = answer.read().decode()
        if path.endswith(".js") and "vendor" not in path:
            assert "http:" not in text.replace("http://www.w3.org/2000/svg", "") and "https:" not in text
            found = {"/page/" + each for each in re.findall(r'from "\./([a-z_]+\.js)"', text)} | set(re.findall(r'"(/page/[a-z_./]+)"', text))
            waiting |= found - seen
    assert {"/page/app.js", "/page/graph.js", "/page/layout_worker.js", "/page/vendor/dagre.js", "/page/vendor/uplot.js"} <= seen
    with pytest.raises(urllib.error.HTTPError, match="404"):
        fetched("/page/../server.py")


def test_generated_requests_get_what_the_document_says(server: MillraceServer) -> None:
    document = copy.deepcopy(description())
    names: dict[str, list[Any]] = {"session": [1, 4711]}
    names |= {"database": ["shop", "nothing"], "table": ["votes", "counts", "nothing"], "view": ["counts", "votes", "nothing"]}
    for path in document["paths"].values():  # else nearly all that is asked for is not there
        for parameter in path.get("parameters", ()):
            parameter["schema"] = {"enum": names[parameter["name"]]}
    for path, method in (("views/{view}/changes", "get"), ("subscribe", "post")):  # which never end
        del document["paths"][f"/v1/databases/{{database}}/{path}"][method]
    del document["paths"]["/v1/databases/{database}/subscribe"]
    schema = schemathesis.openapi.from_dict(document)
    base = f"http://{server.host}:{server.http_port}"

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(case=schema.as_strategy())
    def conform(case: Any) -> None:
        case.call_and_validate(
            base_url=base,
            auth=("fuzz", "x"),
            checks=[not_a_server_error, response_schema_conformance, status_code_conformance],
        )

    conform()
