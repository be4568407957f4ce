"""A token: a name, a role, tenants, and the hashes of the texts that stand for it. Pure.

    lst_1f0c29ab34de_pX0...   prefix, id, and a secret of 256 random bits

The texts are not stored. A secret of 256 random bits cannot be guessed, so a fast hash (SHA-256) protects it as well as
a slow one, which exists for passwords; it is compared in constant time.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from light_scheduler.connection import Secret
from light_scheduler.errors import FieldError, SchedulerError
from light_scheduler.model import LATEST_INSTANT
from light_scheduler.model.tenant import TENANT_NAME
from light_scheduler.wire.instants import format_instant

from .identity import Identity, Role

PREFIX = "lst"
TOKEN_ID = re.compile(r"[0-9a-f]{12}", re.ASCII)
"""Pattern of a whole token id."""

LONGEST_NAME = 100
MOST_SECRETS = 2
"""Maximum number of a token's valid secrets: the old one and its replacement."""

_TEXT = re.compile(rf"{PREFIX}_(?P<id>[0-9a-f]{{12}})_(?P<secret>[A-Za-z0-9_-]{{43}})", re.ASCII)
_SECRET_BYTES = 32
_NO_HASH = sha256(b"").hexdigest()


class TokenError(FieldError):
    """A token cannot be created, changed or accepted."""


class TokenUnusable(TokenError):
    """There is no token of an id that can be changed: nobody created it, or it has ended."""


class RotationConflict(SchedulerError):
    """Two rotations of a token at the same time: only the other one's text is valid."""


@dataclass(frozen=True)
class TokenSecret:
    """The SHA-256 (hexadecimal) of a text. Instants are UTC epoch ms; `ends_at` None: valid as long as the token."""

    sha256: str
    created_at: int
    ends_at: int | None = None


@dataclass(frozen=True)
class Token:
    """A token as it is stored. `tenants` None: all tenants. Instants are UTC epoch ms."""

    id: str
    name: str
    role: Role
    tenants: frozenset[str] | None
    created_at: int
    created_by: str
    expires_at: int | None
    secrets: tuple[TokenSecret, ...]

    @property
    def identity(self) -> Identity:
        """The identity of the token's holder."""
        return Identity(self.name, self.role, self.tenants)

    def is_expired(self, now: int) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def accepts(self, hashed: str, now: int) -> bool:
        """Return whether a hash belongs to a valid text of this token."""
        found = False
        for secret in self.secrets:  # check all of them, so that the duration reveals nothing
            is_same = hmac.compare_digest(secret.sha256, hashed)
            found |= is_same and (secret.ends_at is None or now < secret.ends_at)
        return found


def new_token(
    name: str, role: Role, tenants: Iterable[str] | None, *, by: str, now: int, lifetime: int | None = None
) -> tuple[Token, Secret]:
    """Return a token and its text. `lifetime` is in ms; None: it does not expire. Raises TokenError."""
    if not (1 <= len(name) <= LONGEST_NAME and name.isprintable() and name.strip() == name):
        raise TokenError("name", f"{name!r} must be 1 to {LONGEST_NAME} printable characters, without spaces around")
    bound = None if tenants is None else frozenset(tenants)
    if bound is not None:
        _check_tenants(role, bound)
    if lifetime is not None and lifetime <= 0:
        raise TokenError("expires_in", "must be more than 0")
    expires_at = None if lifetime is None else now + lifetime
    if expires_at is not None and expires_at > LATEST_INSTANT:
        latest = format_instant(LATEST_INSTANT)
        raise TokenError("expires_in", f"must end by {latest}. Leave it out for a token that does not expire")
    id = secrets.token_hex(6)
    text, secret = _new_secret(id, now)
    return Token(id, name, role, bound, now, by, expires_at, (secret,)), text


def rotated(token: Token, *, now: int, keep: int) -> tuple[Token, Secret]:
    """Return a token with a new text; the newest one before stays valid for `keep` ms, older ones end. Raises
    TokenUnusable if the token has expired."""
    if token.is_expired(now):
        raise TokenUnusable("id", f"token {token.id} has expired: create another one")
    text, secret = _new_secret(token.id, now)
    before = token.secrets[-1]
    ends_at = now + keep if before.ends_at is None else min(before.ends_at, now + keep)
    kept = (replace(before, ends_at=ends_at), secret) if keep > 0 else (secret,)
    return replace(token, secrets=kept[-MOST_SECRETS:]), text


def parts_of(text: str) -> tuple[str, str]:
    """Return the id in a token's text, and the hash of the text. For other texts, the id is one that no token has."""
    match = _TEXT.fullmatch(text)
    return ("", _NO_HASH) if match is None else (match["id"], _hash(text))


def is_token_id(text: str) -> bool:
    return TOKEN_ID.fullmatch(text) is not None


def _check_tenants(role: Role, tenants: frozenset[str]) -> None:
    if not tenants:
        raise TokenError("tenants", "must name a tenant, or be left out for all tenants")
    for tenant in sorted(tenants):
        if not TENANT_NAME.fullmatch(tenant):
            raise TokenError(
                "tenants", f"{tenant!r} is not a tenant name: use 1 to 64 letters, digits, '.', '_' and '-'"
            )
    if role is Role.METRICS:
        raise TokenError(
            "tenants",
            "a token with the role metrics is for all tenants, because its metrics are those of all tenants",
        )


def _new_secret(id: str, now: int) -> tuple[Secret, TokenSecret]:
    text = f"{PREFIX}_{id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    return Secret(text), TokenSecret(_hash(text), now)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
