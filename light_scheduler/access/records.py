"""Tokens as records of the tenants topic, which has records of others too. Pure.

    token/{id}                   a token, with the hashes of its texts
    token/{id}/rotation/{hash}   {"before": "...", "secrets": [...]}: its texts after a rotation
    token/{id}/revoked           {"at": 1800000000000, "by": "..."}: the token is never accepted again
    token/{id}/used              {"at": 1800000000000}: when it was used, at most some minutes ago
    peer-secret                  {"secret": "..."}: what workers sign their questions to each other with

A revocation has its own key, so nothing that is written to the token at the same time takes it back. So does each
rotation: it names the text that it follows (`before`), and counts if that is the token's newest one where the rotation
stands in the topic. Of two rotations at once, all readers take the first. Instants are UTC epoch ms.
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
    """The texts of a token after the one with the SHA-256 `before` was rotated."""

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
    """Return the record of a rotation: the token before it, and with its new text."""
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
    """Return what workers sign with. Raises FormatError."""
    try:
        return msgspec.json.decode(value, type=_PeerSecret).secret.encode()
    except _UNREADABLE as error:
        raise FormatError(f"not a secret of workers: {error}") from None


def revoked_id(key: bytes) -> str | None:
    """Return the id of the token that a record revokes, going by its key; None: it is no revocation."""
    id, part = _id_and_part(key)
    return id if part == _REVOKED and is_token_id(id) else None


def rotated_id(key: bytes) -> str | None:
    """Return the id of the token that a record rotates, going by its key; None: it is no rotation."""
    id, part = _id_and_part(key)
    return id if part.startswith(_ROTATION) and is_token_id(id) else None


def decode_record(key: bytes, value: bytes) -> tuple[str, Token | Rotation | Revocation | Use] | None:
    """Return a token's id and what a record says of it; None for a record of others. Raises FormatError."""
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
    except _UNREADABLE:  # its text could repeat a hash
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
    """Return what may be a token's id, and what of the token a record is about; empty for a record of others."""
    name = key.decode(errors="replace")
    id, _, part = name.removeprefix(_PREFIX).partition("/") if name.startswith(_PREFIX) else ("", "", "")
    return id, part
