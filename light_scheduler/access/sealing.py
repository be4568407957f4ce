"""Sealed texts: only workers can read them, and clients that send them back cannot change them. Pure.

    sealed bytes   salt (16 bytes) | AES-256-GCM of the content with its tag (16 bytes), in base64url without "="
    content        the bytes | 0x80 | zero bytes up to a multiple of 64
    key            HMAC-SHA256(secret of the workers, purpose 0x00 salt)

The padding means that the length reveals next to nothing about numbers in the content. Each seal has its own key, so
all use the same nonce, and a secret can be used for any number of seals.
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
    """Seal bytes for one purpose. The result is a URL-safe text that only workers can read."""
    salt = secrets.token_bytes(SALT_BYTES)
    padded = raw + _END
    padded += bytes(-len(padded) % MULTIPLE)
    encrypted = _cipher(secret, purpose, salt).encrypt(_NONCE, padded, None)
    return urlsafe_b64encode(salt + encrypted).decode().rstrip("=")


def unseal(secret: bytes, purpose: str, sealed: str) -> bytes | None:
    """Return the bytes that were sealed for a purpose; None if the text is not valid for it."""
    try:
        given = urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
        salt, encrypted = given[:SALT_BYTES], given[SALT_BYTES:]
        padded = _cipher(secret, purpose, salt).decrypt(_NONCE, encrypted, None).rstrip(b"\0")
    except (ValueError, InvalidTag):
        return None
    return padded.removesuffix(_END) if padded.endswith(_END) else None


def _cipher(secret: bytes, purpose: str, salt: bytes) -> AESGCM:
    return AESGCM(hmac.digest(secret, f"{purpose}\0".encode() + salt, "sha256"))
