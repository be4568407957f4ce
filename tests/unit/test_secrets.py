"""No setting shows its secret, whatever is made of it."""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.planted import PLANTED

from light_scheduler.client.questions import get_question
from light_scheduler.client.worker_api import WorkerApi
from light_scheduler.connection import Secret
from light_scheduler.contexts import Contexts
from light_scheduler.errors import ClientError, ConfigurationError, InvalidCommand
from light_scheduler.logs import logging_config
from light_scheduler.settings import Settings, is_secret, load_settings
from light_scheduler.web.cluster.worker_http import WorkerHttp

KAFKA_LOGIN = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "u"}
TOKEN_LOGIN = {**KAFKA_LOGIN, "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_url": "https://t", "sasl_username": ""}
BESIDE: dict[str, dict[str, str]] = {
    "sasl_password": KAFKA_LOGIN,
    "sasl_oauth_client_secret": {**TOKEN_LOGIN, "sasl_oauth_client_id": "c"},
    "ssl_key_password": {"security_protocol": "SSL", "ssl_certificate": "a.pem"},
    "web_ssl_key_password": {"web_ssl_certificate": "a.pem"},
    "schema_registry_password": {"schema_registry": "http://r:1", "schema_registry_username": "u"},
    "token": {},
}
"""What the setting of each secret needs beside it."""


def test_a_secret_is_planted_in_every_setting_that_holds_one() -> None:
    assert {setting.name for setting in fields(Settings) if is_secret(setting)} == PLANTED.keys() == BESIDE.keys()


def settings_with(name: str, **more: str) -> Settings:
    variables = {**BESIDE[name], name: PLANTED[name], **more}
    return load_settings({}, environment={f"LIGHT_SCHEDULER_{key.upper()}": value for key, value in variables.items()})


@pytest.mark.parametrize("name", PLANTED)
def test_settings_and_what_is_made_of_them_hide_their_secrets_in_texts_and_tracebacks(name: str) -> None:
    settings = settings_with(name)
    assert getattr(settings, name).reveal() == PLANTED[name]

    def failing() -> None:
        security, http, registry, token = settings.security, settings.http_security, settings.registry, settings.token
        connection, values = settings.connection, asdict(settings)
        raise ValueError(f"{settings} {security!r} {http!r} {registry!r} {token} {connection} {values}")

    with pytest.raises(ValueError) as caught:  # noqa: PT011 - it is raised here
        failing()
    whole = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert PLANTED[name] not in "".join(whole.format())
    assert PLANTED[name] not in json.dumps(logging_config("DEBUG", "json", None), default=str)


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("wrong", [list, dict, "twice"])
def test_what_is_wrong_with_a_secret_is_said_without_it(name: str, wrong: Any, tmp_path: Path) -> None:
    """A list or a table in place of text; the secret and its file at once."""
    makes: dict[Any, Callable[[], object]] = {
        list: lambda: load_settings({}, environment={}, file=written(f"{name} = [{PLANTED[name]!r}]")),
        dict: lambda: load_settings({}, environment={}, file=written(f"{name} = {{ a = {PLANTED[name]!r} }}")),
        "twice": lambda: settings_with(name, **{f"{name}_file": "also"}).registry and settings_with(name),
    }

    def written(line: str) -> Path:
        path = tmp_path / "settings.toml"
        path.write_text(line)
        return path

    with pytest.raises(ConfigurationError) as caught:
        makes[wrong]()
    assert name in str(caught.value)
    assert PLANTED[name] not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("broker", "kafka://u:planted@kafka-1:9092"),
        ("broker", "u:planted@kafka-1:9092"),
        ("broker", "kafka://planted@kafka-1:9092"),
        ("oidc_issuer", "https://u:planted@login.example"),
        ("oidc_issuer", "http://u:pl/planted@login.example"),
        ("oidc_jwks_url", "https://u:planted@login.example/keys"),
        ("schema_registry", "http://u:planted@registry:8081"),
        ("sasl_oauth_token_url", "https://u:planted@login.example/token"),
        ("sasl_oauth_token_url", "http://u:planted@login.example/token"),
    ],
)
def test_a_login_in_an_address_is_refused_and_not_shown(name: str, url: str) -> None:
    beside = {**TOKEN_LOGIN, "sasl_oauth_client_id": "c", "sasl_oauth_client_secret": "s"}
    given = {**(beside if name == "sasl_oauth_token_url" else {}), name: url}
    with pytest.raises(ConfigurationError, match="must not have a login in it") as caught:
        _ = load_settings(
            {}, environment={f"LIGHT_SCHEDULER_{key.upper()}": value for key, value in given.items()}
        ).security
    assert "planted" not in str(caught.value)


def test_a_login_in_the_address_of_a_token_server_gets_into_no_context() -> None:
    """The file would keep it, and `config show` would show it."""
    with pytest.raises(ConfigurationError, match="sasl_oauth_token_url: must not have a login in it") as caught:
        Contexts().having("a", {"sasl_oauth_token_url": "https://u:planted@login.example/token"})
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:planted@127.0.0.1:1/", "http://127.0.0.1:1"),
        ("ftp://u:planted@host", "ftp://host"),
        ("u:planted@[host", "[host"),
    ],
)
async def test_the_address_of_a_worker_is_shown_without_a_login(url: str, shown: str) -> None:
    async with WorkerHttp(url) as worker:
        with pytest.raises(ClientError) as caught:
            await worker.ask("GET", "/info")
    assert shown in str(caught.value)
    assert "planted" not in str(caught.value)
    with pytest.raises((ClientError, InvalidCommand)) as refused:
        WorkerApi(url).asked(get_question("shop", "a"))
    assert shown in str(refused.value)
    assert "planted" not in str(refused.value)


def test_a_secret_can_be_compared_and_sent_to_another_process_and_shows_nowhere() -> None:
    secret = Secret("planted")
    assert pickle.loads(pickle.dumps(secret)) == secret != Secret("other")
    assert len({secret, Secret("planted")}) == 1
    assert "planted" not in f"{secret} {secret!r} {[secret]}"
    with pytest.raises(TypeError):
        msgspec.json.encode(secret)
