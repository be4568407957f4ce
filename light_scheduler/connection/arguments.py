"""A Kafka cluster and its login, as arguments for each client library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .logins import client_secret, password
from .redaction import keep_logins_out_of_logs
from .security import PLAINTEXT, KafkaSecurity

if TYPE_CHECKING:
    import ssl

    from .renewed_files import Renewed
    from .tokens import ClientCredentials


@dataclass(frozen=True)
class Connection:
    """`bootstrap_servers` is `host:port,host:port`, and so is `str` of a connection."""

    bootstrap_servers: str
    security: KafkaSecurity = PLAINTEXT

    def __str__(self) -> str:
        return self.bootstrap_servers

    @property
    def is_secured(self) -> bool:
        return self.security.is_secured

    def aiokafka(self) -> dict[str, Any]:
        """Return the arguments of an aiokafka client. Raises ConfigurationError naming the invalid setting."""
        security = self.security
        arguments: dict[str, Any] = {"bootstrap_servers": self.bootstrap_servers}
        if not self.is_secured:
            return arguments
        arguments["security_protocol"] = security.security_protocol
        if security.uses_tls:
            arguments["ssl_context"] = _tls(security)
        if security.uses_sasl:
            keep_logins_out_of_logs()
            arguments["sasl_mechanism"] = security.sasl_mechanism
            if security.sasl_mechanism == "OAUTHBEARER":
                client_secret(security)  # an unreadable file is an error here, but not when it is renewed
                arguments["sasl_oauth_token_provider"] = _tokens(security)
            else:
                arguments["sasl_plain_username"] = security.sasl_username
                arguments["sasl_plain_password"] = password(security)
        return arguments

    def librdkafka(self) -> dict[str, Any]:
        """Return the configuration of a confluent-kafka client. Raises ConfigurationError naming the invalid
        setting."""
        from .librdkafka import configuration

        return configuration(self.bootstrap_servers, self.security)

    def renewed_librdkafka(self, own: Mapping[str, Any]) -> Renewed[Mapping[str, Any]]:
        """Return the same with a client's `own` options, made again when files change. Raises ConfigurationError naming
        the invalid setting."""
        from .librdkafka import renewed_configuration

        return renewed_configuration(self.bootstrap_servers, self.security, own)


Address = Connection | str
"""A connection. A plain address, `host:port,host:port`, means one without security."""


def connection_to(address: Address) -> Connection:
    """Return the connection for an address."""
    return Connection(address) if isinstance(address, str) else address


# Shared by all clients of a process: separate ones would each read the files, and request tokens of their own.


@lru_cache
def _tls(security: KafkaSecurity) -> ssl.SSLContext:
    from .tls import kafka_context

    return kafka_context(security)


@lru_cache
def _tokens(security: KafkaSecurity) -> ClientCredentials:
    from .tokens import ClientCredentials

    return ClientCredentials(security)
