"""The client library against a real cluster: shared memory, TCP, other processes, crashes."""

from __future__ import annotations

import ast
import asyncio
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.client.target import find_deployment
from backend.shared_memory.segment import FOLDER, prefix_of
from controller.registry import Address, Registry
from dataflow.errors import MillraceError, Retryable
from millrace import AsyncDatabase, Database, View, connect, connect_async
from tests.serving import MillraceServer

COUNT = "SELECT story, COUNT(*) AS votes FROM votes WHERE story = ? GROUP BY story"
RECOVERY_S = 30.0


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MillraceServer]:
    server = MillraceServer(tmp_path_factory.mktemp("client"), "--controllers=2", f"--workers={request.param}")
    with connect(server.data) as db:
        db.execute("CREATE DATABASE vote")
    with connect(server.data, "vote") as db:
        db.execute(
            "CREATE TABLE votes (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, story INT NOT NULL, user INT, KEY (story))"
        )
    yield server
    server.stop()
    assert shared_files(server) == [], "nothing is left after a clean stop"


@pytest.fixture
def db(server: MillraceServer) -> Iterator[Database]:
    with connect(f"{server.host}:{server.http_port}", "vote") as database:
        database.execute("DELETE FROM votes")
        yield database


def shared_files(server: MillraceServer) -> list[str]:
    return [path.name for path in FOLDER.glob(f"{prefix_of(str(server.data.resolve()))}*")]


def shared(view: View, key: int) -> View:
    """The view, once the key is in shared memory."""
    while view.lookup(key, block=False) is None:
        view.lookup(key)
    return view


def test_a_writer_reads_ranges_with_its_own_writes_from_shared_memory(db: Database) -> None:
    newest = db.view("SELECT id, user FROM votes WHERE story = ? ORDER BY id DESC")
    votes = db.table("votes")
    votes.insert_many([{"story": 7, "user": user} for user in range(500)])
    first = newest.range(7, limit=1, descending=False)[0][0]
    while newest._inner.try_range(7, limit=1) is None:
        newest.range(7, limit=1)
    for user in range(500, 600):
        number = votes.insert(story=7, user=user).last_insert_id
        assert newest._inner.try_range(7, low=first, limit=2) == [(number, user), (number - 1, user - 1)]
    page, seen = newest.range(7, limit=250), 0
    while page:
        seen += len(page)
        page = newest.range(7, high=page[-1][0], limit=250)
    assert seen == 600


def test_a_writer_reads_its_own_writes_from_shared_memory(db: Database) -> None:
    view = shared(db.view(COUNT), 7)
    for number in range(1, 200):
        db.table("votes").insert(story=7)
        assert view.lookup(7, block=False) == [(7, number)]
    db.execute("DELETE FROM votes WHERE story = ?", [7])
    assert view.lookup(7, block=False) == []


def test_writes_over_mysql_are_seen_once_they_are_answered(db: Database, server: MillraceServer) -> None:
    view = shared(db.view(COUNT), 3)
    with server.connect("vote") as connection, connection.cursor() as cursor:
        for number in range(1, 50):
            cursor.execute("INSERT INTO votes (story) VALUES (3)")
            assert view.lookup(3, block=False) == [(3, number)]


def test_the_same_query_over_mysql_and_here_is_the_same_view(db: Database, server: MillraceServer) -> None:
    db.table("votes").insert_many([{"story": story} for story in range(40)])
    view = db.view(COUNT)
    with server.connect("vote") as connection, connection.cursor() as cursor:
        for story in [*range(40)] * 2:
            cursor.execute("SELECT story, COUNT(*) AS votes FROM votes WHERE story = %s GROUP BY story", (story,))
            assert cursor.fetchall() == ((story, 1),)
    for story in range(8):  # on each worker some
        view.lookup(story)
    known = [story for story in range(40) if view.lookup(story, block=False) is not None]
    assert len(known) > 30


def test_a_dropped_view_is_gone_for_who_reads_it_from_shared_memory(db: Database, server: MillraceServer) -> None:
    db.execute("CREATE TABLE leaves (id INT PRIMARY KEY, name VARCHAR(10))")
    db.execute("INSERT INTO leaves VALUES (1, 'one')")
    db.execute("CREATE VIEW leaving AS SELECT * FROM leaves WHERE id > 0")
    direct, named = db.view("SELECT * FROM leaves WHERE id > 0 AND id = ?"), db.view("leaving", "id")
    for view in (direct, named):
        assert shared(view, 1).lookup(1) == [(1, "one")]
    with server.connect("vote") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(DISTINCT name) FROM millrace.views WHERE named_views = 'vote.leaving'")
        assert cursor.fetchall() == ((1,),)
        cursor.execute("CREATE OR REPLACE VIEW leaving AS SELECT id, UPPER(name) AS name FROM leaves")
        assert named.lookup(1) == [(1, "ONE")], "another definition is another view"
        cursor.execute("DROP VIEW leaving")
        cursor.execute("SELECT COUNT(*) FROM millrace.views WHERE named_views = 'vote.leaving'")
        assert cursor.fetchall() == ((0,),)
    with pytest.raises(MillraceError) as raised:
        named.lookup(1)
    assert raised.value.condition.code == 1146
    assert direct.lookup(1) == [(1, "one")]


def test_a_miss_is_told_and_then_filled(db: Database) -> None:
    db.table("votes").insert_many([{"story": 5000 + story % 100} for story in range(1000)])
    one, other, stories = 5005, 5006, np.arange(5000, 5100)
    view = shared(db.view(COUNT), one)
    assert view.lookup(other, block=False) is None
    assert view.lookup_many([one, other], block=False) is None
    assert view.lookup_columns(stories, block=False) is None
    assert view.lookup(other) == [(other, 10)]
    assert shared(view, other).lookup_many([one, other], block=False) == [[(one, 10)], [(other, 10)]]
    assert view.lookup_many(stories.tolist()) == view.lookup_many(stories.tolist(), block=False)
    batch = view.lookup_columns(stories, ["votes"], block=False)
    assert batch is not None and batch.columns["votes"].tolist() == [10] * 100
    assert view.lookup(1 << 70) == []


def test_many_keys_are_of_one_moment_while_somebody_writes_them(db: Database, server: MillraceServer) -> None:
    stories = list(range(800, 816))
    everywhere = [{"story": story} for story in stories]
    db.table("votes").insert_many(everywhere)
    view = db.view(COUNT)
    for story in stories:
        shared(view, story)
    done = threading.Event()

    def write() -> None:
        with connect(server.data, "vote") as other:
            for _ in range(100):
                other.table("votes").insert_many(everywhere)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    last = 1
    while not done.is_set() or last < 101:
        [votes] = {votes for [(_, votes)] in view.lookup_many(stories)}
        [later] = set(view.lookup_columns(np.array(stories), ["votes"]).columns["votes"].tolist())
        assert last <= votes <= later
        last = later
    thread.join()
    assert last == 101


READER = """
import sys
from millrace import connect, connect_async
from tests.cluster.test_client import COUNT, shared
with connect(sys.argv[1], "vote") as db:
    view = shared(db.view(COUNT), 1)
    print("ready", flush=True)
    last, reads = 0, 0
    while last < int(sys.argv[2]):
        [(story, votes)] = view.lookup(1) or [(1, 0)]
        assert story == 1 and votes >= last, (story, votes, last)
        last, reads = votes, reads + 1
    print(reads)
"""


def test_from_another_machine_the_same_rows_come_over_tcp(db: Database) -> None:
    db.table("votes").insert_many([{"story": story} for story in range(200) for _ in range(story % 3)])
    node = db._inner._node
    assert node is not None
    elsewhere = AsyncDatabase(node.database, "vote", shared=None)

    async def look(keys: list[int]) -> None:
        view = await elsewhere.view(COUNT)
        for _ in range(2):  # the first fills what the second finds
            found = await asyncio.gather(*(view.lookup_many(keys[first : first + 50]) for first in range(0, len(keys), 50)))
            assert [rows for each in found for rows in each] == [[(key, key % 3)] if 0 <= key < 200 and key % 3 else [] for key in keys]
        batch = await view.lookup_columns(np.array(keys))
        assert batch.columns["votes"].tolist() == [key % 3 for key in keys if 0 <= key < 200 and key % 3]
        assert await view.lookup(5.0) == [(5, 2)]
        assert await view.lookup(1 << 63) == []

    db._loop.run(look(list(range(-10, 250))))


def test_many_processes_read_while_one_writes(db: Database, server: MillraceServer) -> None:
    command = [sys.executable, "-c", READER, str(server.data), "300"]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for reader in readers:
        assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
    for _ in range(300):
        db.table("votes").insert(story=1)
    for reader in readers:
        output, _ = reader.communicate(timeout=60)
        assert reader.returncode == 0 and int(output) > 0


def test_threads_share_a_view(db: Database) -> None:
    db.table("votes").insert_many([{"story": story} for story in range(500)])
    view = shared(db.view(COUNT), 0)
    wrong: list[object] = []

    def read(seed: int) -> None:
        generator = random.Random(seed)
        for _ in range(2000):
            story = generator.randrange(500)
            if view.lookup(story) != [(story, 1)]:
                wrong.append(story)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_lookups_survive_two_crashes_of_the_worker_and_are_never_out_of_date(
    db: Database, server: MillraceServer
) -> None:
    view = shared(db.view(COUNT), 9)
    for crash in range(2):
        before = view.lookup(9)
        shards = server.status()["shards"]
        for shard in shards:
            os.kill(shard["process"], 9)
        assert view.lookup(9, block=False) == before or len(shards) > 1, "its last publication is still there"
        db.table("votes").insert(story=9)  # by the worker's successor
        assert view.lookup(9) == [(9, crash + 1)]
        shared(view, 9)
        owners = {name.split("-")[3] for name in shared_files(server)}
        assert owners <= {str(shard["process"]) for shard in server.status()["shards"]}


def test_reads_and_writes_go_on_while_workers_and_controllers_are_killed(db: Database, server: MillraceServer) -> None:
    view = shared(db.view(COUNT), 4)
    acknowledged, wrong, reads = [0], list[object](), [0]
    stop, progress = threading.Event(), threading.Semaphore(0)

    def write() -> None:
        while not stop.is_set():
            db.table("votes").insert(story=4)
            acknowledged[0] += 1
            progress.release()

    def read() -> None:
        last = 0
        while not stop.is_set():
            least = acknowledged[0]
            [(_, votes)] = view.lookup(4) or [(4, 0)]
            if votes < max(last, least):
                wrong.append((votes, last, least))
            last, reads[0] = votes, reads[0] + 1

    async def read_too() -> None:
        async with await connect_async(server.data, "vote") as other:
            theirs, last = await other.view(COUNT), 0
            while not stop.is_set():
                least = acknowledged[0]
                [(_, votes)] = await theirs.lookup(4) or [(4, 0)]
                if votes < max(last, least):
                    wrong.append(("async", votes, last, least))
                last = votes
                await asyncio.sleep(0)

    def others() -> None:
        asyncio.run(read_too())

    with ThreadPoolExecutor() as threads:
        running = [threads.submit(each) for each in (write, read, others)]
        try:
            for round_ in range(2):
                status = server.status()
                os.kill(status["shards"][0]["process"], 9)
                os.kill(status["leader"], 9)
                db.extend_program(f"CREATE TABLE after_{round_} (id INT); CREATE VIEW v_{round_} AS SELECT id FROM after_{round_}")
                for _ in range(50):
                    assert progress.acquire(timeout=RECOVERY_S), [each.exception() for each in running if each.done()]
        finally:
            stop.set()
        for each in running:
            each.result(RECOVERY_S)
    assert not wrong and reads[0] > 0
    assert db.execute("SELECT COUNT(*) FROM votes WHERE story = 4").rows == [(acknowledged[0],)]
    assert view.lookup(4) == [(4, acknowledged[0])]


def test_changes_are_read_once_though_workers_are_killed(server: MillraceServer, db: Database) -> None:
    db.extend_program("CREATE VIEW story_votes AS SELECT story, COUNT(*) AS n FROM votes GROUP BY story")
    table, view = db.table("votes"), db.view("story_votes")
    epochs = {"votes": table.keep_changes(), "story_votes": view.keep_changes()}
    rows: dict[str, Counter[tuple[Any, ...]]] = {"votes": Counter(), "story_votes": Counter()}
    with pytest.raises(ValueError, match="name"):
        next(db.view(COUNT).changes())

    def follow() -> None:
        """What one of two workers had not recorded when it was killed comes with a later epoch: what is read is right in the end."""
        for name, source in (("votes", table), ("story_votes", view)):
            expected = Counter(db.execute(f"SELECT * FROM {name}").rows)
            while True:
                for each in source.changes(epochs[name], follow=False):
                    assert each.epoch > epochs[name]
                    epochs[name] = each.epoch
                    for row, weight in each.rows:
                        rows[name][row] += weight
                if name == "votes" or +rows[name] == expected:
                    break
            assert +rows[name] == expected

    for step in range(2):
        table.insert_many([{"story": (step * each) % 4, "user": each} for each in range(8)])
        db.execute("DELETE FROM votes WHERE user = ?", [step])
        if step == 0:
            os.kill(server.status()["shards"][-1]["process"], 9)
        follow()
    first = next(view.changes(epochs["story_votes"] - 1))
    assert first.epoch >= epochs["story_votes"]
    key = db.view(COUNT).subscribe(99)
    assert next(key) == []
    table.insert(story=99, user=1)
    assert next(key) == [(99, 1)]
    db.remove_view("story_votes")


def test_a_killed_cluster_is_cleaned_up_by_the_next_start_which_its_clients_find(tmp_path: Path) -> None:
    first = MillraceServer(tmp_path / "data", "--controllers=1")
    with connect(first.data) as db:
        db.extend_program("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT)")
        db.table("d.t").insert(id=1, n=2)
        view = shared(db.view("d.t"), 1)
        assert shared_files(first)
        first.kill()
        second = MillraceServer(tmp_path / "data", "--controllers=1")
        assert shared_files(second) == []
        db.table("d.t").update(1, n=3)
        assert shared(view, 1).lookup(1) == [(1, 3)]
        with connect(second.data) as other:
            assert other.view("d.t").lookup(1) == [(1, 3)]
        db.extend_program("CREATE TABLE d.u (id INT PRIMARY KEY)")
    assert second.stop() == 0
    assert shared_files(second) == []


@pytest.mark.parametrize("place", ["data", "port", "zookeeper"])
def test_the_examples_of_the_documentation_do_what_they_say_wherever_the_cluster_is(
    server: MillraceServer, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("MILLRACE_SECRET", (server.data / "secret").read_text().strip())
    status = server.status()
    places = {
        "data": str(server.data),
        "port": f"{server.host}:{server.http_port}",
        "zookeeper": f"zk://{status['zookeeper']}/{status['root']}",
    }
    text = (Path(__file__).parents[2] / "docs" / "client-library.md").read_text()
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        example = re.sub(r"^( *)(\S.*?)\s*# → (.*)$", r"\1assert (\2) == (\3)", example, flags=re.MULTILINE)
        example = example.replace("./millrace-data", places[place]).replace("shop", f"shop_by_{place}")
        compiled = compile(example, "client-library.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        found = eval(compiled, {})
        if found is not None:
            asyncio.run(found)


def test_zookeeper_leads_to_the_cluster_too(server: MillraceServer) -> None:
    zookeeper = server.status()["zookeeper"]
    with connect(f"zk://{zookeeper}/millrace", "vote", secret=(server.data / "secret").read_text().strip()) as db:
        started = time.monotonic()
        db.table("votes").insert(story=1)
        assert shared(db.view(COUNT), 1).lookup(1) is not None
        assert time.monotonic() - started < RECOVERY_S


def test_a_cluster_has_as_many_shards_while_a_worker_is_away(server: MillraceServer) -> None:
    deployment = server.deployment()
    zookeeper, secret = deployment.zookeeper, deployment.secret
    registry = Registry(zookeeper, "elsewhere", deployment.secret_bytes)
    registry.start()
    registry.register_worker(2, Address("127.0.0.1", 1, shard_count=3))
    assert find_deployment(f"zk://{zookeeper}/elsewhere", secret).shard_count == 3
    assert find_deployment(f"zk://{zookeeper}", secret).shard_count == len(server.status()["shards"])
    registry.stop()
    with pytest.raises(Retryable, match="no workers"):
        find_deployment(f"zk://{zookeeper}/elsewhere", secret)


def test_what_is_no_cluster_is_named(server: MillraceServer) -> None:
    with pytest.raises(Retryable, match="--http-port is wanted"):
        connect(f"{server.host}:{server.mysql_port}")
    with pytest.raises(ValueError, match="hexadecimal"):
        connect("zk://127.0.0.1:1", secret="wrong")


def test_computed_columns_are_read_from_shared_memory_in_batches(db: Database) -> None:
    def rows(keys: list[int]) -> list[tuple[int, int]]:
        assert by_id.lookup_columns(np.array(keys), block=False) is not None, "no worker has to be asked"
        batch = by_id.lookup_columns(np.array(keys))
        return list(zip(batch.columns["known"].tolist(), batch.columns["story"].tolist(), strict=True))

    by_id = db.view("SELECT COALESCE(user, -1) AS known, story FROM votes WHERE id = ?")
    votes = db.table("votes")
    first = votes.insert_many([{"story": 5, "user": None}, {"story": 6, "user": 2}]).last_insert_id
    keys = [first, first + 1]
    for key in keys:
        shared(by_id, key)
    assert rows(keys) == [(-1, 5), (2, 6)]
    votes.update(first, user=4)
    assert rows(keys) == [(4, 5), (2, 6)]
    assert by_id.lookup(first) == [(4, 5)]


def test_columns_are_the_same_from_shared_memory_and_from_rows(db: Database) -> None:
    db.execute("DROP TABLE IF EXISTS kinds")
    db.execute(
        "CREATE TABLE kinds (id BIGINT PRIMARY KEY, n INT, u BIGINT UNSIGNED, r DOUBLE, d DECIMAL(10, 2), w DECIMAL(60, 5), t TEXT, "
        "b VARBINARY(9), day DATE, at DATETIME(3), clock TIME)"
    )
    first = {
        "id": 1, "n": -5, "u": (1 << 64) - 1, "r": 1.5, "d": Decimal("1.10"), "w": Decimal("1e50") + Decimal("0.5"), "t": "ä",
        "b": b"\0\xff", "day": date(2024, 2, 29), "at": datetime(1969, 12, 31, 1, 2, 3, 500000), "clock": -timedelta(hours=3),
    }  # fmt: skip
    db.table("kinds").insert_many([first, dict.fromkeys(first) | {"id": -1}])
    expected = [first, dict.fromkeys(first) | {"id": -1}]
    view = db.view("SELECT *, d + 1 AS more FROM kinds WHERE id = ?")
    plain = db.view("kinds")
    asked, *found = plain.lookup_columns([1, 7, -1]), plain.lookup_columns([1, 7, -1]), plain.lookup_columns(np.array([1, 7, -1]))
    for key in (1, 7, -1):
        shared(plain, key)
    found += [plain.lookup_columns(np.array([1, 7, -1]), block=False), plain.lookup_columns([1.0, 7.0, -1.0], block=False)]
    for batch in found:
        assert batch is not None
        assert batch.present.tolist() == [True, False, True]
        assert batch.to_arrow().to_pylist() == expected
        assert batch.to_arrow().schema == asked.to_arrow().schema
    assert view.lookup_columns([1]).to_arrow().to_pylist() == [first | {"more": Decimal("2.10")}]
    assert plain.lookup_columns(np.array([1.5, -1.0])).present.tolist() == [False, True]
    assert plain.lookup_columns(np.array([(1 << 64) - 1, 1], np.uint64)).present.tolist() == [False, True]
    by_unsigned = db.view("SELECT id FROM kinds WHERE u = ?")
    for _ in range(2):
        assert by_unsigned.lookup_columns(np.array([(1 << 64) - 1], np.uint64)).columns["id"].tolist() == [1]


def test_a_closed_database_says_so(server: MillraceServer) -> None:
    db = connect(server.data, "vote")
    db.close()
    db.close()
    with pytest.raises(RuntimeError, match="closed"):
        db.execute("SELECT 1")
