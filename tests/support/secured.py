"""A broker with a listener of each kind, ACLs, and users for each way to log in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from light_scheduler.devkit import EmbeddedBroker, FurtherPorts, JavaStart
from light_scheduler.devkit.listeners import ACCESS_RULES, SecuredListener, ServerTls
from light_scheduler.devkit.logins import Scram, add_scram_users
from light_scheduler.devkit.token_server import TokenServer
from light_scheduler.kafka.topic_admin import admin_client
from light_scheduler.settings import load_settings

from . import planted
from .authority import Authority, Pair

KINDS = ("SSL", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SCRAM_USERS: dict[str, Scram] = {"scram-sha-256-user": "SCRAM-SHA-256", "scram-sha-512-user": "SCRAM-SHA-512"}
PASSWORD = planted.OF_KAFKA["sasl_password"]
KEY_PASSWORD = planted.OF_KAFKA["ssl_key_password"]
CLIENT_SECRET = planted.OF_KAFKA["sasl_oauth_client_secret"]
SECRETS = tuple(planted.OF_KAFKA.values())
SHORT_LOGINS = "SHORT_LOGINS"
"""A listener that wants a certificate and a login, and closes connections that are used for longer than LOGIN_MS."""

LOGIN_MS = 8_000
LOGIN_TIMEOUT_S = 60.0


@dataclass
class SecuredKafka:
    """`servers` is the listener that asks for nothing, where one may do everything."""

    broker: EmbeddedBroker
    authority: Authority
    client: Pair
    token_server: TokenServer
    listeners: dict[str, SecuredListener]

    @property
    def servers(self) -> str:
        return self.broker.bootstrap_servers

    def address(self, listener: str) -> str:
        """Return where a listener is, as clients take it."""
        return f"127.0.0.1:{self.listeners[listener].port}"

    def principal(self, kind: str) -> str:
        """Return who one is in ACLs."""
        return {"SSL": "User:CN=tls-user", "OAUTHBEARER": "User:token-user"}.get(kind, f"User:{kind.lower()}-user")

    def settings(self, kind: str) -> dict[str, str]:
        """Return the settings, as text, that let one in by a way."""
        tls = {"ssl_ca": str(self.authority.path)}
        if kind == "SSL":
            own = {"ssl_certificate": str(self.client.certificate), "ssl_key": str(self.client.key)}
            found = {**tls, **own, "ssl_key_password": KEY_PASSWORD, "security_protocol": "SSL"}
        elif kind == "OAUTHBEARER":
            found = {
                **tls,
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": kind,
                "sasl_oauth_token_url": self.token_server.url,
                "sasl_oauth_client_id": "token-user",
                "sasl_oauth_client_secret": CLIENT_SECRET,
                "sasl_oauth_scope": "kafka",
            }
        else:
            login = {"sasl_mechanism": kind, "sasl_username": f"{kind.lower()}-user", "sasl_password": PASSWORD}
            with_tls = kind == "SCRAM-SHA-512"
            found = {
                **login,
                "security_protocol": "SASL_SSL" if with_tls else "SASL_PLAINTEXT",
                **(tls if with_tls else {}),
            }
        return {**found, "broker": f"kafka://{self.address(found['security_protocol'])}"}

    def settings_with_both(self, mechanism: str) -> dict[str, str]:
        """Return the settings, as text, that let one in by a password and a certificate together."""
        both = {**self.settings(mechanism), **self.settings("SSL")}
        return {**both, "security_protocol": "SASL_SSL", "broker": f"kafka://{self.address(SHORT_LOGINS)}"}


@contextmanager
def secured_kafka(folder: Path, *, login_ms: int = LOGIN_MS, token_life_s: int = 3_600) -> Iterator[SecuredKafka]:
    """Run it; `login_ms` is that of SHORT_LOGINS, unless a token has a shorter life."""
    authority = Authority(folder)
    server = authority.sign("broker")
    tls = ServerTls(server.together, authority.path)
    mutual = ServerTls(server.together, authority.path, wants_client_certificate=True)
    users = {"plain-user": PASSWORD}
    mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    with TokenServer({"token-user": CLIENT_SECRET}, life_s=token_life_s) as token_server:
        tokens = token_server.checks
        listeners = (
            SecuredListener("SSL", "SSL", mutual),
            SecuredListener("SASL_PLAINTEXT", "SASL_PLAINTEXT", None, mechanisms, users),
            SecuredListener("SASL_SSL", "SASL_SSL", tls, (*mechanisms, "OAUTHBEARER"), users, tokens),
            SecuredListener(
                SHORT_LOGINS, "SASL_SSL", mutual, (*mechanisms, "OAUTHBEARER"), users, tokens, login_ms=login_ms
            ),
        )
        ports, java = FurtherPorts(secured=listeners), JavaStart(options=[tokens.jvm_option()])
        with EmbeddedBroker(properties=ACCESS_RULES, further_ports=ports, java=java) as broker:
            add_scram_users(broker.bootstrap_servers, SCRAM_USERS, PASSWORD)
            client = authority.sign("tls-user", password=KEY_PASSWORD)
            kafka = SecuredKafka(broker, authority, client, token_server, {each.name: each for each in listeners})
            _await_logins(kafka)
            yield kafka


def _await_logins(kafka: SecuredKafka) -> None:
    """Wait until users are let in who were added to a broker that runs: it knows of them a moment after it has said so.

    librdkafka logs in again until it is let in.
    """
    for mechanism in SCRAM_USERS.values():
        connection = load_settings(kafka.settings(mechanism), environment={}).connection
        admin_client(connection).list_topics(timeout=LOGIN_TIMEOUT_S)
