"""Bytes that only workers can read: those who hand them back learn nothing from them, and can change nothing. Pure.

    sealed bytes   salt (16 bytes) | AES-256-GCM of what is sealed with its tag (16 bytes), in base64url without "="
    sealed is      the bytes | 0x80 | zero bytes up to a multiple of 64
    key            HMAC-SHA256(secret of the workers, purpose 0x00 salt)

So the length tells next to nothing of numbers in them. Each seal has a key of its own, so all of them have the same
nonce, and no number of them is too many for a secret.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SALT_BYTES = 16
MULTIPLE = 64
_END = b"\x80"
_NONCE = bytes(12)


def seal(secret: bytes, purpose: str, raw: bytes) -> str:
    """Return bytes, for one purpose, as a text that is safe in a URL and that only workers can read."""
    salt = secrets.token_bytes(SALT_BYTES)
    padded = raw + _END
    padded += bytes(-len(padded) % MULTIPLE)
    encrypted = _cipher(secret, purpose, salt).encrypt(_NONCE, padded, None)
    return urlsafe_b64encode(salt + encrypted).decode().rstrip("=")


def unseal(secret: bytes, purpose: str, sealed: str) -> bytes | None:
    """Return the bytes that were sealed for a purpose; None: they were not, or they were changed."""
    try:
        given = urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
        salt, encrypted = given[:SALT_BYTES], given[SALT_BYTES:]
        padded = _cipher(secret, purpose, salt).decrypt(_NONCE, encrypted, None).rstrip(b"\0")
    except (ValueError, InvalidTag):
        return None
    return padded.removesuffix(_END) if padded.endswith(_END) else None


def _cipher(secret: bytes, purpose: str, salt: bytes) -> AESGCM:
    return AESGCM(hmac.digest(secret, f"{purpose}\0".encode() + salt, "sha256"))
