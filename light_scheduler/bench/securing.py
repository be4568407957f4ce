"""Certificates and logins for secured connections between broker and workers, made for one run."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from light_scheduler.connection import KafkaSecurity, Secret
from light_scheduler.connection.security import Mechanism
from light_scheduler.devkit.authority import Authority
from light_scheduler.devkit.broker import EmbeddedBroker, JavaStart
from light_scheduler.devkit.listeners import SecuredListener, ServerTls
from light_scheduler.devkit.logins import add_scram_users
from light_scheduler.devkit.properties import FurtherPorts
from light_scheduler.devkit.token_server import TokenServer

SecuredProtocol = Literal["SSL", "SASL_PLAINTEXT", "SASL_SSL"]

USER = "bench"


@dataclass(frozen=True)
class Secured:
    """A listener of the broker, and the settings for its clients. `token_server` issues the tokens of OAUTHBEARER."""

    listener: SecuredListener
    security: KafkaSecurity
    token_server: TokenServer | None = None


def secured(protocol: SecuredProtocol, folder: Path, mechanism: Mechanism = "PLAIN") -> Secured:
    """Make the certificates and the login for a protocol; SSL is mutual. Files are written to the folder.

    `mechanism` is that of SASL.
    """
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority(folder) if protocol.endswith("SSL") else None
    is_mutual, uses_sasl = protocol == "SSL", protocol != "SSL"
    tls = None
    if authority is not None:
        tls = ServerTls(authority.sign("broker").together, authority.path, wants_client_certificate=is_mutual)
    password = Secret(secrets.token_urlsafe())
    has_tokens = uses_sasl and mechanism == "OAUTHBEARER"
    token_server = TokenServer({USER: password.reveal()}) if has_tokens else None
    listener = SecuredListener(
        protocol,
        protocol,
        tls,
        (mechanism,) if uses_sasl else (),
        {USER: password.reveal()} if uses_sasl and mechanism == "PLAIN" else {},
        None if token_server is None else token_server.checks,
    )
    security = KafkaSecurity(
        security_protocol=protocol,
        ssl_ca=None if authority is None else authority.path,
        ssl_certificate=authority.sign(USER).together if authority is not None and is_mutual else None,
        **(_login(mechanism, password, token_server) if uses_sasl else {}),
    )
    return Secured(listener, security, token_server)


@contextmanager
def broker_with(secured: Secured | None) -> Iterator[EmbeddedBroker]:
    """Run a broker that has a secured listener besides the plain one, and accepts its login."""
    if secured is None:
        with EmbeddedBroker() as broker:
            yield broker
        return
    listener, security = secured.listener, secured.security
    with ExitStack() as running:
        if secured.token_server is not None:
            running.enter_context(secured.token_server)
        java = JavaStart(options=[] if listener.tokens is None else [listener.tokens.jvm_option()])
        broker = running.enter_context(EmbeddedBroker(further_ports=FurtherPorts(secured=[listener]), java=java))
        mechanism, password = security.sasl_mechanism, security.sasl_password
        if password is not None and (mechanism == "SCRAM-SHA-256" or mechanism == "SCRAM-SHA-512"):
            add_scram_users(broker.bootstrap_servers, {USER: mechanism}, password.reveal())
        yield broker


def _login(mechanism: Mechanism, password: Secret, token_server: TokenServer | None) -> dict[str, Any]:
    """Return the settings of a login."""
    if token_server is None:
        return {"sasl_mechanism": mechanism, "sasl_username": USER, "sasl_password": password}
    return {
        "sasl_mechanism": mechanism,
        "sasl_oauth_token_url": token_server.url,
        "sasl_oauth_client_id": USER,
        "sasl_oauth_client_secret": password,
    }
