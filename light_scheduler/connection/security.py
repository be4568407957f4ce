"""The settings of a secured connection, and whether they are consistent. Pure: no file is opened here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from light_scheduler.errors import ConfigurationError

from .secret import Secret
from .urls import has_login

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*PASSWORD_MECHANISMS, "OAUTHBEARER")

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
Problem = tuple[str, str]
"""(setting, its problem and what to do)."""

_OF_LOGIN = ("sasl_username", "sasl_password", "sasl_password_file")
_OF_TOKENS = (
    "sasl_oauth_token_url",
    "sasl_oauth_client_id",
    "sasl_oauth_client_secret",
    "sasl_oauth_client_secret_file",
    "sasl_oauth_scope",
)
_OF_TLS = ("ssl_ca", "ssl_certificate", "ssl_key", "ssl_key_password", "ssl_key_password_file")


@dataclass(frozen=True, kw_only=True)
class KafkaSecurity:
    """How to log in to Kafka, under the names of the settings. Secrets may be given as plain text."""

    security_protocol: Protocol = "PLAINTEXT"
    sasl_mechanism: Mechanism | None = None
    sasl_username: str | None = None
    sasl_password: Secret | None = None
    sasl_password_file: Path | None = None
    sasl_oauth_token_url: str | None = None
    sasl_oauth_client_id: str | None = None
    sasl_oauth_client_secret: Secret | None = None
    sasl_oauth_client_secret_file: Path | None = None
    sasl_oauth_scope: str | None = None
    ssl_ca: Path | None = None
    ssl_certificate: Path | None = None
    ssl_key: Path | None = None
    ssl_key_password: Secret | None = None
    ssl_key_password_file: Path | None = None
    ssl_check_hostname: bool = True

    def __post_init__(self) -> None:
        for name in ("sasl_password", "sasl_oauth_client_secret", "ssl_key_password"):
            value: object = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, Secret(value))
        for name in ("sasl_password_file", "sasl_oauth_client_secret_file", "ssl_key_password_file", *_OF_TLS[:3]):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, Path(value))
        for problem in problems(self):
            raise ConfigurationError(*problem)

    @property
    def is_secured(self) -> bool:
        return self.security_protocol != "PLAINTEXT"

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")


def problems(security: KafkaSecurity) -> Iterator[Problem]:
    """Yield inconsistencies, each with the invalid setting first."""
    protocol = security.security_protocol
    if protocol not in PROTOCOLS:
        yield "security_protocol", f"{protocol!r} must be one of {', '.join(PROTOCOLS)}"
        return
    if security.uses_sasl:
        yield from _of_sasl(security)
    else:
        with_sasl = "SASL_SSL" if security.uses_tls else "SASL_PLAINTEXT or SASL_SSL"
        for name in _given(security, ("sasl_mechanism", *_OF_LOGIN, *_OF_TOKENS)):
            yield name, f"has no effect with security_protocol {protocol}; set security_protocol to {with_sasl}"
    if security.uses_tls:
        yield from _of_tls(security)
    else:
        with_tls = "SASL_SSL" if security.uses_sasl else "SSL or SASL_SSL"
        # The CA is also used for the server that issues tokens.
        names = _OF_TLS[1:] if security.sasl_mechanism == "OAUTHBEARER" else _OF_TLS
        for name in _given(security, names):
            yield name, f"has no effect with security_protocol {protocol}; set security_protocol to {with_tls}"


def _of_sasl(security: KafkaSecurity) -> Iterator[Problem]:
    mechanism = security.sasl_mechanism
    if mechanism is None:
        yield (
            "sasl_mechanism",
            f"is not set, and security_protocol {security.security_protocol} needs it: one of {', '.join(MECHANISMS)}",
        )
    elif mechanism not in MECHANISMS:
        yield "sasl_mechanism", f"{mechanism!r} must be one of {', '.join(MECHANISMS)}"
    elif mechanism == "OAUTHBEARER":
        yield from _of_oauth(security)
    else:
        if not security.sasl_username:
            yield "sasl_username", f"is not set, and sasl_mechanism {mechanism} needs it"
        yield from _one_of(security, "sasl_password", f"sasl_mechanism {mechanism}")
        for name in _given(security, _OF_TOKENS):
            yield name, f"has no effect with sasl_mechanism {mechanism}; set sasl_mechanism to OAUTHBEARER"


def _of_oauth(security: KafkaSecurity) -> Iterator[Problem]:
    if not security.sasl_oauth_token_url:
        yield "sasl_oauth_token_url", "is not set, and sasl_mechanism OAUTHBEARER needs it: https://..."
    elif has_login(security.sasl_oauth_token_url):
        yield (
            "sasl_oauth_token_url",
            "must not have a login in it: set sasl_oauth_client_id and sasl_oauth_client_secret_file",
        )
    elif not _keeps_secrets(security.sasl_oauth_token_url):
        yield (
            "sasl_oauth_token_url",
            f"{security.sasl_oauth_token_url!r} must be https://...: the client secret is sent there. http:// is "
            "accepted on this machine only",
        )
    if not security.sasl_oauth_client_id:
        yield "sasl_oauth_client_id", "is not set, and sasl_mechanism OAUTHBEARER needs it"
    yield from _one_of(security, "sasl_oauth_client_secret", "sasl_mechanism OAUTHBEARER")
    for name in _given(security, _OF_LOGIN):
        yield name, "has no effect with sasl_mechanism OAUTHBEARER; use the settings sasl_oauth_..."


def _of_tls(security: KafkaSecurity) -> Iterator[Problem]:
    if security.ssl_key is not None and security.ssl_certificate is None:
        yield "ssl_certificate", "is not set, but ssl_key is: name the file with the certificate of that key"
    if security.ssl_key_password is not None and security.ssl_key_password_file is not None:
        yield "ssl_key_password", "is set, and so is ssl_key_password_file: remove one of them"


def _one_of(security: KafkaSecurity, name: str, needs: str) -> Iterator[Problem]:
    in_file = f"{name}_file"
    is_set, is_in_file = getattr(security, name) is not None, getattr(security, in_file) is not None
    if is_set and is_in_file:
        yield name, f"is set, and so is {in_file}: remove one of them"
    elif not is_set and not is_in_file:
        yield name, f"is not set, and {needs} needs it: set {in_file}, or {name} in the environment"


def _given(security: KafkaSecurity, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if getattr(security, name) is not None]


def _keeps_secrets(url: str) -> bool:
    try:
        parts = urlsplit(url)
        if parts.scheme == "https":
            return bool(parts.hostname)
        if parts.scheme != "http" or not parts.hostname:
            return False
        return parts.hostname == "localhost" or ip_address(parts.hostname).is_loopback
    except ValueError:  # not a URL, or its host is neither this machine's name nor an address
        return False


PLAINTEXT = KafkaSecurity()
