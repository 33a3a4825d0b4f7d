"""What a stranger tries at each kind of door. An attack returns what it got that it should not have, or None."""

from __future__ import annotations

import asyncio
import random
import re
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from backend.network.handshake import MAGIC, NONCE_BYTES, PROOF_BYTES
from backend.network.messages import AskStatus
from backend.network.transport import encode_frame

CHALLENGE_BYTES = len(MAGIC) + NONCE_BYTES
OVERSIZED_BYTES = 1 << 20
SLOW_BYTES = 12
SLOW_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Attempt:
    host: str
    port: int
    random: random.Random

    def noise(self, most: int = 4096) -> bytes:
        return self.random.randbytes(self.random.randint(1, most))

    async def exchange(self, *pieces: bytes, pause_s: float = 0.0, listen_s: float = 0.5) -> bytes:
        """Send the pieces on a new connection and return what came until it was closed, or for a while."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        heard = bytearray()

        async def listen() -> None:
            while data := await reader.read(65536):
                heard.extend(data)

        listening = asyncio.ensure_future(listen())
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                if pause_s:
                    await asyncio.sleep(pause_s)
            await asyncio.wait([listening], timeout=listen_s)
        except OSError:
            pass
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            writer.transport.abort()
        return bytes(heard)


Attack = Callable[[Attempt], Awaitable[str | None]]

# --- workers and controllers


def _more_than_a_challenge(heard: bytes) -> str | None:
    return None if len(heard) <= CHALLENGE_BYTES and MAGIC.startswith(heard[:4]) else f"was told {heard[:200]!r}"


async def noise(attempt: Attempt) -> str | None:
    return _more_than_a_challenge(await attempt.exchange(attempt.noise()))


async def unproven_request(attempt: Attempt) -> str | None:
    return _more_than_a_challenge(await attempt.exchange(encode_frame(1, AskStatus())))


async def guessed_proof(attempt: Attempt) -> str | None:
    guess = MAGIC + attempt.random.randbytes(NONCE_BYTES + PROOF_BYTES) + encode_frame(1, AskStatus())
    return _more_than_a_challenge(await attempt.exchange(guess[: CHALLENGE_BYTES + PROOF_BYTES], guess[CHALLENGE_BYTES + PROOF_BYTES :]))


async def oversized(attempt: Attempt) -> str | None:
    return _more_than_a_challenge(await attempt.exchange(bytes(OVERSIZED_BYTES)))


async def slow(attempt: Attempt) -> str | None:
    pieces = [bytes([byte]) for byte in (MAGIC + bytes(NONCE_BYTES))[:SLOW_BYTES]]
    return _more_than_a_challenge(await attempt.exchange(*pieces, pause_s=SLOW_PAUSE_S))


async def crossed(attempt: Attempt) -> str | None:
    """Each of two connections is told the other's nonce; what one says is said to the other."""
    first, second = [await asyncio.open_connection(attempt.host, attempt.port) for _ in range(2)]
    try:
        nonces = [(await reader.readexactly(CHALLENGE_BYTES))[len(MAGIC) :] for reader, _ in (first, second)]
        first[1].write(MAGIC + nonces[1])
        second[1].write(MAGIC + nonces[0])
        said = await asyncio.wait_for(first[0].read(PROOF_BYTES), 1)
        if not said:
            return None
        second[1].write(said + encode_frame(1, AskStatus()))
        return f"was told {said!r}"
    finally:
        first[1].transport.abort()
        second[1].transport.abort()


async def reflected(attempt: Attempt) -> str | None:
    reader, writer = await asyncio.open_connection(attempt.host, attempt.port)
    try:
        challenge = await reader.readexactly(CHALLENGE_BYTES)
        writer.write(challenge + challenge[len(MAGIC) :])
        return _more_than_a_challenge(challenge + await asyncio.wait_for(reader.read(), 3))
    finally:
        writer.transport.abort()


# --- ZooKeeper


def _zookeeper_frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


_CONNECT = _zookeeper_frame(struct.pack(">iqiqi", 0, 0, 4000, 0, 16) + bytes(16) + b"\0")
_NO_AUTH = -102
_READ, _CHILDREN, _SET, _CREATE = 4, 8, 5, 1


async def zookeeper_noise(attempt: Attempt) -> str | None:
    await attempt.exchange(attempt.noise())
    return None


async def zookeeper_oversized(attempt: Attempt) -> str | None:
    await attempt.exchange(struct.pack(">i", OVERSIZED_BYTES - 1), bytes(1000))
    return None


async def zookeeper_words(attempt: Attempt) -> str | None:
    word = attempt.random.choice([b"conf", b"cons", b"dump", b"envi", b"mntr", b"wchp", b"wchc", b"dirs"])
    heard = await attempt.exchange(word)
    return None if not heard or b"not in the whitelist" in heard else f"was told {heard[:200]!r}"


async def zookeeper_request(attempt: Attempt) -> str | None:
    """A session like anybody's, and a request about a node that is surely there."""
    path = attempt.random.choice([b"/", b"/millrace", b"/millrace/catalog", b"/millrace/workers", b"/millrace/workers/0", b"/zookeeper"])
    name = struct.pack(">i", len(path)) + path
    content = struct.pack(">i", 4) + b"mine"
    world = struct.pack(">ii", 1, 31) + struct.pack(">i", 5) + b"world" + struct.pack(">i", 6) + b"anyone"
    child = path.rstrip(b"/") + b"/mine"
    body = attempt.random.choice([
        struct.pack(">ii", 7, _READ) + name + b"\0",
        struct.pack(">ii", 7, _CHILDREN) + name + b"\0",
        struct.pack(">ii", 7, _SET) + name + content + struct.pack(">i", -1),
        struct.pack(">ii", 7, _CREATE) + struct.pack(">i", len(child)) + child + content + world + struct.pack(">i", 0),
    ])  # fmt: skip
    reader, writer = await asyncio.open_connection(attempt.host, attempt.port)
    try:
        writer.write(_CONNECT)
        await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
        writer.write(_zookeeper_frame(body))
        answer = await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
        [error] = struct.unpack_from(">i", answer, 12)
        return None if error else f"request {body!r} was carried out"
    finally:
        writer.transport.abort()


# --- Spark


async def spark_noise(attempt: Attempt) -> str | None:
    await attempt.exchange(attempt.noise())
    return None


async def spark_request(attempt: Attempt) -> str | None:
    """A call with a serialized object: nothing of it may be looked at."""
    body = b"\xac\xed\x00\x05" + attempt.noise(200)
    heard = await attempt.exchange(struct.pack(">QBQI", 8 + 1 + 8 + 4 + len(body), 3, 7, len(body)) + body)
    return f"was told {heard[:300]!r}" if b"NettyRpc" in heard or b"ObjectInputStream" in heard else None


async def py4j_command(attempt: Attempt) -> str | None:
    heard = await attempt.exchange(b"c\nz:java.lang.System\ngetProperty\nsuser.dir\ne\n")
    return f"was told {heard[:200]!r}" if heard.startswith(b"!y") else None


# --- MySQL and HTTP


async def mysql_noise(attempt: Attempt) -> str | None:
    await attempt.exchange(attempt.noise())
    return None


async def mysql_oversized(attempt: Attempt) -> str | None:
    await attempt.exchange(b"\xff\xff\xff\x01" + bytes(OVERSIZED_BYTES))
    return None


async def mysql_slow(attempt: Attempt) -> str | None:
    await attempt.exchange(*[bytes([byte]) for byte in attempt.noise(SLOW_BYTES)], pause_s=SLOW_PAUSE_S)
    return None


async def mysql_login(attempt: Attempt) -> str | None:
    """A login with a password that is none, and a query right behind it."""
    flags = struct.pack("<IIB23x", 0x00080000 | 0x8200 | 0x00000200, 1 << 24, 45)
    login = flags + b"root\0" + b"\x14" + attempt.random.randbytes(20) + b"mysql_native_password\0"
    query = b"\x03SELECT 1"
    heard = await attempt.exchange(
        struct.pack("<I", len(login))[:3] + b"\x01" + login + struct.pack("<I", len(query))[:3] + b"\0" + query
    )
    greeting = int.from_bytes(heard[:3], "little") + 4
    return f"was told {heard[greeting:][:200]!r}" if heard[greeting + 4 : greeting + 5] == b"\0" else None


async def http_noise(attempt: Attempt) -> str | None:
    await attempt.exchange(attempt.noise())
    return None


async def http_oversized(attempt: Attempt) -> str | None:
    await attempt.exchange(b"GET / HTTP/1.1\r\nX: " + b"x" * OVERSIZED_BYTES)
    return None


async def http_slow(attempt: Attempt) -> str | None:
    await attempt.exchange(*[bytes([byte]) for byte in b"GET /status "[:SLOW_BYTES]], pause_s=SLOW_PAUSE_S)
    return None


async def http_request(attempt: Attempt) -> str | None:
    path = attempt.random.choice([
        "/status", "/health", "/metrics", "/v1/program", "/v1/databases/d/tables/t/row?key=1", "/v1/databases/d/views", "/../secret"
    ])  # fmt: skip
    heard = await attempt.exchange(f"GET {path} HTTP/1.1\r\nHost: {attempt.host}\r\nConnection: close\r\n\r\n".encode())
    head, _, body = heard.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        return None
    return None if re.fullmatch(rb'\{"ready": \w+\}|# HELP millrace_\w+ .*|(#.*\n|millrace_ready [\d.]+\n)*', body) else f"{path} showed {body[:200]!r}"


ATTACKS: dict[str, list[Attack]] = {
    "internal": [noise, unproven_request, guessed_proof, oversized, slow, crossed, reflected],
    "zookeeper": [zookeeper_noise, zookeeper_oversized, zookeeper_words, zookeeper_request],
    "spark": [spark_noise, spark_request, py4j_command],
    "mysql": [mysql_noise, mysql_oversized, mysql_slow, mysql_login],
    "http": [http_noise, http_oversized, http_slow, http_request],
}
