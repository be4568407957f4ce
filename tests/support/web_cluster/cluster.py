"""A cluster of workers: real HTTP servers and real tables, over memory, without Kafka."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from light_scheduler.access import Role
from light_scheduler.clock import SettableClock
from light_scheduler.doctor.check import Check
from light_scheduler.lanes.quotas.rate_exchange import RateExchange
from light_scheduler.processes import Process
from light_scheduler.settings import Settings, load_settings
from light_scheduler.tables import ScheduleTable
from light_scheduler.tenants import TenantStore
from light_scheduler.web import KafkaTopics, Worker, install

from .access import TESTER, MemoryAccess
from .commands import MemoryCommands
from .delays import MemoryDelays
from .lanes import MemoryLanes
from .schedules import NOW, TOPIC, make_entry, put
from .topics import MemoryLog, MemoryTopic, MemoryTopics

Client = TestClient[web.Request, web.Application]


class KnownPeers:
    """One worker's view of who has what; all workers of a cluster share `distribution`."""

    def __init__(self, distribution: dict[str, dict[str, list[int]]]) -> None:
        self.distribution = distribution
        self.own_url = ""

    def owners(self) -> dict[str, dict[str, list[int]]]:
        return self.distribution


class MemoryWorker:
    """A worker's lanes behind its real HTTP server."""

    tenants: TenantStore
    exchange: RateExchange

    def __init__(
        self,
        lanes: MemoryLanes,
        delays: MemoryDelays,
        commands: MemoryCommands,
        peers: KnownPeers,
        access: MemoryAccess,
        client: Client,
    ) -> None:
        self.lanes = lanes
        self.commands = commands
        self.delays = delays
        self.peers = peers
        self.access = access
        self.client = client
        self.url = peers.own_url

    async def json(self, path: str, status: int = 200, **parameters: str) -> Any:
        """GET a path and return its JSON; the status has to be as expected."""
        async with self.client.get(path, params=parameters or None) as response:
            assert response.status == status, await response.text()
            return await response.json(content_type=None)

    async def ask(self, method: str, path: str, status: int, body: Any = None, **options: Any) -> Any:
        """Send a request and return its JSON; the status has to be as expected."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        async with self.client.request(method, path, data=data, **options) as response:
            assert response.status == status, await response.text()
            return await response.json(content_type=None)

    async def stop(self) -> None:
        """Stop the server: nothing listens on its port."""
        await self.client.close()


class MemoryCluster:
    """Workers that know of each other."""

    def __init__(self) -> None:
        self.workers: list[MemoryWorker] = []
        self.distribution: dict[str, dict[str, list[int]]] = {}
        self.clock = SettableClock(NOW)
        self.settings = Settings()
        self.idempotency = MemoryLog(self.clock)
        self.topics = MemoryTopics()
        self.tenants = MemoryTopic(self.topics)
        self.examined: list[Mapping[str, Any]] = []
        """What the checks of `doctor` were given."""

    def examine(self, info: Mapping[str, Any]) -> list[Check]:
        """Find what a doctor might."""
        self.examined.append(info)
        return [
            Check("disk", "ok", "9 GiB free"),
            Check("clock", "warn", "nothing synchronises it", "run an NTP client"),
        ]

    async def token(self, role: str, *tenants: str, lifetime: int | None = None, name: str = "") -> str:
        """Create a token, for all tenants if none is named, and return its text."""
        (access, *_) = [worker.access for worker in self.workers]
        await access.store.make_peer_secret()
        bound = tenants or None
        _, text = await access.store.create(name or role, Role(role), bound, by=TESTER, lifetime=lifetime)
        return text.reveal()

    async def start(self, *shares: list[int], as_node: bool = False) -> list[MemoryWorker]:
        """Start a worker for each list of partitions; they may be the processes of one node."""
        urls: Any = []
        for number, partitions in enumerate(shares):
            process = Process(number, urls, restarts=number) if as_node else None
            lanes, delays, peers = MemoryLanes(partitions), MemoryDelays(), KnownPeers(self.distribution)
            commands = MemoryCommands(self.tables, self.idempotency)
            commands.dialects = {source.name: source.dialect for source in self.settings.inputs}
            application = web.Application()
            access = MemoryAccess(self.tenants, self.clock)
            await access.store.follow(lambda: None)
            tenants = TenantStore(self.tenants, self.clock)
            await tenants.follow(lambda: None)
            worker = Worker(
                lanes,
                delays,
                peers,
                KafkaTopics(
                    commands, self.topics.open, self.topics.write, self.topics.close, self.topics.count_partitions
                ),
                self.settings,
                self.clock,
                access,
                tenants,
                self.examine,
                process,
                (exchange := RateExchange(peers, [TOPIC])),
            )
            install(application, worker)
            client: Client = TestClient(TestServer(application))
            await client.start_server()
            peers.own_url = str(client.make_url("")).rstrip("/")
            urls.append(peers.own_url)
            self.distribution[peers.own_url] = {TOPIC: partitions, "unrelated": [0]}
            self.workers.append(MemoryWorker(lanes, delays, commands, peers, access, client))
            self.workers[-1].tenants = tenants
            self.workers[-1].exchange = exchange
        return self.workers

    def tables(self) -> dict[tuple[str, int], ScheduleTable]:
        """Return the tables of all lanes."""
        return {lane: table for worker in self.workers for lane, table in worker.lanes.all.items()}

    def put(self, id: str, *, partition: int = 0, **fields: Any) -> None:
        """Store a schedule in whichever worker has the partition."""
        for worker in self.workers:
            if (TOPIC, partition) in worker.lanes.all:
                put(worker.lanes.all[TOPIC, partition], make_entry(id, partition=partition, **fields))


def with_topics(commands_topics: str) -> Settings:
    """Return settings with these commands topics."""
    return load_settings({"commands_topics": commands_topics}, environment={})
