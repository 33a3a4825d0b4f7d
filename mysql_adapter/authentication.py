"""Authentication: the two password exchanges that MySQL clients know.

`authenticate` ends with the account the client proved to be, or raises `AccessDenied`; there is
no third way out, and nothing else makes a connection authenticated. An unknown user goes
through the same exchange as a known one with a password nobody has.

Accounts are the catalog's, see `controller.accounts`; what is stored of passwords is in
`controller.passwords`. Of those who have logged in with caching_sha2_password,
SHA256(SHA256(password)) is kept in memory only, which lets them in without the slow hash next time.
"""

from __future__ import annotations

import asyncio
import hmac
import os
from dataclasses import replace
from functools import cached_property
from hashlib import sha1, sha256
from typing import Protocol

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from mysql_mimic.charset import CharacterSet
from mysql_mimic.packets import make_auth_more_data, make_auth_switch_request

from controller.accounts import Account
from controller.passwords import NATIVE, SHA2, native_digest, sha2_password_matches, stored_password
from mysql_adapter.wire.framing import ConnectionOver

NONCE_BYTES = 20
PASSWORD_BYTES_MAX = 256

EMPTY = (b"", b"\0")
"""What clients answer that have no password, by plugin."""
FAST_SUCCESS = b"\x03"
FULL_AUTHENTICATION = b"\x04"
PUBLIC_KEY_REQUEST = b"\x02"


class Users(Protocol):
    def find(self, user: str, client_host: str) -> Account | None:
        """The account that `user` connecting from `client_host` is, if any, as far as known here."""
        ...

    async def refresh(self) -> None:
        """Learn of accounts changed elsewhere."""
        ...


class AccessDenied(ConnectionOver):
    """Not who they say they are; `with_password` is what MySQL's message tells."""

    def __init__(self, with_password: bool) -> None:
        self.with_password = with_password
        super().__init__()


class Channel(Protocol):
    """The connection during an exchange."""

    @property
    def secure(self) -> bool: ...

    def send(self, payload: bytes) -> None: ...

    async def receive(self) -> bytes: ...


def make_nonce() -> bytes:
    """Random bytes without zero, which would end the nonce early for clients written in C."""
    return bytes(byte % 127 + 1 for byte in os.urandom(NONCE_BYTES))


class Authenticator:
    """The passwords' side of all connections: accounts, the key for exchanges without TLS, the cache."""

    def __init__(self, users: Users, key: rsa.RSAPrivateKey | None = None) -> None:
        """`key` should be the same in all adapters, and stay: clients may keep its public half."""
        self.users = users
        self._given_key = key
        self._checking: dict[tuple[str, bytes], asyncio.Task[bool]] = {}
        self._digests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._unknown = {plugin: stored_password(plugin, os.urandom(32).hex()) for plugin in (NATIVE, SHA2)}

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        return self._given_key or rsa.generate_private_key(public_exponent=65537, key_size=2048)

    async def authenticate(
        self, channel: Channel, user: str, host: str, response: bytes, plugin: str | None, nonce: bytes
    ) -> Account:
        account = self.users.find(user, host)
        if account is None or (not account.stored and response not in EMPTY):
            await self.users.refresh()
            account = self.users.find(user, host)
        plugin = plugin or NATIVE
        known = account or Account(user, host, SHA2 if plugin == SHA2 else NATIVE)
        if account is None:
            known = replace(known, stored=self._unknown[known.plugin])
        if plugin != known.plugin:
            # Clients insist on it, also where there is no password to prove.
            # With the nonce of the greeting: clients use that one in a later CHANGE_USER.
            channel.send(make_auth_switch_request(CharacterSet.utf8mb4, known.plugin, nonce + b"\0"))
            response = await channel.receive()
        if response in EMPTY:
            # No exchange can prove the empty password better than the empty answer does.
            if account is None or account.stored:
                raise AccessDenied(False)
            return account
        if not known.stored:
            raise AccessDenied(True)
        if known.plugin == NATIVE:
            proven = native_matches(native_digest(known.stored), response, nonce)
            if not proven and (newer := await self._newer(known, host)) is not None:
                proven = native_matches(native_digest(newer.stored), response, nonce)
        else:
            proven = await self._sha2_matches(channel, known, host, response, nonce)
        if not proven or account is None:
            raise AccessDenied(True)
        return account

    async def _newer(self, account: Account, host: str) -> Account | None:
        """The account again, if its password was changed elsewhere just now."""
        await self.users.refresh()
        found = self.users.find(account.user, host)
        same = found is not None and (found.name, found.plugin) == (account.name, account.plugin)
        return found if same and found is not None and found.stored not in ("", account.stored) else None

    async def _sha2_matches(
        self, channel: Channel, account: Account, host: str, response: bytes, nonce: bytes
    ) -> bool:
        cached = self._digests.get(account.name)
        if cached is not None and cached[0] == account.stored and sha2_matches(cached[1], response, nonce):
            channel.send(make_auth_more_data(FAST_SUCCESS))
            return True
        channel.send(make_auth_more_data(FULL_AUTHENTICATION))
        password = await self._full_password(channel, nonce)
        if password is None or len(password) > PASSWORD_BYTES_MAX:
            return False
        if not await self._is_password(account.stored, password):
            newer = await self._newer(account, host)
            if newer is None or not await self._is_password(newer.stored, password):
                return False
            account = newer
        self._digests[account.name] = (account.stored, sha256(sha256(password).digest()).digest())
        return True

    async def _is_password(self, stored: str, password: bytes) -> bool:
        """The slow comparison, made once for all who come with the same password meanwhile."""
        name = (stored, password)
        task = self._checking.get(name)
        if task is None:
            task = self._checking[name] = asyncio.ensure_future(
                asyncio.to_thread(sha2_password_matches, stored, password)
            )
            task.add_done_callback(lambda _: self._checking.pop(name, None))
        return await asyncio.shield(task)

    async def _full_password(self, channel: Channel, nonce: bytes) -> bytes | None:
        message = await channel.receive()
        if channel.secure:
            return message.removesuffix(b"\0")
        key = await asyncio.to_thread(lambda: self._key)
        if message == PUBLIC_KEY_REQUEST:
            pem = key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            channel.send(make_auth_more_data(pem))
            message = await channel.receive()
        try:
            mixed = key.decrypt(message, padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None))
        except ValueError:
            return None
        return bytes(a ^ nonce[i % len(nonce)] for i, a in enumerate(mixed)).removesuffix(b"\0")


def native_matches(stored: bytes, response: bytes, nonce: bytes) -> bool:
    """response = SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password)))"""
    if len(response) != 20:
        return False
    candidate = _xor(response, sha1(nonce + stored[:20]).digest())
    return hmac.compare_digest(sha1(candidate).digest(), stored)


def sha2_matches(digest: bytes, response: bytes, nonce: bytes) -> bool:
    """response = SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce)"""
    if len(response) != 32:
        return False
    candidate = _xor(response, sha256(digest + nonce).digest())
    return hmac.compare_digest(sha256(candidate).digest(), digest)


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right))
