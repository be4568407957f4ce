"""Tokens of an identity provider, with real keys and a real server for them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from support.waiting import eventually

from light_scheduler.access import Identity, Role, TokenError, jwks
from light_scheduler.access.jwks import FRESH_S, RETRY_S, STALE_S, KeySet, KeysUnavailable
from light_scheduler.access.oidc import Oidc, identity_of
from light_scheduler.clock import SystemClock
from light_scheduler.connection.identity_provider import IdentityProvider
from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import load_settings

RSA = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
KEYS: dict[str, Any] = {
    "RS256": RSA,
    "PS384": RSA,
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
AUDIENCE = "light-scheduler"


def public(id: str | None, key: Any, **members: str) -> dict[str, Any]:
    """Return the public half of a key as a member of a JWKS."""
    kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    if isinstance(key, ed25519.Ed25519PrivateKey):
        kind = jwt.algorithms.OKPAlgorithm  # type: ignore[assignment]
    found = json.loads(kind.to_jwk(key.public_key()))
    return {**found, **({} if id is None else {"kid": id}), "use": "sig", **members}


class Provider:
    """An identity provider whose keys a test changes."""

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = [public(name, key) for name, key in KEYS.items()]
        self.fetched = 0
        self.is_down = False
        self.issuer = ""
        self.says_issuer: str | None = None
        self.now = 1_000.0
        self.answers = asyncio.Event()
        self.answers.set()

    def application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [web.get("/.well-known/openid-configuration", self._discovery), web.get("/keys", self._keys)]
        )
        return application

    async def _discovery(self, request: web.Request) -> web.Response:
        return web.json_response({"issuer": self.says_issuer or self.issuer, "jwks_uri": f"{self.issuer}/keys"})

    async def _keys(self, request: web.Request) -> web.Response:
        self.fetched += 1
        await self.answers.wait()
        return web.Response(status=503) if self.is_down else web.json_response({"keys": self.keys})

    def settings(self, **changes: Any) -> IdentityProvider:
        given = {
            "issuer": self.issuer,
            "audience": AUDIENCE,
            "jwks_url": None,
            "role_claim": "realm.roles",
            "roles": {"boss": "admin", "clerk": "read"},
            "tenant_claim": "tenants",
        }
        return IdentityProvider(**{**given, **changes})

    def oidc(self, **changes: Any) -> Oidc:
        settings = self.settings(**changes)
        return Oidc(settings, KeySet(settings.issuer, settings.jwks_url, lambda: self.now))

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = SystemClock().now() // 1_000
        claims = {
            "iss": self.issuer,
            "aud": [AUDIENCE, "other"],
            "sub": "alice",
            "exp": now + 60,
            "realm": {"roles": ["clerk", "boss", "unknown"]},
            "tenants": ["a", "b"],
            **changes,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, algorithm: str = "RS256", key: Any = None, id: str | None = None, **changes: Any) -> str:
        headers = {"kid": algorithm if id is None else id}
        return jwt.encode(self.claims(**changes), KEYS[algorithm] if key is None else key, algorithm, headers)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    provider = Provider()
    async with TestServer(provider.application()) as server:
        provider.issuer = str(server.make_url("")).rstrip("/")
        yield provider


@pytest.mark.parametrize("algorithm", KEYS)
async def test_a_token_is_who_it_says(provider: Provider, algorithm: str) -> None:
    identity = await provider.oidc().identity(provider.token(algorithm))
    assert identity == Identity("oidc:alice", Role.ADMIN, frozenset({"a", "b"}))


async def test_keys_may_have_an_address_of_their_own_and_no_id(provider: Provider) -> None:
    provider.keys = [public(None, RSA)]
    text = jwt.encode(provider.claims(), RSA, "RS256")
    oidc = provider.oidc(issuer=provider.issuer, jwks_url=f"{provider.issuer}/keys")
    assert (await oidc.identity(text)).name == "oidc:alice"


NOW_S = SystemClock().now() // 1_000
"""As this file is collected: in a long run its tests begin more than an hour later."""
NEXT_YEAR_S = NOW_S + 365 * 24 * 3_600


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": NOW_S - 60}, "has expired"),
        ({"exp": None}, "exp"),
        ({"nbf": NEXT_YEAR_S}, "not yet valid"),
        ({"iss": "https://evil.example"}, "issuer"),
        ({"iss": None}, "iss"),
        ({"aud": "other"}, "[Aa]udience"),
        ({"aud": None}, "aud"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "has a subject .* 1 to 255 printable characters"),
        ({"sub": "x" * 256}, "has a subject"),
        ({"sub": "alice\n2027-01-01 bob logged in"}, "has a subject"),
        ({"sub": "\ud800"}, "has a subject"),
        ({"realm": {"roles": ["unknown"]}}, "has no role"),
        ({"realm": {"roles": 5}}, "has no role"),
        ({"realm": "boss"}, "has no role"),
        ({"id": "other"}, "a key that .* does not have"),
        ({"key": rsa.generate_private_key(public_exponent=65_537, key_size=2_048)}, "not valid: Signature"),
        ({"algorithm": "ES256", "id": "RS256"}, "which does not fit the kind of its key"),
        ({"algorithm": "RS256", "id": "ES256"}, "which does not fit the kind of its key"),
    ],
)
async def test_what_is_wrong_with_a_token_is_said(provider: Provider, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(TokenError, match=reason):
        await provider.oidc().identity(provider.token(**changes))


async def test_clocks_may_differ_by_half_a_minute(provider: Provider) -> None:
    now = SystemClock().now() // 1_000
    assert await provider.oidc().identity(provider.token(exp=now - 15, nbf=now + 15, iat=now + 15))


async def test_a_token_is_not_checked_in_the_way_that_it_asks_for(provider: Provider) -> None:
    unsigned = jwt.encode(provider.claims(), "", "none", {"kid": "RS256"})
    pem = RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )  # what a checker takes for the shared secret that believes the header
    body = ".".join(provider.token().split(".")[1:2])
    header = jwt.utils.base64url_encode(b'{"alg":"HS256","kid":"RS256"}').decode()
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(f"{header}.{body}".encode(), pem)
    shared = f"{header}.{body}.{jwt.utils.base64url_encode(signature).decode()}"
    for text in (unsigned, shared):
        with pytest.raises(TokenError, match="which does not fit the kind of its key"):
            await provider.oidc().identity(text)


@pytest.mark.parametrize("alg", ["PS256", "RS512"])
async def test_a_key_that_is_for_one_algorithm_is_for_no_other(provider: Provider, alg: str) -> None:
    provider.keys = [public("RS256", RSA, alg=alg)]
    with pytest.raises(TokenError, match="which does not fit the kind of its key"):
        await provider.oidc().identity(provider.token())


@pytest.mark.parametrize(
    "text",
    ["", "a.b.c", "lst_", "é.é.é", "a" * 20_000, "e30.e30.e30", os.fsdecode(b"\xff"), os.fsdecode(b"e30.\xff.e30")],
)
async def test_what_is_no_token_asks_nobody(provider: Provider, text: str) -> None:
    with pytest.raises(TokenError):
        await provider.oidc().identity(text)
    assert provider.fetched == 0


async def test_a_new_key_is_known_at_once_and_made_up_ids_cause_no_flood(provider: Provider) -> None:
    oidc = provider.oidc()
    await oidc.identity(provider.token())
    provider.keys = [public("new", RSA)]
    provider.now += RETRY_S
    await oidc.identity(provider.token(id="new"))
    assert provider.fetched == 2
    for number in range(20):
        with pytest.raises(TokenError):
            await oidc.identity(provider.token(id=f"made-up-{number}"))
    assert provider.fetched == 2
    with pytest.raises(TokenError, match="does not have"):
        await oidc.identity(provider.token(id="RS256"))


async def test_a_key_that_was_withdrawn_is_not_used_for_long(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwks, "PATIENCE_S", 60.0)
    oidc = provider.oidc()
    await oidc.identity(provider.token())
    provider.keys = [public("new", RSA)]
    provider.now += FRESH_S - 1
    await oidc.identity(provider.token())
    provider.now += 1
    with pytest.raises(TokenError, match="does not have"):
        await oidc.identity(provider.token())


async def test_known_keys_are_used_while_the_provider_is_away_but_not_for_ever(provider: Provider) -> None:
    oidc = provider.oidc()
    await oidc.identity(provider.token())
    provider.is_down = True
    provider.now += STALE_S - 1
    await oidc.identity(provider.token())
    provider.now += 1
    with pytest.raises(KeysUnavailable, match="cannot be read"):
        await oidc.identity(provider.token())
    provider.is_down = False
    provider.now += RETRY_S
    await oidc.identity(provider.token())


async def test_a_provider_that_hangs_holds_up_no_token_whose_key_is_known(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwks, "PATIENCE_S", 0.01)
    monkeypatch.setattr(jwks, "TIMEOUT_S", 3_600.0)
    oidc = provider.oidc()
    await oidc.identity(provider.token())
    provider.answers.clear()
    provider.now += FRESH_S
    for _ in range(3):
        async with asyncio.timeout(30):
            assert await oidc.identity(provider.token())
        provider.now += RETRY_S
    await eventually(lambda: provider.fetched == 2)
    provider.keys = [public("new", RSA)]
    unknown = asyncio.create_task(oidc.identity(provider.token(id="new")))
    provider.answers.set()
    assert (await unknown).name == "oidc:alice"
    assert provider.fetched == 2


async def test_closing_ends_a_look_for_keys(provider: Provider) -> None:
    provider.answers.clear()
    oidc = provider.oidc()
    asked = asyncio.create_task(oidc.identity(provider.token()))
    await eventually(lambda: provider.fetched == 1)
    await oidc.close()
    with pytest.raises(KeysUnavailable):
        await asked
    provider.answers.set()
    await oidc.close()


async def test_of_several_keys_without_an_id_the_one_that_fits_is_taken(provider: Provider) -> None:
    other = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    keys = [public(None, KEYS["ES256"]), public(None, other), public(None, RSA)]
    for provider.keys in (keys, keys[::-1]):
        oidc = provider.oidc()
        assert (await oidc.identity(jwt.encode(provider.claims(), RSA, "RS256"))).name == "oidc:alice"
        with pytest.raises(TokenError, match="has expired"):
            await oidc.identity(jwt.encode(provider.claims(exp=NOW_S - 60), RSA, "RS256"))
        stranger = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        with pytest.raises(TokenError):
            await oidc.identity(jwt.encode(provider.claims(), stranger, "RS256"))


async def test_the_discovery_document_has_to_be_of_the_issuer(provider: Provider) -> None:
    provider.says_issuer = "https://evil.example"
    with pytest.raises(KeysUnavailable):
        await provider.oidc().identity(provider.token())


@pytest.mark.parametrize(
    ("claims", "role", "tenants"),
    [
        ({"scope": "clerk other"}, Role.READ, frozenset()),
        ({"scope": ["boss", "clerk"], "tenants": "a b"}, Role.ADMIN, frozenset({"a", "b"})),
        ({"scope": "clerk", "tenants": ["*", "a"]}, Role.READ, None),
        ({"scope": "clerk", "tenants": {"a": 1}}, Role.READ, frozenset()),
        ({"scope": "clerk", "tenants": ["a", 5, None]}, Role.READ, frozenset({"a"})),
        ({"scope": "boss", "tenants": ["", " ", "a b", "a/b", "x" * 65, "a"]}, Role.ADMIN, frozenset({"a"})),
        ({"scope": "boss", "tenants": ""}, Role.ADMIN, frozenset()),
    ],
)
def test_claims_are_roles_and_tenants(claims: dict[str, Any], role: Role, tenants: frozenset[str] | None) -> None:
    provider = IdentityProvider("i", "a", None, "scope", {"boss": "admin", "clerk": "read"}, "tenants")
    assert identity_of({"sub": "x", **claims}, provider) == Identity("oidc:x", role, tenants)


def test_a_claim_whose_name_has_dots_is_meant_before_a_path() -> None:
    provider = IdentityProvider("i", "a", None, "https://x.example/roles", {"boss": "admin"}, "t")
    assert identity_of({"sub": "x", "https://x.example/roles": ["boss"]}, provider).role is Role.ADMIN


GOOD = {"oidc_issuer": "https://login.example", "oidc_audience": "a", "oidc_roles": "x:read,https://y:admin"}


def test_settings_make_a_provider() -> None:
    provider = load_settings(GOOD, environment={}).oidc
    assert provider is not None
    assert provider.roles == {"x": "read", "https://y": "admin"}
    assert load_settings({}, environment={}).oidc is None


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"oidc_issuer": None}, "oidc_issuer"),
        ({"oidc_issuer": "http://login.example"}, "--oidc-issuer"),
        ({"oidc_jwks_url": "http://login.example"}, "--oidc-jwks-url"),
        ({"oidc_audience": None}, "oidc_audience"),
        ({"oidc_roles": None}, "oidc_roles"),
        ({"oidc_roles": "x:owner"}, "--oidc-roles"),
        ({"oidc_roles": "x"}, "--oidc-roles"),
    ],
)
def test_settings_that_do_not_fit_are_named(changes: dict[str, Any], setting: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings({**GOOD, **changes}, environment={})
    assert caught.value.setting == setting
