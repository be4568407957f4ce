"""Questions to the coordinators of transactions that need no producer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    NoError,
    NotCoordinatorError,
    RequestTimedOutError,
    TransactionalIdAuthorizationFailed,
    for_code,
)
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from light_scheduler.errors import LaneError
from light_scheduler.model.place import Place

from .lasting_client import LastingClient

PATIENCE_S = 1.0
"""How long a transactional id may answer that its last transaction has not ended before it counts as stuck."""
TIMEOUT_S = 30.0
MARKER_TIMEOUT_S = 5.0
RETRY_S = 0.05

_PASSING = (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaConnectionError,
    NodeNotReadyError,
    NotCoordinatorError,
    RequestTimedOutError,
)
"""Errors that are over when another broker coordinates the id, or there is a new connection."""


class _Owner(NamedTuple):
    """Kafka's identification of the owner of a transactional id."""

    producer_id: int
    epoch: int


class Coordinator:
    """Fences transactional ids and writes markers, over one connection for all lanes of a worker."""

    def __init__(self, connect: Callable[[], AIOKafkaClient], transaction_timeout_ms: int) -> None:
        self._client = LastingClient(connect)
        self._timeout_ms = transaction_timeout_ms

    async def fence(self, transactional_id: str) -> bool:
        """Abort what is open under an id and fence its owners; False if it is stuck, or not ours to use.

        Raises KafkaError, or LaneError if there is no answer.
        """
        try:
            return await self._own(transactional_id, PATIENCE_S) is not None
        except TransactionalIdAuthorizationFailed:
            return False

    async def mark(self, transactional_id: str, place: Place) -> None:
        """Return when a partition has taken the marker of a transaction that is aborted.

        Raises KafkaError, or LaneError if it does not take one in time; the next call waits for that first.
        """
        await self.end(transactional_id, place, commits=False, patience_s=TIMEOUT_S)
        if await self._own(transactional_id, MARKER_TIMEOUT_S) is None:
            topic, partition = place
            raise LaneError(f"{topic}-{partition} accepted no transaction marker within {MARKER_TIMEOUT_S:.0f} s")

    async def end(self, transactional_id: str, place: Place, *, commits: bool, patience_s: float = PATIENCE_S) -> None:
        """Commit, or abort, a transaction without records in a partition: its marker ends what is open there.

        Raises KafkaError, or LaneError if the id is stuck for longer than one waits (s).
        """
        owner = await self._own(transactional_id, patience_s)
        if owner is None:
            raise LaneError(f"{transactional_id} is stuck")
        topic, partition = place
        added = await self._send(
            transactional_id, AddPartitionsToTxnRequest(transactional_id, *owner, [(topic, [partition])])
        )
        self._check(added.errors[0][1][0][1], transactional_id)
        ended = await self._send(transactional_id, EndTxnRequest(transactional_id, *owner, commits))
        self._check(ended.error_code, transactional_id)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def _own(self, transactional_id: str, patience_s: float) -> _Owner | None:
        """Become the owner of an id; None if its last transaction does not end for so long."""
        loop = asyncio.get_running_loop()
        stuck_since: float | None = None
        try:
            async with asyncio.timeout(TIMEOUT_S + patience_s):
                while True:
                    try:
                        request = InitProducerIdRequest(transactional_id, self._timeout_ms)
                        answer = await self._send(transactional_id, request)
                        self._check(answer.error_code, transactional_id)
                        return _Owner(answer.producer_id, answer.producer_epoch)
                    except ConcurrentTransactions:
                        stuck_since = loop.time() if stuck_since is None else stuck_since
                        if loop.time() - stuck_since > patience_s:
                            return None
                    except _PASSING:
                        stuck_since = None
                    await asyncio.sleep(RETRY_S)
        except TimeoutError as error:
            raise LaneError(f"no answer to InitProducerId for {transactional_id}") from error

    async def _send(self, transactional_id: str, request: Any) -> Any:
        client = await self._client.connected()
        node = await client.coordinator_lookup(CoordinationType.TRANSACTION, transactional_id)
        if not await client.ready(node, group=ConnectionGroup.COORDINATION):
            raise NodeNotReadyError(node)
        return await client.send(node, request, group=ConnectionGroup.COORDINATION)

    def _check(self, error_code: int, transactional_id: str) -> None:
        error: type[KafkaError] = for_code(error_code)
        if error is not NoError:
            raise error(transactional_id)
