"""A secret for each setting that holds one: tests plant them, and look for them in everything that is written."""

from __future__ import annotations

OF_KAFKA = {
    "sasl_password": "pass-word-that-shows-nowhere",
    "ssl_key_password": "key-password-that-shows-nowhere",
    "sasl_oauth_client_secret": "client-secret-that-shows-nowhere",
}
"""In `support.secured`, a Kafka that takes them."""

OF_HTTP = {
    "web_ssl_key_password": "web-key-password-that-shows-nowhere",
    "schema_registry_password": "registry-password-that-shows-nowhere",
    "token": "lst_000000000000_token-that-shows-nowhere-0123456789abcdefgh",
}
"""In `tests/integration/test_access.py`, a node that has them."""

PLANTED = {**OF_KAFKA, **OF_HTTP}


def found_in(written: bytes, secrets: dict[str, str]) -> list[str]:
    """Return the names of the secrets that are in something."""
    return [name for name, secret in secrets.items() if secret.encode() in written]
