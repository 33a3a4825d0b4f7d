"""The fork server: the process that a cluster's other processes are forked from.

It imports the modules of the processes, once. A fork shares their memory, and starts in some hundredths of a second instead of one
second. What it has started becomes a child of the supervisor (`backend.processes.child`), so it may end at any time: nobody notices,
and the supervisor starts another when it needs one.

`millrace serve` forks its fork server from itself (`fork_early`), before it has threads or an event loop, so that the supervisor shares
its modules' memory, too. One that takes the place of a fork server that was killed imports them anew.

Requests and answers are messages of one socket: `Start` as JSON, and the number of the process.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec
from setproctitle import setproctitle

REQUEST_BYTES_MAX = 1 << 20
ADOPTION_S = 10.0
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


class Start(msgspec.Struct, array_like=True):
    """Start the process `name`: the function `run` of a module with these arguments or, without a module, a command."""

    name: str
    module: str
    arguments: list[str]
    output: str
    """The file that its standard output is appended to."""
    environment: dict[str, str] = {}


def adopt_orphans() -> None:
    """Become the parent of all descendants whose parents end."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """And not with a terminal: Java and Python leave a signal alone that was ignored when they began."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def fork_early() -> tuple[int, socket.socket]:
    """The number of a new fork server, and the supervisor's end of its channel."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    supervisor = os.getpid()
    gc.freeze()  # or this process's garbage collector would write to what is shared
    number = os.fork()
    if number == 0:
        ours.close()
        _begin(theirs, supervisor)
    theirs.close()
    return number, ours


def _begin(channel: socket.socket, supervisor: int) -> NoReturn:
    """In the new process, as if it had been started by its name: modules come from where this one does, not from the current folder."""
    os.setsid()
    die_with_parent()
    if os.getppid() != supervisor:
        os._exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.path[0] = str(Path(__file__).parents[2])
    setproctitle("millrace fork-server")
    work = _serve(channel, supervisor)
    if work is not None:
        work()
    sys.exit()


def _serve(channel: socket.socket, supervisor: int) -> Callable[[], None] | None:
    """Start processes until the supervisor is gone; in a new process, return what that has to do."""
    decode = msgspec.json.Decoder(Start).decode
    while request := channel.recv(REQUEST_BYTES_MAX):
        start = decode(request)
        if start.module:
            with suppress(Exception):  # the process itself says what is wrong
                importlib.import_module(start.module)
        gc.freeze()  # or each process's garbage collector would write to all of it
        number = _fork()
        if number == 0:
            channel.close()
            _become(start, supervisor)
            return lambda: _run(start)
        channel.send(str(number).encode())
    return None


def _fork() -> int:
    """The number of a new process whose parent has ended; 0 in that process."""
    reader, writer = os.pipe()
    between = os.fork()
    if between == 0:
        number = os.fork()
        if number:
            os.write(writer, str(number).encode())
            os._exit(0)
        os.close(reader)
        os.close(writer)
        return 0
    os.close(writer)
    found = os.read(reader, 20)
    os.close(reader)
    os.waitpid(between, 0)
    return int(found)


def _become(start: Start, supervisor: int) -> None:
    """A child of the supervisor, in a session of its own."""
    os.setsid()
    deadline = time.monotonic() + ADOPTION_S
    os.environ.update(start.environment)
    while os.getppid() != supervisor:
        if time.monotonic() > deadline:
            os._exit(1)
        time.sleep(0.001)
    die_with_parent()
    if os.getppid() != supervisor:
        os._exit(1)
    for descriptor, path, flags in ((0, os.devnull, os.O_RDONLY), (1, start.output, os.O_WRONLY | os.O_APPEND | os.O_CREAT)):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.dup2(1, 2)


def _run(start: Start) -> None:
    if not start.module:
        os.execvp(start.arguments[0], start.arguments)
    setproctitle(" ".join(["millrace", start.name, *start.arguments[-1:]]))
    importlib.import_module(start.module).run(*start.arguments)


if __name__ == "__main__":
    work = _serve(socket.socket(fileno=int(sys.argv[1])), os.getppid())
    if work is not None:
        work()
