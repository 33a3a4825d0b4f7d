"""Rows as packets, text and binary: one compiled encoder for each list of column types.

The encoder is generated Python over the values of `dataflow.values.types`: a loop that turns a batch
of rows into framed packets, with each column's conversion written in place. Conversions that
need more than an expression are in `cells`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from dataflow.values.types import BLOBS, INTEGERS, STRINGS, Kind, Row, SqlType
from mysql_adapter.wire import cells
from mysql_adapter.wire.columns import INTEGER_DIGITS
from mysql_adapter.wire.framing import FRAME_BYTES_MAX, frame, frames_of

Encoder = Callable[[Sequence[Row], int], tuple[bytes, int]]
"""(rows, first sequence number) to (framed packets, next sequence number)"""

Types = tuple[SqlType, ...]

_LENGTHS = tuple(bytes((length,)) for length in range(251))


@lru_cache(maxsize=4096)
def text_encoder(types: Types, codec: str, time_zone: str) -> Encoder:
    """Encoder of text-protocol rows; text goes out in `codec`, TIMESTAMPs in `time_zone`."""
    scope = _scope(codec, time_zone)
    pieces = []
    for index, type in enumerate(types):
        value = f"v{index}"
        source = _text_source(type, value, index, scope)
        pieces.append(f"NULL if {value} is None else {source}")
    body = [f"        payload = join(({', '.join(f'({piece})' for piece in pieces)},))"]
    return _compile(types, body, scope)


@lru_cache(maxsize=4096)
def binary_encoder(types: Types, codec: str, time_zone: str) -> Encoder:
    """Encoder of binary-protocol rows."""
    scope = _scope(codec, time_zone)
    body = ["        nulls = 0"]
    for index, type in enumerate(types):
        value = f"v{index}"
        body += [
            f"        if {value} is None:",
            f"            nulls |= {1 << (index + 2)}",
            f"            {value} = b''",
            "        else:",
            f"            {value} = {_binary_source(type, value, index, scope)}",
        ]
    bitmap_bytes = (len(types) + 9) // 8
    values = ", ".join(f"v{index}" for index in range(len(types)))
    body.append(f"        payload = join((ZERO, nulls.to_bytes({bitmap_bytes}, 'little'), {values},))")
    return _compile(types, body, scope)


def _compile(types: Types, body: list[str], scope: dict[str, Any]) -> Encoder:
    targets = "".join(f"v{index}, " for index in range(len(types)))
    source = "\n".join(
        [
            "def encode(rows, sequence):",
            "    out = []",
            "    append = out.append",
            f"    for {targets} in rows:",
            *body,
            "        length = len(payload)",
            f"        if length < {FRAME_BYTES_MAX}:",
            "            append((length | sequence << 24).to_bytes(4, 'little'))",
            "            append(payload)",
            "            sequence = sequence + 1 & 255",
            "        else:",
            "            append(frame(payload, sequence))",
            "            sequence = sequence + frames_of(length) & 255",
            "    return join(out), sequence",
        ]
    )
    exec(source, scope)
    encoder: Encoder = scope["encode"]
    return encoder


def _scope(codec: str, time_zone: str) -> dict[str, Any]:
    return {
        "NULL": b"\xfb",
        "ZERO": b"\0",
        "LENGTHS": _LENGTHS,
        "CODEC": codec,
        "ERRORS": "surrogateescape" if codec == "utf-8" else "replace",
        "join": b"".join,
        "counted": cells.counted,
        "frame": frame,
        "frames_of": frames_of,
        "time_zone": time_zone,
        "cells": cells,
    }


def _short(source: str) -> str:
    """A text that is surely shorter than 251 bytes, behind its length."""
    return f"LENGTHS[len(b := {source})] + b"


def _counted(source: str) -> str:
    return f"LENGTHS[len(b)] + b if len(b := {source}) < 251 else counted(b)"


def _text_source(type: SqlType, value: str, index: int, scope: dict[str, Any]) -> str:
    kind = type.kind
    if kind in INTEGERS or kind is Kind.YEAR:
        if kind is Kind.YEAR:
            return _short(f"b'%04d' % {value}")
        if type.zerofill:
            width = type.length or INTEGER_DIGITS[kind][1]
            return _short(f"b'%0{width}d' % {value}")
        return _short(f"b'%d' % {value}")
    if kind in STRINGS:
        return _counted(f"{value}.encode(CODEC, ERRORS)")
    if kind in BLOBS or kind is Kind.NULL:
        return _counted(value)
    if kind is Kind.BIT:
        return _short(f"{value}.to_bytes({_bit_bytes(type)}, 'big')")
    name = f"cell{index}"
    scope[name] = cells.text_cell(type, scope["time_zone"])
    return _short(f"{name}({value})")


_PACKED = {Kind.TINYINT: "b", Kind.SMALLINT: "h", Kind.MEDIUMINT: "i", Kind.INT: "i", Kind.BIGINT: "q"}


def _binary_source(type: SqlType, value: str, index: int, scope: dict[str, Any]) -> str:
    kind = type.kind
    name = f"cell{index}"
    if kind in INTEGERS:
        letter = _PACKED[kind].upper() if type.unsigned else _PACKED[kind]
        scope[name] = struct.Struct(f"<{letter}").pack
        return f"{name}({value})"
    if kind is Kind.YEAR:
        return f"{value}.to_bytes(2, 'little')"
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        scope[name] = struct.Struct("<f" if kind is Kind.FLOAT else "<d").pack
        return f"{name}({value})"
    if kind in (Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP, Kind.TIME):
        scope[name] = cells.binary_cell(type, scope["time_zone"])
        return f"{name}({value})"
    return _text_source(type, value, index, scope)


def _bit_bytes(type: SqlType) -> int:
    return ((type.length or 1) + 7) // 8
