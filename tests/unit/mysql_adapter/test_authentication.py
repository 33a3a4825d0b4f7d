"""Proofs of passwords, against the formulas the protocol defines."""

from __future__ import annotations

from hashlib import sha1, sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mysql_adapter.authentication import (
    NATIVE,
    SHA2,
    Account,
    AccountList,
    host_matches,
    make_nonce,
    native_matches,
    root_on_loopback,
    sha2_matches,
    stored_password,
)

passwords = st.text(min_size=1, max_size=30)


def xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right))


@given(passwords, passwords)
def test_native_proof_is_for_one_password_and_nonce(password: str, other: str) -> None:
    nonce = make_nonce()
    digest = sha1(password.encode()).digest()
    proof = xor(digest, sha1(nonce + sha1(digest).digest()).digest())
    assert native_matches(stored_password(NATIVE, password), proof, nonce)
    assert not native_matches(stored_password(NATIVE, password), proof, make_nonce())
    assert native_matches(stored_password(NATIVE, other), proof, nonce) == (other == password)


@given(passwords, passwords)
def test_sha2_proof_is_for_one_password_and_nonce(password: str, other: str) -> None:
    nonce = make_nonce()
    digest = sha256(password.encode()).digest()
    cached = sha256(digest).digest()
    proof = xor(digest, sha256(cached + nonce).digest())
    assert sha2_matches(cached, proof, nonce)
    assert not sha2_matches(cached, proof, make_nonce())
    wrong = sha256(sha256(other.encode()).digest()).digest()
    assert sha2_matches(wrong, proof, nonce) == (other == password)


@given(st.binary(max_size=40))
def test_no_proof_of_another_length_is_taken(proof: bytes) -> None:
    stored = stored_password(NATIVE, "secret")
    assert not native_matches(stored, proof, b"n" * 20)
    assert not sha2_matches(b"d" * 32, proof, b"n" * 20)
    assert not native_matches(b"", b"", b"n" * 20)


def test_stored_passwords_are_salted() -> None:
    assert stored_password(SHA2, "secret") != stored_password(SHA2, "secret")
    assert b"secret" not in stored_password(SHA2, "secret")


def test_nonce_has_no_zero_byte() -> None:
    assert all(0 not in make_nonce() for _ in range(1000))


@pytest.mark.parametrize(
    ("pattern", "host", "matches"),
    [
        ("%", "198.51.100.7", True),
        ("localhost", "127.0.0.1", True),
        ("localhost", "::1", True),
        ("localhost", "127.8.9.10", True),
        ("localhost", "10.0.0.1", False),
        ("localhost", "localhost.example.com", False),
        ("10.0.%", "10.0.3.4", True),
        ("10.0.%", "10.1.3.4", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.11", False),
    ],
)
def test_hosts(pattern: str, host: str, matches: bool) -> None:
    assert host_matches(pattern, host) is matches


def test_root_is_found_from_loopback_only() -> None:
    users = root_on_loopback()
    assert users.find("root", "127.0.0.1") == Account("root", "localhost", NATIVE)
    assert users.find("root", "192.0.2.1") is None
    assert users.find("admin", "127.0.0.1") is None
    assert AccountList([]).find("root", "127.0.0.1") is None
