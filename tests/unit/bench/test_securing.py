"""What is made for a secured connection: settings that fit together, and no secret that shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from light_scheduler.bench.securing import SecuredProtocol, secured
from light_scheduler.connection.security import MECHANISMS, Mechanism


@pytest.mark.parametrize(
    ("protocol", "uses_tls", "uses_sasl"),
    [("SSL", True, False), ("SASL_PLAINTEXT", False, True), ("SASL_SSL", True, True)],
)
def test_listener_and_clients_agree(protocol: SecuredProtocol, uses_tls: bool, uses_sasl: bool, tmp_path: Path) -> None:
    made = secured(protocol, tmp_path / "certificates")
    assert (made.listener.protocol, made.security.security_protocol) == (protocol, protocol)
    assert (made.security.uses_tls, made.security.uses_sasl) == (uses_tls, uses_sasl)
    assert (made.listener.tls is not None, bool(made.listener.mechanisms)) == (uses_tls, uses_sasl)
    assert bool(made.security.ssl_certificate) is (protocol == "SSL")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_listener_and_clients_agree_on_the_mechanism(mechanism: Mechanism, tmp_path: Path) -> None:
    made = secured("SASL_PLAINTEXT", tmp_path, mechanism)
    assert (made.listener.mechanisms, made.security.sasl_mechanism) == ((mechanism,), mechanism)
    assert bool(made.listener.users) is (mechanism == "PLAIN"), "the broker has the others elsewhere"
    assert (made.security.sasl_username is None) is (mechanism == "OAUTHBEARER")
    if made.token_server is None:
        assert mechanism != "OAUTHBEARER"
    else:
        with made.token_server as server:
            assert made.security.sasl_oauth_token_url == server.url
            assert made.listener.tokens is not None
            assert made.listener.tokens.keys_url == server.keys_url


def test_each_run_has_a_password_of_its_own_and_it_shows_nowhere(tmp_path: Path) -> None:
    first, second = (secured("SASL_PLAINTEXT", tmp_path) for _ in range(2))
    assert first.security.sasl_password is not None
    password = first.security.sasl_password.reveal()
    assert first.listener.users != second.listener.users
    assert list(first.listener.users.values()) == [password]
    assert password not in repr(first)
