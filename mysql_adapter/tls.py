"""TLS over bytes in memory, and the certificate a server makes for itself.

The client starts its TLS handshake right behind the request for it, often in the same
segment, so the socket cannot simply be handed to a TLS transport: bytes already read would be
lost. `TlsLayer` takes bytes from wherever they are.
"""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

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


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def private_key(path: Path) -> rsa.RSAPrivateKey | None:
    """The key in a file, if it is one that passwords can be encrypted for."""
    found = serialization.load_pem_private_key(path.read_bytes(), None)
    return found if isinstance(found, rsa.RSAPrivateKey) else None


def create_certificate(certificate: Path, key: Path) -> None:
    """Write a self-signed certificate and its key, as MySQL does when it has none."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "millrace server certificate")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key.touch(mode=0o600)
    key.write_bytes(pem)
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
