"""The secrets of a login: given in a setting, or in a file that is read again when it changes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from .files import SecretFile
from .secret import Secret
from .security import KafkaSecurity


def password(security: KafkaSecurity) -> str:
    """Return the password of the login. Raises ConfigurationError if its file cannot be read."""
    return secret_of("sasl_password", security.sasl_password, security.sasl_password_file)


def client_secret(security: KafkaSecurity) -> str:
    """Return what tokens are issued for. Raises ConfigurationError if its file cannot be read."""
    return secret_of(
        "sasl_oauth_client_secret", security.sasl_oauth_client_secret, security.sasl_oauth_client_secret_file
    )


def secret_of(setting: str, value: Secret | None, file: Path | None) -> str:
    """Return a secret that is given, or in a file. Raises ConfigurationError if the file cannot be read."""
    if file is not None:
        return _secret_file(f"{setting}_file", file).read().reveal()
    assert value is not None, "checked with the settings"
    return value.reveal()


@lru_cache
def _secret_file(setting: str, path: Path) -> SecretFile:
    """Return the one of all clients of a process: each would read it anew."""
    return SecretFile(setting, path)
