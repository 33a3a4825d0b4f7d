"""Keys that are known to have no rows because their group is known: never a key that has some."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from backend.shared_memory.key_group import (
    encoded_members,
    group_name,
    group_of,
    has_member,
    is_group,
    members_among,
    with_member,
)
from backend.shared_memory.key_groups import KEYS_SEEN_MIN, MEMBERS_MAX
from backend.views.view_definition import ViewDefinition
from dataflow.expressions.expression import Column
from dataflow.functions import call
from dataflow.plan.node import Base, Join
from dataflow.values.types import Row
from tests.unit.backend.test_publication import Shop, encode, nothing_is_left, shop  # noqa: F401

INDEXES = ("KEY (user, story)", "KEY (story), KEY (user)", "KEY (story), KEY (user, kind), KEY (user, story)")


@pytest.fixture(params=INDEXES)
def votes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    with shop(tmp_path) as here:
        here.run(
            "CREATE TABLE votes (id INT NOT NULL PRIMARY KEY, user VARCHAR(20) COLLATE utf8mb4_general_ci, story BIGINT,"
            f" kind INT, {request.param})"
        )
        yield here


def by_user_and_story(here: Shop, only_stories: bool = True) -> ViewDefinition:
    table = here.table("votes")
    base = Base(table.id, tuple(column.type for column in table.columns), (0,))
    kind = base.types[3]
    filter_ = call("is null", Column(3, kind)) if only_stories else None
    return ViewDefinition(Join((base,), filter=filter_), (2, 1), (table,))


def known(here: Shop, view: ViewDefinition) -> str | None:
    """The column in which the keys of a group differ."""
    reader = here.shared.reader(view.name)
    place = None if reader is None else reader.grouped_by
    return None if place is None else ("user", "story")[place]


def ask_for(here: Shop, view: ViewDefinition, *keys: Row) -> None:
    """Ask for keys of a view that is shared already."""
    here.share(view, (0, "nobody"))
    here.ask(view, *keys)


def test_a_users_second_vote_makes_all_of_the_users_known(votes: Shop) -> None:
    votes.run("INSERT INTO votes VALUES (1, 'ann', 3, NULL), (2, 'ann', -4, NULL), (3, 'ann', 5, 1), (4, 'bob', 3, NULL)")
    view = by_user_and_story(votes)
    ask_for(votes, view, *[(1000 + number, "Ann") for number in range(KEYS_SEEN_MIN)])
    assert known(votes, view) == "story"
    assert votes.read(view, *[(number, "ANN") for number in range(100, 200)]) == [[]] * 100
    assert votes.read(view, (3, "ann")) is None, "it has a row: the worker is asked"
    assert votes.read(view, (5, "ann")) is None, "it has one that does not pass the filter, which the worker knows"
    assert votes.ask(view, (3, "ann"), (5, "ann"), (6, "ann")) == [[(1, "ann", 3, None)], [], []]
    assert votes.read(view, (3, "ann"), (5, "ann"), (-4, "x")) is None
    assert votes.read(view, (3, "ann"), (5, "ann"), (6, "ann")) == [[(1, "ann", 3, None)], [], []]
    votes.run("INSERT INTO votes VALUES (5, 'aNN', 6, NULL)")
    assert votes.read(view, (6, "ann")) is None
    assert votes.ask(view, (6, "ann")) == [[(5, "aNN", 6, None)]]
    votes.run("DELETE FROM votes WHERE id = 5")
    assert votes.read(view, (6, "ann"), (7, "ann")) == [[], []]


def test_keys_without_a_part_that_repeats_have_no_groups(votes: Shop) -> None:
    view = by_user_and_story(votes)
    ask_for(votes, view, *[(number, f"user {number}") for number in range(KEYS_SEEN_MIN)])
    assert known(votes, view) is None
    assert votes.read(view, (1, "user 2")) is None


def test_a_group_with_many_members_is_not_shown(votes: Shop) -> None:
    rows = ", ".join(f"({number}, 'ann', {number}, NULL)" for number in range(MEMBERS_MAX + 1))
    votes.run(f"INSERT INTO votes VALUES {rows}")
    view = by_user_and_story(votes)
    ask_for(votes, view, *[(-1 - number, "ann") for number in range(KEYS_SEEN_MIN)])
    assert votes.read(view, (-1, "ann")) == [[]]
    assert votes.read(view, (-1000, "ann")) is None


@pytest.mark.parametrize("only_stories", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_random_reads_are_those_of_the_table_whatever_is_evicted(votes: Shop, seed: int, only_stories: bool) -> None:
    random, view = Random(seed), by_user_and_story(votes, only_stories)
    stored: dict[int, Row] = {}
    users, answered = ("ann", "ANN", "bob", "carl"), 0

    def expected(story: int, user: str) -> list[Row]:
        return sorted(
            row
            for row in stored.values()
            if str(row[1]).lower() == user.lower() and row[2] == story and (row[3] is None or not only_stories)
        )

    for step in range(250):
        match random.randrange(5):
            case 0:
                row: Row = (step, random.choice(users), random.choice((None, *range(12))), random.choice((None, 1)))
                stored[step] = row
                votes.run(f"INSERT INTO votes VALUES ({step}, '{row[1]}', {_sql(row[2])}, {_sql(row[3])})")
            case 1 if stored:
                number = random.choice(list(stored))
                if random.random() < 0.5:
                    del stored[number]
                    votes.run(f"DELETE FROM votes WHERE id = {number}")
                else:
                    user, story = random.choice(users), random.randrange(12)
                    stored[number] = (number, user, story, stored[number][3])
                    votes.run(f"UPDATE votes SET user = '{user}', story = {story} WHERE id = {number}")
            case 2 if view.name in votes.host.views and random.random() < 0.3:
                hosted = votes.host.views[view.name].view
                votes.host.engine.evict_keys(hosted, random.sample(list(hosted.arrangement.index), len(hosted.arrangement.index) // 2))
                votes.host._publisher.publish(votes.host.engine)
                if random.random() < 0.3:
                    votes.host._publisher.compact(pressed=True)
            case _:
                user = random.choice(users)
                keys = [(random.randrange(14), user) for _ in range(random.randrange(1, 20))]
                wanted = [expected(*key) for key in keys]
                found = votes.read(view, *keys)
                answered += found is not None
                assert found is None or [sorted(each) for each in found] == wanted
                assert [sorted(each) for each in votes.ask(view, *keys)] == wanted
    assert known(votes, view) == "story"
    assert answered > 10


def _sql(value: object) -> str:
    return "NULL" if value is None else str(value)


def test_members_are_found_and_added() -> None:
    members = encoded_members([5, -3, 1 << 62])
    assert [has_member(members, each) for each in (5, -3, 1 << 62, 0, -(1 << 63) + 1, (1 << 63) - 1)] == [True] * 3 + [False] * 3
    assert with_member(with_member(members, 7), 5) == encoded_members([5, -3, 1 << 62, 7])
    assert not has_member(encoded_members([]), 0)
    for others in ([], range(100, 200)):  # looked for one by one, or all at once
        assert members_among(encoded_members([5, 9, *others]), [4, 5, 5, 9, 10]) == {5, 9}
    name, group = encode(["ann", 4]), encode((1, ["ann"]))
    assert group_of(name, 1) == (("ann",), 4) and group_name(("ann",), 1) == group
    assert group_of(encode(["ann", None]), 1) is None
    assert group_of(encode(["ann", 1 << 63]), 1) is None
    assert is_group(group) and not is_group(name)
