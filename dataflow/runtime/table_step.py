"""The change of one table taken through the operators that depend on it, one after the other."""

from __future__ import annotations

from collections.abc import Callable

from dataflow.expressions.source import Function
from dataflow.runtime.operator import Operator
from dataflow.state.delta import Delta

TIMED_EVERY = 16
"""One step in 16 is timed; with several shards, all steps of one epoch in 16."""

Call = tuple[Operator, list[tuple[Function, int, tuple[Operator, ...]]]]
"""An operator and, for each of its inputs: the update function, the input's number, and the operators that the function covers."""


def table_step(
    base: Operator, store: Function | None, calls: list[Call], recorded: frozenset[int], failed: dict[Operator, Exception],
    clock: Callable[[], float] | None,
) -> Function:  # fmt: skip
    """Run every update function on what its input gave out, in order.

    Operators in `recorded` keep their delta until the step ends, to tell what was before it. One that raises is noted in `failed`; the others
    go on, as nothing but what is made from it has seen it in the middle of a change.
    """
    turn = 0

    def step(delta: Delta) -> None:
        nonlocal turn
        turn += 1
        timed = None if turn % TIMED_EVERY else clock
        before = 0.0 if timed is None else timed()
        if store is not None:
            store(delta)
        base.rows_in += len(delta)
        if base.number in recorded:
            base.delta = delta
        deltas = {base.number: delta}
        for operator, inputs in calls:
            out: Delta = []
            for update, number, covered in inputs:
                given = deltas.get(number)
                if given:
                    for each in covered:
                        each.rows_in += len(given)
                    try:
                        made = update(given)
                    except Exception as error:
                        failed.update(dict.fromkeys(covered, error))
                        out = []
                        break
                    out = [*out, *made] if out else made
            if out:
                deltas[operator.number] = out
                if operator.number in recorded:
                    operator.delta = out
            if timed is not None:
                now = timed()
                operator.seconds += (now - before) * TIMED_EVERY
                before = now

    return step
