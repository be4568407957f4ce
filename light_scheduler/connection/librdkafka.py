"""The settings as librdkafka's configuration, in texts only, so that it can be sent to other processes.

librdkafka reads certificates and logins when a client is created, and cannot read them again. So a long-lived client
must be replaced whenever `renewed_configuration` changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .logins import client_login, password
from .renewed_files import Renewed
from .security import KafkaSecurity
from .tls import given, key_password, own_certificate, tls_context

NO_TOPIC_CREATION = {"allow.auto.create.topics": False}
"""By default, looking up a topic with a producer or an admin client creates it, if the broker allows that."""


def configuration(bootstrap_servers: str, security: KafkaSecurity) -> dict[str, Any]:
    """Return the configuration of a client. Raises ConfigurationError naming the invalid setting."""
    found: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, **NO_TOPIC_CREATION}
    if security.is_secured:
        found |= _secured(security)
    return found


def renewed_configuration(
    bootstrap_servers: str, security: KafkaSecurity, own: Mapping[str, Any]
) -> Renewed[Mapping[str, Any]]:
    """Return a configuration with a client's `own` options, which is made again when files change.

    Raises ConfigurationError naming the invalid setting.
    """
    return Renewed(
        lambda: {**configuration(bootstrap_servers, security), **own},
        given(
            security.ssl_ca,
            security.ssl_certificate,
            security.ssl_key,
            security.ssl_key_password_file,
            security.sasl_password_file,
            security.sasl_oauth_client_secret_file,
        ),
        "certificates and logins of a client",
    )


def _secured(security: KafkaSecurity) -> Iterator[tuple[str, str]]:
    yield "security.protocol", security.security_protocol
    if security.uses_tls:
        tls_context(security)  # its errors name the setting; librdkafka's do not
        if security.ssl_ca is not None:
            yield "ssl.ca.location", str(security.ssl_ca)
        if (own := own_certificate(security)) is not None:
            yield "ssl.certificate.location", str(own.certificate)
            yield "ssl.key.location", str(own.key or own.certificate)
            if of_key := key_password(own):
                yield "ssl.key.password", of_key
        if not security.ssl_check_hostname:
            yield "ssl.endpoint.identification.algorithm", "none"
    if not security.uses_sasl:
        return
    assert security.sasl_mechanism is not None, "checked with the settings"
    yield "sasl.mechanism", security.sasl_mechanism
    if security.sasl_mechanism != "OAUTHBEARER":
        yield "sasl.username", security.sasl_username or ""
        yield "sasl.password", password(security)
        return
    yield "sasl.oauthbearer.method", "oidc"
    yield "sasl.oauthbearer.token.endpoint.url", security.sasl_oauth_token_url or ""
    login = client_login(security)  # librdkafka sends it unchanged
    yield "sasl.oauthbearer.client.id", login[0]
    yield "sasl.oauthbearer.client.secret", login[1]
    if security.sasl_oauth_scope:
        yield "sasl.oauthbearer.scope", security.sasl_oauth_scope
    if security.ssl_ca is not None:
        yield "https.ca.location", str(security.ssl_ca)
