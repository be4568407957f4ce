"""Quotas on what clients may produce and fetch, as `kafka-configs.sh --entity-type clients` sets them."""

from __future__ import annotations

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Float64, Int16, Int32, Schema, String

_ENTITY = Array(("entity_type", String("utf-8")), ("entity_name", String("utf-8")))
EVERY_CLIENT = None
"""Each client id that has no quota of its own."""


class _Altered(Response):  # type: ignore[misc]  # aiokafka is not typed
    API_KEY = 49
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("entries", Array(("error_code", Int16), ("error_message", String("utf-8")), ("entity", _ENTITY))),
    )


class _Alteration(RequestStruct):  # type: ignore[misc]
    """AlterClientQuotas (KIP-546), version 0."""

    API_KEY = 49
    API_VERSION = 0
    RESPONSE_TYPE = _Altered
    SCHEMA = Schema(
        (
            "entries",
            Array(
                ("entity", _ENTITY),
                ("ops", Array(("key", String("utf-8")), ("value", Float64), ("remove", Boolean))),
            ),
        ),
        ("validate_only", Boolean),
    )


class _AlterClientQuotas(Request[_Alteration]):  # type: ignore[misc]
    API_KEY = 49

    def __init__(self, quota: str, bytes_per_s: float | None, client_id: str | None) -> None:
        self._entity = [("client-id", client_id)]
        self._op = (quota, bytes_per_s or 0.0, bytes_per_s is None)

    def build(self, request_struct_class: type[_Alteration]) -> _Alteration:
        return request_struct_class([(self._entity, [self._op])], False)


async def throttle_producers(
    bootstrap_servers: str, bytes_per_s: float | None, client_id: str | None = EVERY_CLIENT
) -> None:
    """Bound what a client id may produce, on each broker; None: lift the bound."""
    await _throttle(bootstrap_servers, _AlterClientQuotas("producer_byte_rate", bytes_per_s, client_id))


async def throttle_consumers(
    bootstrap_servers: str, bytes_per_s: float | None, client_id: str | None = EVERY_CLIENT
) -> None:
    """Bound what a client id may fetch, on each broker; None: lift the bound."""
    await _throttle(bootstrap_servers, _AlterClientQuotas("consumer_byte_rate", bytes_per_s, client_id))


async def _throttle(bootstrap_servers: str, alteration: _AlterClientQuotas) -> None:
    client = AIOKafkaClient(bootstrap_servers=bootstrap_servers)
    await client.bootstrap()
    try:
        answer = await client.send(client.get_random_node(), alteration)
        assert [entry[0] for entry in answer.entries] == [0], answer
    finally:
        await client.close()
