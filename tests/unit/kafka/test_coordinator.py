"""When the marker of a lane's last transaction is written to its changelog: by how the transaction was decided."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import (
    ConcurrentTransactions,
    IncompatibleBrokerVersion,
    NoError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from light_scheduler.kafka.coordinator import ID_NOT_FOUND, Coordinator, KnownLog
from light_scheduler.kafka.partition_leaders import PartitionLeaders
from light_scheduler.kafka.transaction_requests import DescribeTransactionRequest, OpenTransaction

PLACE = ("changelog", 0)
PRODUCER, EPOCH, BEGIN = 7, 3, 10


class Scripted(Coordinator):
    """A coordinator of one id; `open` is what its producer has open in the changelog, `written` the markers there."""

    def __init__(self, state: str, opened: OpenTransaction | None) -> None:
        super().__init__(lambda: pytest.fail("nobody connects"), 10_000)
        self.state = state
        self.producer_id, self.epoch = PRODUCER, EPOCH
        self.open = {} if opened is None else {PRODUCER: opened}
        self.written: list[bool] = []
        self.is_old = self.has_new_producer = False
        leaders: Any = self
        self._leaders = leaders

    async def open_in(self, place: object) -> dict[int, OpenTransaction]:
        assert place == PLACE
        return self.open

    open_transactions = open_in

    async def _send(self, transactional_id: str, request: Any) -> Any:
        if isinstance(request, DescribeTransactionRequest):
            return self._described()
        if isinstance(request, InitProducerIdRequest):
            return self._initialised()
        if isinstance(request, AddPartitionsToTxnRequest):
            self.state = "Ongoing"
            return SimpleNamespace(errors=[(PLACE[0], [(PLACE[1], NoError.errno)])])
        assert isinstance(request, EndTxnRequest)
        self.written.append(request._transaction_result)
        self.open.pop(self.producer_id, None)
        self.state = "CompleteCommit" if request._transaction_result else "CompleteAbort"
        return SimpleNamespace(error_code=NoError.errno)

    def _described(self) -> Any:
        if self.is_old:
            raise IncompatibleBrokerVersion
        code = NoError.errno if self.state else ID_NOT_FOUND
        answer = SimpleNamespace(
            error_code=code, state=self.state, producer_id=self.producer_id, producer_epoch=self.epoch
        )
        self.state = self.state.replace("Prepare", "Complete")  # all markers are written, or dropped
        return answer

    def _initialised(self) -> Any:
        if self.state == "Ongoing":
            self.state = "CompleteAbort"
            return SimpleNamespace(error_code=ConcurrentTransactions.errno)
        self.state, self.epoch = "Empty", self.epoch + 1
        if self.has_new_producer:
            self.producer_id, self.epoch = PRODUCER + 1, 0
        return SimpleNamespace(error_code=NoError.errno, producer_id=self.producer_id, producer_epoch=self.epoch)


OPEN = OpenTransaction(EPOCH, BEGIN)


@pytest.mark.parametrize(
    ("state", "opened", "written"),
    [
        pytest.param("CompleteCommit", OPEN, [True], id="a commit"),
        pytest.param("PrepareCommit", OPEN, [True], id="a commit that is being completed"),
        pytest.param("CompleteAbort", OPEN, [False], id="an abort"),
        pytest.param("Ongoing", OPEN, [False], id="what fencing aborts"),
        pytest.param("CompleteCommit", None, [], id="nothing is open"),
        pytest.param("CompleteCommit", OpenTransaction(EPOCH + 1, BEGIN), [], id="what is open is of a later owner"),
        pytest.param("Empty", OPEN, [], id="nobody knows"),
        pytest.param("", None, [], id="an id without transactions"),
    ],
)
async def test_a_marker_is_written_as_the_transaction_was_decided(
    state: str, opened: OpenTransaction | None, written: list[bool]
) -> None:
    coordinator = Scripted(state, opened)
    assert await coordinator.fence("id", KnownLog(PLACE))
    assert coordinator.written == written
    assert await coordinator.fence("id", KnownLog(PLACE)), "and once only"
    assert coordinator.written == written


async def test_brokers_that_do_not_tell_are_fenced_all_the_same() -> None:
    coordinator = Scripted("CompleteCommit", OPEN)
    coordinator.is_old = True
    assert await coordinator.fence("id", KnownLog(PLACE))
    assert coordinator.written == []


async def test_another_producer_cannot_write_the_marker(caplog: pytest.LogCaptureFixture) -> None:
    coordinator = Scripted("CompleteCommit", OPEN)
    coordinator.has_new_producer = True
    assert await coordinator.fence("id", KnownLog(PLACE))
    assert coordinator.written == []
    assert "changelog-0 lacks a marker that id can write no more" in caplog.text


@pytest.mark.parametrize(("opened", "is_open"), [(OPEN, True), (OpenTransaction(EPOCH, 20), False), (None, False)])
async def test_what_an_id_has_open_in_a_partition_is_told_by_where_it_begins(
    opened: OpenTransaction | None, is_open: bool
) -> None:
    coordinator = Scripted("CompleteAbort", opened)
    coordinator.open[PRODUCER + 1] = OPEN  # of another id
    assert await coordinator.may_be_open("id", PLACE, 20) is is_open
    assert coordinator.written == []


@pytest.mark.parametrize(("state", "is_old"), [("CompleteCommit", True), ("", False)])
async def test_an_id_of_which_its_coordinator_does_not_tell_may_have_something_open(state: str, is_old: bool) -> None:
    coordinator = Scripted(state, None)
    coordinator.is_old = is_old
    assert await coordinator.may_be_open("id", PLACE, 20)


@pytest.mark.parametrize(
    "error", [TopicAuthorizationFailedError, IncompatibleBrokerVersion, NotImplementedError, UnsupportedVersionError]
)
async def test_an_id_of_which_no_leader_tells_may_have_something_open(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    coordinator, leaders = Scripted("CompleteCommit", None), PartitionLeaders(cast(Any, None))

    async def untold(*_: object) -> Any:
        raise error(PLACE[0])

    monkeypatch.setattr(leaders, "_ask", untold)
    monkeypatch.setattr(coordinator, "_leaders", leaders)
    assert await coordinator.may_be_open("id", PLACE, 20)


async def test_a_leader_that_does_not_know_its_partition_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is decided by its answer: the caller tries again."""
    coordinator, leaders = Scripted("CompleteCommit", None), PartitionLeaders(cast(Any, None))

    async def unknown(*_: object) -> Any:
        raise UnknownTopicOrPartitionError(PLACE[0])

    monkeypatch.setattr(leaders, "_ask", unknown)
    monkeypatch.setattr(coordinator, "_leaders", leaders)
    with pytest.raises(UnknownTopicOrPartitionError):
        await coordinator.may_be_open("id", PLACE, 20)
