"""Security options of the Kafka formats, by the names of Java's clients and by librdkafka's."""

from __future__ import annotations

import pytest

from light_scheduler.pipeline.kafka.options import ReadOptions, WriteOptions
from light_scheduler.pipeline.kafka.security import for_librdkafka, for_official

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
URL = "https://login.example/token"

PASSWORD = (
    {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM} username="u" password="p\\"a\\\\ss";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem",
        "ssl.endpoint.identification.algorithm": "",
    },
    {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": 'p"a\\ss',
        "ssl.ca.location": "ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
    },
)
TOKENS = (
    {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": URL,
        "sasl.login.callback.handler.class": HANDLER,
        "sasl.jaas.config": f'{BEARER} clientId="scheduler" clientSecret="s" scope="kafka";',
    },
    {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": URL,
        "sasl.oauthbearer.client.id": "scheduler",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "kafka",
    },
)
MUTUAL = (
    {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "both.pem",
        "ssl.key.password": "k",
    },
    {
        "security.protocol": "SSL",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "both.pem",
        "ssl.key.location": "both.pem",
        "ssl.key.password": "k",
    },
)


@pytest.mark.parametrize(("java", "librdkafka"), [PASSWORD, TOKENS, MUTUAL])
def test_both_names_mean_the_same(java: dict[str, str], librdkafka: dict[str, str]) -> None:
    assert for_librdkafka(java) == librdkafka
    assert for_librdkafka(librdkafka) == librdkafka
    assert for_official(librdkafka) == java


def test_the_formats_take_options_of_the_official_connector() -> None:
    options = {f"kafka.{name}": value for name, value in PASSWORD[0].items()}
    options |= {"kafka.bootstrap.servers": "kafka:9093"}
    read = ReadOptions.parse({**options, "subscribe": "topic"}, streaming=False)
    assert PASSWORD[1].items() <= read.client.items()
    write = WriteOptions.parse(options)
    assert PASSWORD[1].items() <= write.client.items()
    assert 'p"a\\ss' not in f"{read} {write}"
    assert "sasl.password" not in f"{read} {write}"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"ssl.truststore.location": "ca.jks"}, "kafka.ssl.truststore.type is JKS: .* reads PEM files only"),
        ({"ssl.keystore.location": "k.p12", "ssl.keystore.type": "PKCS12"}, "kafka.ssl.keystore.type is PKCS12"),
        ({"sasl.jaas.config": 'Krb5 required keyTab="planted";'}, "kafka.sasl.jaas.config has no username"),
    ],
)
def test_what_librdkafka_cannot_do_is_refused_by_the_name_of_its_option(given: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        for_librdkafka(given)
    assert "planted" not in str(caught.value)


def test_two_files_are_too_many_for_the_official_connector() -> None:
    with pytest.raises(ValueError, match="put both into the file that ssl_certificate names"):
        for_official({"ssl.certificate.location": "c.pem", "ssl.key.location": "k.pem"})
