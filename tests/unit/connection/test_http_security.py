"""TLS of the workers' HTTP: which settings fit together, and whom each side lets in."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.authority import Authority, Pair

from light_scheduler.connection.http_security import HttpSecurity
from light_scheduler.connection.http_tls import client_context, server_context, tls_fault
from light_scheduler.errors import ConfigurationError


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Pair:
    return authority.sign("worker", password="opens")


def own(pair: Pair, **more: Any) -> dict[str, Any]:
    return {"web_ssl_certificate": pair.certificate, "web_ssl_key": pair.key, "web_ssl_key_password": "opens", **more}


@pytest.mark.parametrize(
    ("settings", "setting", "reason"),
    [
        ({"web_ssl_key": "key.pem"}, "web_ssl_certificate", "is not set, but web_ssl_key is"),
        ({"web_ssl_client_auth": "required"}, "web_ssl_certificate", "web_ssl_client_auth required needs it"),
        (
            {"web_ssl_certificate": "own.pem", "web_ssl_client_auth": "requested"},
            "web_ssl_client_ca",
            "web_ssl_client_auth requested needs it",
        ),
        (
            {"web_ssl_certificate": "own.pem", "web_ssl_client_ca": "ca.pem"},
            "web_ssl_client_ca",
            "set web_ssl_client_auth to required",
        ),
        ({"web_ssl_client_auth": "maybe"}, "web_ssl_client_auth", "must be one of none, requested, required"),
        (
            {"web_ssl_certificate": "a", "web_ssl_key_password": "s3cret", "web_ssl_key_password_file": "b"},
            "web_ssl_key_password",
            "remove one of them",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused_by_name(
    settings: dict[str, Any], setting: str, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason) as caught:
        HttpSecurity(**settings)
    assert caught.value.setting == setting
    assert "s3cret" not in str(caught.value)


def test_errors_of_files_name_the_settings_of_http(authority: Authority, pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="setting web_ssl_key_password: does not open"):
        server_context(HttpSecurity(**own(pair, web_ssl_key_password="wrong")))
    with pytest.raises(ConfigurationError, match=r"setting web_ssl_ca: .* no certificate in PEM form"):
        client_context(HttpSecurity(web_ssl_ca=pair.key))
    with pytest.raises(ConfigurationError, match=r"setting web_ssl_client_ca: .*No such file"):
        server_context(
            HttpSecurity(**own(pair, web_ssl_client_ca=tmp_path / "none.pem", web_ssl_client_auth="required"))
        )
    assert server_context(HttpSecurity()) is None


def test_a_client_ca_that_is_not_all_there_yet_is_named_by_its_setting(
    authority: Authority, pair: Pair, tmp_path: Path
) -> None:
    whole = authority.path.read_bytes()
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(whole + whole[: len(whole) // 2])
    with pytest.raises(ConfigurationError, match=r"every certificate in it must be whole") as caught:
        server_context(HttpSecurity(**own(pair, web_ssl_client_ca=bundle, web_ssl_client_auth="required")))
    assert caught.value.setting == "web_ssl_client_ca"


def shaken(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Carry out a handshake in memory, and one message each way. Raises ssl.SSLError of whoever refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    waiting: list[Callable[[], object]] = [
        asking.do_handshake,
        serving.do_handshake,
        lambda: serving.write(b"x"),
        lambda: asking.read(1),
    ]
    for _ in range(20):
        for step in list(waiting[:2]):
            try:
                step()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(step)
        if not waiting:
            return
    raise AssertionError("the handshake does not end")


@pytest.mark.parametrize(
    ("mode", "shows", "is_let_in"),
    [
        ("none", None, True),
        ("requested", None, True),
        ("requested", "worker", True),
        ("requested", "foreign", False),
        ("required", None, False),
        ("required", "worker", True),
        ("required", "foreign", False),
    ],
)
def test_a_server_lets_clients_in_as_its_mode_says(
    authority: Authority, pair: Pair, tmp_path: Path, mode: str, shows: str | None, is_let_in: bool
) -> None:
    client_ca: dict[str, Any] = {} if mode == "none" else {"web_ssl_client_ca": authority.path}
    server = server_context(HttpSecurity(**own(pair, web_ssl_client_auth=mode, **client_ca)))
    assert server is not None
    shown: dict[str, Any] = {}
    if shows is not None:
        signer = authority if shows == "worker" else Authority(tmp_path, "foreign")
        shown = {"web_ssl_certificate": signer.sign("client").together}
    client = client_context(HttpSecurity(web_ssl_ca=authority.path, **shown))
    if is_let_in:
        shaken(client, server)
    else:
        with pytest.raises(ssl.SSLError):
            shaken(client, server)


def test_a_server_of_an_unknown_authority_is_refused_and_the_setting_is_named(pair: Pair, tmp_path: Path) -> None:
    server = server_context(HttpSecurity(**own(pair)))
    assert server is not None
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        shaken(client_context(HttpSecurity(web_ssl_ca=Authority(tmp_path, "other").path)), server)
    assert "set web_ssl_ca to the certificate of the authority" in str(tls_fault(caught.value))


def test_a_renewed_certificate_is_shown_without_a_restart(tmp_path: Path) -> None:
    before, after = Authority(tmp_path, "before"), Authority(tmp_path, "after")
    before.sign("worker")
    server = server_context(HttpSecurity(web_ssl_certificate=tmp_path / "worker.together.pem"))
    assert server is not None
    shaken(client_context(HttpSecurity(web_ssl_ca=before.path)), server)
    after.sign("worker")
    shaken(client_context(HttpSecurity(web_ssl_ca=after.path)), server)


def test_a_server_goes_on_with_its_client_ca_until_a_renewed_one_is_all_there(
    pair: Pair, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bundle, following = tmp_path / "ca.pem", Authority(tmp_path, "following")
    whole = authority.path.read_bytes()
    bundle.write_bytes(whole)
    server = server_context(HttpSecurity(**own(pair, web_ssl_client_ca=bundle, web_ssl_client_auth="required")))
    assert server is not None
    known, renewed = (
        client_context(HttpSecurity(web_ssl_ca=authority.path, web_ssl_certificate=signer.sign("client").together))
        for signer in (authority, following)
    )
    bundle.write_bytes(whole + following.path.read_bytes()[:-100])
    shaken(known, server)
    assert caplog.text.count("the old ones stay in use: setting web_ssl_client_ca") == 1
    bundle.write_bytes(whole + following.path.read_bytes())
    shaken(known, server)
    shaken(renewed, server)
