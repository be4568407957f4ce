"""Listeners of the embedded broker that require TLS or a login, to test the security of clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from light_scheduler.host.ports import free_port

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_TOKEN_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"  # noqa: S105

ACCESS_RULES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Properties of a broker that enforces ACLs. Clients of the listener without a login may do everything."""


@dataclass(frozen=True)
class ServerTls:
    """PEM files: the broker's key with its certificates, and the authorities that sign accepted clients."""

    key_store: Path
    trust_store: Path
    wants_client_certificate: bool = False


@dataclass(frozen=True)
class TokenChecks:
    """The tokens that OAUTHBEARER accepts. `keys_url` serves the issuer's keys as a JWKS."""

    keys_url: str
    issuer: str
    audience: str

    def jvm_option(self) -> str:
        """Return the option that allows Kafka to fetch the keys: it only contacts URLs on this list."""
        return f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.keys_url}"


@dataclass(frozen=True)
class SecuredListener:
    """A listener on a port of its own. `users` are users of PLAIN with their passwords; users of SCRAM are created with
    Kafka's own tools.

    `login_ms` is how long a login is valid; after that, the broker closes connections that are used. 0: forever.
    """

    name: str
    protocol: Literal["SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    tls: ServerTls | None = None
    mechanisms: Sequence[str] = ()
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    tokens: TokenChecks | None = None
    login_ms: int = 0
    port: int = field(default_factory=free_port)

    def properties(self) -> dict[str, object]:
        """Return the broker's properties for this listener, without its address."""
        prefix = f"listener.name.{self.name.lower()}."
        found: dict[str, object] = {}
        if self.tls is not None:
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": self.tls.key_store,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.tls.trust_store,
                "ssl.client.auth": "required" if self.tls.wants_client_certificate else "none",
            }
        if self.mechanisms:
            found["sasl.enabled.mechanisms"] = ",".join(self.mechanisms)
        for mechanism in self.mechanisms:
            found |= {f"{mechanism.lower()}.{name}": value for name, value in self._login(mechanism).items()}
            found[f"{mechanism.lower()}.connections.max.reauth.ms"] = self.login_ms
        return {prefix + name: value for name, value in found.items()}

    def _login(self, mechanism: str) -> dict[str, str]:
        users = "".join(f' user_{user}="{password}"' for user, password in self.users.items())
        found = {"sasl.jaas.config": f"{_MODULES[mechanism]} required{users if mechanism == 'PLAIN' else ''};"}
        if mechanism == "OAUTHBEARER" and self.tokens is not None:
            found |= {
                "sasl.server.callback.handler.class": _TOKEN_VALIDATOR,
                "sasl.oauthbearer.jwks.endpoint.url": self.tokens.keys_url,
                "sasl.oauthbearer.expected.issuer": self.tokens.issuer,
                "sasl.oauthbearer.expected.audience": self.tokens.audience,
            }
        return found
