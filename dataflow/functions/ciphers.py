"""AES_ENCRYPT and AES_DECRYPT in MySQL's default mode, aes-128-ecb; other modes are left out.

A key of any length is folded into 16 bytes. What is not padded as it should be decrypts to NULL.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from dataflow.functions.registry import Domain, function
from dataflow.values.types import BLOB

KEY_BYTES = 16
_PADDING = PKCS7(KEY_BYTES * 8)


def _cipher(key: bytes) -> Cipher[modes.ECB]:
    folded = bytearray(KEY_BYTES)
    for position, byte in enumerate(key):
        folded[position % KEY_BYTES] ^= byte
    return Cipher(algorithms.AES(bytes(folded)), modes.ECB())


@function("aes_encrypt", arguments=(Domain.BYTES, Domain.BYTES), result=BLOB)
def aes_encrypt(value: bytes, key: bytes) -> bytes:
    padder, encryptor = _PADDING.padder(), _cipher(key).encryptor()
    return encryptor.update(padder.update(value) + padder.finalize()) + encryptor.finalize()


@function("aes_decrypt", arguments=(Domain.BYTES, Domain.BYTES), result=BLOB)
def aes_decrypt(value: bytes, key: bytes) -> bytes | None:
    decryptor, unpadder = _cipher(key).decryptor(), _PADDING.unpadder()
    try:
        padded = decryptor.update(value) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()
    except ValueError:
        return None
