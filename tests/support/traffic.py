"""Commands of several kinds in a row, as long as a test wants them, and what must have come of each in the end."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiokafka import AIOKafkaProducer

from light_scheduler.clock import SystemClock
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.wire import decode_result

from .application import Application
from .reading import Record, header, read_all, read_until

HOUR_MS = 3_600_000
PERIOD_MS = 1_000
PAUSE_S = 0.05
KINDS = ("once", "moved", "dropped", "triggered")
SERIES = [f"every-{number}" for number in range(12)]
ANSWER_S = 120.0


class Sent(NamedTuple):
    """A command, and the outcome that its answer must have; `key` is its correlation id."""

    key: str
    outcome: str


class Traffic:
    """Sends commands for schedules of the default tenant, each to a partition that may not be the one of its id.

    A kind of schedule is fired once, and so is one that is moved to another time and one that is triggered; another one
    is cancelled. Series fire every second, from `start_series` to `end_series`.
    """

    def __init__(self, application: Application, producer: AIOKafkaProducer) -> None:
        self._application = application
        self._producer = producer
        self._sent: list[Sent] = []
        self._due: dict[str, int | None] = {}
        """When (UTC epoch ms) each schedule that is to fire once is due; None: at once."""
        self._now = SystemClock().now
        self._is_ending = False

    async def start_series(self) -> None:
        """Let the series begin."""
        for id in SERIES:
            await self.send(id, "scheduled", every=f"{PERIOD_MS}ms", misfire="all", target_topic=self._target)

    async def end_series(self) -> None:
        """Cancel the series."""
        for id in SERIES:
            await self.send(id, "cancelled", command="cancel")

    def end(self) -> None:
        """Have `go_on` end."""
        self._is_ending = True

    async def go_on(self) -> None:
        """Send commands until `end`."""
        number = 0
        while not self._is_ending:
            await getattr(self, f"_{KINDS[number % len(KINDS)]}")(f"{KINDS[number % len(KINDS)]}-{number}")
            number += 1
            await asyncio.sleep(PAUSE_S)

    async def send(self, id: str, outcome: str, **headers: object) -> None:
        """Send a command, and expect an answer."""
        key = f"{id} {len(self._sent)}"
        self._sent.append(Sent(key, outcome))
        given = {"id": id, "reply_topic": self._application.settings.topics.results, "correlation_id": key, **headers}
        written = [(f"schedule-{name.replace('_', '-')}", str(value).encode()) for name, value in given.items()]
        partition = sum(id.encode()) % self._application.settings.partitions
        topic = self._application.settings.topics.commands
        await self._producer.send_and_wait(topic, b"payload", id.encode(), partition, headers=written)

    async def check(self) -> None:
        """Wait until everything has been answered and fired; hold it against what was sent."""
        await self._check_answers()
        servers, expected = self._application.bootstrap_servers, self._due.keys()

        def all_fired(records: list[Record]) -> bool:
            return expected <= {header(record, "schedule-id") for record in records}

        await read_until(servers, [self._target], all_fired)
        dues: defaultdict[str, list[int]] = defaultdict(list)
        for record in await read_all(servers, self._target):
            due, fired_at = (int(header(record, f"schedule-{name}") or "") for name in ("due", "fired-at"))
            assert due <= fired_at <= record.timestamp, "never early"
            dues[header(record, "schedule-id") or ""].append(due)
        self._check_firings(dues)

    @property
    def _target(self) -> str:
        return self._application.target

    async def _once(self, id: str) -> None:
        await self._schedule(id, self._soon())

    async def _moved(self, id: str) -> None:
        await self._schedule(id, self._now() + HOUR_MS)
        await self._schedule(id, self._soon(), "updated")

    async def _dropped(self, id: str) -> None:
        await self._schedule(id, self._now() + HOUR_MS)
        del self._due[id]
        await self.send(id, "cancelled", command="cancel")

    async def _triggered(self, id: str) -> None:
        await self._schedule(id, self._now() + HOUR_MS)
        self._due[id] = None
        await self.send(id, "triggered", command="trigger")

    def _soon(self) -> int:
        return self._now() + 1_500 + 37 * len(self._sent) % 3_000

    async def _schedule(self, id: str, at: int, outcome: str = "scheduled") -> None:
        self._due[id] = at
        await self.send(id, outcome, at=at, target_topic=self._target)

    async def _check_answers(self) -> None:
        results = self._application.settings.topics.results
        expected = dict(self._sent)

        def all_answered(records: list[Record]) -> bool:
            return expected.keys() <= {header(record, "schedule-correlation-id") for record in records}

        servers = self._application.bootstrap_servers
        await read_until(servers, [results], all_answered, ANSWER_S)
        answers = [(header(record, "schedule-correlation-id"), record) for record in await read_all(servers, results)]
        times = Counter(key for key, _ in answers if key in expected)
        assert times == dict.fromkeys(expected, 1), "each command is answered once"
        outcomes = {key: str(decode_result(record.value).outcome) for key, record in answers if key in expected}
        wrong = {key: (expected[key], outcome) for key, outcome in outcomes.items() if outcome != expected[key or ""]}
        assert wrong == {}

    def _check_firings(self, dues: Mapping[str, list[int]]) -> None:
        unexpected = dues.keys() - self._due.keys() - set(SERIES)
        assert unexpected == set(), "nothing that was cancelled has fired"
        assert {id: len(dues[id]) for id in self._due} == dict.fromkeys(self._due, 1)
        assert {id: dues[id][0] for id, due in self._due.items() if due is not None} == {
            id: due for id, due in self._due.items() if due is not None
        }
        for id in SERIES:
            found = sorted(dues[id])
            assert found == list(range(found[0], found[-1] + 1, PERIOD_MS)), f"{id}: each second once"


@asynccontextmanager
async def traffic(application: Application) -> AsyncIterator[Traffic]:
    """Let series fire and commands be sent until the end of the block; hold what came of it against what was sent."""
    producer = await started_producer({"bootstrap_servers": application.bootstrap_servers})
    try:
        found = Traffic(application, producer)
        await found.start_series()
        sending = asyncio.create_task(found.go_on())
        try:
            yield found
            assert not sending.done(), "commands were sent all the time"
        finally:
            found.end()
            await sending
        await found.end_series()
        await found.check()
    finally:
        await stop_producer(producer)
