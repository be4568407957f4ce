"""Commands passed on to a partition whose leader is lost before their transaction ends: Kafka 4.3 writes no marker.

What is passed on would hang there, and the lane of the partition would read nothing that comes after it.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest
from support import held_back
from support.application import TESTS, Application, WorkerProcess
from support.reading import header, read_all
from support.strays import Outside, answered, key_of, place_commands
from support.waiting import eventually

from light_scheduler.devkit import EmbeddedCluster
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.kafka.partition_leaders import PartitionLeaders
from light_scheduler.kafka.transaction_requests import DescribeTransactionRequest
from light_scheduler.model.place import Place

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.soak, pytest.mark.timeout(300)]

COPIES = [[1], [2], [1], [3]]
"""The broker of each partition of the commands topic."""
HERE, AWAY, BROKER = 0, 3, 3
"""Where the command arrives, and the partition that it is passed on to, with its broker."""
SESSION_MS = 9_000
"""How long a broker may be silent before its partitions lose their leader, by default: long after all lanes rest."""
RETURN_S = 120
"""Within which everything is done once the broker is there again, on a machine that does other things as well."""
ENDED = ("CompleteCommit", "CompleteAbort", "Empty")
"""What the coordinator says of an id once it takes all markers to be written; the last one if it was fenced since."""


def holding_worker(application: Application, place: Place) -> WorkerProcess:
    """Prepare a worker that holds back its first transaction that writes to a place."""
    prepared = application.new_worker(transaction_timeout="60s")
    variables = {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH")))),
        held_back.TOPIC_VARIABLE: place[0],
        held_back.PARTITION_VARIABLE: str(place[1]),
        held_back.FOLDER_VARIABLE: str(application.folder),
    }
    worker = WorkerProcess(prepared.settings, prepared.log, application="support.held_back", variables=variables)
    application.workers[-1] = worker
    return worker


class Brokers:
    """What the brokers of a cluster say of partitions and transactions."""

    def __init__(self, servers: str) -> None:
        self._clients = KafkaClients(servers, 10_000)
        self._coordinator = self._clients.coordinator
        self._leaders = PartitionLeaders(self._coordinator._client)

    async def lacks_leader(self, place: Place, brokers: list[int]) -> bool:
        """Return whether each of these brokers says that nobody leads a partition."""
        client: AIOKafkaClient = await self._coordinator._client.connected()
        request = MetadataRequest([place[0]], allow_auto_topic_creation=False)
        described = [(await client.send(broker, request)).to_object()["topics"][0] for broker in brokers]
        leaders = [part["leader"] for each in described for part in each["partitions"] if part["partition"] == place[1]]
        return len(leaders) == len(brokers) and max(leaders) < 0

    async def state(self, transactional_id: str) -> str:
        """Return how the last transaction of an id stands, or nothing if a broker that is asked has gone."""
        try:
            answer = await self._coordinator._send(transactional_id, DescribeTransactionRequest(transactional_id))
        except KafkaError:
            return ""
        return str(answer.state)

    async def open_transactions(self, place: Place) -> int:
        """Return how many transactions are open in a partition."""
        return len(await self._leaders.open_in(place))

    async def close(self) -> None:
        await self._clients.close()


@pytest.mark.parametrize("end", [held_back.COMMITS, held_back.FAILS])
async def test_what_is_passed_on_arrives_once_although_a_broker_has_dropped_the_marker(
    tmp_path: Path, end: str
) -> None:
    with EmbeddedCluster(3, properties={"broker.session.timeout.ms": SESSION_MS}) as cluster:
        servers, app_id = cluster.bootstrap_servers, f"test-{uuid.uuid4().hex[:8]}"
        await place_commands(servers, f"{app_id}-commands", COPIES)
        application = await Application.create(servers, tmp_path, app_id=app_id, replication_factor="3")
        topics, stray = application.settings.topics, key_of(AWAY, "stray", len(COPIES))
        place, lane = (topics.commands, AWAY), topics.transactional_id(topics.commands, HERE)
        homely = key_of(AWAY, "homely", len(COPIES))
        producer, brokers = await started_producer({"bootstrap_servers": servers}), Brokers(servers)
        try:
            worker = holding_worker(application, place)
            worker.start()
            await worker.ready()
            await asyncio.to_thread(cluster.wait_in_sync)
            outside = Outside(producer, application)
            await outside.schedule(HERE, stray, 0)
            await eventually((tmp_path / held_back.HELD).exists)
            broker = cluster.nodes[BROKER - 1]
            await asyncio.to_thread(broker.kill)
            survivors = [number for number in (1, 2, 3) if number != BROKER]
            await eventually(lambda: brokers.lacks_leader(place, survivors))
            (tmp_path / end).touch()

            async def has_ended() -> bool:
                return await brokers.state(lane) in ENDED

            await eventually(has_ended)
            await asyncio.to_thread(broker.start)
            await outside.schedule(AWAY, homely, 0)

            async def have_fired() -> bool:
                fired = [header(record, "schedule-id") for record in await read_all(servers, application.target)]
                return {stray, homely} <= {*fired}

            await eventually(have_fired, within=RETURN_S, every=0.5)
            assert await brokers.open_transactions(place) == 0
            fired = [str(header(record, "schedule-id")) for record in await read_all(servers, application.target)]
            answers = await answered(servers, topics.results)
        finally:
            await brokers.close()
            await stop_producer(producer)
            with suppress(TimeoutError):
                await asyncio.to_thread(application.close)
    assert sorted(fired) == sorted([stray, homely]), "each once"
    assert answers == {stray: [("scheduled", None)], homely: [("scheduled", None)]}
