"""History events for changes of tokens, without their secrets and hashes. Pure."""

from __future__ import annotations

from light_scheduler.model import LATEST_INSTANT
from light_scheduler.wire.instants import format_instant

from .tokens import Token


def created(token: Token) -> str:
    """Describe the creation of a token: `token 1f0c29ab34de (ci) created: write for shop, does not expire`."""
    until = "does not expire" if token.expires_at is None else f"expires {_instant(token.expires_at)}"
    return f"{_name(token)} created: {_rights(token)}, {until}"


def rotated(token: Token) -> str:
    """Describe a rotation: how long the previous secret stays valid. `token` is the rotated token."""
    *before, _ = token.secrets
    ends_at = before[-1].ends_at if before else None
    valid = "is not valid any more" if ends_at is None else f"is valid until {_instant(ends_at)}"
    return f"{_name(token)} rotated: the secret before {valid}"


def revoked(token: Token) -> str:
    """Describe a revocation, and the rights that the token had."""
    return f"{_name(token)} revoked: it was {_rights(token)}"


def tenant_of(token: Token) -> str:
    """Return the tenant of a token; empty if it is for several or all tenants."""
    tenants = token.tenants or frozenset()
    return next(iter(tenants)) if len(tenants) == 1 else ""


def _name(token: Token) -> str:
    return f"token {token.id} ({token.name})"


def _rights(token: Token) -> str:
    return f"{token.role} for {'all tenants' if token.tenants is None else ', '.join(sorted(token.tenants))}"


def _instant(ms: int) -> str:
    return format_instant(min(ms, LATEST_INSTANT))
