"""What a Java process keeps alive, asked over HotSpot's attach protocol, which needs no JDK.

A file next to the process and SIGQUIT make it listen on a Unix socket in /tmp; then it takes the commands of `jcmd`.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from pathlib import Path

ATTACH_TIMEOUT_S = 10.0


def live_bytes(process: int) -> int:
    """The heap and the classes of a Java process after a full garbage collection."""
    _command(process, "GC.run")
    info = _command(process, "GC.heap_info")
    return 1024 * sum(int(found) for found in re.findall(r"(?:generation|Metaspace).*?used (\d+)K", info))


def _command(process: int, command: str) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ATTACH_TIMEOUT_S)
        connection.connect(str(_attached(process)))
        connection.sendall(b"".join(part.encode() + b"\0" for part in ("1", "jcmd", command, "", "")))
        heard = bytearray()
        while data := connection.recv(65536):
            heard += data
    code, _, answer = heard.decode().partition("\n")
    assert code == "0", answer
    return answer


def _attached(process: int) -> Path:
    """The socket on which the process listens."""
    path = Path(f"/tmp/.java_pid{process}")
    if not path.exists():
        trigger = Path(f"/proc/{process}/cwd/.attach_pid{process}")
        trigger.touch()
        try:
            os.kill(process, signal.SIGQUIT)
            waited = threading.Event()
            for _ in range(int(ATTACH_TIMEOUT_S * 20)):
                if path.exists():
                    break
                waited.wait(0.05)
        finally:
            trigger.unlink()
    return path
