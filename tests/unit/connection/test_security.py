"""The settings of a secured connection: what fits together, what is refused by which name, and what shows nowhere."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from light_scheduler.connection import Connection, KafkaSecurity, Secret
from light_scheduler.errors import ConfigurationError
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.settings import Settings, load_settings
from light_scheduler.tables.rebuilding import Job, decoded, encoded
from light_scheduler.tables.usable_copy import ChangelogFacts

PLAIN = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "u", "sasl_password": "p4ss"}
OAUTH = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauth_token_url": "https://login.example/token",
    "sasl_oauth_client_id": "scheduler",
    "sasl_oauth_client_secret": "s3cret",
}
TLS = {"security_protocol": "SSL", "ssl_ca": "ca.pem"}


def load(given: Mapping[str, str | None]) -> Settings:
    environment = {f"LIGHT_SCHEDULER_{name.upper()}": value for name, value in given.items() if value is not None}
    return load_settings(environment=environment)


@pytest.mark.parametrize(
    "given",
    [
        {},
        TLS,
        PLAIN,
        {**PLAIN, "security_protocol": "SASL_PLAINTEXT"},
        {**PLAIN, "sasl_password": None, "sasl_password_file": "password"},
        {**PLAIN, "sasl_mechanism": "SCRAM-SHA-512", "ssl_certificate": "c", "ssl_key": "k"},
        OAUTH,
        {**OAUTH, "sasl_oauth_client_id": "urn:x"},
        {
            **OAUTH,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_oauth_token_url": "http://127.0.0.1:1/t",
            "ssl_ca": "ca",
        },
    ],
    ids=str,
)
def test_settings_that_fit_together_are_taken(given: dict[str, str | None]) -> None:
    assert load(given).security.security_protocol == given.get("security_protocol", "PLAINTEXT")


@pytest.mark.parametrize(
    ("given", "setting", "reason"),
    [
        ({**PLAIN, "sasl_mechanism": None}, "sasl_mechanism", "needs it: one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({**PLAIN, "sasl_username": None}, "sasl_username", "sasl_mechanism PLAIN needs it"),
        ({**PLAIN, "sasl_password": None}, "sasl_password", "set sasl_password_file, or sasl_password in the env"),
        ({**PLAIN, "sasl_password_file": "x"}, "sasl_password", "remove one of them"),
        ({**PLAIN, "security_protocol": None}, "sasl_mechanism", "set security_protocol to SASL_PLAINTEXT or SASL_SSL"),
        ({**PLAIN, "security_protocol": "SSL"}, "sasl_mechanism", "set security_protocol to SASL_SSL"),
        ({**PLAIN, "sasl_oauth_scope": "x"}, "sasl_oauth_scope", "set sasl_mechanism to OAUTHBEARER"),
        ({**TLS, "security_protocol": None}, "ssl_ca", "set security_protocol to SSL or SASL_SSL"),
        ({**TLS, "ssl_key": "k"}, "ssl_certificate", "name the file with the certificate of that key"),
        ({**OAUTH, "sasl_oauth_token_url": None}, "sasl_oauth_token_url", "needs it: https://"),
        ({**OAUTH, "sasl_oauth_token_url": "http://login.example"}, "sasl_oauth_token_url", "must be https://"),
        ({**OAUTH, "sasl_oauth_token_url": "https://[x"}, "sasl_oauth_token_url", "must be https://"),
        ({**OAUTH, "sasl_oauth_token_url": "http://[::1"}, "sasl_oauth_token_url", "must be https://"),
        ({**OAUTH, "sasl_oauth_client_id": None}, "sasl_oauth_client_id", "needs it"),
        ({**OAUTH, "sasl_oauth_client_secret": None}, "sasl_oauth_client_secret", "needs it"),
        ({**OAUTH, "sasl_username": "u"}, "sasl_username", "no effect with sasl_mechanism OAUTHBEARER"),
    ],
    ids=str,
)
def test_a_setting_that_is_missing_or_without_effect_is_named_with_what_to_do(
    given: dict[str, str | None], setting: str, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason) as caught:
        load(given)
    assert caught.value.setting == setting


def test_a_value_that_is_none_of_the_choices_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"SASL_TLS.*must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"):
        load({"security_protocol": "SASL_TLS"})


@pytest.mark.parametrize("name", ["sasl_password", "sasl_oauth_client_secret", "ssl_key_password"])
@pytest.mark.parametrize("value", ["pa55word-planted", "planted\udce9", 5_550_177, ["pa55word-planted"]])
def test_no_error_repeats_a_secret(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings({name: value}, environment={})
    assert "planted" not in str(caught.value)
    assert "5550177" not in str(caught.value)


def test_a_secret_in_an_environment_of_another_encoding_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="SASL_PASSWORD: must be text in UTF-8"):
        load_settings({}, environment={"LIGHT_SCHEDULER_SASL_PASSWORD": os.fsdecode(b"caf\xe9")})


def test_a_secret_shows_in_no_representation() -> None:
    settings = load({**PLAIN, "sasl_password": "pa55word-planted", "ssl_key_password": "pa55word-planted"})
    for shown in (settings, settings.security, settings.connection, settings.sasl_password, vars(settings)):
        assert "planted" not in f"{shown} {shown!r}"
    assert settings.sasl_password == Secret("pa55word-planted")
    assert settings.sasl_password.reveal() == "pa55word-planted"


def test_librdkafka_takes_the_same_settings() -> None:
    scope = {**OAUTH, "sasl_oauth_scope": "kafka", "ssl_check_hostname": "false"}
    assert load(scope).connection.librdkafka() == {
        "bootstrap.servers": "127.0.0.1:9092",
        "allow.auto.create.topics": False,
        "security.protocol": "SASL_SSL",
        "ssl.endpoint.identification.algorithm": "none",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
        "sasl.oauthbearer.client.id": "scheduler",
        "sasl.oauthbearer.client.secret": "s3cret",
        "sasl.oauthbearer.scope": "kafka",
    }


def test_the_process_that_rebuilds_state_is_sent_the_whole_connection() -> None:
    connection = load({**PLAIN, "ssl_ca": "ca.pem"}).connection
    facts = ChangelogFacts("id", 1)
    job = Job(
        clients=KafkaClients(connection, 10_000),
        changelog="changelog",
        commands="commands",
        partition=0,
        facts=facts,
        path="state",
        log_level="INFO",
        log_format="text",
    )
    assert decoded(encoded(job)).clients.connection == connection


def test_code_may_give_secrets_and_files_as_text() -> None:
    security = KafkaSecurity(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="u",
        sasl_password="planted",  # type: ignore[arg-type]
    )
    assert "planted" not in repr(security)
    arguments = Connection("kafka:9092", security).aiokafka()
    assert (arguments["sasl_plain_username"], arguments["sasl_plain_password"]) == ("u", "planted")
    assert pickle.loads(pickle.dumps(security)) == security
    assert KafkaSecurity(security_protocol="SSL", ssl_ca="ca.pem").ssl_ca == Path("ca.pem")  # type: ignore[arg-type]
