"""Who may connect: accounts, and the two password exchanges MySQL clients know.

`authenticate` ends with the account the client proved to be, or raises `AccessDenied`; there is
no third way out, and nothing else makes a connection authenticated. An unknown user goes
through the same exchange as a known one with a password nobody has.

Passwords are never kept: mysql_native_password stores SHA1(SHA1(password)), as that protocol
demands; caching_sha2_password stores a salted, slow hash and keeps SHA256(SHA256(password)) of
those who have logged in in memory only, which lets them in without the slow hash next time.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
from dataclasses import dataclass
from functools import cached_property
from hashlib import pbkdf2_hmac, sha1, sha256
from typing import Protocol

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from mysql_mimic.charset import CharacterSet
from mysql_mimic.packets import make_auth_more_data, make_auth_switch_request

from mysql_adapter.framing import ConnectionOver

NATIVE = "mysql_native_password"
SHA2 = "caching_sha2_password"
NONCE_BYTES = 20
SLOW_HASH_ITERATIONS = 100_000
PASSWORD_BYTES_MAX = 256

FAST_SUCCESS = b"\x03"
FULL_AUTHENTICATION = b"\x04"
PUBLIC_KEY_REQUEST = b"\x02"


@dataclass(frozen=True, slots=True)
class Account:
    """'user'@'host'. `stored` is empty for an account without a password."""

    user: str
    host: str
    plugin: str = SHA2
    stored: bytes = b""


class Users(Protocol):
    def find(self, user: str, client_host: str) -> Account | None:
        """The account that `user` connecting from `client_host` is, if any."""
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


@dataclass(slots=True)
class AccountList:
    """Users given at start."""

    accounts: list[Account]

    def find(self, user: str, client_host: str) -> Account | None:
        for account in self.accounts:
            if account.user == user and host_matches(account.host, client_host):
                return account
        return None


def root_on_loopback() -> AccountList:
    """root without a password, from this machine only."""
    return AccountList([Account("root", "localhost", NATIVE)])


def host_matches(pattern: str, client_host: str) -> bool:
    if pattern in ("%", client_host):
        return True
    if pattern == "localhost":
        return is_loopback(client_host)
    return "%" in pattern and client_host.startswith(pattern.partition("%")[0])


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in ("", "localhost")


def stored_password(plugin: str, password: str) -> bytes:
    """What an account keeps of `password`."""
    if not password:
        return b""
    if plugin == NATIVE:
        return sha1(sha1(password.encode()).digest()).digest()
    salt = os.urandom(16)
    return salt + pbkdf2_hmac("sha256", password.encode(), salt, SLOW_HASH_ITERATIONS)


def make_nonce() -> bytes:
    """Random bytes without zero, which would end the nonce early for clients written in C."""
    return bytes(byte % 127 + 1 for byte in os.urandom(NONCE_BYTES))


class Authenticator:
    """The passwords' side of all connections: accounts, the key for exchanges without TLS, the cache."""

    def __init__(self, users: Users) -> None:
        self.users = users
        self._digests: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        self._unknown = os.urandom(48)

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)

    async def authenticate(
        self, channel: Channel, user: str, host: str, response: bytes, plugin: str | None, nonce: bytes
    ) -> Account:
        account = self.users.find(user, host)
        plugin = plugin or NATIVE
        if account is not None and not account.stored:
            # No exchange can prove the empty password better than the empty answer does.
            if response in (b"", b"\0"):
                return account
            raise AccessDenied(True)
        known = account or Account(user, host, SHA2 if plugin == SHA2 else NATIVE, self._unknown)
        if plugin != known.plugin:
            # With the nonce of the greeting: clients use that one in a later CHANGE_USER.
            channel.send(make_auth_switch_request(CharacterSet.utf8mb4, known.plugin, nonce + b"\0"))
            response = await channel.receive()
        if response in (b"", b"\0"):
            raise AccessDenied(False)
        if known.plugin == NATIVE:
            proven = native_matches(known.stored, response, nonce)
        else:
            proven = await self._sha2_matches(channel, known, response, nonce)
        if not proven or account is None:
            raise AccessDenied(True)
        return account

    async def _sha2_matches(self, channel: Channel, account: Account, response: bytes, nonce: bytes) -> bool:
        name = (account.user, account.host)
        cached = self._digests.get(name)
        if cached is not None and cached[0] == account.stored and sha2_matches(cached[1], response, nonce):
            channel.send(make_auth_more_data(FAST_SUCCESS))
            return True
        channel.send(make_auth_more_data(FULL_AUTHENTICATION))
        password = await self._full_password(channel, nonce)
        if password is None or len(password) > PASSWORD_BYTES_MAX:
            return False
        salt, expected = account.stored[:16], account.stored[16:]
        found = await asyncio.to_thread(pbkdf2_hmac, "sha256", password, salt, SLOW_HASH_ITERATIONS)
        if not hmac.compare_digest(found, expected):
            return False
        self._digests[name] = (account.stored, sha256(sha256(password).digest()).digest())
        return True

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
