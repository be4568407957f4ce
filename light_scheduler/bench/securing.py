"""Certificates and passwords for a secured connection between broker and worker, made for one run."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from light_scheduler.connection import KafkaSecurity, Secret
from light_scheduler.devkit.authority import Authority
from light_scheduler.devkit.listeners import SecuredListener, ServerTls

SecuredProtocol = Literal["SSL", "SASL_PLAINTEXT", "SASL_SSL"]

USER = "bench"
MECHANISM: Literal["PLAIN"] = "PLAIN"
"""All mechanisms cost the same once a client is logged in."""


@dataclass(frozen=True)
class Secured:
    """A listener of the broker, and how clients get in by it."""

    listener: SecuredListener
    security: KafkaSecurity


def secured(protocol: SecuredProtocol, folder: Path) -> Secured:
    """Make certificates and a password as a protocol needs them: SSL is mutual. Files are written to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    password = Secret(secrets.token_urlsafe()) if protocol.startswith("SASL") else None
    authority = Authority(folder) if protocol.endswith("SSL") else None
    is_mutual = protocol == "SSL"
    tls = None
    if authority is not None:
        tls = ServerTls(authority.sign("broker").together, authority.path, wants_client_certificate=is_mutual)
    users = {} if password is None else {USER: password.reveal()}
    listener = SecuredListener(protocol, protocol, tls, (MECHANISM,) if users else (), users)
    security = KafkaSecurity(
        security_protocol=protocol,
        sasl_mechanism=MECHANISM if password else None,
        sasl_username=USER if password else None,
        sasl_password=password,
        ssl_ca=None if authority is None else authority.path,
        ssl_certificate=authority.sign(USER).together if authority is not None and is_mutual else None,
    )
    return Secured(listener, security)
