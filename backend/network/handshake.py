"""The two ends of an internal connection prove to each other that they know the cluster's secret.

    listener → initiator    magic, the listener's nonce
    initiator → listener    magic, the initiator's nonce, MAC("initiator", both nonces, place)
    listener → initiator    MAC("listener", both nonces, place)

Invariants
- The initiator proves first; a listener says nothing but a random number before it has checked that proof.
- A proof is good for one connection, one direction and one place: it can't be replayed (nonces), reflected
  (roles), crossed between connections (both nonces) or passed on to another listener (the place is the
  address that the initiator has connected to, and the one that the listener was reached at).
- Before the proof an end takes exactly the bytes above, within `UNPROVEN_S`, from `UNPROVEN_MAX` strangers at once.

What follows on the connection is neither encrypted nor authenticated; see docs/security.md.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
from typing import Protocol

from controller.derived_keys import derived_key

UNPROVEN_S = 2.0
UNPROVEN_MAX = 128
REPORT_EVERY_S = 10.0
MAGIC = b"MRC2"
NONCE_BYTES = 32
PROOF_BYTES = 32
_CHALLENGE_BYTES = len(MAGIC) + NONCE_BYTES
_ANSWER_BYTES = _CHALLENGE_BYTES + PROOF_BYTES

log = logging.getLogger(__name__)


class WrongSecret(ConnectionError):
    """The other side has another cluster's secret, or none."""


class Handshake:
    """One side of it: bytes in, bytes out. `proven` once the other side is."""

    def __init__(self, secret: bytes, *, initiates: bool) -> None:
        self._key = derived_key(secret, "internal connections")
        self._initiates = initiates
        self._own = os.urandom(NONCE_BYTES)
        self._theirs = b""
        self._place = b""
        self.proven = False

    @property
    def awaits_verdict(self) -> bool:
        """Whether this side has proven itself and has not heard what the other says."""
        return self._initiates and bool(self._theirs) and not self.proven

    def begin(self, place: tuple[object, ...]) -> bytes:
        """What to send first. `place` is the listener's address, as this side knows it."""
        self._place = f"{place[0]} {place[1]}".encode()
        return b"" if self._initiates else MAGIC + self._own

    def receive(self, buffer: bytearray) -> bytes:
        """Take from `buffer` what belongs to the handshake and return what to send for it."""
        if self._initiates:
            return self._challenged(buffer) if not self._theirs else self._answered(buffer)
        if len(buffer) > _ANSWER_BYTES:
            raise ValueError("more than a proof")
        if not _is_greeting(buffer) or len(buffer) < _ANSWER_BYTES:
            return b""
        self._theirs = bytes(buffer[len(MAGIC) : _CHALLENGE_BYTES])
        self._check("initiator", bytes(buffer[_CHALLENGE_BYTES:]))
        buffer.clear()
        return self._proof("listener")

    def _challenged(self, buffer: bytearray) -> bytes:
        if len(buffer) > _CHALLENGE_BYTES:
            raise ValueError("more than a challenge")
        if not _is_greeting(buffer) or len(buffer) < _CHALLENGE_BYTES:
            return b""
        self._theirs = bytes(buffer[len(MAGIC) :])
        buffer.clear()
        return MAGIC + self._own + self._proof("initiator")

    def _answered(self, buffer: bytearray) -> bytes:
        if len(buffer) >= PROOF_BYTES:
            self._check("listener", bytes(buffer[:PROOF_BYTES]))
            del buffer[:PROOF_BYTES]
        return b""

    def _check(self, role: str, proof: bytes) -> None:
        if not hmac.compare_digest(proof, self._proof(role)):
            raise WrongSecret("the other side does not know the cluster's secret")
        self.proven = True

    def _proof(self, role: str) -> bytes:
        initiator, listener = (self._own, self._theirs) if self._initiates else (self._theirs, self._own)
        return hmac.digest(self._key, b"\0".join((role.encode(), initiator + listener, self._place)), "sha256")


def _is_greeting(buffer: bytearray) -> bool:
    """Whether it has begun like one; ValueError if it never can be one."""
    if not MAGIC.startswith(buffer[: len(MAGIC)]):
        raise ValueError("not a millrace process")
    return len(buffer) >= len(MAGIC)


class Closable(Protocol):
    def close(self) -> None: ...


class Strangers:
    """The connections of one listener that have proven nothing yet.

    When there are too many the oldest goes: who knows the secret needs a moment only.
    """

    def __init__(self) -> None:
        self._timers: dict[Closable, asyncio.TimerHandle] = {}
        self._unreported = 0
        self._reported = -REPORT_EVERY_S

    def __len__(self) -> int:
        return len(self._timers)

    def enter(self, peer: Closable) -> None:
        if len(self._timers) >= UNPROVEN_MAX:
            self._turn_out(next(iter(self._timers)), "too many at once")
        loop = asyncio.get_running_loop()

        def wait_again() -> None:
            self._timers[peer] = loop.call_later(UNPROVEN_S / 2, self._turn_out, peer, "no proof in time")

        # In two steps: a process that was busy reads what has arrived before it looks at the time again.
        self._timers[peer] = loop.call_later(UNPROVEN_S / 2, wait_again)

    def leave(self, peer: Closable) -> None:
        """It has proven itself, or is gone."""
        timer = self._timers.pop(peer, None)
        if timer is not None:
            timer.cancel()

    def _turn_out(self, peer: Closable, reason: str) -> None:
        self.leave(peer)
        self.report(reason)
        peer.close()

    def report(self, reason: str) -> None:
        """Log that somebody was refused; strangers can't fill the log."""
        self._unreported += 1
        now = asyncio.get_running_loop().time()
        if now - self._reported >= REPORT_EVERY_S:
            log.warning("closed %d connection(s) without the cluster's secret: %s", self._unreported, reason)
            self._unreported, self._reported = 0, now
