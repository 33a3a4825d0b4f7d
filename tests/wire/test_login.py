"""Who gets in, over which exchange, and what happens to those who do not."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mysql.connector
import MySQLdb
import pymysql
import pytest

from backend.execution.embedded import open_embedded
from backend.network.tls import Certificate, create_certificate
from controller.accounts import EVERYTHING, Account
from controller.passwords import NATIVE, SHA2, stored_password
from mysql_adapter import admission
from tests.wire.echo import EchoDatabase
from tests.wire.raw import RawClient, handshake_response
from tests.wire.server import Limits, ServerThread

USERS = (
    Account("root", "localhost", NATIVE, grants=(EVERYTHING,)),
    Account("native", "%", NATIVE, stored_password(NATIVE, "secret"), (EVERYTHING,)),
    Account("modern", "%", SHA2, stored_password(SHA2, "geheimnis"), (EVERYTHING,)),
    Account("open", "%", SHA2, grants=(EVERYTHING,)),
    Account("poor", "%", NATIVE),
    Account("faraway", "192.0.2.%", NATIVE),
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    create_certificate(folder / "cert.pem", folder / "key.pem")
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def plain() -> Iterator[ServerThread]:
    with ServerThread(EchoDatabase(USERS)) as server:
        yield server


@pytest.fixture(scope="module")
def secure(certificate: tuple[Path, Path]) -> Iterator[ServerThread]:
    with ServerThread(EchoDatabase(USERS), tls=Certificate(*certificate)) as server:
        yield server


def connect(server: ServerThread, user: str, password: str = "", **more: Any) -> Any:
    return pymysql.connect(host="127.0.0.1", port=server.port, user=user, password=password, **more)


def answer(connection: Any) -> Any:
    cursor = connection.cursor()
    cursor.execute("SELECT USER()")
    found = cursor.fetchone()[0]
    connection.close()
    return found


@pytest.mark.parametrize(("user", "password"), [("root", ""), ("native", "secret"), ("modern", "geheimnis")])
def test_right_password_gets_in_without_tls(plain: ServerThread, user: str, password: str) -> None:
    assert answer(connect(plain, user, password, ssl_disabled=True)) == f"{user}@localhost"


@pytest.mark.parametrize(("user", "password"), [("root", ""), ("native", "secret"), ("modern", "geheimnis")])
def test_right_password_gets_in_over_tls(secure: ServerThread, user: str, password: str) -> None:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = connect(secure, user, password, ssl=context)
    cursor = connection.cursor()
    cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
    assert cursor.fetchone()[1]
    assert answer(connection) == f"{user}@localhost"


def shown_certificate(server: ServerThread) -> bytes:
    """The certificate that a client is shown, as bytes."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = connect(server, "root", ssl=context)
    shown: bytes = connection._sock.getpeercert(True)
    connection.close()
    return shown


def test_alter_instance_reload_tls_shows_the_new_certificate_or_says_what_is_wrong(tmp_path: Path) -> None:
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    create_certificate(*files)
    with ServerThread(EchoDatabase(USERS), tls=Certificate(*files)) as server:
        first = shown_certificate(server)
        assert first == ssl.PEM_cert_to_DER_cert(files[0].read_text())
        cursor = connect(server, "root").cursor()
        cursor.execute("SHOW VARIABLES LIKE 'ssl_cert'")
        assert cursor.fetchone() == ("ssl_cert", str(files[0]))
        create_certificate(*files)
        cursor.execute("ALTER INSTANCE RELOAD TLS")
        second = shown_certificate(server)
        assert second == ssl.PEM_cert_to_DER_cert(files[0].read_text()) != first
        files[1].write_text("no key")
        with pytest.raises(pymysql.err.OperationalError) as raised:
            cursor.execute("ALTER INSTANCE RELOAD TLS")
        assert raised.value.args[0] == 3888
        cursor.execute("ALTER INSTANCE RELOAD TLS NO ROLLBACK ON ERROR")
        cursor.execute("SHOW WARNINGS")
        assert cursor.fetchone()[1] == 3888
        assert shown_certificate(server) == second
        poor = connect(server, "poor").cursor()
        with pytest.raises(pymysql.err.OperationalError) as raised:
            poor.execute("ALTER INSTANCE RELOAD TLS")
        assert raised.value.args[0] == 1227


def test_many_first_logins_at_once_all_get_in(plain: ServerThread) -> None:
    assert plain.server is not None
    plain.server.authenticator._digests.clear()
    with ThreadPoolExecutor(20) as pool:
        logins = [pool.submit(connect, plain, "modern", "geheimnis", ssl_disabled=True) for _ in range(20)]
        assert {answer(login.result()) for login in logins} == {"modern@localhost"}


def test_second_login_uses_the_cached_digest(plain: ServerThread) -> None:
    answer(connect(plain, "modern", "geheimnis", ssl_disabled=True))
    assert plain.server is not None
    assert ("modern", "%") in plain.server.authenticator._digests
    assert answer(connect(plain, "modern", "geheimnis", ssl_disabled=True)) == "modern@localhost"
    with pytest.raises(pymysql.err.OperationalError):
        connect(plain, "modern", "geheim", ssl_disabled=True)


@pytest.mark.parametrize("user", ["root", "native", "modern", "nobody", "faraway"])
@pytest.mark.parametrize("password", ["wrong", ""])
def test_wrong_password_is_1045_and_the_end(plain: ServerThread, user: str, password: str) -> None:
    if user == "root" and not password:
        return
    with pytest.raises(pymysql.err.OperationalError) as raised:
        connect(plain, user, password, ssl_disabled=True)
    code, message = raised.value.args
    assert code == 1045
    assert message == f"Access denied for user '{user}'@'localhost' (using password: {'YES' if password else 'NO'})"


@pytest.mark.parametrize(("user", "password"), [("root", ""), ("native", "secret"), ("modern", "geheimnis")])
@pytest.mark.parametrize("tls", [False, True])
def test_connector_gets_in(plain: ServerThread, secure: ServerThread, user: str, password: str, tls: bool) -> None:
    server = secure if tls else plain
    connection = mysql.connector.connect(
        host="127.0.0.1", port=server.port, user=user, password=password, ssl_disabled=not tls, use_pure=True
    )
    assert answer(connection) == f"{user}@localhost"


C_EXTENSION = """
import _mysql_connector  # before ssl, which would load the system's older library in its place
import sys
import mysql.connector
port, user, password, tls = sys.argv[1:]
connection = mysql.connector.connect(
    host="127.0.0.1", port=int(port), user=user, password=password, ssl_disabled=tls == "False", use_pure=False
)
cursor = connection.cursor(prepared=True)
cursor.execute("SELECT USER(), ?, ?", (7, "seven"))
print(cursor.fetchall())
"""


@pytest.mark.parametrize(("user", "password"), [("root", ""), ("native", "secret"), ("modern", "geheimnis")])
@pytest.mark.parametrize("tls", [False, True])
def test_connector_in_c_gets_in(
    plain: ServerThread, secure: ServerThread, user: str, password: str, tls: bool
) -> None:
    server = secure if tls else plain
    command = [sys.executable, "-c", C_EXTENSION, str(server.port), user, password, str(tls)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert run.stdout.strip() == f"[('{user}@localhost', 7, 'seven')]", run.stderr


@pytest.mark.parametrize(("user", "password"), [("root", ""), ("native", "secret")])
def test_mysqlclient_gets_in(plain: ServerThread, user: str, password: str) -> None:
    connection = MySQLdb.connect(host="127.0.0.1", port=plain.port, user=user, password=password)
    assert answer(connection) == f"{user}@localhost"


@pytest.mark.parametrize(
    ("user", "named", "own"), [(b"root", SHA2, NATIVE), (b"open", NATIVE, SHA2), (b"root", "auth_gssapi", NATIVE)]
)
def test_who_names_another_plugin_is_told_the_accounts_also_without_a_password(
    plain: ServerThread, user: bytes, named: str, own: str
) -> None:
    with RawClient(plain.port, login=False) as client:
        client.send_packet(handshake_response(client.capabilities, user, plugin=named.encode()))
        switch = client.read()
        assert switch[:1] == b"\xfe" and switch[1:].split(b"\0")[0] == own.encode()
        client.send_packet(b"")
        assert client.read()[0] == 0
        assert len(client.query("SELECT 1")) == 1


def test_many_threads_of_libmariadb_get_in_at_once(plain: ServerThread) -> None:
    def connect_often(_: int) -> set[str]:
        return {answer(MySQLdb.connect(host="127.0.0.1", port=plain.port, user=user)) for user in ("root", "open") * 5}

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(connect_often, range(8))) == {"root@localhost", "open@localhost"}


@pytest.mark.parametrize("plugin", [NATIVE, SHA2])
def test_default_authentication_is_that_of_the_greeting_and_of_new_users(tmp_path: Path, plugin: str) -> None:
    async def open_database() -> Any:
        return await open_embedded(tmp_path)

    with ServerThread(open_database, default_authentication=plugin) as server:
        with RawClient(server.port) as raw:
            assert raw.greeting.endswith(plugin.encode() + b"\0")
        cursor = connect(server, "root").cursor()
        cursor.execute("SELECT @@default_authentication_plugin")
        assert cursor.fetchone() == (plugin,)
        for identified in ("", "IDENTIFIED BY 'secret'"):
            cursor.execute(f"CREATE USER {'new' if identified else 'bare'} {identified}")
        cursor.execute("SELECT user, plugin FROM mysql.user WHERE user IN ('new', 'bare')")
        assert set(cursor.fetchall()) == {("new", plugin), ("bare", plugin)}
        assert answer(connect(server, "new", "secret")) == "new@localhost"


def test_unknown_database_at_login_is_1049(plain: ServerThread) -> None:
    with pytest.raises(pymysql.err.OperationalError) as raised:
        connect(plain, "root", database="nowhere")
    assert raised.value.args == (1049, "Unknown database 'nowhere'")


def test_database_at_login_is_current(plain: ServerThread) -> None:
    connection = connect(plain, "root", database="test")
    cursor = connection.cursor()
    cursor.execute("SELECT DATABASE()")
    assert cursor.fetchone() == ("test",)


def test_change_user_re_authenticates(plain: ServerThread) -> None:
    connection = MySQLdb.connect(host="127.0.0.1", port=plain.port, user="root", password="")
    connection.change_user("native", "secret", "test")
    cursor = connection.cursor()
    cursor.execute("SELECT USER(), DATABASE()")
    assert cursor.fetchone() == ("native@localhost", "test")


def test_failed_change_user_ends_the_connection(plain: ServerThread) -> None:
    connection = mysql.connector.connect(host="127.0.0.1", port=plain.port, user="root", password="", use_pure=True)
    with pytest.raises(mysql.connector.Error) as raised:
        connection.cmd_change_user("native", "wrong")
    assert raised.value.errno == 1045
    with pytest.raises(mysql.connector.Error):
        connection.cmd_query("SELECT 1")


def test_more_connections_than_allowed_are_1040_but_one_of_an_administrator() -> None:
    with ServerThread(EchoDatabase(USERS), limits=Limits(connections_max=2)) as server:
        kept = [connect(server, "poor") for _ in range(2)]
        with pytest.raises(pymysql.err.OperationalError) as raised:
            connect(server, "poor")
        assert raised.value.args == (1040, "Too many connections")
        administrator = connect(server, "root")
        for user in ("root", "poor"):
            with pytest.raises(pymysql.err.OperationalError) as raised:
                connect(server, user)
            assert raised.value.args == (1040, "Too many connections")
        assert status(administrator, "Connection_errors_max_connections") == 3
        administrator.cursor().execute("SET GLOBAL max_connections = 4")
        kept.append(connect(server, "poor"))
        for connection in kept:
            connection.ping(reconnect=False)


def test_strangers_take_no_place_of_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "ENTERING_MAX", 5)
    with ServerThread(EchoDatabase(USERS), limits=Limits(connections_max=2)) as server:
        strangers = [RawClient(server.port, login=False) for _ in range(20)]
        clients = [connect(server, "poor") for _ in range(2)]
        ended = 0
        for stranger in strangers[:15]:
            with pytest.raises(EOFError):
                stranger.read()
            ended += 1
        assert ended == 15
        for connection in clients:
            connection.ping(reconnect=False)
        for stranger in strangers:
            stranger.__exit__()


def status(connection: Any, name: str) -> int:
    cursor = connection.cursor()
    cursor.execute(f"SHOW GLOBAL STATUS LIKE '{name}'")
    return int(cursor.fetchone()[1])


def test_wrong_passwords_are_slowed_down_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with ServerThread(EchoDatabase(USERS)) as server:
        root = connect(server, "root")
        root.cursor().execute("SET GLOBAL connection_control_max_connection_delay = 300")

        def guess() -> float:
            began = time.monotonic()
            with pytest.raises(pymysql.err.OperationalError) as raised:
                connect(server, "native", "gue\nssed", ssl_disabled=True)
            assert raised.value.args[0] == 1045
            return time.monotonic() - began

        for _ in range(3):
            guess()
        assert status(root, "Connection_control_delay_generated") == 0
        with ThreadPoolExecutor(1) as pool:
            guessing = pool.submit(guess)
            while status(root, "Connection_control_delay_generated") == 0:
                pass
            assert answer(connect(server, "root")) == "root@localhost", "others need not wait"
            assert guessing.result() >= 0.3
        assert answer(connect(server, "native", "secret")) == "native@localhost"
        assert status(root, "Connection_control_delay_generated") == 2, "the right password had to wait, too"
        guess()
        assert status(root, "Connection_control_delay_generated") == 2, "it ended the series"
        assert status(root, "Aborted_connects") == 5
    lines = [each.getMessage() for each in caplog.records if each.name == "mysql_adapter.admission"]
    assert len(lines) == 5 and all(line.startswith("login of 'native' from localhost:") for line in lines)
    assert "4 in a row" in lines[3] and "1 in a row" in lines[4] and "ssed" not in caplog.text


def test_a_host_that_breaks_off_its_logins_is_1129_until_flush_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "is_loopback", lambda host: False)  # this machine is never blocked
    with ServerThread(EchoDatabase(USERS)) as server:
        root = connect(server, "root")
        cursor = root.cursor()
        cursor.execute("SET GLOBAL max_connect_errors = 3")
        before = status(root, "Aborted_connects")
        for _ in range(5):
            RawClient(server.port, login=False).__exit__()  # somebody looks whether the server is there
        for _ in range(3):
            with RawClient(server.port, login=False) as client:
                client.send_packet(b"no handshake")
                assert client.read()[:1] == b"\xff"
        while status(root, "Aborted_connects") < before + 3:
            pass
        with pytest.raises(pymysql.err.OperationalError) as raised:
            connect(server, "root")
        assert raised.value.args[0] == 1129
        assert raised.value.args[1].startswith("Host '127.0.0.1' is blocked because of many connection errors")
        cursor.execute("FLUSH HOSTS")
        assert answer(connect(server, "root")) == "root@localhost"


def test_login_that_never_ends_is_cut_off() -> None:
    with (
        ServerThread(EchoDatabase(USERS), limits=Limits(login_timeout_s=0.1)) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as client,
    ):
        received = b""
        while chunk := client.recv(1000):
            received += chunk
        assert b"8.0.36-millrace" in received
