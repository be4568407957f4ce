"""Requests to transaction coordinators that need no producer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    NodeNotReadyError,
    NotCoordinatorError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersionError,
)
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from light_scheduler.errors import LaneError
from light_scheduler.model.place import Place

from .lasting_client import LastingClient
from .partition_leaders import PartitionLeaders, check
from .transaction_requests import DescribeTransactionRequest

PATIENCE_S = 1.0
"""How long the last transaction of a transactional id may be unfinished before the id counts as stuck."""
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
"""Errors that end when another broker coordinates the id, or with a new connection."""

_UNTOLD = (
    IncompatibleBrokerVersion,
    NotImplementedError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
"""Errors of brokers that do not tell what an id has open in a partition, however often they are asked."""

ID_NOT_FOUND = 105
"""The error code for an id without transactions, which aiokafka does not know."""

MOST_WRITTEN = 3
"""Attempts to write a marker to a changelog before giving up."""

log = logging.getLogger(__name__)


class _Owner(NamedTuple):
    """Kafka's identification of the owner of a transactional id."""

    producer_id: int
    epoch: int


class _Lacking(NamedTuple):
    """A transaction without a marker in its changelog: its owner, whether it commits, and who is writing the marker."""

    owner: _Owner
    commits: bool
    mender: _Owner | None = None


class KnownLog(NamedTuple):
    """A lane's changelog, and the end of the records that the lane knows to be committed."""

    place: Place
    committed_end: int = 0


class Coordinator:
    """Fences transactional ids and writes markers, over one connection for all lanes of a worker."""

    def __init__(self, connect: Callable[[], AIOKafkaClient], transaction_timeout_ms: int) -> None:
        self._client = LastingClient(connect)
        self._leaders = PartitionLeaders(self._client)
        self._timeout_ms = transaction_timeout_ms
        self._lacking: dict[str, _Lacking] = {}  # by id; the coordinator forgets this after fencing
        self._locks: dict[str, asyncio.Lock] = {}

    async def fence(self, transactional_id: str, changelog: KnownLog) -> bool:
        """Abort the open transaction of a lane's id and fence its owners. Return False if it is stuck or not permitted.

        If brokers of Kafka 4.3 have dropped the marker of its last transaction in the lane's changelog (KAFKA-20734),
        this writes it. Raises KafkaError, or LaneError if there is no answer or the marker would abort records that are
        known to be committed.
        """
        async with self._lock(transactional_id):
            try:
                return await self._own_with_markers(transactional_id, changelog) is not None
            except TransactionalIdAuthorizationFailed:
                return False

    async def end(self, transactional_id: str, place: Place, *, commits: bool, changelog: KnownLog) -> None:
        """Commit or abort an empty transaction of a lane in a partition. Its marker ends the open transaction there.

        After this, the coordinator only knows the new transaction, so a missing marker is first written to the
        changelog, as in `fence`. Raises KafkaError, or LaneError as `fence`, or if the id is stuck.
        """
        async with self._lock(transactional_id):
            owner = await self._own_with_markers(transactional_id, changelog)
            if owner is None:
                raise LaneError(f"{transactional_id} is stuck")
            await self._end_as(owner, transactional_id, place, commits=commits)

    async def may_be_open(self, transactional_id: str, place: Place, end: int) -> bool:
        """Return whether an id has something open in a partition that begins before an offset.

        True if nobody tells: brokers are older than Kafka 3.0, or we may not read the partition. Raises KafkaError, or
        LaneError if the partition has no leader that answers.
        """
        try:
            answer = await self._send(transactional_id, DescribeTransactionRequest(transactional_id))
            if answer.error_code == ID_NOT_FOUND:
                return True
            check(answer.error_code, transactional_id)
            found = (await self._leaders.open_transactions(place)).get(answer.producer_id)
        except _UNTOLD as error:
            log.debug("what %s has open in %s-%d is not known: %r", transactional_id, *place, error)
            return True
        return found is not None and found.begin < end

    async def mark(self, transactional_id: str, place: Place) -> None:
        """Abort an empty transaction and wait until a partition has accepted its marker. The id must not be a lane's.

        Raises KafkaError, or LaneError if the partition does not accept it in time; the next call first waits for that.
        """
        owner = await self._own(transactional_id, TIMEOUT_S)
        if owner is None:
            raise LaneError(f"{transactional_id} is stuck")
        await self._end_as(owner, transactional_id, place, commits=False)
        if await self._own(transactional_id, MARKER_TIMEOUT_S) is None:
            topic, partition = place
            raise LaneError(f"{topic}-{partition} accepted no transaction marker within {MARKER_TIMEOUT_S:.0f} s")

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    def _lock(self, transactional_id: str) -> asyncio.Lock:
        return self._locks.setdefault(transactional_id, asyncio.Lock())

    async def _own_with_markers(self, transactional_id: str, changelog: KnownLog) -> _Owner | None:
        """Become the owner of a lane's id, and write a missing marker to its changelog. None if the id is stuck."""
        place = changelog.place
        for _ in range(MOST_WRITTEN):
            owner = await self._own(transactional_id, PATIENCE_S, partial(self._look, transactional_id, changelog))
            lacking = self._lacking.get(transactional_id)
            if owner is None or lacking is None:
                return owner
            if owner.producer_id != lacking.owner.producer_id:  # all epochs of the old producer id are used up
                log.warning("%s-%d lacks a marker that %s can write no more", *place, transactional_id)
                del self._lacking[transactional_id]
                return owner
            log.warning(
                "%s-%d lacks the marker of a transaction of %s that was %s: a broker has dropped it (KAFKA-20734); it "
                "is written now",
                *place,
                transactional_id,
                "committed" if lacking.commits else "aborted",
            )
            self._lacking[transactional_id] = lacking._replace(mender=owner)
            await self._end_as(owner, transactional_id, place, commits=lacking.commits)
        raise LaneError(f"{place[0]}-{place[1]} loses the marker of {transactional_id} again and again")

    async def _look(self, transactional_id: str, changelog: KnownLog) -> None:
        """Check whether a changelog lacks the marker of an id's last transaction, before the id is fenced.

        Once a transaction is complete, its coordinator assumes that all of its markers are written. Raises
        ConcurrentTransactions before that, as fencing would, and KafkaError.
        """
        try:
            answer = await self._send(transactional_id, DescribeTransactionRequest(transactional_id))
        except (IncompatibleBrokerVersion, NotImplementedError):  # before Kafka 3.0
            return
        if answer.error_code != ID_NOT_FOUND:
            check(answer.error_code, transactional_id)
        state, last = answer.state, _Owner(answer.producer_id, answer.producer_epoch)
        if state.startswith("Prepare"):
            raise ConcurrentTransactions(transactional_id)
        lacking = self._lacking.pop(transactional_id, None)
        if state == "Ongoing" and lacking is not None and lacking.mender == last:  # writing the marker was interrupted
            self._lacking[transactional_id] = lacking
            await self._end_open(last, transactional_id, commits=lacking.commits)
            raise ConcurrentTransactions(transactional_id)
        if state in ("CompleteCommit", "CompleteAbort"):
            lacking = _Lacking(last, state == "CompleteCommit")
        elif state != "Empty":  # the state after fencing, which may have happened since the last check
            lacking = None
        if lacking is None:
            return
        self._lacking[transactional_id] = lacking  # assumed until it is checked below
        found = (await self._leaders.open_in(changelog.place)).get(lacking.owner.producer_id)
        if found is None or found.epoch > lacking.owner.epoch:
            del self._lacking[transactional_id]
        elif found.begin < changelog.committed_end and not lacking.commits:
            self._lacking[transactional_id] = await self._spare_commit(lacking, changelog)

    async def _spare_commit(self, aborted: _Lacking, changelog: KnownLog) -> _Lacking:
        """Decide how to end the open records of a changelog if committed records also lack their marker.

        An abort would undo both. Raises LaneError if aborted records follow the committed ones.
        """
        (topic, partition), committed_end = changelog
        log_end = await self._leaders.log_end(changelog.place)
        if log_end > committed_end:
            text = (
                f"{topic}-{partition} lacks the markers of a commit that ends at offset {committed_end} and "
                f"of an abort that follows, up to {log_end}: any marker would decide for both, so none is written"
            )
            log.error("%s", text)
            raise LaneError(text)
        return aborted._replace(commits=log_end == committed_end)  # if the log ends earlier, it was recreated

    async def _end_as(self, owner: _Owner, transactional_id: str, place: Place, *, commits: bool) -> None:
        topic, partition = place
        added = await self._send(
            transactional_id, AddPartitionsToTxnRequest(transactional_id, *owner, [(topic, [partition])])
        )
        check(added.errors[0][1][0][1], transactional_id)
        await self._end_open(owner, transactional_id, commits=commits)

    async def _end_open(self, owner: _Owner, transactional_id: str, *, commits: bool) -> None:
        ended = await self._send(transactional_id, EndTxnRequest(transactional_id, *owner, commits))
        check(ended.error_code, transactional_id)

    async def _own(
        self, transactional_id: str, patience_s: float, look: Callable[[], Awaitable[None]] | None = None
    ) -> _Owner | None:
        """Become the owner of an id; None if its last transaction does not end within `patience_s`.

        Calls `look` before each attempt.
        """
        loop = asyncio.get_running_loop()
        stuck_since: float | None = None
        try:
            async with asyncio.timeout(TIMEOUT_S + patience_s):
                while True:
                    try:
                        if look is not None:
                            await look()
                        request = InitProducerIdRequest(transactional_id, self._timeout_ms)
                        answer = await self._send(transactional_id, request)
                        check(answer.error_code, transactional_id)
                        return _Owner(answer.producer_id, answer.producer_epoch)
                    except ConcurrentTransactions:
                        stuck_since = loop.time() if stuck_since is None else stuck_since
                        if loop.time() - stuck_since > patience_s:
                            return None
                    except _PASSING:
                        stuck_since = None
                    await asyncio.sleep(RETRY_S)
        except TimeoutError as error:
            raise LaneError(f"no answer about {transactional_id} from its coordinator") from error

    async def _send(self, transactional_id: str, request: Any) -> Any:
        client = await self._client.connected()
        node = await client.coordinator_lookup(CoordinationType.TRANSACTION, transactional_id)
        if not await client.ready(node, group=ConnectionGroup.COORDINATION):
            raise NodeNotReadyError(node)
        return await client.send(node, request, group=ConnectionGroup.COORDINATION)
