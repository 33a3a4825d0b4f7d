"""Password hashes, in MySQL's own formats, so that accounts can be moved either way.

mysql_native_password keeps `*` and SHA1(SHA1(password)) in hex, which that protocol demands;
caching_sha2_password keeps `$A$005$`, a salt of 20 bytes and the slow sha256-crypt hash.
"""

from __future__ import annotations

import hmac
import os
import re
from hashlib import sha1, sha256

NATIVE = "mysql_native_password"
SHA2 = "caching_sha2_password"
PLUGINS = (NATIVE, SHA2)
DEFAULT_PLUGIN = SHA2

_SALT_BYTES = 20
_THOUSANDS = 5
_DIGITS = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NATIVE_FORMAT = re.compile(r"\*[0-9A-Fa-f]{40}")
_SHA2_FORMAT = re.compile(r"\$A\$[0-9A-F]{3}\$.{63}", re.DOTALL)


def stored_password(plugin: str, password: str) -> str:
    """What an account keeps of `password`; empty for none."""
    if not password:
        return ""
    if plugin == NATIVE:
        return "*" + sha1(sha1(password.encode()).digest()).hexdigest().upper()
    salt = bytes(_DIGITS[byte & 63] for byte in os.urandom(_SALT_BYTES))
    digest = sha256_crypt(password.encode(), salt, _THOUSANDS * 1000)
    return f"$A${_THOUSANDS:03X}${salt.decode()}{digest.decode()}"


def is_stored_password(plugin: str, stored: str) -> bool:
    """Whether `stored` has the plugin's format."""
    expected = _NATIVE_FORMAT if plugin == NATIVE else _SHA2_FORMAT
    return not stored or expected.fullmatch(stored) is not None


def native_digest(stored: str) -> bytes:
    """SHA1(SHA1(password)) of a stored native password."""
    return bytes.fromhex(stored[1:])


def sha2_password_matches(stored: str, password: bytes) -> bool:
    """The slow comparison with a stored caching_sha2_password."""
    salt, digest = stored[7:27].encode(), stored[27:].encode()
    return hmac.compare_digest(sha256_crypt(password, salt, int(stored[3:6], 16) * 1000), digest)


def sha256_crypt(password: bytes, salt: bytes, rounds: int) -> bytes:
    """The SHA-crypt of Ulrich Drepper, without its prefix."""
    length = len(password)
    other = sha256(password + salt + password).digest()
    mixed = password + salt + _repeated(other, length)
    bits = length
    while bits:
        mixed += other if bits & 1 else password
        bits >>= 1
    digest = sha256(mixed).digest()
    long_password = _repeated(sha256(password * length).digest(), length)
    long_salt = _repeated(sha256(salt * (16 + digest[0])).digest(), len(salt))
    for number in range(rounds):
        odd = number & 1
        mixed = long_password if odd else digest
        if number % 3:
            mixed += long_salt
        if number % 7:
            mixed += long_password
        digest = sha256(mixed + (digest if odd else long_password)).digest()
    places = [(0, 10, 20), (21, 1, 11), (12, 22, 2), (3, 13, 23), (24, 4, 14)]
    places += [(15, 25, 5), (6, 16, 26), (27, 7, 17), (18, 28, 8), (9, 19, 29)]
    encoded = b"".join(_sextets(digest[a] << 16 | digest[b] << 8 | digest[c], 4) for a, b, c in places)
    return encoded + _sextets(digest[31] << 8 | digest[30], 3)


def _repeated(data: bytes, length: int) -> bytes:
    return (data * (length // len(data) + 1))[:length]


def _sextets(number: int, count: int) -> bytes:
    return bytes(_DIGITS[number >> 6 * place & 63] for place in range(count))
