"""Functions that wait, or whose effect is outside of the statement: SLEEP, GET_LOCK and its family.

An expression cannot wait. The first time that one of these is evaluated it stops the statement with `Needed`; who runs the
statement makes the call, adds its answer to the statement's `WaitingCalls`, and evaluates again. Calls are answered in the order in which
they are evaluated, so one that is not reached (the other side of an IF) is never made.
"""

from __future__ import annotations

from dataflow.functions.registry import Domain, function
from dataflow.values.types import BIGINT, Value

WAITING = "waiting call"
WAITING_FUNCTIONS = {
    "sleep": 1, "get_lock": 2, "release_lock": 1, "release_all_locks": 0, "is_free_lock": 1, "is_used_lock": 1,
}  # fmt: skip
"""The number of arguments of each."""


class Needed(Exception):
    """The statement goes on once this call is answered."""

    def __init__(self, name: str, values: tuple[Value, ...]) -> None:
        super().__init__(name)
        self.name = name
        self.values = values


class WaitingCalls:
    """The answers so far, and how many of them the evaluation that runs has taken."""

    def __init__(self) -> None:
        self._answers: list[Value] = []
        self._taken = 0

    def restart(self) -> None:
        self._taken = 0

    def add(self, answer: Value) -> None:
        self._answers.append(answer)

    def answer(self, name: str, values: tuple[Value, ...]) -> Value:
        if self._taken == len(self._answers):
            raise Needed(name, values)
        self._taken += 1
        return self._answers[self._taken - 1]


@function(WAITING, arguments=(Domain.ANY, Domain.ANY), rest=Domain.ANY, result=BIGINT, nulls=True, volatile=True)
def waiting_call(calls: WaitingCalls, name: str, *values: Value) -> Value:
    return calls.answer(name, values)
