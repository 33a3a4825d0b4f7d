"""The counters of SHOW STATUS: of a session, of a process, of all adapters.

A session counts from its beginning, or from when it was reset. What sessions that are over have done is
kept by their process, until that ends.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mysql_adapter.environment import Environment
    from mysql_adapter.sessions.session import Session


def session_counts(session: Session) -> Counter[str]:
    stream = session.connection.stream
    return Counter(
        Bytes_received=stream.received_bytes,
        Bytes_sent=stream.sent_bytes,
        Com_select=session.select_count,
        Millrace_reads_memory=max(session.select_count - session.asked_count - session.evaluated_count, 0),
        Millrace_reads_view=session.asked_count,
        Millrace_reads_tables=session.evaluated_count,
        Questions=session.command_count,
    )


def end_counts(session: Session) -> None:
    """The session is over, or begins again."""
    session.environment.past_counts.update(session_counts(session))
    stream = session.connection.stream
    stream.received_bytes = stream.sent_bytes = session.select_count = session.command_count = 0
    session.asked_count = session.evaluated_count = 0


LONGEST = "Millrace_loop_hold_max_ms"
"""In microseconds here. Of several processes it is the largest, where others are added up."""


def process_counts(environment: Environment) -> Counter[str]:
    total = Counter(environment.past_counts)
    total.update(
        Connection_control_delay_generated=environment.admission.throttle.delayed_count,
        Slow_queries=environment.query_log.slow_count,
        Millrace_shortcuts=environment.shortcuts.answered,
        Threads_connected=len(environment.connections),
    )
    total[LONGEST] = int(environment.watch.longest_s * 1e6)
    for connection in environment.connections.values():
        if connection.session is not None:
            total.update(session_counts(connection.session))
    return total
