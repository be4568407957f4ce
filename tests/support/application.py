"""One application on a shared broker, with topics and worker processes of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from light_scheduler.client import SchedulerClient
from light_scheduler.devkit import worker_process as devkit
from light_scheduler.host.ports import free_port, port_is_free
from light_scheduler.kafka.topic_admin import create_topics
from light_scheduler.model import HistoryEvent
from light_scheduler.settings import Settings, load_settings
from light_scheduler.wire import decode_history

from .clocks import DrivenClock
from .placing import is_known_everywhere
from .reading import read_all
from .sending import Sender
from .topic_configs import configure
from .waiting import eventually

TESTS = Path(__file__).parents[1]
READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
ASK_EVERY_S = 0.05


def port_with_room(processes: int) -> int:
    """Return a free port for a node, with a free one for each of its processes after it."""
    return next(
        port for port in iter(free_port, None) if all(port_is_free(port + 1 + number) for number in range(processes))
    )


class WorkerProcess(devkit.WorkerProcess):
    """A worker whose end and whose answers a test can await."""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def data_dir(self) -> Path:
        return self.settings.data_dir

    async def ready(self) -> None:
        """Wait until every partition that the worker has been assigned runs."""
        async with aiohttp.ClientSession() as session:

            async def is_ready() -> bool:
                assert self.is_running, f"the worker ended:\n{self.log.read_text(errors='replace')[-4_000:]}"
                with contextlib.suppress(aiohttp.ClientError):
                    async with session.get(f"{self.url}/ready") as response:
                        return response.status == 200
                return False

            await eventually(is_ready, within=READY_TIMEOUT_S, every=ASK_EVERY_S, what=f"{self.url}/ready")

    async def get(self, path: str) -> Any:
        """Return the JSON of a GET that must succeed, in the end: whoever is told to ask again later, does."""
        async with aiohttp.ClientSession() as session:

            async def answer() -> list[Any] | None:
                async with session.get(self.url + path) as response:
                    if response.status == HTTPStatus.SERVICE_UNAVAILABLE and "Retry-After" in response.headers:
                        return None
                    assert response.status == HTTPStatus.OK, await response.text()
                    return [await response.json(content_type=None)]

            (document,) = await eventually(answer, every=ASK_EVERY_S, what=f"an answer from {self.url}{path}")
            return document

    async def listed(self, query: str = "") -> list[Any]:
        """Return the schedules of the default tenant, page by page: one ends early where it takes long to read."""
        path = "/api/v1/tenants/default/schedules"
        page = await self.get(f"{path}?{query}")
        rows: list[Any] = page["schedules"]
        while page["next_cursor"] is not None:
            page = await self.get(f"{path}?{query}&cursor={page['next_cursor']}")
            rows += page["schedules"]
        return rows

    async def shows(self, is_so: Callable[[Any], object], within: float = READY_TIMEOUT_S) -> Any:
        """Wait until the worker's /info is as wanted, and return it. Raises TimeoutError with the last one."""
        document: Any = None

        async def is_as_wanted() -> object:
            nonlocal document
            document = await self.get("/info")
            return is_so(document)

        try:
            await eventually(is_as_wanted, within=within, every=ASK_EVERY_S, what=f"{self.url}/info as wanted")
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {document}") from None
        return document

    async def ended(self) -> int:
        """Wait until the worker has ended by itself; return the exit code."""
        return await asyncio.to_thread(self.wait, READY_TIMEOUT_S)

    async def end(self) -> int:
        """End in order, also if it is frozen; return the exit code."""
        self.send_signal(signal.SIGCONT)
        self.ask_to_stop()
        return await asyncio.to_thread(self.wait, STOP_TIMEOUT_S)


@dataclass
class Application:
    """`target` is a topic of four partitions to deliver to; `clock` is the machine's unless a test drives one."""

    bootstrap_servers: str
    folder: Path
    settings: Settings
    options: dict[str, str]
    target: str
    workers: list[WorkerProcess] = field(default_factory=list)
    clock: DrivenClock | None = None

    @classmethod
    async def create(cls, bootstrap_servers: str, folder: Path, **options: str) -> Application:
        """Make the topics of a new application; `options` are settings as text."""
        app_id = f"test-{uuid.uuid4().hex[:8]}"
        options = {"app_id": app_id, "broker": f"kafka://{bootstrap_servers}", **options}
        settings = load_settings(options, environment={})
        await asyncio.to_thread(create_topics, settings)
        application = cls(bootstrap_servers, folder, settings, options, f"{app_id}-target")
        await application.create_topic(application.target)
        return application

    async def create_topic(self, name: str, partitions: int = 4, **configs: str) -> None:
        """Create a topic; returns when every broker knows it."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        await admin.start()
        try:
            await admin.create_topics(
                [NewTopic(name, partitions, self.settings.replication_factor, topic_configs=configs)]
            )
            known = partial(is_known_everywhere, admin._client, name)
            await eventually(known, what=f"every broker to know {name}")
        finally:
            await admin.close()

    async def delete_topics(self, *names: str) -> None:
        """Delete topics; returns when the broker does not list them any more."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        await admin.start()
        try:
            await admin.delete_topics(list(names))

            async def are_gone() -> bool:
                return not set(names) & set(await admin.list_topics())

            await eventually(are_gone, what=f"the end of the topics {', '.join(names)}")
        finally:
            await admin.close()

    async def configure_topic(self, name: str, **configs: str) -> None:
        """Set configurations of a topic; returns when its broker goes by them."""
        await asyncio.to_thread(configure, self.bootstrap_servers, name, configs)

    def drive_clock(self, *, behind: int) -> DrivenClock:
        """Have workers that are made from now on go by a clock that is behind (ms) and can be moved on."""
        self.clock = DrivenClock.create(self.folder / "clock", behind=behind)
        return self.clock

    def new_worker(self, **options: str) -> WorkerProcess:
        """Prepare a worker with a state folder of its own."""
        name = f"worker-{len(self.workers)}"
        processes = int((self.options | options).get("processes", "1"))
        options = {
            **self.options,
            "data_dir": str(self.folder / name),
            "web_port": str(free_port() if processes == 1 else port_with_room(processes)),
            **options,
        }
        settings, log = load_settings(options, environment={}), self.folder / f"{name}.log"
        if self.clock is None:
            worker = WorkerProcess(settings, log)
        else:
            paths = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
            variables = {"PYTHONPATH": paths, "WORKER_CLOCK": str(self.clock.path)}
            worker = WorkerProcess(settings, log, application="support.clocked", variables=variables)
        self.workers.append(worker)
        return worker

    async def start_worker(self, **options: str) -> WorkerProcess:
        """Start a worker and wait until it runs."""
        worker = self.new_worker(**options)
        worker.start()
        await worker.ready()
        return worker

    async def shared(self) -> None:
        """Wait until every worker that runs has partitions, all of them run, and whichever is asked knows of all."""
        workers = [worker for worker in self.workers if worker.is_running]

        async def is_so() -> bool:
            owned = [(await worker.get("/info"))["lanes"] for worker in workers]
            running = [lane["partition"] for each in owned for lane in each if lane["state"] == "running"]
            return all(owned) and sorted(running) == list(range(self.settings.partitions))

        what = "each worker to have its share of the partitions"
        try:
            await eventually(is_so, within=READY_TIMEOUT_S, every=ASK_EVERY_S, what=what)
        except TimeoutError as error:
            logs = "\n".join(worker.log.read_text(errors="replace")[-4_000:] for worker in workers)
            raise TimeoutError(f"{error}\n{logs}") from None
        for worker in workers:
            await worker.get("/api/v1/tenants/default/schedules?limit=1")

    def sender(self) -> Sender:
        return Sender(self.bootstrap_servers, self.settings.topics.commands)

    async def history(self) -> list[HistoryEvent]:
        """Return all that history tells now, in order for each partition of the commands topic."""
        records = await read_all(self.bootstrap_servers, self.settings.topics.history)
        return [decode_history(record.value) for record in records]

    async def whole_history(self, is_whole: Callable[[list[HistoryEvent]], bool]) -> list[HistoryEvent]:
        """Return all that history tells as soon as it is whole.

        What one transaction has written to several topics can be read in one of them before it can in another.
        """

        async def told() -> list[HistoryEvent] | None:
            events = await self.history()
            return events if is_whole(events) else None

        return await eventually(told, every=0.2, what="the whole history")

    def client(self, **options: Any) -> SchedulerClient:
        return SchedulerClient(self.bootstrap_servers, app_id=self.settings.app_id, **options)

    def close(self) -> None:
        for worker in self.workers:
            if worker.is_running:
                worker.kill()
