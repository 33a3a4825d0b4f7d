"""Packets out of bytes, however the bytes arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mysql_adapter.wire.framing import FRAME_BYTES_MAX, Framer, Packet, SequenceBroken, frame, frames_of

payloads = st.lists(st.binary(max_size=40), max_size=8)


def taken(framer: Framer) -> list[Packet]:
    found = []
    while (packet := framer.take()) is not None:
        found.append(packet)
    return found


@given(payloads, st.lists(st.integers(min_value=1, max_value=30), min_size=1, max_size=50), st.integers(0, 255))
def test_any_chunking_gives_the_same_packets(sent: list[bytes], cuts: list[int], first: int) -> None:
    stream = b"".join(frame(payload, (first + number) & 0xFF) for number, payload in enumerate(sent))
    framer = Framer(1000)
    found: list[Packet] = []
    position = 0
    while position < len(stream):
        size = cuts[len(found) % len(cuts)]
        framer.feed(stream[position : position + size])
        position += size
        found += taken(framer)
    assert [packet.payload for packet in found] == sent
    assert [packet.first for packet in found] == [(first + number) & 0xFF for number in range(len(sent))]
    assert framer.buffered_bytes == 0


@pytest.mark.parametrize("size", [FRAME_BYTES_MAX - 1, FRAME_BYTES_MAX, FRAME_BYTES_MAX + 1, 2 * FRAME_BYTES_MAX])
def test_large_payloads_take_several_frames(size: int) -> None:
    payload = bytes(size)
    data = frame(payload, 254)
    assert len(data) == size + 4 * frames_of(size)
    framer = Framer(size)
    framer.feed(data)
    (packet,) = taken(framer)
    assert packet.payload == payload
    assert (packet.first, packet.last) == (254, (253 + frames_of(size)) & 0xFF)


@given(st.integers(0, 100), payloads)
def test_oversized_payload_is_skipped_and_the_next_is_found(excess: int, after: list[bytes]) -> None:
    framer = Framer(50)
    framer.feed(frame(b"x" * (51 + excess), 0)[:20])
    assert framer.take() is None
    assert framer.is_skipping
    framer.feed(frame(b"x" * (51 + excess), 0)[20:] + b"".join(frame(payload, 0) for payload in after))
    packets = taken(framer)
    assert [packet.payload for packet in packets] == [None, *after]
    assert not framer.is_skipping


def test_oversized_payload_in_several_frames_costs_no_memory() -> None:
    framer = Framer(100)
    header = FRAME_BYTES_MAX.to_bytes(3, "little")
    for number in range(3):
        framer.feed(header + bytes((number,)))
        for _ in range(3):
            framer.feed(bytes(FRAME_BYTES_MAX // 3))
            assert framer.take() is None
            assert framer.buffered_bytes == 0
    framer.feed(b"\0\0\0\x03")
    assert framer.take() == Packet(0, 3, None)


def test_frames_of_one_payload_must_be_in_order() -> None:
    framer = Framer(1 << 26)
    framer.feed(FRAME_BYTES_MAX.to_bytes(3, "little") + b"\0" + bytes(FRAME_BYTES_MAX) + b"\x01\0\0\x05x")
    with pytest.raises(SequenceBroken):
        framer.take()


def test_rest_is_what_follows_the_packets_taken() -> None:
    framer = Framer(100)
    framer.feed(frame(b"tls please", 1) + b"\x16\x03\x01 hello")
    packet = framer.take()
    assert packet is not None and packet.payload == b"tls please"
    assert framer.take_rest() == b"\x16\x03\x01 hello"
    assert framer.buffered_bytes == 0
