"""Users of the embedded broker that log in with SCRAM. The broker stores them in its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .readiness import admin_client

Scram = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]

_ITERATIONS = 4_096
_TIMEOUT_S = 10


def add_scram_users(bootstrap_servers: str, users: Mapping[str, Scram], password: str) -> None:
    """Add users, each with its mechanism. They can log in at once."""
    from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them without __all__
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    kinds = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
    changes = [
        UserScramCredentialUpsertion(user, ScramCredentialInfo(kinds[mechanism], _ITERATIONS), password.encode())
        for user, mechanism in users.items()
    ]
    admin = admin_client(bootstrap_servers)  # keep it alive: the requests end with it
    for done in admin.alter_user_scram_credentials(changes).values():
        done.result(_TIMEOUT_S)
