"""The identity provider whose tokens are accepted over HTTP (OpenID Connect): its settings, and whether they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ROLES = ("metrics", "read", "write", "admin")
"""What a value of the claim of roles can stand for."""

ALL_TENANTS = "*"
"""Stands for all tenants in the claim of tenants."""


@dataclass(frozen=True)
class IdentityProvider:
    """Whose tokens are accepted, for whom they have to be, and what their claims mean.

    `jwks_url` None: the issuer's discovery document names it. Claims are paths with dots: `realm_access.roles`. `roles`
    maps values of the claim of roles to ROLES.
    """

    issuer: str
    audience: str
    jwks_url: str | None
    role_claim: str
    roles: Mapping[str, str]
    tenant_claim: str
