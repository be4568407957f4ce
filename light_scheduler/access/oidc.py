"""Tokens of an identity provider (JSON Web Tokens): checks their signature and claims, and derives identities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt

from light_scheduler.connection.identity_provider import ALL_TENANTS, IdentityProvider
from light_scheduler.model.tenant import TENANT_NAME

from .identity import Identity, Role
from .jwks import KeySet
from .tokens import TokenError

LEEWAY_S = 30
"""Maximum difference between the clocks of the provider and of a worker."""

LONGEST = 16_384

LONGEST_SUBJECT = 255
"""Maximum length of a subject: OpenID Connect Core 1.0, section 2."""

_ALGORITHMS = {
    "RSA": frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    "EC": frozenset({"ES256", "ES384", "ES512"}),
    "OKP": frozenset({"EdDSA"}),
}
"""Only asymmetric algorithms, by kind of key: a token's header cannot choose how it is checked."""

_REQUIRED = ["exp", "iss", "aud", "sub"]


class _OtherKey(TokenError):
    """The token is not signed with this key."""


class Oidc:
    """Verifies the tokens of one provider."""

    def __init__(self, provider: IdentityProvider, keys: KeySet | None = None) -> None:
        self._provider = provider
        self._keys = keys or KeySet(provider.issuer, provider.jwks_url)

    async def identity(self, text: str) -> Identity:
        """Return the identity of a token. Raises TokenError, KeysUnavailable."""
        try:
            # A text that is not ASCII is not a token, and may have been decoded from arbitrary bytes.
            header = jwt.get_unverified_header(text) if len(text) <= LONGEST and text.isascii() else {}
        except jwt.PyJWTError:
            header = {}
        algorithm, id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or not isinstance(id, str | None):
            raise TokenError("token", "is not a token of this application, nor of its identity provider")
        failure = TokenError("token", f"is signed with a key that {self._provider.issuer} does not have")
        for key in await self._keys.keys(id):
            try:
                return identity_of(self._claims(text, key, algorithm), self._provider)
            except _OtherKey as error:
                failure = error
        raise failure

    async def close(self) -> None:
        """Stop refreshing keys."""
        await self._keys.close()

    def _claims(self, text: str, key: Mapping[str, Any], algorithm: str) -> Mapping[str, Any]:
        if algorithm not in _ALGORITHMS[key["kty"]] or key.get("alg", algorithm) != algorithm:
            raise _OtherKey("token", f"is signed with {algorithm!r}, which does not fit the kind of its key")
        try:
            return jwt.decode(
                text,
                jwt.PyJWK(dict(key), algorithm),
                algorithms=[algorithm],
                audience=self._provider.audience,
                issuer=self._provider.issuer,
                leeway=LEEWAY_S,
                options={"require": _REQUIRED},
            )
        except jwt.ExpiredSignatureError:
            raise TokenError("token", "has expired") from None
        except (jwt.InvalidSignatureError, jwt.InvalidKeyError, jwt.PyJWKError) as error:
            raise _OtherKey("token", f"is not valid: {error}") from None
        except jwt.PyJWTError as error:
            raise TokenError("token", f"is not valid: {error}") from None


def identity_of(claims: Mapping[str, Any], provider: IdentityProvider) -> Identity:
    """Return the identity in claims: their highest role, for their tenants. Raises TokenError."""
    subject = claims["sub"]
    if not (1 <= len(subject) <= LONGEST_SUBJECT and subject.isprintable()):  # it appears in the history and the log
        raise TokenError("token", f"has a subject (sub) that is not 1 to {LONGEST_SUBJECT} printable characters")
    roles = [Role(provider.roles[value]) for value in _values(claims, provider.role_claim) if value in provider.roles]
    if not roles:
        raise TokenError("token", f"has no role: its claim {provider.role_claim} has no value that oidc_roles names")
    tenants = _values(claims, provider.tenant_claim)
    bound = None if ALL_TENANTS in tenants else frozenset(filter(TENANT_NAME.fullmatch, tenants))
    return Identity(f"oidc:{subject}", max(roles, key=list(Role).index), bound)


def _values(claims: Mapping[str, Any], path: str) -> list[str]:
    """Return the values of a claim: a list, or one text separated by spaces, like scopes."""
    value: Any = claims
    for part in [path] if path in claims else path.split("."):  # names of claims may be URLs, which contain dots
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, str):
        return value.split()
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
