"""CALL millrace.load_rows(file, insert, with): rows as an Arrow stream, in a file that the client sends as for LOAD DATA LOCAL.

`insert` is an INSERT or REPLACE of one row of `?`, one for each of the stream's columns. All rows are one transaction,
together with the statement `with` (or '' for none): so who loads much can write down, with the rows, how far it is. Values are
checked as those of any INSERT; if one row is refused, nothing is done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backend.execution.outcome import Answer, Done
from backend.execution.pace import aside
from backend.execution.writes.arrow_rows import read_rows
from controller.catalog import Catalog
from controller.privileges import check_plan
from controller.sql.plan import Insert, Plan, Query
from controller.sql.planner import tables_of
from dataflow.errors import Condition, InvalidStatement, Unsupported
from dataflow.values.types import Row
from mysql_adapter.sessions.facts import fact
from mysql_adapter.wire.packets import CAN

if TYPE_CHECKING:
    from mysql_adapter.sessions.session import Session

BYTES_MAX = 64 << 20
PLANS_MAX = 128


async def load_rows(session: Session, arguments: Row) -> Answer:
    file, insert, besides = map(str, arguments)
    if session.transaction is not None or not session.autocommit:
        raise Unsupported("CALL millrace.load_rows inside of a transaction")
    data = await _sent(session, file)
    codes, rows, count = aside(len(data), lambda: read_rows(data, BYTES_MAX))
    environment = session.environment
    plans, settings = environment.plans, session.settings

    async def attempt(catalog: Catalog) -> Answer:
        plan = plans.plan_prepared(insert, catalog, session.database, settings, codes)
        check_plan(session, plan, insert)
        statement = plan.statement
        if not isinstance(statement, Insert) or statement.before is not None or len(statement.rows) != 1 or plan.first:
            raise InvalidStatement(Condition.WRONG_ARGUMENTS, "millrace.load_rows")
        session.check_writable(tuple(each.id for each in tables_of(plan)))
        facts = [fact(session, name) for name in plan.facts]
        runs = [(_of_many(session, plan), rows if not facts else [*rows, *facts])] if count else []
        if besides:
            other, values = plans.plan_text(besides, catalog, session.database, settings)
            check_plan(session, other, besides)
            if isinstance(other.statement, Query) or other.first:
                raise InvalidStatement(Condition.WRONG_ARGUMENTS, "millrace.load_rows")
            runs.append((other, [*values, *(fact(session, name) for name in other.facts)]))
        return await environment.database.execute_together(runs, session.modes, session.lock_timeout_s) if runs else Done()

    return await environment.attempt(attempt)


async def _sent(session: Session, file: str) -> bytes:
    """What the client sends; it goes on to the end whatever is wrong with it."""
    stream = session.connection.stream
    if not stream.capabilities & CAN.CLIENT_LOCAL_FILES:
        raise InvalidStatement(Condition.LOCAL_INFILE_DISABLED)
    stream.send(b"\xfb" + file.encode(session.client_codec, "replace"))
    data = bytearray()
    is_too_large = False
    while piece := await stream.receive():
        is_too_large = is_too_large or len(data) + len(piece) > BYTES_MAX
        if not is_too_large:
            data += piece
    if is_too_large:
        raise InvalidStatement(Condition.PACKET_TOO_LARGE)
    return bytes(data)


def _of_many(session: Session, plan: Plan) -> Plan:
    """The same object for the same plan, as that is what compiled statements are found by."""
    kept = session.environment.plans_of_many
    found = kept.get(id(plan))
    if found is None or found[0] is not plan:
        if len(kept) >= PLANS_MAX:
            kept.clear()
        found = kept[id(plan)] = plan, replace(plan, batch=(0, len(plan.parameter_types)))
    return found[1]
