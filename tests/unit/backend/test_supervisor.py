"""Ports that are chosen before anybody listens on them."""

from __future__ import annotations

import socket

import pytest

from backend.processes.supervisor import CannotStart, reserved_port

HOST = "127.0.0.1"


def listener(port: int, option: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        made.bind((HOST, port))
        made.listen()
    except OSError:
        made.close()
        raise
    return made


def test_a_reserved_port_is_taken_by_those_who_ask_for_it_and_no_others() -> None:
    with reserved_port(HOST, 0) as held:
        port = held.getsockname()[1]
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((HOST, port))
        for option in (socket.SO_REUSEPORT, socket.SO_REUSEADDR):  # adapters; ZooKeeper
            with listener(port, option), socket.create_connection((HOST, port), 10) as client:
                assert client.getpeername()[1] == port


def test_no_port_is_given_twice() -> None:
    held = [reserved_port(HOST, 0) for _ in range(200)]
    free = [socket.create_server((HOST, 0)) for _ in range(200)]
    try:
        assert len({each.getsockname()[1] for each in (*held, *free)}) == 400
    finally:
        for each in (*held, *free):
            each.close()


def test_a_port_where_somebody_listens_is_refused() -> None:
    with socket.create_server((HOST, 0)) as taken, pytest.raises(CannotStart, match="cannot listen"):
        reserved_port(HOST, taken.getsockname()[1])
