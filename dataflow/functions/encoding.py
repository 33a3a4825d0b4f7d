"""Values in other notations: numbers in other bases, hexadecimal, base64, addresses, UUIDs.

What is not valid in its notation is NULL, except UUIDs, which are an error as in MySQL.
Hashes are in `hashing`, text formats of numbers and dates in `numeric` and `date_formats`.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from dataflow.breath import breathe
from dataflow.errors import Condition, InvalidStatement
from dataflow.expressions.expression import Call, Expression
from dataflow.functions.registry import Domain, Fragment, function, special
from dataflow.values.conversion import conversion
from dataflow.values.conversion.texts import encoder
from dataflow.values.result_limits import total
from dataflow.values.types import BIGINT, BIGINT_UNSIGNED, BLOBS, BOOLEAN, INT, NUMBERS, Kind, SqlType, text

if TYPE_CHECKING:
    from dataflow.expressions.compile import Emitter

UNSIGNED_MAX = (1 << 64) - 1
SIGNED_MAX = (1 << 63) - 1

VARBINARY_16 = SqlType(Kind.VARBINARY, length=16)
ASCII_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _long_binary(arguments: tuple[Expression, ...]) -> SqlType:
    return SqlType(Kind.LONGBLOB)


@function("ascii", arguments=(Domain.BYTES,), result=INT)
def ascii_code(value: bytes) -> int:
    return value[0] if value else 0


@special("ord", least=1, most=1, result=BIGINT)
def ord_code(emitter: Emitter, node: Call) -> Fragment:
    """The bytes that the first character has in its character set."""
    kind = node.arguments[0].type
    encoded = encoder(kind.collation)
    if kind.kind in BLOBS:
        return emitter.apply(ascii_code, [emitter.convert(node.arguments[0], Domain.BYTES)])
    return emitter.apply(lambda value: int.from_bytes(encoded(value[:1]), "big"), [emitter.convert(node.arguments[0], Domain.TEXT)])


@function("char", arguments=(Domain.INTEGER,), rest=Domain.INTEGER, nulls=True, result=_long_binary)
def char(*codes: int | None) -> bytes:
    """Binary; CHAR(… USING x) is the planner's CONVERT(CHAR(…) USING x)."""
    result = b""
    for code in codes:
        if code is not None:
            number = code & 0xFFFFFFFF
            result += number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")
    return result


def _unsigned(number: int | float | Decimal) -> int:
    """As an unsigned 64-bit integer, negative ones in two's complement; others than integers go by a double."""
    if isinstance(number, int):
        return number & UNSIGNED_MAX
    real = float(number)
    if not -(2.0**63) < real < 2.0**64:
        return UNSIGNED_MAX
    return int(real + math.copysign(0.5, real)) & UNSIGNED_MAX


HEX_BYTES_AT_ONCE = 1 << 20
BASE64_LINE_BYTES = 57


def _hex(value: int | float | Decimal | str | bytes) -> str:
    if isinstance(value, int | float | Decimal):
        return f"{_unsigned(value):X}"
    digits = value.encode() if isinstance(value, str) else value
    if len(digits) <= HEX_BYTES_AT_ONCE:
        return digits.hex().upper()
    pieces = []
    for start in range(0, len(digits), HEX_BYTES_AT_ONCE):
        pieces.append(digits[start : start + HEX_BYTES_AT_ONCE].hex().upper())
        breathe()
    return "".join(pieces)


@special("hex", least=1, most=1, result=text(), grows=True)
def hex_digits(emitter: Emitter, node: Call) -> Fragment:
    """Of a number its value, of anything else its bytes; a value of unknown type tells by itself."""
    kind = node.arguments[0].type.kind
    domain = Domain.ANY if kind is Kind.NULL else Domain.NUMBER if kind in NUMBERS else Domain.BYTES
    target = emitter.bounded(node, _hex, lambda value: 2 * total(value))
    return emitter.apply(target, [emitter.convert(node.arguments[0], domain)])


@function("unhex", arguments=(Domain.BYTES,), result=_long_binary)
def unhex(value: bytes) -> bytes | None:
    """An odd number of digits is read as if a zero came first."""
    digits = value.rjust(len(value) + len(value) % 2, b"0")
    return binascii.unhexlify(digits) if re.fullmatch(rb"[0-9A-Fa-f]*", digits) else None


@function("to_base64", arguments=(Domain.BYTES,), result=text(), size=lambda value: len(value) * 4 // 3)
def to_base64(value: bytes) -> str:
    """In lines of 76 characters, as in mail."""
    lines = []
    for start in range(0, len(value), BASE64_LINE_BYTES):
        lines.append(base64.b64encode(value[start : start + BASE64_LINE_BYTES]))
        breathe()
    return b"\n".join(lines).decode()


@function("from_base64", arguments=(Domain.BYTES,), result=_long_binary)
def from_base64(value: bytes) -> bytes | None:
    letters = value.translate(None, b" \t\r\n\v\f")
    if len(letters) % 4:
        return None
    try:
        return base64.b64decode(letters, validate=True)
    except binascii.Error:
        return None


def in_base(number: int, base: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, base)
        digits = ASCII_DIGITS[digit] + digits
        if number == 0:
            return digits


_CONV_NUMBER = re.compile(r"[ \t\n\v\f\r]*([-+]?)([0-9A-Za-z]*)")


def conv(value: str, from_base: int, to_base: int) -> str | None:
    """A negative base means that numbers are signed on that side. Bases have 32 bits."""
    from_base, to_base = (((base + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000 for base in (from_base, to_base))
    if not value or not 2 <= abs(from_base) <= 36 or not 2 <= abs(to_base) <= 36:
        return None
    match = _CONV_NUMBER.match(value)
    assert match is not None  # the expression matches the empty text
    number = 0
    for digit in match[2].upper():
        if (position := ASCII_DIGITS.index(digit)) >= abs(from_base):
            break
        number = number * abs(from_base) + position
        if number > UNSIGNED_MAX:  # more digits make no difference
            break
    negative = match[1] == "-"
    if from_base < 0:
        number = max(-number, -SIGNED_MAX - 1) if negative else min(number, SIGNED_MAX)
    elif number > UNSIGNED_MAX:
        number = UNSIGNED_MAX
    elif negative:
        number = -number
    number &= UNSIGNED_MAX
    if to_base < 0 and number > SIGNED_MAX:
        return "-" + in_base(UNSIGNED_MAX + 1 - number, -to_base)
    return in_base(number, abs(to_base))


def _converter(arguments: tuple[Expression, ...]) -> Callable[..., str | None]:
    """A BIT is its number here, whatever else it is as a text."""
    if arguments[0].type.kind is Kind.BIT:
        return lambda value, _, to_base: conv(str(value), 10, to_base)
    to_text = conversion(arguments[0].type, Domain.TEXT).function
    return conv if to_text is None else lambda value, *bases: conv(to_text(value), *bases)


function("conv", arguments=(Domain.ANY, Domain.INTEGER, Domain.INTEGER), result=text(65), specialise=True)(_converter)


def _digits_in(name: str, base: int) -> None:
    @function(name, arguments=(Domain.ANY,), result=text(64), specialise=True)
    def specialise(arguments: tuple[Expression, ...]) -> Callable[..., str | None]:
        convert = _converter(arguments)
        return lambda value: convert(value, 10, base)


_digits_in("bin", 2)
_digits_in("oct", 8)


@function("inet_aton", arguments=(Domain.TEXT,), result=BIGINT_UNSIGNED)
def inet_aton(value: str) -> int | None:
    """Also the short forms: 127.1 is 127.0.0.1."""
    if not re.fullmatch(r"[0-9.]*[0-9]", value, re.ASCII):
        return None
    parts = [int(part.lstrip("0")[:4] or "0") for part in value.split(".")]
    if max(parts) > 255:
        return None
    if 2 <= len(parts) < 4:
        parts[-1:-1] = [0] * (4 - len(parts))
    number = 0
    for part in parts:
        number = number << 8 | part
    return number & UNSIGNED_MAX


@function("inet_ntoa", arguments=(Domain.INTEGER,), result=text(31))
def inet_ntoa(value: int) -> str | None:
    return ".".join(map(str, value.to_bytes(4, "big"))) if 0 <= value < 1 << 32 else None


_IPV4 = re.compile(r"\d{1,3}(\.\d{1,3}){3}", re.ASCII)


def _ipv4_bytes(value: str) -> bytes | None:
    parts = [int(part) for part in value.split(".")] if _IPV4.fullmatch(value) else [256]
    return bytes(parts) if max(parts) < 256 else None


@function("inet6_aton", arguments=(Domain.TEXT,), result=VARBINARY_16)
def inet6_aton(value: str) -> bytes | None:
    if ":" not in value:
        return _ipv4_bytes(value)
    try:
        return ipaddress.IPv6Address(value).packed if "%" not in value else None
    except ValueError:
        return None


@function("is_ipv4", arguments=(Domain.TEXT,), nulls=True, result=BOOLEAN)
def is_ipv4(value: str | None) -> int:
    return int(value is not None and _ipv4_bytes(value) is not None)


@function("is_ipv6", arguments=(Domain.TEXT,), nulls=True, result=BOOLEAN)
def is_ipv6(value: str | None) -> int:
    return int(value is not None and ":" in value and inet6_aton(value) is not None)


@function("is_ipv4_compat", arguments=(Domain.ANY,), nulls=True, result=BOOLEAN)
def is_ipv4_compat(value: object) -> int:
    """::1.2.3.4, but neither :: nor ::1."""
    return int(isinstance(value, bytes) and len(value) == 16 and not any(value[:12]) and value[12:] > b"\0\0\0\1")


@function("is_ipv4_mapped", arguments=(Domain.ANY,), nulls=True, result=BOOLEAN)
def is_ipv4_mapped(value: object) -> int:
    return int(isinstance(value, bytes) and len(value) == 16 and value[:12] == bytes(10) + b"\xff\xff")


@function("inet6_ntoa", arguments=(Domain.ANY,), result=text(39))
def inet6_ntoa(value: object) -> str | None:
    if not isinstance(value, bytes) or len(value) not in (4, 16):
        return None
    if len(value) == 4:
        return ".".join(map(str, value))
    words = struct.unpack(">8H", value)
    start, size = _longest_zeros(words)
    if start == 0 and (size == 6 or (size == 5 and words[5] == 0xFFFF)):
        return "::" + ("ffff:" if size == 5 else "") + ".".join(map(str, value[12:]))
    if size == 0:
        return ":".join(f"{word:x}" for word in words)
    return ":".join(f"{word:x}" for word in words[:start]) + "::" + ":".join(f"{word:x}" for word in words[start + size :])


def _longest_zeros(words: tuple[int, ...]) -> tuple[int, int]:
    """Where the first of the longest runs of zeros is, and its length."""
    best = (0, 0)
    start = 0
    for position, word in enumerate(words):
        if word:
            start = position + 1
        elif position + 1 - start > best[1]:
            best = (start, position + 1 - start)
    return best


_GROUPS = r"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})"
_UUID = re.compile(rf"(?:{_GROUPS}|\{{{_GROUPS}\}}|([0-9a-f]{{32}}))", re.IGNORECASE | re.ASCII)


def _uuid_bytes(value: str) -> bytes | None:
    match = _UUID.fullmatch(value)
    return bytes.fromhex("".join(group for group in match.groups() if group)) if match else None


@function("is_uuid", arguments=(Domain.TEXT,), result=BOOLEAN)
def is_uuid(value: str) -> int:
    return int(_uuid_bytes(value) is not None)


@function("uuid_to_bin", arguments=(Domain.TEXT, Domain.INTEGER), optional=1, result=VARBINARY_16)
def uuid_to_bin(value: str, swap: int = 0) -> bytes:
    packed = _uuid_bytes(value)
    if packed is None:
        raise InvalidStatement(Condition.WRONG_VALUE_FOR_FUNCTION, "string", value, "uuid_to_bin")
    return packed[6:8] + packed[4:6] + packed[:4] + packed[8:] if swap else packed


@function("bin_to_uuid", arguments=(Domain.BYTES, Domain.INTEGER), optional=1, result=text(36))
def bin_to_uuid(value: bytes, swap: int = 0) -> str:
    if len(value) != 16:
        raise InvalidStatement(Condition.WRONG_VALUE_FOR_FUNCTION, "string", value.hex(), "bin_to_uuid")
    packed = value[4:8] + value[2:4] + value[:2] + value[8:] if swap else value
    digits = packed.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


@function("load_file", arguments=(Domain.TEXT,), result=_long_binary)
def load_file(name: str) -> bytes | None:
    """The server reads no files, as MySQL where secure_file_priv is NULL."""
    return None
