"""Requests about transactions that aiokafka lacks: DescribeTransactions and DescribeProducers (KIP-664)."""

from __future__ import annotations

from typing import NamedTuple

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Int64, Schema, TaggedFields

from light_scheduler.model.place import Place

_TEXT = CompactString("utf-8")


class OpenTransaction(NamedTuple):
    """The last epoch with which a producer has written, and the first open offset."""

    epoch: int
    begin: int


class _TransactionsDescribed(Response):  # type: ignore[misc]  # aiokafka is not typed
    API_KEY = 65
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "transactions",
            CompactArray(
                ("error_code", Int16),
                ("transactional_id", _TEXT),
                ("state", _TEXT),
                ("timeout_ms", Int32),
                ("started_at", Int64),
                ("producer_id", Int64),
                ("producer_epoch", Int16),
                ("topics", CompactArray(("topic", _TEXT), ("partitions", CompactArray(Int32)), ("tags", TaggedFields))),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )

    @property
    def error_code(self) -> int:
        return int(self.transactions[0][0])

    @property
    def state(self) -> str:
        """The state of the id's last transaction: Empty, Ongoing, PrepareCommit, CompleteCommit and so on."""
        return str(self.transactions[0][2])

    @property
    def producer_id(self) -> int:
        return int(self.transactions[0][5])

    @property
    def producer_epoch(self) -> int:
        return int(self.transactions[0][6])


class _TransactionsDescription(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 65
    API_VERSION = 0
    RESPONSE_TYPE = _TransactionsDescribed
    SCHEMA = Schema(("transactional_ids", CompactArray(_TEXT)), ("tags", TaggedFields))


class DescribeTransactionRequest(Request[_TransactionsDescription]):  # type: ignore[misc]
    """Requests the last transaction of an id from its coordinator. The answer has its `state` and producer."""

    API_KEY = 65

    def __init__(self, transactional_id: str) -> None:
        self._id = transactional_id

    def build(self, request_struct_class: type[_TransactionsDescription]) -> _TransactionsDescription:
        return request_struct_class([self._id], {})


class _ProducersDescribed(Response):  # type: ignore[misc]
    API_KEY = 61
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", _TEXT),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("error_message", _TEXT),
                        (
                            "producers",
                            CompactArray(
                                ("producer_id", Int64),
                                ("producer_epoch", Int32),
                                ("last_sequence", Int32),
                                ("last_timestamp", Int64),
                                ("coordinator_epoch", Int32),
                                ("open_from", Int64),
                                ("tags", TaggedFields),
                            ),
                        ),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )

    @property
    def open(self) -> dict[int, OpenTransaction]:
        """The open transactions of the partition, by producer id."""
        producers = self.topics[0][1][0][3]
        return {
            producer_id: OpenTransaction(epoch, begin)
            for producer_id, epoch, _, _, _, begin, _ in producers
            if begin >= 0
        }


class _ProducersDescription(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 61
    API_VERSION = 0
    RESPONSE_TYPE = _ProducersDescribed
    SCHEMA = Schema(
        ("topics", CompactArray(("topic", _TEXT), ("partitions", CompactArray(Int32)), ("tags", TaggedFields))),
        ("tags", TaggedFields),
    )


class DescribeProducersRequest(Request[_ProducersDescription]):  # type: ignore[misc]
    """Requests the producers of a partition from its leader. The answer has the `open` transactions."""

    API_KEY = 61

    def __init__(self, place: Place) -> None:
        self._place = place

    def build(self, request_struct_class: type[_ProducersDescription]) -> _ProducersDescription:
        topic, partition = self._place
        return request_struct_class([(topic, [partition], {})], {})
