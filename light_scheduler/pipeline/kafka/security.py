"""Security options by either name: those of Java's clients, which the official connector uses, and librdkafka's.

    Java                                             librdkafka
    security.protocol, sasl.mechanism                the same
    sasl.jaas.config                                 sasl.username, sasl.password; sasl.oauthbearer.client.id, ...
    sasl.oauthbearer.token.endpoint.url              the same, and sasl.oauthbearer.method=oidc
    sasl.oauthbearer.client.credentials.client.id    sasl.oauthbearer.client.id
    ssl.truststore.location (PEM)                    ssl.ca.location
    ssl.truststore.certificates                      ssl.ca.pem
    ssl.keystore.location (PEM: key and chain)       ssl.certificate.location, ssl.key.location
    ssl.keystore.location, .password (PKCS12)        the same
    ssl.keystore.certificate.chain, ssl.keystore.key ssl.certificate.pem, ssl.key.pem
    ssl.endpoint.identification.algorithm (empty)    none

Errors never contain the values of secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from urllib.parse import quote_plus

from light_scheduler.connection import KafkaSecurity
from light_scheduler.connection.librdkafka import configuration
from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import Settings

_PAIR = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')
_JAAS = {
    "username": "sasl.username",
    "password": "sasl.password",
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_RENAMED = {
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
}
_HANDLERS = ("sasl.login.callback.handler.class", "sasl.client.callback.handler.class")
_CREDENTIALS = "sasl.oauthbearer.client.credentials."
"""Kafka's names for the client's credentials from 4.1 on; before, they were in `sasl.jaas.config`."""
_ENCODED = "sasl.oauthbearer.header.urlencode"
"""Whether a Java client encodes id and secret as RFC 6749 requires; librdkafka never does."""
_STORE_TYPES = {"ssl.truststore": ("PEM",), "ssl.keystore": ("PEM", "PKCS12")}
_WITHOUT_COUNTERPART = re.compile(
    r"ssl\.(protocol|enabled\.protocols|provider|truststore\.password|(key|trust)manager\.algorithm|engine\.factory\.class|"
    r"secure\.random\.implementation)|security\.providers|sasl\.(login|client)\.class|sasl\.jaas\.config\..*"
)
"""Options without a counterpart in librdkafka. Silently dropping some of them would make a connection less secure."""
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_TOKEN_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"  # noqa: S105


def for_librdkafka(client: Mapping[str, str]) -> dict[str, str]:
    """Return a client's configuration with librdkafka's names. Raises ValueError naming an option that cannot be
    converted."""
    found = dict(client)
    for name in found:
        if _WITHOUT_COUNTERPART.fullmatch(name):
            raise ValueError(f"option kafka.{name} exists in Java clients only: leave it out")
    stores = {store: _store_type(found, store, types) for store, types in _STORE_TYPES.items()}
    for name in _HANDLERS:
        if (handler := found.pop(name, "")).rpartition(".")[2] not in ("", _TOKEN_HANDLER.rpartition(".")[2]):
            raise ValueError(
                f"option kafka.{name} is {handler}: this Kafka client cannot run it. It gets tokens from "
                "kafka.sasl.oauthbearer.token.endpoint.url with client credentials"
            )
    for name, ours in _RENAMED.items():
        if name.startswith("ssl.keystore") and stores["ssl.keystore"] == "PKCS12":
            continue
        if (value := found.pop(name, None)) is not None:
            found |= dict.fromkeys(ours, value)
    if "sasl.jaas.config" in found:
        found |= _of_jaas(found.pop("sasl.jaas.config"))
    for name in [name for name in found if name.startswith(_CREDENTIALS)]:
        found["sasl.oauthbearer." + name.removeprefix(_CREDENTIALS)] = found.pop(name)
    if found.pop(_ENCODED, "").lower() == "true":
        found |= {name: quote_plus(found[name]) for name in (_JAAS["clientId"], _JAAS["clientSecret"]) if name in found}
    if found.get("sasl.mechanism") == "OAUTHBEARER" and "sasl.oauthbearer.token.endpoint.url" in found:
        found.setdefault("sasl.oauthbearer.method", "oidc")
    if found.get("ssl.endpoint.identification.algorithm") == "":
        found["ssl.endpoint.identification.algorithm"] = "none"
    return found


def of_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a connection as librdkafka's configuration. Reads the files of secrets.

    Raises ValueError naming the invalid setting.
    """
    declared = {setting.name: setting.metadata["parse"] for setting in fields(Settings)}
    values = {}
    for name, text in given.items():
        try:
            values[name] = declared[name](text)
        except ValueError as error:
            raise ValueError(f"option {name}: {error}") from None
    servers = values.pop("broker", "").removeprefix("kafka://")
    try:
        found = configuration(servers, KafkaSecurity(**values))
    except ConfigurationError as error:
        raise ValueError(f"option {error.setting} {error.reason}") from None
    return found if servers else {name: value for name, value in found.items() if name != "bootstrap.servers"}


def for_official(client: Mapping[str, str]) -> dict[str, str]:
    """Return a configuration with librdkafka's names in the form for the official connector.

    Raises ValueError for what Java clients do not support: a certificate and its key in two files.
    """
    found = dict(client)
    jaas = {name: found.pop(ours) for name, ours in _JAAS.items() if ours in found}
    if jaas:
        mechanism = found.get("sasl.mechanism", "")
        parts = "".join(f' {name}="{_escaped(value)}"' for name, value in jaas.items())
        found["sasl.jaas.config"] = f"{_LOGIN_MODULES.get(mechanism, _LOGIN_MODULES['PLAIN'])} required{parts};"
    if found.pop("sasl.oauthbearer.method", None) == "oidc":
        found["sasl.login.callback.handler.class"] = _TOKEN_HANDLER
    found.pop("https.ca.location", None)
    if (authority := found.pop("ssl.ca.location", None)) is not None:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
    certificate, key = found.pop("ssl.certificate.location", None), found.pop("ssl.key.location", None)
    if certificate is not None:
        if key not in (None, certificate):
            raise ValueError(
                "the official Kafka connector reads a certificate and its key from one file: put both into the file "
                "that ssl_certificate names, and leave ssl_key out"
            )
        found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificate}
    if found.get("ssl.endpoint.identification.algorithm") == "none":
        found["ssl.endpoint.identification.algorithm"] = ""
    return found


def _store_type(found: dict[str, str], store: str, types: tuple[str, ...]) -> str:
    """Remove the type of a store from a configuration. Raises ValueError if librdkafka cannot read it."""
    kind = found.pop(f"{store}.type", "PEM" if f"{store}.location" not in found else "JKS").upper()
    if kind not in types:
        raise ValueError(
            f"option kafka.{store}.type is {kind}: this Kafka client reads {' and '.join(types)} files only. Give the "
            f"same certificates in PEM form, with kafka.{store}.type=PEM"
        )
    return kind


def _of_jaas(text: str) -> dict[str, str]:
    values = {name: (quoted if bare == "" else bare) for name, quoted, bare in _PAIR.findall(text)}
    found = {ours: re.sub(r"\\(.)", r"\1", values[name]) for name, ours in _JAAS.items() if name in values}
    if not found:
        raise ValueError('option kafka.sasl.jaas.config has no username="..." and no clientId="..."')
    return found


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
