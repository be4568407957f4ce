"""Tokens for OAUTHBEARER: asked for once, used for most of their life, and what a server may answer."""

from __future__ import annotations

import pytest
from support.token_server import TokenServer

from light_scheduler.connection import KafkaSecurity, Secret
from light_scheduler.connection.tokens import ClientCredentials, TokenRefused, TokenServerFailed

pytestmark = pytest.mark.integration


def credentials(url: str, secret: str = "s3cret", **more: str) -> KafkaSecurity:
    return KafkaSecurity(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_url=url,
        sasl_oauth_client_id="client",
        sasl_oauth_client_secret=Secret(secret),
        **more,  # type: ignore[arg-type]
    )


async def test_a_token_is_used_for_four_fifths_of_its_life() -> None:
    now = 0.0
    with TokenServer({"client": "s3cret"}, life_s=100) as server:
        provider = ClientCredentials(credentials(server.url, sasl_oauth_scope="kafka"), lambda: now)
        first = await provider.token()
        now = 79.0
        assert await provider.token() == first
        assert server.asked == [{"grant_type": ["client_credentials"], "scope": ["kafka"]}]
        now = 80.0
        await provider.token()
        assert len(server.asked) == 2


async def test_a_wrong_secret_is_refused_without_repeating_it() -> None:
    refused = pytest.raises(TokenRefused, match=r"invalid_client.*check sasl_oauth_client_id")
    with TokenServer({"client": "s3cret"}) as server, refused as caught:
        await ClientCredentials(credentials(server.url, "wr0ng")).token()
    assert "wr0ng" not in str(caught.value)


async def test_an_address_without_tokens_may_have_some_later() -> None:
    with TokenServer({}) as server:
        url = f"{server.url}?"
    with pytest.raises(TokenServerFailed, match="cannot be reached"):
        await ClientCredentials(credentials(url)).token()
