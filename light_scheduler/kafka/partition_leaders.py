"""Requests to the leaders of partitions: open transactions, and the end of the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from aiokafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaStorageError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    NoError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
    for_code,
)
from aiokafka.protocol.api import Request
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest

from light_scheduler.errors import LaneError
from light_scheduler.model.place import Place

from .lasting_client import LastingClient
from .retrying import Backoff
from .transaction_requests import DescribeProducersRequest, OpenTransaction

TIMEOUT_S = 30.0
FIRST_RETRY_S, LAST_RETRY_S = 0.05, 1.0
_LATEST, _READ_UNCOMMITTED = -1, 0

_PASSING = (
    KafkaConnectionError,
    KafkaStorageError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
)
"""Errors that end when another broker leads, or with a new connection."""
_UNTOLD = (IncompatibleBrokerVersion, NotImplementedError, UnknownTopicOrPartitionError, UnsupportedVersionError)
"""Permanent errors. A missing right is not among them, since it may be granted."""

log = logging.getLogger(__name__)


class PartitionLeaders:
    """Sends requests over a shared connection."""

    def __init__(self, client: LastingClient) -> None:
        self._client = client

    async def open_in(self, place: Place) -> Mapping[int, OpenTransaction]:
        """Return the open transactions of a partition, by producer id. Empty if its leader does not support that.

        Raises KafkaError, or LaneError if there is no leader or no answer.
        """
        try:
            return await self.open_transactions(place)
        except _UNTOLD as error:
            log.warning("%s-%d does not tell what is open there: %r", *place, error)
            return {}

    async def open_transactions(self, place: Place) -> Mapping[int, OpenTransaction]:
        """Return the same as `open_in`, but raise the KafkaError of a leader that does not support that, too."""
        return dict((await self._ask(place, DescribeProducersRequest(place))).open)

    async def log_end(self, place: Place) -> int:
        """Return the end of a log, including uncommitted records. Raises as `open_in`."""
        topic, partition = place
        answer = await self._ask(place, OffsetRequest(-1, _READ_UNCOMMITTED, [(topic, [(partition, _LATEST)])]))
        return int(answer.topics[0][1][0][3])

    async def _ask(self, place: Place, request: Request[Any]) -> Any:
        backoff = Backoff(FIRST_RETRY_S, LAST_RETRY_S)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while True:
                    try:
                        return await self._ask_leader(place, request)
                    except _PASSING as error:
                        log.debug("asking %s-%d: %r", *place, error)
                    await asyncio.sleep(backoff.next_s())
        except TimeoutError as error:
            raise LaneError(f"{place[0]}-{place[1]} has no leader that answers") from error

    async def _ask_leader(self, place: Place, request: Request[Any]) -> Any:
        topic, partition = place
        client = await self._client.connected()
        metadata = await client.send(client.get_random_node(), MetadataRequest([topic]))
        (error_code, _, _, partitions), *_ = metadata.topics
        check(error_code, topic)
        leader = next((each[2] for each in partitions if each[1] == partition), -1)
        if leader < 0:
            raise LeaderNotAvailableError(f"{topic}-{partition}")
        answer = await client.send(leader, request)
        check(answer.topics[0][1][0][1], f"{topic}-{partition}")
        return answer


def check(error_code: int, asked: str) -> None:
    """Raise the KafkaError for an error code in an answer, if any. `asked` is its text."""
    error = for_code(error_code)
    if error is not NoError:
        raise error(asked)
