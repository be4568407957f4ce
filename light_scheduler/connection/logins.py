"""The secrets of a login: from a setting, or from a file that is read again when it changes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from urllib.parse import quote_plus

from .files import SecretFile
from .secret import Secret
from .security import KafkaSecurity


def password(security: KafkaSecurity) -> str:
    """Return the password of the login. Raises ConfigurationError if its file cannot be read."""
    return secret_of("sasl_password", security.sasl_password, security.sasl_password_file)


def client_secret(security: KafkaSecurity) -> str:
    """Return the client secret for tokens. Raises ConfigurationError if its file cannot be read."""
    return secret_of(
        "sasl_oauth_client_secret", security.sasl_oauth_client_secret, security.sasl_oauth_client_secret_file
    )


def client_login(security: KafkaSecurity) -> tuple[str, str]:
    """Return client id and secret in the form for HTTP's basic authentication.

    OAuth form-encodes each of them first (RFC 6749, section 2.3.1), so that an id may contain a colon. Letters, digits,
    `-`, `.`, `_` and `~` stay unchanged. Raises ConfigurationError if the secret's file cannot be read.
    """
    return quote_plus(security.sasl_oauth_client_id or ""), quote_plus(client_secret(security))


def secret_of(setting: str, value: Secret | None, file: Path | None) -> str:
    """Return a secret from a setting or its file. Raises ConfigurationError if the file cannot be read."""
    if file is not None:
        return _secret_file(f"{setting}_file", file).read().reveal()
    assert value is not None, "checked with the settings"
    return value.reveal()


@lru_cache
def _secret_file(setting: str, path: Path) -> SecretFile:
    """Return the file, cached so that the clients of a process share it."""
    return SecretFile(setting, path)
