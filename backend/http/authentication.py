"""Basic authentication over HTTP, with the accounts of MySQL and their passwords.

An account is found by user name and where the connection comes from, as over MySQL; one that
demands TLS is refused unless the request came over HTTPS. An account without a password could be used
by any web page that a browser on this machine shows, under a name that leads here; so the name
in the request must be an address or localhost.

Of those who got in with caching_sha2_password a digest is kept in memory, so that only the
first request is slow; slow comparisons go one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import logging
import os
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha1, sha256

from aiohttp import web

from backend.execution.database import Database
from backend.network.login_throttle import LoginThrottle
from controller.accounts import Account, Rights, find_account, is_loopback
from controller.catalog import Catalog
from controller.passwords import NATIVE, SHA2, native_digest, sha2_password_matches, stored_password
from controller.roles import with_roles
from controller.sql.settings import DEFAULT_SETTINGS, Settings
from dataflow.errors import Condition, InvalidStatement, MillraceError

PASSWORD_BYTES_MAX = 256

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request it is, for `controller.privileges`."""

    account: Account
    host_name: str
    rights: Rights
    database: str | None
    settings: Settings
    known_catalog: Callable[[], Catalog]

    @property
    def catalog(self) -> Catalog:
        return self.known_catalog()


class Callers:
    def __init__(self, engine: Database) -> None:
        self._engine = engine
        self._digests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._throttle = LoginThrottle()
        self._nobodys = stored_password(SHA2, os.urandom(32).hex())
        self._rights: dict[tuple[str, str], tuple[Account, Rights]] = {}

    async def identify(self, request: web.Request, database: str | None) -> Caller:
        """Raises error 1045 for who is not who they say they are."""
        host = request.remote or ""
        host_name = "localhost" if is_loopback(host) else host
        given = _credentials(request.headers.get("Authorization", ""))
        if given is None:
            raise InvalidStatement(Condition.ACCESS_DENIED, "", host_name, "NO")
        user, password = given
        try:
            account = await self._proven(user, password, host, host_name, request)
        except InvalidStatement as error:
            count = self._throttle.failed(user, host)
            log.warning("login of %.64r from %s over HTTP failed, %d in a row: %s", user, host_name, count, error)
            raise
        self._throttle.succeeded(user, host)
        catalog = self._engine
        return Caller(
            account, host_name, self._rights_of(account), database, DEFAULT_SETTINGS, lambda: catalog.catalog
        )

    async def _proven(self, user: str, password: bytes, host: str, host_name: str, request: web.Request) -> Account:
        if not await self._throttle.wait(user, host):
            raise InvalidStatement(Condition.ACCESS_DENIED, user, host_name, "YES" if password else "NO")
        account = self._find(user, host)
        if not await self._is(account, password, request.host):
            with contextlib.suppress(MillraceError):  # it may have been changed elsewhere just now
                await self._engine.refresh_catalog()
            newer = self._find(user, host)
            if newer == account or not await self._is(newer, password, request.host):
                raise InvalidStatement(Condition.ACCESS_DENIED, user, host_name, "YES" if password else "NO")
            account = newer
        assert account is not None
        if account.locked:
            raise InvalidStatement(Condition.ACCOUNT_LOCKED, user, host_name)
        if account.expired:
            raise InvalidStatement(Condition.PASSWORD_EXPIRED)
        if account.needs_tls and not request.secure:
            raise InvalidStatement(Condition.ACCESS_DENIED, user, host_name, "YES" if password else "NO")
        return account

    def _find(self, user: str, host: str) -> Account | None:
        return find_account(self._engine.catalog.known_accounts, user, host)

    def _rights_of(self, account: Account) -> Rights:
        known = self._engine.catalog.known_accounts
        account = with_roles(account, account.default_roles, known) or account
        kept = self._rights.get(account.name)
        if kept is None or kept[0] != account:
            kept = self._rights[account.name] = (account, Rights(account))
        return kept[1]

    async def _is(self, account: Account | None, password: bytes, called: str) -> bool:
        """Whether this is the account's password."""
        if account is not None and not account.stored:
            return not password and _is_address(called)
        if account is not None and account.plugin == NATIVE:
            return hmac.compare_digest(sha1(sha1(password).digest()).digest(), native_digest(account.stored))
        stored = self._nobodys if account is None else account.stored
        digest = sha256(sha256(password).digest()).digest()
        if account is not None:
            kept = self._digests.get(account.name)
            if kept is not None and kept[0] == stored and hmac.compare_digest(kept[1], digest):
                return True
        async with self._one_at_a_time:
            matches = await asyncio.to_thread(sha2_password_matches, stored, password)
        if matches and account is not None:
            self._digests[account.name] = (stored, digest)
        return matches and account is not None


def _credentials(header: str) -> tuple[str, bytes] | None:
    """User and password of a Basic header."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = b64decode(encoded.strip(), validate=True).partition(b":")
        if not colon or len(password) > PASSWORD_BYTES_MAX:
            return None
        return user.decode(), password
    except ValueError:  # no ASCII, no base64, no UTF-8
        return None


def _is_address(called: str) -> bool:
    """Whether a Host header has an address, or localhost: names may be anybody's."""
    name = called.rpartition("]")[0].lstrip("[") if called.startswith("[") else called.partition(":")[0]
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
