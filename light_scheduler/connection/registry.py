"""The address and login of the schema registry, with HTTP basic authentication (RFC 7617)."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from light_scheduler.errors import ConfigurationError

from .logins import secret_of
from .secret import Secret

_PASSWORD = "schema_registry_password"  # noqa: S105 - the name of a setting


@dataclass(frozen=True)
class RegistryAccess:
    """`address` is `http[s]://host:port`, without a login. Raises ConfigurationError for an incomplete login."""

    address: str
    username: str | None = None
    password: Secret | None = None
    password_file: Path | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("password", "password_file") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ConfigurationError(_PASSWORD, f"is set, and so is {_PASSWORD}_file: remove one of them")
        if given and self.username is None:
            raise ConfigurationError("schema_registry_username", f"is not set, but schema_registry_{given[0]} is")
        if self.username is not None and not given:
            raise ConfigurationError(
                _PASSWORD,
                f"is not set, and schema_registry_username needs it: set {_PASSWORD}_file, or {_PASSWORD} in the "
                "environment",
            )

    def headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request. Raises ConfigurationError if the password's file cannot be
        read."""
        if self.username is None:
            return {}
        login = f"{self.username}:{secret_of(_PASSWORD, self.password, self.password_file)}"
        return {"Authorization": f"Basic {b64encode(login.encode()).decode()}"}
