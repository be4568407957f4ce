"""The TLS settings of the workers' HTTP, and whether they are consistent. Pure: no file is opened here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from light_scheduler.errors import ConfigurationError

from .secret import Secret

CLIENT_AUTH = ("none", "requested", "required")
"""Whether clients need a certificate, with the values of Kafka's `ssl.client.auth`."""

ClientAuth = Literal["none", "requested", "required"]
Problem = tuple[str, str]
"""(setting, its problem and what to do)."""

_FILES = (
    "web_ssl_certificate",
    "web_ssl_key",
    "web_ssl_key_password_file",
    "web_ssl_ca",
    "web_ssl_client_ca",
)


@dataclass(frozen=True, kw_only=True)
class HttpSecurity:
    """Both sides of HTTPS, under the names of the settings. The password may be given as plain text.

    A server presents `web_ssl_certificate`, and accepts clients with a certificate signed by `web_ssl_client_ca`. A
    client trusts servers with a certificate signed by `web_ssl_ca`, and also presents `web_ssl_certificate`.
    """

    web_ssl_certificate: Path | None = None
    web_ssl_key: Path | None = None
    web_ssl_key_password: Secret | None = None
    web_ssl_key_password_file: Path | None = None
    web_ssl_ca: Path | None = None
    web_ssl_client_ca: Path | None = None
    web_ssl_client_auth: ClientAuth = "none"

    def __post_init__(self) -> None:
        password: object = self.web_ssl_key_password
        if isinstance(password, str):
            object.__setattr__(self, "web_ssl_key_password", Secret(password))
        for name in _FILES:
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, Path(value))
        for problem in problems(self):
            raise ConfigurationError(*problem)

    @property
    def serves_tls(self) -> bool:
        """Whether the server uses TLS."""
        return self.web_ssl_certificate is not None


def problems(security: HttpSecurity) -> Iterator[Problem]:
    """Yield inconsistencies, each with the invalid setting first."""
    if security.web_ssl_certificate is None:
        for name in ("web_ssl_key", "web_ssl_key_password", "web_ssl_key_password_file", "web_ssl_client_ca"):
            if getattr(security, name) is not None:
                yield "web_ssl_certificate", f"is not set, but {name} is: name the file with the server's certificate"
    if security.web_ssl_key_password is not None and security.web_ssl_key_password_file is not None:
        yield "web_ssl_key_password", "is set, and so is web_ssl_key_password_file: remove one of them"
    mode = security.web_ssl_client_auth
    if mode not in CLIENT_AUTH:
        yield "web_ssl_client_auth", f"{mode!r} must be one of {', '.join(CLIENT_AUTH)}"
    elif mode == "none":
        if security.web_ssl_client_ca is not None:
            yield (
                "web_ssl_client_ca",
                "has no effect with web_ssl_client_auth none; set web_ssl_client_auth to required",
            )
    elif security.web_ssl_certificate is None:
        yield "web_ssl_certificate", f"is not set, and web_ssl_client_auth {mode} needs it"
    elif security.web_ssl_client_ca is None:
        yield (
            "web_ssl_client_ca",
            f"is not set, and web_ssl_client_auth {mode} needs it: name the file with the certificates of the "
            "authorities that sign the clients' certificates",
        )


NO_TLS = HttpSecurity()
