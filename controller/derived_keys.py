"""Keys for one purpose each, made from the cluster's secret.

Who learns one of them (a ZooKeeper ensemble sees its credential) knows neither the secret nor the others.
"""

from __future__ import annotations

import hmac


def derived_key(secret: bytes, purpose: str) -> bytes:
    """32 bytes. The secret is random and whole, so one step of HKDF's expansion is enough."""
    return hmac.digest(secret, b"millrace\0" + purpose.encode() + b"\0\x01", "sha256")
