"""Checksums and compression."""

from __future__ import annotations

import hashlib
import zlib

from dataflow.breath import breathe
from dataflow.errors import Condition
from dataflow.expressions.notices import say
from dataflow.functions.registry import Domain, function
from dataflow.values.long_values import LONG, windows
from dataflow.values.types import BIGINT, BLOB, Kind, SqlType, text


@function("md5", arguments=(Domain.BYTES,), result=text(32))
def md5(value: bytes) -> str:
    return hashlib.md5(value, usedforsecurity=False).hexdigest()


@function("sha", "sha1", arguments=(Domain.BYTES,), result=text(40))
def sha1(value: bytes) -> str:
    return hashlib.sha1(value, usedforsecurity=False).hexdigest()


_SHA2 = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}


@function("sha2", arguments=(Domain.BYTES, Domain.INTEGER), result=text(128))
def sha2(value: bytes, bits: int) -> str | None:
    return _SHA2[bits](value).hexdigest() if bits in _SHA2 else None


@function("crc32", arguments=(Domain.BYTES,), result=SqlType(Kind.INT, unsigned=True))
def crc32(value: bytes) -> int:
    return zlib.crc32(value)


@function("compress", arguments=(Domain.BYTES,), result=BLOB)
def compress(value: bytes) -> bytes:
    """The length in four bytes, then zlib's format; a final space is kept from being cut off by a dot."""
    if not value:
        return b""
    packer = zlib.compressobj()
    packed = b"".join([len(value).to_bytes(4, "little"), *map(packer.compress, windows(value)), packer.flush()])
    return packed + b"." if packed.endswith(b" ") else packed


def _uncompressed_size(value: bytes) -> int:
    return int.from_bytes(value[:4], "little") & 0x3FFFFFFF


@function("uncompress", arguments=(Domain.BYTES,), result=BLOB, size=_uncompressed_size)
def uncompress(value: bytes) -> bytes | None:
    if not value:
        return b""
    length = _uncompressed_size(value)
    reader, parts, left = zlib.decompressobj(), [], length + 1
    try:
        for packed in windows(value[4:]):
            while packed and left and not reader.eof:
                parts.append(reader.decompress(packed, min(left, LONG)))
                packed, left = reader.unconsumed_tail, left - len(parts[-1])
                breathe()
        parts.append(reader.flush())
    except zlib.error:
        parts.clear()
    if reader.eof and sum(map(len, parts)) <= length:
        return b"".join(parts)
    say(Condition.COMPRESSED_DATA_CORRUPT)
    return None


@function("uncompressed_length", arguments=(Domain.BYTES,), result=BIGINT)
def uncompressed_length(value: bytes) -> int | None:
    if not value:
        return 0
    if len(value) > 4:
        return _uncompressed_size(value)
    say(Condition.COMPRESSED_DATA_CORRUPT)
    return None
