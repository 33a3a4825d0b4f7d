"""The certificate that adapters make for themselves, and those of users, which change."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backend.network.tls import (
    BadCertificate,
    Certificate,
    create_certificate,
    own_certificate,
    server_context,
)


def test_adapters_that_start_together_have_the_same_certificate(tmp_path: Path) -> None:
    for number in range(4):
        folder = tmp_path / str(number)

        def started(_: int, folder: Path = folder) -> bytes:
            path = own_certificate(folder)
            server_context(path, path)
            return path.read_bytes()

        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(started, range(4)))) == 1
        assert [path.name for path in folder.iterdir()] == ["server.pem"]
        assert (folder / "server.pem").stat().st_mode & 0o777 == 0o600


def test_what_is_no_certificate_is_said_in_one_line(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    with pytest.raises(BadCertificate, match=r"cannot read .*cert\.pem: No such file"):
        server_context(certificate, key)
    create_certificate(certificate, key)
    other = tmp_path / "other.pem"
    create_certificate(tmp_path / "more.pem", other)
    for wrong in (other, certificate):
        with pytest.raises(BadCertificate, match="no certificate and its key") as raised:
            server_context(certificate, wrong)
        assert "\n" not in str(raised.value)


def test_new_files_are_used_and_half_of_them_are_not(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    create_certificate(certificate, key)
    shown = Certificate(certificate, key)
    before = shown.context
    create_certificate(tmp_path / "new-cert.pem", tmp_path / "new-key.pem")
    (tmp_path / "new-cert.pem").replace(certificate)
    with pytest.raises(BadCertificate):
        shown.reload()
    assert shown.context is before
    (tmp_path / "new-key.pem").replace(key)
    shown.reload()
    assert shown.context is not before
