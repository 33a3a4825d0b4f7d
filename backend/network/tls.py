"""The certificates that servers show: the user's own, renewed while they are used, or one that is made here.

A `Certificate` is looked at again every few seconds. What is new and fits together is shown to whoever connects from
then on; what does not is left alone, and said in the log once.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import os
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from backend.processes.settings import write_private

CHECK_S = 5.0

log = logging.getLogger(__name__)


class BadCertificate(Exception):
    """Why a certificate cannot be used, in one line."""


class Certificate:
    """Two files, and the `context` made of them; raises BadCertificate if they can't be used."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.files = (certificate, key)
        self._marks = self._current_marks()
        self.context = server_context(certificate, key)

    def reload(self) -> None:
        """Use the files as they are now; raises BadCertificate, and changes nothing, if they can't be used."""
        marks = self._current_marks()
        self.context = server_context(*self.files)
        self._marks = marks

    def follow(self) -> None:
        """Look for new files from time to time, on the running event loop."""
        if (marks := self._current_marks()) != self._marks:
            try:
                self.reload()
                log.info("a new certificate from %s is used", self.files[0])
            except BadCertificate as error:
                log.warning("the certificate before is used: %s", error)
                self._marks = marks
        asyncio.get_running_loop().call_later(CHECK_S, self.follow)

    def listening_context(self) -> ssl.SSLContext:
        """For who listens with one context: each connection gets the newest."""

        def newest(connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
            connection.context = self.context

        listening = server_context(*self.files)
        listening.sni_callback = newest  # called for clients that name no server, too
        return listening

    def _current_marks(self) -> list[tuple[int, int, int] | None]:
        found: list[tuple[int, int, int] | None] = []
        for path in self.files:
            try:
                stat = path.stat()
                found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
            except OSError:
                found.append(None)
        return found


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=b"")  # without, OpenSSL would ask at the terminal
    except ssl.SSLError as error:
        raise BadCertificate(f"{certificate} and {key} are no certificate and its key: {error.reason or error}") from None
    except OSError as error:
        missing = next((path for path in (certificate, key) if not os.access(path, os.R_OK)), certificate)
        raise BadCertificate(f"cannot read {missing}: {error.strerror}") from None
    return context


def private_key(path: Path) -> rsa.RSAPrivateKey | None:
    """The key in a file, if it is one that passwords can be encrypted for."""
    found = serialization.load_pem_private_key(path.read_bytes(), None)
    return found if isinstance(found, rsa.RSAPrivateKey) else None


def own_certificate(folder: Path) -> Path:
    """A self-signed certificate and its key, in one file that never changes, made by the first process that asks."""
    path = folder / "server.pem"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=folder) as own:
            certificate, key, both = (Path(own) / name for name in ("certificate", "key", "both"))
            create_certificate(certificate, key)
            write_private(both, key.read_bytes() + certificate.read_bytes())
            with contextlib.suppress(FileExistsError):  # another was faster
                os.link(both, path)
    return path


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
