"""Checks whether transactional ids may be used, without using them.

A broker checks the right to an id before anything else in a request. So this requests the end of a transaction of a
producer that does not exist. It is always refused and changes nothing; the error shows whether the right is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError, TransactionalIdAuthorizationFailed
from aiokafka.protocol.transaction import EndTxnRequest

from light_scheduler.connection import Connection
from light_scheduler.errors import BrokerError

NOBODY, NO_EPOCH = -1, -1


async def denied_ids(connection: Connection, ids: Iterable[str], timeout: float) -> set[str]:
    """Return the ids that this user has no right to write with. `timeout` is in seconds. Raises BrokerError."""
    client = AIOKafkaClient(**connection.aiokafka())
    try:
        async with asyncio.timeout(timeout):
            await client.bootstrap()
            node = client.get_random_node()
            denied = set()
            for one in ids:
                answer = await client.send(node, EndTxnRequest(one, NOBODY, NO_EPOCH, False))
                if answer.error_code == TransactionalIdAuthorizationFailed.errno:
                    denied.add(one)
            return denied
    except (KafkaError, OSError, TimeoutError) as error:
        raise BrokerError(f"asking for rights on transactional ids: {error!r}") from error
    finally:
        await client.close()
