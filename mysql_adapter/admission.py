"""The limits of connections: how many, how long without a login, and from which hosts.

Connections that have not logged in are counted apart, so that strangers take no place of clients: there are at most
`ENTERING_MAX`, and when more come the oldest is ended. `max_connections` clients may log in, and one more who has
CONNECTION_ADMIN. A host that breaks off too many logins in a row (`max_connect_errors`) is blocked until FLUSH HOSTS, or
until it was quiet for a while. As in MySQL this machine is never blocked, and a wrong password is no broken login: that one is
slowed down (`backend.network.login_throttle`).
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from backend.network.login_throttle import Delays, LoginThrottle
from controller.accounts import Rights, is_loopback
from controller.roles import with_roles
from dataflow.errors import Condition, MillraceError

if TYPE_CHECKING:
    from mysql_adapter.connection import Connection
    from mysql_adapter.environment import Environment

ENTERING_MAX = 512
HOSTS_MAX = 10_000
BLOCKED_S = 600.0

log = logging.getLogger(__name__)


class Admission:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._entering: OrderedDict[int, Connection] = OrderedDict()
        self._hosts: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """Logins in a row that were broken off, and when the last one was."""
        self.throttle = LoginThrottle()

    def _number(self, name: str) -> int:
        value = self._environment.globals.get(name)
        return value if isinstance(value, int) else 0

    @property
    def _clients(self) -> int:
        return len(self._environment.connections) - len(self._entering)

    def refuse(self, host: str) -> MillraceError | None:
        """Why somebody from there is not even greeted."""
        count, last = self._hosts.get(host, (0, 0.0))
        if count >= self._number("max_connect_errors") and time.monotonic() - last < BLOCKED_S:
            return self._refused("Connection_errors_max_connect_errors", MillraceError(Condition.HOST_BLOCKED, host))
        if self._clients > self._number("max_connections"):
            return self._refused("Connection_errors_max_connections", MillraceError(Condition.TOO_MANY_CONNECTIONS))
        return None

    def _refused(self, count: str, error: MillraceError) -> MillraceError:
        self._environment.past_counts.update((count,))
        return error

    def enter(self, connection: Connection) -> None:
        """Somebody is greeted who has not logged in yet."""
        self._entering[connection.id] = connection
        if len(self._entering) > ENTERING_MAX:
            _, oldest = self._entering.popitem(last=False)
            oldest.stream.abort()

    async def delay(self, user: str, host: str) -> bool:
        """Until a password may be looked at; False if it shall not be."""
        number = self._number
        self.throttle.delays = Delays(
            number("connection_control_failed_connections_threshold"),
            number("connection_control_min_connection_delay"),
            number("connection_control_max_connection_delay"),
        )
        return await self.throttle.wait(user, host)

    def logged_in(self, connection: Connection, user: str) -> None:
        """Raises error 1040 where there is no place left."""
        host = connection.stream.host
        self._hosts.pop(host, None)
        self.throttle.succeeded(user, host)
        self._entering.pop(connection.id, None)
        account = connection.account
        assert account is not None
        if self._clients > self._number("max_connections"):
            known = self._environment.database.catalog.known_accounts
            rights = Rights(with_roles(account, account.default_roles, known) or account)
            if not rights.has_any("CONNECTION_ADMIN", "SUPER"):
                raise self._refused("Connection_errors_max_connections", MillraceError(Condition.TOO_MANY_CONNECTIONS))

    def denied(self, connection: Connection, user: str, reason: str) -> None:
        """Somebody could not prove to be that user."""
        count = self.throttle.failed(user, connection.stream.host)
        log.warning("login of %.64r from %s failed, %d in a row: %s", user, connection.peer, count, reason)

    def leave(self, connection: Connection, broke_off: bool) -> None:
        """A connection is over; `broke_off` if in the middle of its login."""
        if self._entering.pop(connection.id, None) is None and connection.account is not None:
            return
        if not connection.stream.received_bytes:  # it has only looked whether somebody listens, as /health does
            return
        self._environment.past_counts.update(("Aborted_connects",))
        host = connection.stream.host
        if broke_off and not is_loopback(host):
            self._hosts[host] = (self._hosts.pop(host, (0, 0.0))[0] + 1, time.monotonic())
            if len(self._hosts) > HOSTS_MAX:
                self._hosts.popitem(last=False)

    def forget_hosts(self) -> None:
        """FLUSH HOSTS"""
        self._hosts.clear()
