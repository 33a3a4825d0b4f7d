"""TLS over bytes in memory.

The client starts its TLS handshake right behind the request for it, often in the same
segment, so the socket cannot simply be handed to a TLS transport: bytes already read would be
lost. `TlsLayer` takes bytes from wherever they are.
"""

from __future__ import annotations

import ssl

READ_BYTES = 256 * 1024


class TlsLayer:
    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._established = False

    def receive(self, data: bytes) -> bytes:
        """Plain bytes of what arrived; `pending` may have an answer to send. Raises ssl.SSLError."""
        self._incoming.write(data)
        plain: list[bytes] = []
        try:
            if not self._established:
                self._object.do_handshake()
                self._established = True
            while chunk := self._object.read(READ_BYTES):
                plain.append(chunk)
        except ssl.SSLWantReadError:
            pass
        return b"".join(plain)

    def send(self, data: bytes) -> bytes:
        """Encrypted bytes for the socket."""
        self._object.write(data)
        return self._outgoing.read()

    def pending(self) -> bytes:
        """What the TLS protocol itself has to send."""
        return self._outgoing.read() if self._outgoing.pending else b""

    @property
    def cipher(self) -> str:
        found = self._object.cipher()
        return found[0] if found else ""

    @property
    def version(self) -> str:
        return self._object.version() or ""
