"""SELECTs over one table by an index that is not unique, or by a range: from views, in the order of the index."""

from __future__ import annotations

from pathlib import Path

from tests.unit.backend.execution.engine import Engine, run


async def filled(engine: Engine) -> None:
    await engine.define(
        "CREATE TABLE comments (id INT PRIMARY KEY, story INT, author INT, text VARCHAR(20), KEY by_story (story, author))"
    )
    rows = ", ".join(f"({number}, {number % 3}, {number % 5}, 'text {number:02}')" for number in range(30, 0, -1))
    await engine.run(f"INSERT INTO comments VALUES {rows}, (90, NULL, 1, NULL)")


def test_rows_of_a_key_come_from_a_view_and_follow_changes(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await filled(engine)
        by_story = "SELECT id FROM comments WHERE story = {} AND text > 'text 05'"
        first = await engine.rows(by_story.format(1))
        assert first == [(10,), (25,), (16,), (7,), (22,), (13,), (28,), (19,)], "by author, then by id"
        assert not engine.store.hosted_views()
        assert await engine.rows(by_story.format(1)) == first
        assert len(engine.store.hosted_views()) == 1
        await engine.run("UPDATE comments SET author = 0 WHERE id = 19")
        await engine.run("DELETE FROM comments WHERE id IN (10, 25)")
        await engine.run("INSERT INTO comments VALUES (31, 1, 4, 'text 31')")
        assert await engine.rows(by_story.format(1)) == [(19,), (16,), (7,), (22,), (13,), (28,), (31,)]
        assert await engine.rows("SELECT id FROM comments WHERE story IN (1, 2) AND author = 1 ORDER BY text DESC") == [
            (26,), (16,), (11,), (1,),
        ]  # fmt: skip
        assert await engine.rows("SELECT id FROM comments WHERE story IS NULL") == [(90,)]
        assert await engine.rows("SELECT DISTINCT author FROM comments WHERE story = 0 LIMIT 2") == [(0,), (1,)]
        transaction = engine.database.begin()
        await engine.run("DELETE FROM comments WHERE story = 1", transaction)
        assert await engine.rows(by_story.format(1), transaction) == []
        transaction.rollback()

    run(tmp_path, scenario, shard_count=1)


def test_a_list_of_keys_is_looked_up_at_once_where_one_key_is(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await filled(engine)
        counts = "SELECT story, COUNT(*) FROM comments WHERE story {} GROUP BY story"
        for _ in range(2):
            assert await engine.rows(counts.format("= 1")) == [(1, 10)]
        [(_, before)] = await engine.store.view_status()
        assert sorted(await engine.rows(counts.format("IN (0, 1, 2)"))) == [(0, 10), (1, 10), (2, 10)]
        [(_, after)] = await engine.store.view_status()
        assert [(each.hits + each.misses) for each in after.views] == [before.views[0].hits + before.views[0].misses + 3]

    run(tmp_path, scenario, shard_count=1)


def test_a_range_that_no_index_finds_is_read_from_an_ordered_view(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await filled(engine)
        by_text = "SELECT id FROM comments WHERE text BETWEEN 'text {:02}' AND 'text {:02}'"
        for _ in range(6):
            assert await engine.rows(by_text.format(3, 5)) == [(3,), (4,), (5,)]
        assert len(engine.store.hosted_views()) == 1
        await engine.run("UPDATE comments SET text = 'text 04' WHERE id = 20")
        assert await engine.rows(by_text.format(3, 5)) == [(3,), (4,), (5,), (20,)]
        assert await engine.rows(by_text.format(29, 40)) == [(29,), (30,)]
        for _ in range(6):
            assert await engine.rows("SELECT id FROM comments WHERE id < 3") == [(1,), (2,)]
        assert len(engine.store.hosted_views()) == 1, "reading the primary key is as good"

    run(tmp_path, scenario, shard_count=1)


def test_large_results_are_not_kept(tmp_path: Path) -> None:
    async def scenario(engine: Engine) -> None:
        await engine.define("CREATE TABLE many (id INT PRIMARY KEY, state INT, KEY (state))")
        await engine.run(f"INSERT INTO many VALUES {', '.join(f'({number}, 1)' for number in range(3_000))}")
        for _ in range(4):
            assert len(await engine.rows("SELECT * FROM many WHERE state = 1")) == 3_000
        assert not engine.store.hosted_views()

    run(tmp_path, scenario, shard_count=1)
