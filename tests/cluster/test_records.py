"""Logs as JSON lines and traces: what is done for a statement is known by its id in every process."""

from __future__ import annotations

import base64
import gzip
import json
import os
import socket
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pymysql
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from opentelemetry.sdk.trace import TracerProvider

from millrace import connect
from tests.serving import MillraceServer

ARRIVE_S = 60.0


class Receiver:
    """An OTLP receiver. `until` waits for spans."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self._arrived = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.receive(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def receive(self, body: bytes) -> None:
        found = ExportTraceServiceRequest.FromString(body)
        with self._arrived:
            for group in found.resource_spans:
                resource = {each.key: each.value.string_value for each in group.resource.attributes}
                for scope in group.scope_spans:
                    for span in scope.spans:
                        facts = {each.key: each.value.string_value for each in span.attributes}
                        self.spans.append({
                            "name": span.name, "process": resource["service.instance.id"], "trace": span.trace_id.hex(), "id": span.span_id.hex(),
                            "parent": span.parent_span_id.hex(), "failed": span.status.code == Status.STATUS_CODE_ERROR, **facts,
                        })  # fmt: skip
            self._arrived.notify_all()

    def until(self, **wanted: Any) -> dict[str, Any]:
        """The first span with these facts, once it is there."""

        def found() -> dict[str, Any] | None:
            return next((span for span in self.spans if all(span.get(name) == value for name, value in wanted.items())), None)

        with self._arrived:
            assert self._arrived.wait_for(found, ARRIVE_S), (wanted, self.spans)
            span = found()
            assert span is not None
            return span

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


@pytest.fixture(scope="module")
def millrace(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.address, "OTEL_BSP_SCHEDULE_DELAY": "100"}
    server = MillraceServer(tmp_path_factory.mktemp("records") / "data", "--durability=os", "--log-format=json", environment=environment)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("USE d")
        cursor.execute("SET long_query_time = 0")
        cursor.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY (b))")
        for row in range(3):
            cursor.execute("INSERT INTO t VALUES (%s, 7)", (row,))
        for _ in range(3):
            cursor.execute("SELECT b, COUNT(*) FROM t WHERE b = 7 GROUP BY b")
            assert cursor.fetchall() == ((7, 3),)
        with pytest.raises(pymysql.err.IntegrityError):
            cursor.execute("INSERT INTO t VALUES (1, 42424242)")
        cursor.execute("CREATE USER u IDENTIFIED BY 'hidden-word'")
    yield server
    server.kill()


def lines_of(server: MillraceServer, process: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (server.data / "logs" / f"{process}.log").read_text().splitlines()]


def test_a_trace_goes_through_adapter_controller_and_worker(millrace: MillraceServer, receiver: Receiver) -> None:
    create = receiver.until(name="CREATE", **{"db.query.text": "CREATE TABLE"})
    assert create["process"] == "adapter-0" and create["db.system.name"] == "mysql" and not create["parent"]
    define = receiver.until(name="Define", process="controller-0", trace=create["trace"])
    assert define["parent"] == create["id"] and define["millrace.statement"] == create["millrace.statement"]
    assert receiver.until(process="worker-0", trace=create["trace"])["parent"] == define["id"]
    read = receiver.until(name="SELECT", **{"db.query.text": "SELECT b, COUNT(*) FROM t WHERE b = ? GROUP BY b"})
    assert read["db.namespace"] == "d"
    assert receiver.until(process="worker-0", parent=read["id"])["trace"] == read["trace"]


def test_a_span_says_what_failed_and_has_no_values(millrace: MillraceServer, receiver: Receiver) -> None:
    failed = receiver.until(name="INSERT", failed=True)
    assert failed["db.response.status_code"] == "1062"
    receiver.until(name="CREATE", **{"db.query.text": "CREATE USER"})
    assert "42424242" not in str(receiver.spans) and "hidden-word" not in str(receiver.spans)
    assert len([span for span in receiver.spans if span["name"] == "INSERT" and not span["failed"]]) == 3


def test_logs_are_json_and_name_the_statement_in_every_process(millrace: MillraceServer, receiver: Receiver) -> None:
    create = receiver.until(name="CREATE", **{"db.query.text": "CREATE TABLE"})
    [line] = [each for each in lines_of(millrace, "controller-0") if "CREATE TABLE" in each["message"]]
    assert line["statement"] == create["millrace.statement"] and line["trace"] == create["trace"]
    assert line["level"] == "INFO" and line["process"] == "controller-0" and line["time"].endswith("Z")
    read = [each for each in lines_of(millrace, "adapter-0") if "SELECT b, COUNT(*) FROM t WHERE b = ? GROUP BY b" in each["message"]]
    assert len(read) == 3 and "took" in read[0]["message"]
    views = [each for each in lines_of(millrace, "worker-0") if each["message"].startswith("view ") and "statement" in each]
    assert views and {each["statement"] for each in views} <= {each["statement"] for each in read}
    for path in sorted((millrace.data / "logs").glob("*.log")):
        assert all(json.loads(line)["message"] for line in path.read_text().splitlines()), path


def test_a_statement_of_the_client_library_is_known_by_its_id(millrace: MillraceServer, receiver: Receiver) -> None:
    own, spans = f"client.{socket.gethostname()}.{os.getpid()}.", TracerProvider().get_tracer("an application")
    deployment = millrace.deployment()
    with connect(f"zk://{deployment.zookeeper}/{deployment.root}", "d", secret=deployment.secret) as database:
        with spans.start_as_current_span("sign-up") as span:
            database.execute("CREATE TABLE by_library (a INT PRIMARY KEY, b INT)")
        assert database.view("SELECT b, COUNT(*) FROM by_library WHERE b = ? GROUP BY b").lookup(7) == []
    [defined] = [each for each in lines_of(millrace, "controller-0") if "CREATE TABLE by_library" in each["message"]]
    assert defined["statement"].startswith(own)
    trace = format(span.get_span_context().trace_id, "032x")
    define = receiver.until(name="Define", process="controller-0", trace=trace)
    assert define["parent"] == format(span.get_span_context().span_id, "016x") and define["millrace.statement"] == defined["statement"]
    [view] = [each for each in lines_of(millrace, "worker-0") if each["message"].startswith("view ") and each.get("statement", "").startswith(own)]
    assert int(view["statement"].removeprefix(own)) > int(defined["statement"].removeprefix(own)) and "trace" not in view
    with urllib.request.urlopen(millrace.request("/v1/queries"), timeout=60) as answer:
        shown = {each["text"]: each["last_id"] for each in json.load(answer)["queries"]}
    assert shown["SELECT b, COUNT(*) FROM by_library WHERE b = ? GROUP BY b"] == view["statement"]


def test_a_request_over_http_is_known_by_its_number(millrace: MillraceServer, receiver: Receiver) -> None:
    body = json.dumps({"sql": "CREATE TABLE over_http (a INT PRIMARY KEY)"}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {base64.b64encode(b'root:').decode()}"}
    request = urllib.request.Request(f"{millrace.http_address}/v1/databases/d/program", body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200
    span = receiver.until(name="POST /v1/databases/{database}/program", process="http")
    assert receiver.until(name="Define", process="controller-0", trace=span["trace"])["parent"] == span["id"]
    [line] = [each for each in lines_of(millrace, "controller-0") if "CREATE TABLE over_http" in each["message"]]
    assert line["statement"] == span["millrace.statement"] and line["statement"].startswith("http.")
