"""Tokens as records of the tenants topic, which also contains other records. Pure.

    token/{id}                   a token, with the hashes of its texts
    token/{id}/rotation/{hash}   {"before": "...", "secrets": [...]}: its texts after a rotation
    token/{id}/revoked           {"at": 1800000000000, "by": "..."}: the token is never accepted again
    token/{id}/used              {"at": 1800000000000}: when it was used, at most some minutes ago
    peer-secret                  {"secret": "..."}: with which workers sign requests to each other

A revocation has its own key, so a concurrent write to the token cannot undo it. So does each rotation: it names the
text that it follows (`before`), and is valid only if that is the token's newest text at this place in the topic. Of two
concurrent rotations, all readers accept the first. Instants are UTC epoch ms.
"""

from __future__ import annotations

import secrets
from typing import Annotated

import msgspec

from light_scheduler.errors import FormatError

from .identity import Role
from .tokens import Token, TokenSecret, is_token_id

Record = tuple[bytes, bytes]
"""Key and value."""

PEER_SECRET_KEY = b"peer-secret"

_PREFIX = "token/"
_REVOKED = "revoked"
_USED = "used"
_ROTATION = "rotation/"
_HASH_DIGITS = 16


class Revocation(msgspec.Struct, frozen=True):
    """When a token was revoked, and by whom."""

    at: int
    by: str


class Use(msgspec.Struct, frozen=True):
    """When a token was used."""

    at: int


class Rotation(msgspec.Struct, frozen=True):
    """The texts of a token after the text with the SHA-256 `before` was rotated."""

    before: str
    secrets: Annotated[list[TokenSecret], msgspec.Meta(min_length=1)]


class _Stored(msgspec.Struct, frozen=True):
    name: str
    role: Role
    tenants: list[str] | None
    created_at: int
    created_by: str
    expires_at: int | None
    secrets: list[TokenSecret]


class _PeerSecret(msgspec.Struct, frozen=True):
    secret: str


_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_ENCODE = msgspec.json.Encoder().encode


def token_record(token: Token) -> Record:
    """Return the record of a token."""
    tenants = None if token.tenants is None else sorted(token.tenants)
    stored = _Stored(
        token.name, token.role, tenants, token.created_at, token.created_by, token.expires_at, list(token.secrets)
    )
    return f"{_PREFIX}{token.id}".encode(), _ENCODE(stored)


def rotation_record(before: Token, after: Token) -> Record:
    """Return the record of a rotation: the token before it, and after it with its new text."""
    rotation = Rotation(before.secrets[-1].sha256, list(after.secrets))
    name = after.secrets[-1].sha256[:_HASH_DIGITS]
    return f"{_PREFIX}{after.id}/{_ROTATION}{name}".encode(), _ENCODE(rotation)


def revoked_record(id: str, revocation: Revocation) -> Record:
    return f"{_PREFIX}{id}/{_REVOKED}".encode(), _ENCODE(revocation)


def used_record(id: str, use: Use) -> Record:
    return f"{_PREFIX}{id}/{_USED}".encode(), _ENCODE(use)


def new_peer_secret_record() -> Record:
    return PEER_SECRET_KEY, _ENCODE(_PeerSecret(secrets.token_urlsafe(32)))


def decode_peer_secret(value: bytes) -> bytes:
    """Return the secret for signatures. Raises FormatError."""
    try:
        return msgspec.json.decode(value, type=_PeerSecret).secret.encode()
    except _UNREADABLE as error:
        raise FormatError(f"not a secret of workers: {error}") from None


def revoked_id(key: bytes) -> str | None:
    """Return the id of the token that a record revokes, by its key; None: it is not a revocation."""
    id, part = _id_and_part(key)
    return id if part == _REVOKED and is_token_id(id) else None


def rotated_id(key: bytes) -> str | None:
    """Return the id of the token that a record rotates, by its key; None: it is not a rotation."""
    id, part = _id_and_part(key)
    return id if part.startswith(_ROTATION) and is_token_id(id) else None


def decode_record(key: bytes, value: bytes) -> tuple[str, Token | Rotation | Revocation | Use] | None:
    """Return a token's id and the content of its record; None for other records. Raises FormatError."""
    name = key.decode(errors="replace")
    if not name.startswith(_PREFIX):
        return None
    id, part = _id_and_part(key)
    if not is_token_id(id):
        raise FormatError(f"{name!r} does not name a token")
    try:
        if part == _REVOKED:
            return id, msgspec.json.decode(value, type=Revocation)
        if part == _USED:
            return id, msgspec.json.decode(value, type=Use)
        if part.startswith(_ROTATION):
            return id, msgspec.json.decode(value, type=Rotation)
        stored = msgspec.json.decode(value, type=_Stored)
    except _UNREADABLE:  # the error's text could repeat a hash
        raise FormatError(f"{name!r} is not a token of this version") from None
    if part or not stored.secrets:
        raise FormatError(f"{name!r} is not a token of this version")
    tenants = None if stored.tenants is None else frozenset(stored.tenants)
    return id, Token(
        id,
        stored.name,
        stored.role,
        tenants,
        stored.created_at,
        stored.created_by,
        stored.expires_at,
        tuple(stored.secrets),
    )


def _id_and_part(key: bytes) -> tuple[str, str]:
    """Return the possible token id in a key, and the rest of the key; empty for other records."""
    name = key.decode(errors="replace")
    id, _, part = name.removeprefix(_PREFIX).partition("/") if name.startswith(_PREFIX) else ("", "", "")
    return id, part
