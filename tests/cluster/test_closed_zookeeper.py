"""ZooKeeper's nodes belong to the cluster: strangers read and write none, and what was not written by the cluster is not used."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import BadArgumentsError, NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE

from backend.processes.catalog_floor import FILE
from backend.processes.java import find_java, zookeeper_command
from controller.catalog_nodes import HEAD
from controller.registry import Registry
from controller.seal import MAC_BYTES
from tests.cluster.test_serve import run
from tests.serving import MillraceServer

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("closed") / "data", "--controllers=1")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.t (id INT PRIMARY KEY)")
        cursor.execute("CREATE USER bob@'%' IDENTIFIED BY 'first'")
    yield server
    server.kill()


@contextlib.contextmanager
def insider(server: MillraceServer) -> Iterator[Registry]:
    """Who has the credential of ZooKeeper, as its administrator would."""
    deployment = server.deployment()
    registry = Registry(deployment.zookeeper, deployment.root, deployment.secret_bytes)
    registry.start()
    try:
        yield registry
    finally:
        registry.stop()


@contextlib.contextmanager
def stranger(hosts: str, auth_data: Any = None) -> Iterator[KazooClient]:
    client = KazooClient(hosts=hosts, auth_data=auth_data)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def all_nodes(client: KazooClient, path: str) -> list[str]:
    below = [f"{path.rstrip('/')}/{name}" for name in client.get_children(path)]
    return [path, *(found for each in below for found in all_nodes(client, each))]


def account_node(user: str) -> str:
    return f"{HEAD}/a" + f"{user}\0%".encode().hex()


def can_log_in(server: MillraceServer, user: str, password: str) -> bool:
    try:
        server.connect(user=user, password=password).close()
        return True
    except pymysql.OperationalError as error:
        assert error.args[0] == 1045, error
        return False


def restart_adapter(server: MillraceServer) -> None:
    [process] = [each["process"] for each in server.status()["processes"] if each["name"] == "adapter-0"]
    psutil.Process(process).kill()
    until_it_serves(server)


def log_says(server: MillraceServer, name: str, text: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while text not in (server.data / "logs" / name).read_text():
        assert time.monotonic() < deadline, server.logs()


@pytest.mark.parametrize("credential", [None, [("digest", "millrace:millrace")]], ids=["none", "wrong"])
def test_a_stranger_reads_and_writes_no_node(server: MillraceServer, credential: Any) -> None:
    with insider(server) as registry:
        paths = [path for path in all_nodes(registry.client, "/") if path != "/zookeeper/config"]
        assert len(paths) > 8
        with stranger(server.deployment().zookeeper, credential) as client:
            for path in paths:
                child = f"{path.rstrip('/')}/new"
                for name, arguments in {
                    "get": (path,),
                    "get_children": (path,),
                    "set": (path, b"mine"),
                    "set_acls": (path, OPEN_ACL_UNSAFE),
                    "create": (child, b"mine"),
                }.items():
                    with pytest.raises((NoAuthError, BadArgumentsError)):
                        getattr(client, name)(*arguments)
                        pytest.fail(f"{name} of {path}")
            for path in paths:
                if path not in ("/", "/zookeeper") and not registry.client.get_children(path):
                    with pytest.raises((NoAuthError, BadArgumentsError)):
                        client.delete(path)
        assert [path for path in all_nodes(registry.client, "/") if path != "/zookeeper/config"] == paths


def test_zookeeper_has_no_other_doors(server: MillraceServer) -> None:
    host, _, port = server.deployment().zookeeper.partition(":")
    for word in (b"conf", b"cons", b"dump", b"envi", b"mntr", b"wchp", b"stat", b"crst"):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(word)
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
        assert b"not in the whitelist" in answer, (word, answer)
    [process] = [each["process"] for each in server.status()["processes"] if each["name"] == "zookeeper"]
    listening = {(each.laddr.ip.removeprefix("::ffff:"), each.laddr.port) for each in psutil.Process(process).net_connections() if each.status == "LISTEN"}
    assert listening == {(host, int(port))}


def test_an_account_that_the_cluster_did_not_write_is_ignored(server: MillraceServer) -> None:
    name = account_node("eve")
    with insider(server) as registry:
        bob = registry.client.get(registry.path(account_node("bob")))[0]
        eve = bob[1 + MAC_BYTES :].replace(b"bob", b"eve")
        assert eve != bob[1 + MAC_BYTES :]
        registry.client.create(registry.path(name), eve)
        try:
            restart_adapter(server)
            assert not can_log_in(server, "eve", "first")
            assert can_log_in(server, "bob", "first")
            log_says(server, "adapter-0.log", f"{name} in ZooKeeper was not written by this cluster")
        finally:
            registry.client.delete(registry.path(name))


def test_a_node_that_was_put_back_is_noticed(server: MillraceServer) -> None:
    with insider(server) as registry, server.connect() as connection, connection.cursor() as cursor:
        path = registry.path(account_node("bob"))
        old = registry.client.get(path)[0]
        cursor.execute("ALTER USER bob@'%' IDENTIFIED BY 'second'")
        new = registry.client.get(path)[0]
        registry.client.set(path, old)
        [process] = [each["process"] for each in server.status()["processes"] if each["name"] == "adapter-0"]
        psutil.Process(process).kill()
        log_says(server, "adapter-0.out", "were changed or removed, not by this cluster")
        registry.client.set(path, new)
    until_it_serves(server)
    assert not can_log_in(server, "bob", "first")
    assert can_log_in(server, "bob", "second")


def until_it_serves(server: MillraceServer) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        with contextlib.suppress(pymysql.OperationalError):
            server.connect().close()
            return
        assert time.monotonic() < deadline


def test_a_catalog_of_an_earlier_version_or_none_changes_nothing(server: MillraceServer) -> None:
    with insider(server) as registry, server.connect() as connection, connection.cursor() as cursor:
        path = registry.path(HEAD)
        earlier = registry.client.get(path)[0]
        cursor.execute("CREATE TABLE d.later (id INT PRIMARY KEY)")
        newest = registry.client.get(path)[0]
        for forged in (b"", earlier):
            registry.client.set(path, forged)
            with pytest.raises(pymysql.MySQLError, match=r"not .*by this cluster"):
                cursor.execute("CREATE TABLE d.more (id INT PRIMARY KEY)")
            cursor.execute("INSERT INTO d.later SELECT COUNT(*) FROM d.later")
            registry.client.set(path, newest)
        cursor.execute("CREATE TABLE d.more (id INT PRIMARY KEY)")
        cursor.execute("SELECT COUNT(*) FROM d.later")
        assert cursor.fetchone() == (2,)


@contextlib.contextmanager
def ensemble(folder: Path) -> Iterator[str]:
    """A ZooKeeper that is not the cluster's own."""
    java = find_java(folder)
    assert java is not None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        zookeeper_command(java, folder / "zookeeper", "127.0.0.1", port),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ),
    )  # fmt: skip
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def test_nodes_from_before_are_closed_and_sealed_and_lost_ones_are_missed(tmp_path: Path) -> None:
    """In an ensemble that others use, too: only the cluster's own nodes are closed."""
    with ensemble(tmp_path / "ensemble") as zookeeper:
        options = (f"--zookeeper={zookeeper}", "--controllers=1")
        server = MillraceServer(tmp_path / "data", *options)
        try:
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE d")
                cursor.execute("CREATE TABLE d.t (id INT PRIMARY KEY)")
                cursor.execute("INSERT INTO d.t VALUES (7)")
            assert server.stop() == 0
            with insider(server) as registry:  # as they were before
                root = registry.path("").rstrip("/")
                for path in all_nodes(registry.client, root):
                    registry.client.set_acls(path, OPEN_ACL_UNSAFE)
                    registry.client.set(path, registry.client.get(path)[0][1 + MAC_BYTES :])
            (server.data / FILE).unlink()
            server = MillraceServer(tmp_path / "data", *options)
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("SELECT * FROM d.t")
                assert cursor.fetchall() == ((7,),)
                cursor.execute("CREATE TABLE d.u (id INT PRIMARY KEY)")
            with insider(server) as registry, stranger(zookeeper) as client:
                client.create("/others", b"")
                for path in all_nodes(registry.client, root):
                    with pytest.raises(NoAuthError):
                        client.get(path)
                assert server.stop() == 0
                registry.client.delete(registry.path(HEAD), recursive=True)
            refused = run("serve", f"--data={server.data}", "--mysql-port=0", "--http-port=0", *options)
            assert refused.returncode == 1
            assert refused.stderr.count("\n") == 1 and "is gone from ZooKeeper" in refused.stderr
        finally:
            server.kill()
