"""The table of row locks: who gets a key when, and circles of waiting."""

from __future__ import annotations

from collections.abc import Iterable

from backend.worker.row_locks import KeyRequest, Owner, RowLocks, WaitGraph
from controller.sql.locking import NOWAIT, SKIP, WAIT
from dataflow.errors import Condition


def owner(name: str) -> Owner:
    return name.encode(), -1


class Shard:
    """A lock table with its own graph, and what became of each request."""

    def __init__(self, under_way: Iterable[tuple[bytes, Owner]] = ()) -> None:
        self.graph = WaitGraph()
        commits = list(under_way)
        self.locks = RowLocks(self._waits, lambda key: [commit for written, commit in commits if written == key])
        self.done: dict[str, Condition | None] = {}
        self.skipped: dict[str, list[int]] = {}

    def _waits(self, waiter: Owner, blockers: frozenset[Owner]) -> None:
        if self.graph.update(0, waiter, blockers):
            self.locks.break_wait(waiter)

    def lock(self, name: str, keys: str, shared: bool = False, waiting: str = WAIT) -> None:
        def done(refusal: Condition | None) -> None:
            self.done[name] = refusal
            self.skipped[name] = request.skipped

        self.done.pop(name, None)
        request = KeyRequest(owner(name), [key.encode() for key in keys], shared, waiting, done)
        self.locks.request(request)

    def release(self, name: str) -> None:
        self.locks.release(owner(name))

    def blocks(self, name: str, writes: str = "", checks: str = "") -> bytes | None:
        return self.locks.blocker(
            owner(name), [(key.encode(), 1, b"") for key in writes], [(key.encode(), 1) for key in checks]
        )


def test_a_key_is_one_owners_until_it_is_released_and_then_the_first_waiters() -> None:
    shard = Shard()
    for name in "abc":
        shard.lock(name, "k")
    assert set(shard.done) == {"a"}
    shard.release("a")
    assert set(shard.done) == {"a", "b"}
    shard.release("b")
    shard.release("c")
    assert set(shard.done) == {"a", "b", "c"} and len(shard.locks) == 0


def test_readers_share_and_do_not_overtake_a_writer() -> None:
    shard = Shard()
    shard.lock("a", "k", shared=True)
    shard.lock("b", "k", shared=True)
    shard.lock("w", "k")
    shard.lock("c", "k", shared=True)
    assert set(shard.done) == {"a", "b"}
    shard.release("a")
    shard.release("b")
    assert set(shard.done) == {"a", "b", "w"}
    shard.release("w")
    assert "c" in shard.done


def test_a_holder_that_wants_the_key_alone_goes_before_those_who_wait() -> None:
    shard = Shard()
    shard.lock("a", "k", shared=True)
    shard.lock("b", "k", shared=True)
    shard.lock("w", "k")
    shard.lock("a", "k")
    assert "a" not in shard.done
    shard.release("b")
    assert shard.done["a"] is None and "w" not in shard.done
    shard.lock("a", "k", shared=True)
    assert shard.done["a"] is None


def test_keys_are_taken_one_after_the_other_and_kept_while_waiting() -> None:
    shard = Shard()
    shard.lock("a", "2")
    shard.lock("b", "123")
    shard.lock("c", "1")
    shard.lock("d", "3")
    assert set(shard.done) == {"a", "d"}
    shard.release("a")
    assert set(shard.done) == {"a", "d"}
    shard.release("d")
    assert set(shard.done) == {"a", "b", "d"}


def test_nowait_fails_and_skip_leaves_out() -> None:
    shard = Shard()
    shard.lock("a", "2")
    shard.lock("b", "123", waiting=NOWAIT)
    shard.lock("c", "23", waiting=SKIP)
    assert shard.done["b"] is Condition.LOCK_NOWAIT
    assert (shard.done["c"], shard.skipped["c"]) == (None, [0])


def test_who_closes_a_circle_is_refused_and_the_others_go_on() -> None:
    shard = Shard()
    for name in "abc":
        shard.lock(name, name)
    shard.lock("a", "b")
    shard.lock("b", "c")
    shard.lock("c", "a")
    assert shard.done == {"c": Condition.DEADLOCK}
    shard.release("c")
    assert shard.done == {"c": Condition.DEADLOCK, "b": None}


def test_two_who_share_a_key_cannot_both_have_it_alone() -> None:
    shard = Shard()
    shard.lock("a", "k", shared=True)
    shard.lock("b", "k", shared=True)
    shard.lock("a", "k")
    shard.lock("b", "k")
    assert shard.done == {"b": Condition.DEADLOCK}
    shard.release("b")
    assert shard.done["a"] is None


def test_a_circle_over_two_shards_shows_in_the_graph_of_both() -> None:
    graph = WaitGraph()
    a, b = owner("a"), owner("b")
    assert not graph.update(0, a, frozenset({b}))
    assert graph.update(1, b, frozenset({a}))
    graph.forget(0)
    assert not graph.update(1, b, frozenset({a}))


def test_who_has_withdrawn_is_not_served() -> None:
    shard = Shard()
    for name in "abc":
        shard.lock(name, "k")
    assert shard.locks.withdraw(owner("b")) is not None
    shard.release("a")
    assert set(shard.done) == {"a", "c"}


def test_a_commit_is_blocked_by_what_others_hold() -> None:
    shard = Shard()
    shard.lock("a", "1")
    shard.lock("b", "2", shared=True)
    assert shard.blocks("c", writes="31") == b"1"
    assert shard.blocks("c", writes="2") == b"2"
    assert shard.blocks("c", checks="1") == b"1"
    assert shard.blocks("c", checks="23") is None
    assert shard.blocks("a", writes="1", checks="2") is None


def test_a_row_that_a_commit_is_about_to_change_is_given_to_nobody_before_it_has() -> None:
    commit = (b"x", 7)
    shard = Shard([(b"k", commit)])
    shard.lock("a", "k")
    assert not shard.done
    shard.locks.release(commit)
    assert shard.done == {"a": None}


def test_many_keys_are_let_go_some_at_a_time() -> None:
    shard = Shard()
    shard.lock("a", "klmno")
    shard.lock("b", "o")
    shard.lock("c", "k")
    assert shard.locks.release(owner("a"), 2)
    assert shard.done == {"a": None, "b": None} and len(shard.locks) == 4
    assert shard.blocks("d", writes="l") == b"l" and shard.blocks("d", writes="n") is None
    assert shard.locks.release(owner("a"), 2) and not shard.locks.release(owner("a"), 2)
    assert shard.done == {"a": None, "b": None, "c": None}
    assert not shard.locks.release(owner("a"), 2)
    shard.release("b")
    shard.release("c")
    assert len(shard.locks) == 0
