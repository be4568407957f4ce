"""Ending what a dropped marker may have left open, on a real broker that takes rights away meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaError
from support.acls import grant, revoke
from support.application import Application
from support.waiting import eventually

from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.coordinator import KnownLog
from light_scheduler.kafka.rights import Right
from light_scheduler.kafka.targets import Targets
from light_scheduler.kafka.transactional_producer import PATIENCE_S, TransactionalProducer
from light_scheduler.lanes.failures.markers import Markers
from light_scheduler.lanes.failures.stable_ends import stable_ends
from light_scheduler.model.place import Place

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

AT = 1_767_225_600_000
EVERYBODY = "User:ANONYMOUS"
WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


class Setting:
    """Markers of a producer's transactions, over real topics; what is denied is so until it is `lift`ed."""

    @classmethod
    async def of(cls, application: Application) -> Setting:
        """Make one with a changelog."""
        changelog = f"{application.target}-changelog"
        await application.create_topic(changelog, partitions=1)
        return cls(application.bootstrap_servers, changelog)

    def __init__(self, servers: str, changelog: str) -> None:
        self.clients = KafkaClients(servers, 10_000)
        self.changelog = changelog, 0
        self.targets = Targets(servers)
        self.producer = TransactionalProducer(self.clients, "lane")
        self.denied: list[str] = []
        context: Any = SimpleNamespace(
            targets=self.targets, commands_topic="commands", own_topics=frozenset(), changelog=self.changelog
        )
        self.markers = Markers(context, self._ends, self.clients.may_be_open, self._end, self._deny)

    async def _ends(self, places: list[Place]) -> dict[Place, int | KafkaError]:
        return await stable_ends(places, self.clients, self.targets)

    async def _end(self, transactional_id: str, place: Place, commits: bool) -> None:
        await self.clients.end(transactional_id, place, commits=commits, changelog=KnownLog(self.changelog))

    def _deny(self, topic: str, error: KafkaError) -> None:
        self.denied.append(topic)
        self.targets.deny(topic, repr(error), 60.0)

    async def lift(self) -> None:
        self.targets._denied.clear()
        self.targets.forget_all()

    async def write(self, *topics: str) -> dict[Place, int]:
        batches = RecordBatches(AT)
        for topic in topics:
            batches.add((topic, 0), None, b"x")
        return await self.producer.commit(batches, "group", {})

    def distrust(self, ends: dict[Place, int]) -> None:
        """Have places lose their leaders after a commit and come back; the lane thinks that its markers are missing."""
        self.markers.committed({place: end + 100 for place, end in ends.items()}, "lane", self.targets.outages.time())
        for topic, partition in ends:
            self.targets.outages.observe(topic, {partition: "it has no leader"}, AT)
        self.markers.distrust()
        for topic, _ in ends:
            self.targets.outages.observe(topic, {}, AT)

    async def close(self) -> None:
        await self.producer.discard()
        await self.targets.close()
        await self.clients.close()


@pytest.mark.soak
async def test_a_right_that_is_taken_away_stops_neither_the_producer_nor_what_goes_elsewhere(tmp_path: Path) -> None:
    with EmbeddedBroker(properties=WITH_ACLS) as broker:
        servers = broker.bootstrap_servers
        application = await Application.create(servers, tmp_path)
        fine, closed, hidden = (f"{application.target}-{name}" for name in ("fine", "closed", "hidden"))
        for topic in (fine, closed, hidden):
            await application.create_topic(topic, partitions=1)
        setting = await Setting.of(application)
        markers, targets = setting.markers, setting.targets
        try:
            await setting.producer.fence()
            setting.distrust(await setting.write(fine, closed, hidden))
            await asyncio.to_thread(grant, servers, EVERYBODY, [Right("topic", closed, ("Read",))])
            await asyncio.to_thread(grant, servers, EVERYBODY, [Right("topic", hidden, ("DescribeConfigs",))])

            async with asyncio.timeout(2 * PATIENCE_S):
                await markers.settle(setting.producer)
            assert (setting.denied, markers.topics) == ([closed], {closed, hidden})
            assert (targets[closed].is_denied, targets[hidden].is_denied) == (True, True)
            assert await setting.write(fine), "the producer goes on"

            await asyncio.to_thread(revoke, servers, EVERYBODY)
            await setting.lift()
            await markers.settle(setting.producer)
            assert not markers
            await all_is_decided(setting, await setting.write(fine, closed, hidden))
        finally:
            await setting.close()
            await asyncio.to_thread(application.close)


async def all_is_decided(setting: Setting, ends: dict[Place, int]) -> None:
    """Wait until what ends there is followed by its marker, which is written after the commit was answered."""
    decided = {place: end + 1 for place, end in ends.items()}

    async def is_so() -> bool:
        return await stable_ends(list(ends), setting.clients, setting.targets) == decided

    await eventually(is_so)


async def test_a_topic_that_is_gone_leaves_nothing_to_settle(application: Application) -> None:
    setting = await Setting.of(application)
    try:
        await setting.producer.fence()
        setting.distrust({("never-was", 0): 1})
        await setting.markers.settle(setting.producer)
        assert not setting.markers
        ends = await setting.write(application.target)
        assert ends == {(application.target, 0): 1}
        await all_is_decided(setting, ends)
    finally:
        await setting.close()


async def test_what_another_id_of_the_lane_left_is_ended_under_that_id(application: Application) -> None:
    setting, place = await Setting.of(application), (application.target, 0)
    spare = TransactionalProducer(setting.clients, "lane~1")
    try:
        await setting.producer.fence()
        await spare.fence()

        async def settle_meanwhile() -> bool:
            assert (await stable_ends([place], setting.clients, setting.targets))[place] == 0, "it is open"
            setting.markers.failed([place], "lane~1", [place], setting.targets.outages.time())
            setting.targets.outages.observe(place[0], {0: "it has no leader"}, AT)
            setting.markers.distrust()
            setting.targets.outages.observe(place[0], {}, AT)
            await setting.markers.settle(setting.producer)
            assert not setting.markers
            return False

        batches = RecordBatches(AT)
        batches.add(place, None, b"x")
        with pytest.raises(KafkaError):
            await spare.commit_when(batches, settle_meanwhile)
        await all_is_decided(setting, {place: 2})
        assert await setting.write(place[0]) == {place: 4}, "after a record and two markers"
        await all_is_decided(setting, {place: 4})
    finally:
        await spare.abandon()
        await setting.close()


async def test_the_leader_tells_what_an_id_has_open_whatever_others_have(application: Application) -> None:
    setting, other = (
        await Setting.of(application),
        TransactionalProducer(KafkaClients(application.bootstrap_servers, 10_000), "other"),
    )
    place = application.target, 0
    may_be_open = setting.clients.may_be_open

    async def open_with(producer: TransactionalProducer) -> int:
        batches = RecordBatches(AT)
        batches.add(place, None, b"x")
        await producer._kafka.begin_transaction()
        return (await producer._send(batches, PATIENCE_S))[place] - 1

    try:
        await setting.producer.fence()
        await other.fence()
        end = (await setting.write(place[0]))[place]
        others = await open_with(other)
        assert not await may_be_open("lane", place, end)
        assert await may_be_open("other", place, others + 1)
        begin = await open_with(setting.producer)
        assert not await may_be_open("lane", place, begin)
        assert await may_be_open("lane", place, begin + 1)
        await setting.producer._kafka.abort_transaction()
        await eventually(lambda: not_open(setting, place, begin + 1))
    finally:
        await other.abandon()
        await setting.close()


async def not_open(setting: Setting, place: Place, end: int) -> bool:
    return not await setting.clients.may_be_open("lane", place, end)
