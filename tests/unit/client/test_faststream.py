"""What is reported of a firing that a FastStream function has processed, without Kafka."""

from __future__ import annotations

from typing import Any, cast

import pytest
from faststream import AckPolicy
from faststream.exceptions import AckMessage, NackMessage, RejectMessage
from faststream.kafka import KafkaBroker, KafkaRouter, TestKafkaBroker

from light_scheduler.client import HandlingRules, SchedulerClient
from light_scheduler.client.faststream import Firing, FiringMiddleware, FiringSubscribers
from light_scheduler.errors import InvalidCommand

HEADERS = {
    "schedule-id": "order-1",
    "schedule-tenant": "default",
    "schedule-firing-id": "order-1@1000",
    "schedule-due": "1000",
    "schedule-fired-at": "1001",
    "schedule-sequence": "1",
    "schedule-attempt": "1",
    "schedule-version": "1",
    "schedule-source-topic": "commands",
    "schedule-source-partition": "0",
    "schedule-source-offset": "7",
}


class NotedReports:
    """A client that notes what is reported."""

    def __init__(self) -> None:
        self.reports: list[bool] = []

    async def complete(self, firing: Any, *, succeeded: bool = True, wait: bool = True) -> None:
        assert (firing.id, wait) == ("order-1", False)
        self.reports.append(succeeded)

    @property
    def as_client(self) -> SchedulerClient:
        return cast(SchedulerClient, self)


@pytest.mark.parametrize(
    ("raised", "reports"),
    [
        (None, [True]),
        (ZeroDivisionError(), [False]),
        (AckMessage(), [True]),
        (RejectMessage(), [True]),
        (NackMessage(), []),
    ],
    ids=repr,
)
@pytest.mark.parametrize("way", ["on_firing", "middleware"])
async def test_the_report_is_what_the_function_meant(raised: Exception | None, reports: list[bool], way: str) -> None:
    client = NotedReports()
    broker = KafkaBroker(logger=None)
    if way == "on_firing":
        subscribe = FiringSubscribers(broker, client.as_client, group_id="g").on_firing("reminders", completes=True)
    else:
        broker.add_middleware(FiringMiddleware(client.as_client, HandlingRules(completes=True)))
        subscribe = broker.subscriber("reminders", ack_policy=AckPolicy.NACK_ON_ERROR)
    seen = []

    @subscribe
    async def work(body: str, firing: Firing) -> None:
        seen.append((body, firing.id, firing.due))
        if raised is not None:
            raise raised

    async with TestKafkaBroker(broker):
        await broker.publish("hello", "reminders", headers=HEADERS)
    assert (seen, client.reports) == ([("hello", "order-1", 1000)], reports)


async def test_other_subscribers_of_a_broker_are_left_alone() -> None:
    client = NotedReports()
    broker = KafkaBroker(logger=None)
    seen = []

    @broker.subscriber("reminders", group_id="audit")
    async def note(body: str) -> None:
        seen.append(f"audit: {body}")

    @FiringSubscribers(broker, client.as_client, group_id="g").on_firing("reminders", completes=True)
    def work(body: str) -> None:
        seen.append(f"work: {body}")

    async with TestKafkaBroker(broker):
        await broker.publish("hello", "reminders", headers=HEADERS)
        await broker.publish("not from the scheduler", "reminders")
    assert sorted(seen) == ["audit: hello", "audit: not from the scheduler", "work: hello"]
    assert client.reports == [True]


@pytest.mark.parametrize("raised", [None, ZeroDivisionError()], ids=repr)
@pytest.mark.parametrize("is_router", [False, True])
async def test_a_firing_is_reported_once_beside_the_middleware(raised: Exception | None, is_router: bool) -> None:
    client, other = NotedReports(), NotedReports()
    rules = HandlingRules(completes=True)
    broker = KafkaBroker(logger=None, middlewares=[FiringMiddleware(other.as_client, rules)])
    registry = KafkaRouter() if is_router else broker

    @FiringSubscribers(registry, client.as_client, group_id="g").on_firing("reminders", completes=True)
    async def work(body: str) -> None:
        if raised is not None:
            raise raised

    @broker.subscriber("others", ack_policy=AckPolicy.NACK_ON_ERROR)
    async def note(body: str) -> None: ...

    if isinstance(registry, KafkaRouter):
        broker.include_router(registry)
    async with TestKafkaBroker(broker):
        await broker.publish("hello", "reminders", headers=HEADERS)
        assert (client.reports, other.reports) == ([raised is None], [])
        await broker.publish("hello", "others", headers=HEADERS)
    assert (client.reports, other.reports) == ([raised is None], [True])


def test_what_the_messages_depend_on_cannot_be_chosen() -> None:
    subscribers = FiringSubscribers(KafkaBroker(logger=None), NotedReports().as_client, group_id="g")
    chosen: dict[str, Any] = {"batch": True, "isolation_level": "read_uncommitted", "ack_policy": "ack"}
    for name, value in chosen.items():
        with pytest.raises(InvalidCommand, match="is set by on_firing: leave it out") as refused:
            subscribers.on_firing("reminders", **{name: value})
        assert refused.value.field == name
    with pytest.raises(InvalidCommand, match="completes=True"):
        subscribers.on_firing("reminders", heartbeat="20s")
