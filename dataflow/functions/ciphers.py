"""AES_ENCRYPT and AES_DECRYPT in the modes of block_encryption_mode, except for cfb1.

A key of any length is folded into as many bytes as the mode has. ecb and cbc pad: what is not padded as it should be decrypts to
NULL. All but ecb want an initialization vector, of which the first 16 bytes count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cryptography.hazmat.decrepit.ciphers.modes import CFB, CFB8, OFB
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Expression, Literal
from dataflow.functions.registry import Domain, call, function
from dataflow.values.types import BLOB, text

BLOCK_BYTES = 16
DEFAULT_MODE = "aes-128-ecb"
_VECTORED: dict[str, Callable[[bytes], modes.Mode]] = {"cbc": modes.CBC, "cfb8": CFB8, "cfb128": CFB, "ofb": OFB}
_PADDED = ("ecb", "cbc")
_PADDING = PKCS7(BLOCK_BYTES * 8)
MODES = frozenset(f"aes-{bits}-{mode}" for bits in (128, 192, 256) for mode in ("ecb", *_VECTORED))


def in_mode(name: str, arguments: Sequence[Expression], mode: str) -> Expression:
    """A call of AES_ENCRYPT or AES_DECRYPT in a session's mode."""
    if mode.endswith("ecb"):
        arguments = arguments[:2]  # a vector is ignored
    elif len(arguments) == 2:
        raise InvalidStatement(Condition.WRONG_ARGUMENT_COUNT, name)
    return call(name, *arguments) if mode == DEFAULT_MODE else call(f"{name} in", Literal(mode, text(len(mode))), *arguments)


def _cipher(mode: str, key: bytes, vector: bytes, name: str) -> Cipher[Any]:
    _, bits, kind = mode.split("-")
    folded = bytearray(int(bits) // 8)
    for position, byte in enumerate(key):
        folded[position % len(folded)] ^= byte
    if kind == "ecb":
        return Cipher(algorithms.AES(bytes(folded)), modes.ECB())
    if len(vector) < BLOCK_BYTES:
        raise InvalidStatement(Condition.SHORT_VECTOR, name, BLOCK_BYTES)
    return Cipher(algorithms.AES(bytes(folded)), _VECTORED[kind](vector[:BLOCK_BYTES]))


@function("aes_encrypt in", arguments=(Domain.TEXT, Domain.BYTES, Domain.BYTES, Domain.BYTES), optional=1, result=BLOB)
def encrypt(mode: str, value: bytes, key: bytes, vector: bytes = b"") -> bytes:
    encryptor = _cipher(mode, key, vector, "aes_encrypt").encryptor()
    if mode.endswith(_PADDED):
        padder = _PADDING.padder()
        value = padder.update(value) + padder.finalize()
    return encryptor.update(value) + encryptor.finalize()


@function("aes_decrypt in", arguments=(Domain.TEXT, Domain.BYTES, Domain.BYTES, Domain.BYTES), optional=1, result=BLOB)
def decrypt(mode: str, value: bytes, key: bytes, vector: bytes = b"") -> bytes | None:
    decryptor, unpadder = _cipher(mode, key, vector, "aes_decrypt").decryptor(), _PADDING.unpadder()
    try:
        found = decryptor.update(value) + decryptor.finalize()
        return unpadder.update(found) + unpadder.finalize() if mode.endswith(_PADDED) else found
    except ValueError:
        return None


@function("aes_encrypt", arguments=(Domain.BYTES, Domain.BYTES), result=BLOB)
def aes_encrypt(value: bytes, key: bytes) -> bytes:
    return encrypt(DEFAULT_MODE, value, key)


@function("aes_decrypt", arguments=(Domain.BYTES, Domain.BYTES), result=BLOB)
def aes_decrypt(value: bytes, key: bytes) -> bytes | None:
    return decrypt(DEFAULT_MODE, value, key)
