"""The Unix socket beside a listener's TCP port, for processes of the same machine: two thirds of the processor time for a message.

- Its name is abstract and made of the listener's address: no file is left behind, and who finds nobody there is on another
  machine, or in another network namespace, and goes on with TCP.
- Whoever listens there has to be a process of the same user, as the kernel says; else it is as if nobody did.
- Both sides prove the cluster's secret as over TCP (`backend/network/handshake.py`), with the name as the place: a proof for one is none
  for the other.
"""

from __future__ import annotations

import os
import socket
import struct

BACKLOG = 1024
_CREDENTIALS = struct.Struct("3i")

Place = tuple[str, str]


def local_place(host: str, port: int) -> Place:
    return "unix", f"\0millrace {host} {port}"


def listening_socket(place: Place) -> socket.socket | None:
    """None if somebody has the name."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(place[1])
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        return None
    listener.setblocking(False)
    return listener


def connected_socket(place: Place) -> socket.socket | None:
    """Never waits; None if nobody of this user listens there."""
    connected = socket.socket(socket.AF_UNIX)
    connected.setblocking(False)
    try:
        connected.connect(place[1])
        _, user, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    except OSError:
        user = -1
    if user != os.geteuid():
        connected.close()
        return None
    return connected
