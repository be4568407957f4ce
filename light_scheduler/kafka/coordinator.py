"""Questions to the coordinators of transactions that need no producer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    NoError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    TransactionalIdAuthorizationFailed,
    for_code,
)
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from light_scheduler.errors import LaneError
from light_scheduler.model.place import Place

from .lasting_client import LastingClient
from .transaction_requests import DescribeProducersRequest, DescribeTransactionRequest

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

_COMMITTED = ("PrepareCommit", "CompleteCommit")
_ABORTED = ("PrepareAbort", "CompleteAbort", "PrepareEpochFence")
"""What coordinators call a transaction that is decided, whether all of its markers are written or not."""

log = logging.getLogger(__name__)


class _Owner(NamedTuple):
    """Kafka's identification of the owner of a transactional id."""

    producer_id: int
    epoch: int


class _Outcome(NamedTuple):
    """How the last transaction of an id was decided, and the producer id that it was made under."""

    producer_id: int
    commits: bool


class Coordinator:
    """Fences transactional ids and writes markers, over one connection for all lanes of a worker."""

    def __init__(self, connect: Callable[[], AIOKafkaClient], transaction_timeout_ms: int) -> None:
        self._client = LastingClient(connect)
        self._timeout_ms = transaction_timeout_ms
        self._outcomes: dict[str, _Outcome] = {}  # by id, until its changelog is known to have the marker

    async def fence(self, transactional_id: str, changelog: Place) -> bool:
        """Abort what is open under an id and fence its owners; False if it is stuck, or not ours to use.

        After that, nothing of the id's last transaction is open in a changelog: a marker that brokers of Kafka 4.3 have
        dropped there (KAFKA-20734) is written, as long as the coordinator still tells how the transaction was decided.

        Raises KafkaError, or LaneError if there is no answer.
        """
        try:
            owner = await self._own(transactional_id, PATIENCE_S, look=self._note_outcome)
        except TransactionalIdAuthorizationFailed:
            return False
        if owner is None:
            return False
        await self._write_dropped(transactional_id, owner, changelog)
        return True

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
        await self._end_as(owner, transactional_id, place, commits=commits)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def _end_as(self, owner: _Owner, transactional_id: str, place: Place, *, commits: bool) -> None:
        topic, partition = place
        added = await self._send(
            transactional_id, AddPartitionsToTxnRequest(transactional_id, *owner, [(topic, [partition])])
        )
        self._check(added.errors[0][1][0][1], transactional_id)
        ended = await self._send(transactional_id, EndTxnRequest(transactional_id, *owner, commits))
        self._check(ended.error_code, transactional_id)

    async def _note_outcome(self, transactional_id: str) -> None:
        """Remember how the last transaction of an id was decided, which fencing makes the coordinator forget."""
        try:
            answer = await self._send(transactional_id, DescribeTransactionRequest(transactional_id))
        except (IncompatibleBrokerVersion, NotImplementedError):  # before Kafka 3.0
            return
        error_code, state, producer_id = answer.last()
        if (error := for_code(error_code)) in _PASSING:
            raise error(transactional_id)
        if state in _COMMITTED + _ABORTED:
            self._outcomes[transactional_id] = _Outcome(producer_id, state in _COMMITTED)
        elif state == "Ongoing":  # whoever has it may still decide
            self._outcomes.pop(transactional_id, None)

    async def _write_dropped(self, transactional_id: str, owner: _Owner, changelog: Place) -> None:
        """Write the marker of an id's last transaction to a changelog if it is missing there.

        The id is not stuck, so the coordinator holds all markers to be written.
        """
        outcome = self._outcomes.get(transactional_id)
        if outcome is not None and outcome.producer_id == owner.producer_id:
            open_from = (await self._open_in(changelog)).get(owner.producer_id)
            if open_from is not None:
                kind = "commit" if outcome.commits else "abort"
                log.warning(
                    "%s-%d lacks the marker of a %s under %s, which begins at offset %d: a broker has dropped it "
                    "(KAFKA-20734); it is written now",
                    *changelog,
                    kind,
                    transactional_id,
                    open_from,
                )
                await self._end_as(owner, transactional_id, changelog, commits=outcome.commits)
        self._outcomes.pop(transactional_id, None)

    async def _open_in(self, place: Place) -> dict[int, int]:
        """Return what is open in a partition: by producer id, its first offset. Raises KafkaError, or LaneError."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while True:
                    try:
                        return await self._ask_leader(place)
                    except (LeaderNotAvailableError, NotLeaderForPartitionError, *_PASSING) as error:
                        log.debug("asking %s-%d what is open there: %r", *place, error)
                    await asyncio.sleep(RETRY_S)
                    await (await self._client.connected()).force_metadata_update()
        except TimeoutError as error:
            raise LaneError(f"{place[0]}-{place[1]} does not say what is open there") from error

    async def _ask_leader(self, place: Place) -> dict[int, int]:
        client, (topic, partition) = await self._client.connected(), place
        await client.add_topic(topic)
        leader = client.cluster.leader_for_partition(TopicPartition(topic, partition))
        if leader in (None, -1):
            raise LeaderNotAvailableError(f"{topic}-{partition}")
        answer = await client.send(leader, DescribeProducersRequest(place))
        error_code, open_from = answer.open()
        self._check(error_code, f"{topic}-{partition}")
        return dict(open_from)

    async def _own(
        self, transactional_id: str, patience_s: float, look: Callable[[str], Awaitable[None]] | None = None
    ) -> _Owner | None:
        """Become the owner of an id; None if its last transaction does not end for so long.

        `look` is called before each attempt: what it sees before the last one is decided, or the attempt would fail.
        """
        loop = asyncio.get_running_loop()
        stuck_since: float | None = None
        try:
            async with asyncio.timeout(TIMEOUT_S + patience_s):
                while True:
                    try:
                        if look is not None:
                            await look(transactional_id)
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

    def _check(self, error_code: int, asked: str) -> None:
        error: type[KafkaError] = for_code(error_code)
        if error is not NoError:
            raise error(asked)
