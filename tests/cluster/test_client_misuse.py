"""The client library used as it should not be, or ended while it is used: errors, and never waiting for ever."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.client.target import find_deployment
from backend.processes.settings import DEPLOYMENT_FILE
from millrace import Database, connect, connect_async
from tests.serving import MillraceServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("misuse"), "--controllers=1")
    with connect(server.data) as db:
        db.extend_program("CREATE DATABASE shop; CREATE TABLE shop.sales (id INT PRIMARY KEY, price INT, KEY (price))")
        db.table("shop.sales").insert_many([{"id": number, "price": number % 7} for number in range(100)])
    yield server
    server.stop()


@pytest.fixture
def db(server: MillraceServer) -> Iterator[Database]:
    with connect(server.data, "shop") as database:
        yield database


def test_who_waits_in_another_thread_is_told_when_the_database_is_closed(server: MillraceServer) -> None:
    db = connect(server.data, "shop")
    view, sales = db.view("sales"), db.table("sales")
    ended, working = list[BaseException](), threading.Barrier(9)

    def work(number: int) -> None:
        try:
            sales.insert(id=1000 + number, price=1)
            working.wait()
            for key in range(1_000_000):
                view.lookup(2000 + key * 8 + number)
                sales.update(number, price=key)
        except BaseException as error:
            ended.append(error)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(8)]
    for thread in threads:
        thread.start()
    working.wait()
    closing = [threading.Thread(target=db.close) for _ in range(3)]
    for thread in [*closing]:
        thread.start()
    for thread in [*closing, *threads]:
        thread.join(30)
        assert not thread.is_alive()
    assert {str(each) for each in ended} == {"the database is closed"} and len(ended) == 8


def test_a_closed_database_answers_nothing_also_from_shared_memory(server: MillraceServer) -> None:
    with connect(server.data, "shop") as db:
        view = db.view("sales")
        while view.lookup(3, block=False) is None:
            view.lookup(3)
    assert view.lookup(3, block=False) is None
    with pytest.raises(RuntimeError, match="closed"):
        view.lookup(3)

    async def use() -> None:
        async with await connect_async(server.data, "shop") as other:
            theirs = await other.view("sales")
            while await theirs.lookup(3, block=False) is None:
                await theirs.lookup(3)
        await other.close()
        assert await theirs.lookup(3, block=False) is None
        for work in (theirs.lookup(3), other.execute("SELECT COUNT(*) FROM sales"), other.extend_program("CREATE TABLE t (id INT)")):
            with pytest.raises(RuntimeError, match="closed"):
                await work

    asyncio.run(use())


def test_a_child_process_has_to_connect_for_itself(db: Database) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            db.execute("SELECT 1")
        except RuntimeError as error:
            os.write(writing, str(error).encode())
        finally:
            db.close()  # it is the parent's
            os._exit(0)
    os.waitpid(child, 0)
    assert b"connect after a fork" in os.read(reading, 1000)
    assert db.execute("SELECT 1").rows == [(1,)]
    os.close(reading)
    os.close(writing)


def test_a_database_of_another_event_loop_says_so(server: MillraceServer) -> None:
    async def use() -> None:
        async with await connect_async(server.data, "shop") as db:
            view = await db.view("SELECT price, COUNT(*) FROM sales WHERE price = ? GROUP BY price")
            with pytest.raises(RuntimeError, match="event loop"):
                await asyncio.to_thread(lambda: asyncio.run(view.lookup(5)))
            assert await view.lookup(500) == []
            with pytest.raises(RuntimeError, match="event loop"):
                await asyncio.to_thread(lambda: asyncio.run(view.lookup(501)))

    asyncio.run(use())


def test_a_rolled_back_transaction_lets_go_of_its_rows(db: Database) -> None:
    for _ in range(20):
        with pytest.raises(KeyError), db.transaction() as transaction:
            transaction.execute("UPDATE sales SET price = 100 WHERE id = 5")
            raise KeyError
        assert db.execute("UPDATE sales SET price = price + 1 WHERE id = 5").affected == 1
    assert db.view("sales").lookup(5) == [(5, 25)]


def test_from_another_machine_a_port_and_the_secret_lead_to_the_cluster(
    server: MillraceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, secret = f"{server.host}:{server.http_port}", (server.data / "secret").read_text().strip()
    hidden = server.data / "run" / "hidden.json"
    (server.data / DEPLOYMENT_FILE).rename(hidden)  # as if it were there, and not here
    try:
        with pytest.raises(ValueError, match="MILLRACE_SECRET"):
            connect(place)
        with connect(place, "shop", secret=secret) as db:
            assert db.view("sales").lookup(7) == [(7, 0)]
        monkeypatch.setenv("MILLRACE_SECRET", secret)
        assert find_deployment(place).secret == secret
        (server.data / DEPLOYMENT_FILE).write_text(hidden.read_text().replace('"zookeeper":"', '"zookeeper":"x'))
        assert find_deployment(place).data == "", "what is here is another cluster's"
    finally:
        hidden.rename(server.data / DEPLOYMENT_FILE)


def test_a_wrong_secret_is_called_wrong(server: MillraceServer) -> None:
    with pytest.raises(ValueError, match="secret is not that"):
        connect(f"zk://{server.status()['zookeeper']}", secret="00" * 32)


def test_what_is_no_place_is_named(tmp_path: Path) -> None:
    for place in ("zk://", "https://127.0.0.1:6033", str(tmp_path / "nothing")):
        with pytest.raises(ValueError, match="is no "):
            connect(place, secret="00")
