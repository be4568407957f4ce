"""Tokens for OAUTHBEARER: asked for once, used for most of their life, and what a server may answer."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Producer
from support.waiting import eventually

from light_scheduler.connection import KafkaSecurity, Secret
from light_scheduler.connection.librdkafka import configuration
from light_scheduler.connection.tokens import ClientCredentials, TokenRefused, TokenServerFailed
from light_scheduler.devkit.token_server import TokenServer

pytestmark = pytest.mark.integration


def credentials(url: str, secret: str = "s3cret", client: str = "client", **more: str) -> KafkaSecurity:
    return KafkaSecurity(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_url=url,
        sasl_oauth_client_id=client,
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


async def until_asked(server: TokenServer, times: int) -> None:
    await eventually(lambda: len(server.asked) >= times, within=30, what=f"request {times}")


async def test_clients_that_need_a_token_at_once_wait_for_one_and_the_same() -> None:
    with TokenServer({"client": "s3cret"}) as server:
        provider = ClientCredentials(credentials(server.url))
        assert len(set(await asyncio.gather(*(provider.token() for _ in range(5))))) == 1
        assert len(server.asked) == 1


async def test_a_client_of_another_event_loop_waits_for_the_token_too() -> None:
    with TokenServer({"client": "s3cret"}) as server:
        server.answers.clear()
        provider = ClientCredentials(credentials(server.url))
        elsewhere = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(provider.token())))
        await until_asked(server, 1)
        here = asyncio.create_task(provider.token())
        await asyncio.sleep(0)
        server.answers.set()
        assert await here == await elsewhere
        assert len(server.asked) == 1


async def test_a_token_is_asked_for_again_when_who_asked_has_gone() -> None:
    with TokenServer({"client": "s3cret"}) as server:
        server.answers.clear()
        provider = ClientCredentials(credentials(server.url))
        goes, stays = asyncio.create_task(provider.token()), asyncio.create_task(provider.token())
        await until_asked(server, 1)
        goes.cancel()
        await until_asked(server, 2)
        server.answers.set()
        assert await stays


CLIENTS = ["plain-id_1.2~3", "urn:client", "100%3A", "a+b", "a b/c?d=e&f", "größe"]


@pytest.mark.parametrize("client", CLIENTS)
async def test_an_id_and_a_secret_arrive_as_they_are_whatever_characters_they_have(client: str) -> None:
    """Both are encoded before they are sent (RFC 6749, section 2.3.1): a colon would end an id."""
    secret = f"{client}: its secret"
    with TokenServer({client: secret}) as server:
        await ClientCredentials(credentials(server.url, secret, client)).token()
        assert server.issued_to == [client]


@pytest.mark.parametrize("client", CLIENTS)
async def test_clients_of_librdkafka_log_in_with_the_same_ids_and_secrets(client: str) -> None:
    secret = f"{client}: its secret"
    with TokenServer({client: secret}) as server:
        producer = Producer(configuration("127.0.0.1:1", credentials(server.url, secret, client)))
        await eventually(lambda: server.asked, within=30, what="a request for a token")
        await eventually(lambda: server.issued_to == [client], what=f"a token for {client}")
        producer.poll(0)


async def test_all_who_wait_for_a_token_learn_that_there_is_none() -> None:
    with TokenServer({}) as server:
        provider = ClientCredentials(credentials(server.url))
        found = await asyncio.gather(*(provider.token() for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in found] == 3 * [TokenRefused]
        assert len(server.asked) == 1


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
