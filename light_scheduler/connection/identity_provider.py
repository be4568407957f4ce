"""The settings of the identity provider whose tokens are accepted over HTTP (OpenID Connect)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ROLES = ("metrics", "read", "write", "admin")
"""Roles that values of the role claim can be mapped to."""

ALL_TENANTS = "*"
"""Value of the tenant claim that stands for all tenants."""


@dataclass(frozen=True)
class IdentityProvider:
    """Issuer and audience of accepted tokens, and the meaning of their claims.

    `jwks_url` None: the issuer's discovery document names it. Claims are paths with dots: `realm_access.roles`. `roles`
    maps values of the role claim to ROLES.
    """

    issuer: str
    audience: str
    jwks_url: str | None
    role_claim: str
    roles: Mapping[str, str]
    tenant_claim: str
