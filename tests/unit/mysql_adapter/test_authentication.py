"""Proofs of passwords, against the formulas the protocol defines."""

from __future__ import annotations

from hashlib import sha1, sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.accounts import INITIAL_ACCOUNTS, Account, find_account, host_matches
from controller.passwords import (
    NATIVE,
    SHA2,
    is_stored_password,
    native_digest,
    sha2_password_matches,
    sha256_crypt,
    stored_password,
)
from mysql_adapter.authentication import make_nonce, native_matches, sha2_matches

passwords = st.text(min_size=1, max_size=30)


def xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right))


@given(passwords, passwords)
def test_native_proof_is_for_one_password_and_nonce(password: str, other: str) -> None:
    nonce = make_nonce()
    digest = sha1(password.encode()).digest()
    proof = xor(digest, sha1(nonce + sha1(digest).digest()).digest())
    assert native_matches(native_digest(stored_password(NATIVE, password)), proof, nonce)
    assert not native_matches(native_digest(stored_password(NATIVE, password)), proof, make_nonce())
    assert native_matches(native_digest(stored_password(NATIVE, other)), proof, nonce) == (other == password)


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
    stored = native_digest(stored_password(NATIVE, "secret"))
    assert not native_matches(stored, proof, b"n" * 20)
    assert not sha2_matches(b"d" * 32, proof, b"n" * 20)
    assert not native_matches(b"", b"", b"n" * 20)


def test_stored_passwords_are_salted() -> None:
    assert stored_password(SHA2, "secret") != stored_password(SHA2, "secret")
    assert "secret" not in stored_password(SHA2, "secret")


@settings(max_examples=20)
@given(passwords, passwords)
def test_a_stored_password_matches_itself_alone(password: str, other: str) -> None:
    stored = stored_password(SHA2, password)
    assert is_stored_password(SHA2, stored)
    assert len(stored) == 70
    assert sha2_password_matches(stored, password.encode())
    assert sha2_password_matches(stored, other.encode()) == (other == password)


def test_slow_hash_is_sha256_crypt() -> None:
    # `openssl passwd -5 -salt saltstring 'Hello world!'`
    expected = b"5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"
    assert sha256_crypt(b"Hello world!", b"saltstring", 5000) == expected
    # MySQL's salts have 20 bytes, more than crypt(3) takes.
    salt = bytes.fromhex("F9CC98CE08892924F50A213B6BC571A2C11778C5")
    assert sha256_crypt(b"hashcat", salt, 5000) == b"bTy95Y99eAME1dwEkHOA1ndHGBWz.1bxSSRkuTXFGV/"


def test_native_hash_is_that_of_mysql() -> None:
    assert stored_password(NATIVE, "password") == "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"


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
        ("10.0.%.1", "10.0.3.4", False),
        ("10.0._.1", "10.0.3.1", True),
        ("10.1.0.0/255.255.0.0", "10.1.3.4", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.11", False),
    ],
)
def test_hosts(pattern: str, host: str, matches: bool) -> None:
    assert host_matches(pattern, host) is matches


def test_root_is_found_from_loopback_only() -> None:
    accounts = INITIAL_ACCOUNTS
    root = find_account(accounts, "root", "127.0.0.1")
    assert root is not None and root.name == ("root", "localhost")
    assert find_account(accounts, "root", "192.0.2.1") is None
    assert find_account(accounts, "admin", "127.0.0.1") is None


def test_the_most_specific_host_is_taken() -> None:
    accounts = {
        name: Account(*name)
        for name in (("a", "%"), ("a", "10.0.0.%"), ("a", "10.0.0.7"), ("", "10.0.0.8"), ("a", "10.0.0.0/8"))
    }
    found = {host: find_account(accounts, "a", host) for host in ("10.0.0.7", "10.0.0.8", "10.0.0.9", "10.9.9.9", "11.0.0.1")}
    names = {host: account.name for host, account in found.items() if account is not None}
    assert names == {
        "10.0.0.7": ("a", "10.0.0.7"),
        "10.0.0.8": ("", "10.0.0.8"),
        "10.0.0.9": ("a", "10.0.0.0/8"),
        "10.9.9.9": ("a", "10.0.0.0/8"),
        "11.0.0.1": ("a", "%"),
    }
