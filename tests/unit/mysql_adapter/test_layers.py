"""TLS and compression as layers over bytes."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.network.tls import create_certificate, server_context
from mysql_adapter.wire.compression import CompressionLayer
from mysql_adapter.wire.tls import TlsLayer


@given(st.lists(st.binary(max_size=2000), max_size=5), st.integers(min_value=1, max_value=500))
def test_compressed_bytes_come_back_however_they_are_cut(pieces: list[bytes], cut: int) -> None:
    sender, receiver = CompressionLayer(), CompressionLayer()
    stream = b"".join(sender.send(piece * 3) for piece in pieces)
    found = b"".join(receiver.receive(stream[start : start + cut]) for start in range(0, len(stream), cut))
    assert found == b"".join(piece * 3 for piece in pieces)


@pytest.mark.parametrize(
    "data",
    [
        b"\x04\0\0\0\x64\0\0junk",
        b"\x0b\0\0\0\xff\xff\xff" + b"\x78\x01\x4b\x04\x00\x00\x62\x00\x62\x00\x00",
    ],
)
def test_broken_compressed_frame_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        CompressionLayer().receive(data)


def test_tls_takes_bytes_in_any_pieces(tmp_path: Path) -> None:
    create_certificate(tmp_path / "cert.pem", tmp_path / "key.pem")
    assert (tmp_path / "key.pem").stat().st_mode & 0o077 == 0
    layer = TlsLayer(server_context(tmp_path / "cert.pem", tmp_path / "key.pem"))
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing)
    received = b""
    for step in range(20):
        try:
            client.do_handshake()
            client.write(b"hello server")
            step = 20
        except ssl.SSLWantReadError:
            pass
        for byte in outgoing.read():
            received += layer.receive(bytes((byte,)))
            incoming.write(layer.pending())
        if step == 20:
            break
    assert received == b"hello server"
    incoming.write(layer.send(b"hello client"))
    assert client.read(100) == b"hello client"
    assert layer.version.startswith("TLSv1.")
    with pytest.raises(ssl.SSLError):
        layer.receive(b"\x16\x03\x01\x00\x05nope!")
