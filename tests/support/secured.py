"""A broker with a listener of each kind, ACLs, and users for each way to log in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them without __all__
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from light_scheduler.devkit import EmbeddedBroker, FurtherPorts, JavaStart
from light_scheduler.devkit.listeners import ACCESS_RULES, SecuredListener, ServerTls, TokenChecks
from light_scheduler.devkit.readiness import admin_client

from . import planted
from .authority import Authority, Pair
from .token_server import TokenServer

KINDS = ("SSL", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORD = planted.OF_KAFKA["sasl_password"]
KEY_PASSWORD = planted.OF_KAFKA["ssl_key_password"]
CLIENT_SECRET = planted.OF_KAFKA["sasl_oauth_client_secret"]
SECRETS = tuple(planted.OF_KAFKA.values())


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


@contextmanager
def secured_kafka(folder: Path) -> Iterator[SecuredKafka]:
    """Run it."""
    authority = Authority(folder)
    server = authority.sign("broker")
    tls = ServerTls(server.together, authority.path)
    mutual = ServerTls(server.together, authority.path, wants_client_certificate=True)
    users = {"plain-user": PASSWORD}
    mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    with TokenServer({"token-user": CLIENT_SECRET}) as token_server:
        tokens = TokenChecks(token_server.keys_url, token_server.issuer, token_server.audience)
        listeners = (
            SecuredListener("SSL", "SSL", mutual),
            SecuredListener("SASL_PLAINTEXT", "SASL_PLAINTEXT", None, mechanisms, users),
            SecuredListener("SASL_SSL", "SASL_SSL", tls, (*mechanisms, "OAUTHBEARER"), users, tokens),
        )
        ports, java = FurtherPorts(secured=listeners), JavaStart(options=[tokens.jvm_option()])
        with EmbeddedBroker(properties=ACCESS_RULES, further_ports=ports, java=java) as broker:
            add_scram_users(broker.bootstrap_servers)
            client = authority.sign("tls-user", password=KEY_PASSWORD)
            yield SecuredKafka(broker, authority, client, token_server, {each.name: each for each in listeners})


def add_scram_users(servers: str) -> None:
    changes = [
        UserScramCredentialUpsertion(f"scram-sha-{bits}-user", ScramCredentialInfo(mechanism, 4_096), PASSWORD.encode())
        for bits, mechanism in ((256, ScramMechanism.SCRAM_SHA_256), (512, ScramMechanism.SCRAM_SHA_512))
    ]
    admin = admin_client(servers)  # its end would be that of what it was asked to do
    for done in admin.alter_user_scram_credentials(changes).values():
        done.result(10)
