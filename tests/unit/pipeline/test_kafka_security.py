"""Security options of the Kafka formats, by the names of Java's clients and by librdkafka's."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar
from unittest.mock import MagicMock

import pytest

from light_scheduler.cli.pipeline.running import cluster_of
from light_scheduler.errors import JobError
from light_scheduler.pipeline.kafka.options import ReadOptions, WriteOptions
from light_scheduler.pipeline.kafka.security import for_librdkafka, for_official
from light_scheduler.pipeline.topics import OFFICIAL_FORMAT, read_format
from light_scheduler.settings import load_settings

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
        ({"ssl.truststore.location": "t.p12", "ssl.truststore.type": "PKCS12"}, "kafka.ssl.truststore.type is PKCS12"),
        ({"ssl.keystore.location": "k.jks"}, "kafka.ssl.keystore.type is JKS: .* reads PEM and PKCS12 files only"),
        (
            {"ssl.truststore.password": "planted"},
            "kafka.ssl.truststore.password exists in Java clients only: leave it out",
        ),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "kafka.ssl.enabled.protocols exists in Java clients only: leave it out"),
        (
            {"sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"},
            "kafka.sasl.client.callback.handler.class is software.amazon.*cannot run it",
        ),
        ({"sasl.jaas.config": 'Krb5 required keyTab="planted";'}, "kafka.sasl.jaas.config has no username"),
    ],
)
def test_what_librdkafka_cannot_do_is_refused_by_the_name_of_its_option(given: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        for_librdkafka(given)
    assert "planted" not in str(caught.value)


def test_a_key_store_in_pkcs12_form_is_taken_as_it_is() -> None:
    store = {"ssl.keystore.location": "k.p12", "ssl.keystore.password": "k"}
    assert for_librdkafka({**store, "ssl.keystore.type": "PKCS12"}) == store


def test_client_credentials_are_taken_by_the_names_of_newer_clients_in_java() -> None:
    credentials = {"client.id": "scheduler", "client.secret": "s", "scope": "kafka"}
    java = {name: value for name, value in TOKENS[0].items() if name != "sasl.jaas.config"}
    java |= {f"sasl.oauthbearer.client.credentials.{name}": value for name, value in credentials.items()}
    assert for_librdkafka(java) == {**TOKENS[1], **{f"sasl.oauthbearer.{k}": v for k, v in credentials.items()}}


@pytest.mark.parametrize(("encoded", "client"), [("true", "urn%3Aa+b"), ("false", "urn:a b"), (None, "urn:a b")])
def test_client_credentials_are_encoded_where_a_client_in_java_would(encoded: str | None, client: str) -> None:
    java = {**TOKENS[0], "sasl.jaas.config": f'{BEARER} clientId="urn:a b" clientSecret="urn:a b";'}
    if encoded is not None:
        java["sasl.oauthbearer.header.urlencode"] = encoded
    found = for_librdkafka(java)
    assert found["sasl.oauthbearer.client.id"] == found["sasl.oauthbearer.client.secret"] == client
    assert "sasl.oauthbearer.header.urlencode" not in found


class TestSettings:
    """The formats take a connection by the names of the settings, too."""

    given: ClassVar = {
        "broker": "kafka://kafka-1:9093,kafka-2:9093",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "u",
        "ssl_check_hostname": "false",
    }

    def test_they_mean_what_they_mean_to_a_worker(self, tmp_path: Path) -> None:
        (tmp_path / "password").write_text('p"a\\ss\n')
        given = {**self.given, "sasl_password_file": str(tmp_path / "password")}
        expected = {
            **{name: value for name, value in PASSWORD[1].items() if name != "ssl.ca.location"},
            "bootstrap.servers": "kafka-1:9093,kafka-2:9093",
        }
        read = ReadOptions.parse({**given, "subscribe": "topic"}, streaming=False)
        assert expected.items() <= read.client.items()
        assert expected.items() <= WriteOptions.parse(given).client.items()

    def test_an_option_for_the_client_beats_them(self) -> None:
        given = {**self.given, "sasl_password": "p", "kafka.bootstrap.servers": "other:1", "kafka.sasl.username": "v"}
        client = WriteOptions.parse(given).client
        assert (client["bootstrap.servers"], client["sasl.username"]) == ("other:1", "v")

    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            ({"broker": "planted"}, "option broker: .* must be kafka://host:port"),
            ({"security_protocol": "TLS"}, "option security_protocol: 'TLS' must be one of"),
            ({"sasl_username": ""}, "option sasl_username is not set"),
            ({"sasl_mechanism": "OAUTHBEARER"}, "option sasl_oauth_token_url is not set"),
            ({"sasl_pasword_file": "x"}, "option sasl_pasword_file is not known to this Kafka format"),
        ],
    )
    def test_what_is_wrong_is_said_by_the_name_of_the_option(self, wrong: dict[str, str], reason: str) -> None:
        with pytest.raises(ValueError, match=reason):
            WriteOptions.parse({**self.given, "sasl_password": "p", **wrong})


@pytest.mark.parametrize("prefix", ["", "kafka."])
def test_jobs_take_the_names_of_the_official_connector_with_and_without_their_prefix(prefix: str) -> None:
    given = {f"{prefix}{name}": value for name, value in PASSWORD[0].items()}
    assert cluster_of(load_settings({}, environment={}), given).client == PASSWORD[1]


def test_two_files_are_too_many_for_the_official_connector() -> None:
    with pytest.raises(ValueError, match="put both into the file that ssl_certificate names"):
        for_official({"ssl.certificate.location": "c.pem", "ssl.key.location": "k.pem"})


def test_a_job_that_cannot_log_in_through_the_official_connector_says_so() -> None:
    files = {"kafka.ssl.certificate.location": "c.pem", "kafka.ssl.key.location": "k.pem"}
    with pytest.raises(JobError, match="put both into the file that ssl_certificate names"):
        read_format(MagicMock(), OFFICIAL_FORMAT, "127.0.0.1:9", ["reminders"], **files)
