"""What the doctor makes of who can reach a worker, and of its tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from light_scheduler.access import AccessBook, Role, Token
from light_scheduler.access.records import Revocation
from light_scheduler.access.tokens import new_token
from light_scheduler.doctor.access_checks import check_listening, check_tokens, check_web_certificates
from light_scheduler.settings import Settings

NOW = 1_767_225_600_000
DAY = 86_400_000

OIDC = {"oidc_issuer": "https://i", "oidc_audience": "a", "oidc_roles": (("x", "read"),)}
CERTIFICATE = {"web_ssl_certificate": Path("a.pem")}
MUTUAL = {**CERTIFICATE, "web_ssl_client_ca": Path("ca.pem"), "web_ssl_client_auth": "required"}


def token(name: str, lifetime: int | None = None) -> Token:
    made, _ = new_token(name, Role.READ, None, by="test", now=NOW, lifetime=lifetime)
    return made


def book(*tokens: Token, revoked: Token | None = None, **more: Any) -> AccessBook:
    all_tokens = {each.id: each for each in tokens}
    return AccessBook(all_tokens, {} if revoked is None else {revoked.id: Revocation(NOW, "test")}, **more)


@pytest.mark.parametrize(
    ("settings", "has_token", "status", "detail"),
    [
        ({"web_host": "127.0.0.1"}, False, "ok", "only this machine"),
        ({}, False, "fail", "requests need no token"),
        ({"insecure": True}, False, "warn", "requests need no token"),
        ({}, True, "warn", "not encrypted"),
        (OIDC, False, "warn", "not encrypted"),
        ({**CERTIFICATE}, True, "ok", "tokens needed"),
        (MUTUAL, False, "ok", "client certificates needed"),
    ],
)
def test_listening_to_others_without_asking_them_or_without_encryption_is_told(
    settings: dict[str, Any], has_token: bool, status: str, detail: str
) -> None:
    access = book(token("a")) if has_token else book()
    check = check_listening(Settings(**{"web_host": "node-1", **settings}), access, ())
    assert check.status == status
    assert detail in check.detail
    assert (check.fix is None) == (status == "ok")


@pytest.mark.parametrize(
    ("addresses", "settings", "has_token", "status", "detail"),
    [
        (["127.0.1.1"], CERTIFICATE, True, "warn", "on this machine, node-1 is 127.0.1.1, which workers elsewhere"),
        (["127.0.0.1", "::1"], MUTUAL, False, "warn", "node-1 is 127.0.0.1, ::1, which workers elsewhere"),
        (["127.0.1.1"], {}, False, "fail", "workers take node-1 for a name that other machines can reach"),
        (["127.0.1.1"], {"insecure": True}, False, "warn", "workers take node-1 for a name that other machines can"),
        (["127.0.1.1", "10.0.0.7"], CERTIFICATE, True, "ok", "HTTPS at node-1: tokens needed"),
        (["10.0.0.7"], {}, False, "fail", "other machines can reach HTTP at node-1, and requests need no token"),
        (["127.0.0.1"], {"web_host": "node-1.localhost"}, False, "ok", "only this machine"),
    ],
)
def test_a_name_that_is_a_loopback_address_on_this_machine_is_told(
    addresses: list[str], settings: dict[str, Any], has_token: bool, status: str, detail: str
) -> None:
    access = book(token("a")) if has_token else book()
    check = check_listening(Settings(**{"web_host": "node-1", **settings}), access, addresses)
    assert check.status == status
    assert detail in check.detail
    assert (check.fix is None) == (status == "ok")


def test_tokens_that_have_expired_or_will_soon_are_named_the_first_to_end_first() -> None:
    revoked = token("revoked", 1)
    soon, later, gone = token("soon", 13 * DAY), token("later", 15 * DAY), token("gone", 1)
    checks = list(check_tokens(book(later, soon, gone, revoked, token("ever"), revoked=revoked), NOW + 1))
    assert [check.status for check in checks] == ["warn", "warn"]
    assert checks[0].detail == f"token gone ({gone.id}) expired at 2026-01-01T00:00:00.001Z"
    assert checks[1].detail == f"token soon ({soon.id}) expires at 2026-01-14T00:00:00.000Z"
    assert f"tokens revoke {gone.id}" in (checks[0].fix or "")


def test_of_many_tokens_some_are_named_and_the_others_counted() -> None:
    checks = list(check_tokens(book(*(token(f"t{number}", 1 + number) for number in range(9))), NOW + DAY))
    assert [check.detail.split()[1] for check in checks[:-1]] == [f"t{number}" for number in range(5)]
    assert checks[-1].detail.startswith("4 more tokens")


def test_tokens_of_another_version_are_told_and_sound_ones_are_counted() -> None:
    (check,) = check_tokens(book(unreadable=2), NOW)
    assert (check.status, check.detail.split()[0]) == ("warn", "2")
    (check,) = check_tokens(book(token("a"), token("b")), NOW)
    assert (check.status, check.detail) == ("ok", "2 tokens, none expires within 14 days")


def test_a_certificate_that_cannot_be_read_fails_with_its_setting(tmp_path: Path) -> None:
    (check,) = check_web_certificates(Settings(web_ssl_ca=tmp_path / "missing.pem"))
    assert check.status == "fail"
    assert check.detail.startswith("web_ssl_ca ")
    assert list(check_web_certificates(Settings())) == []
