"""A demonstration that counts: real messages, a real Kafka, and a worker that is killed in the middle.

Starts a broker and a worker with temporary data, schedules a few dozen messages, kills the worker with SIGKILL while it
delivers, restarts it, and compares what a read_committed consumer received with the commands.

Exit code 0 if nothing is missing, duplicate, early or wrong; otherwise 1. Takes less than a minute (the first run
downloads Kafka).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from light_scheduler import SchedulerClient
from light_scheduler.client import parse_firing
from light_scheduler.clock import SystemClock
from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.errors import SchedulerError
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.settings import Settings, load_settings

TARGET = "demo-target"
PARTITIONS = 4
BURST = 30
KILL_AFTER_MS = 8_000  # the instant of the burst
SETTLE_MS = 2_000  # how long to wait for deliveries that should not come
PATIENCE_MS = 45_000

clock = SystemClock()
console = Console()


@dataclass(frozen=True)
class Message:
    """A scheduled message. Instants are UTC epoch ms; `due` is None if nothing may be delivered."""

    kind: str
    id: str
    first_at: int
    due: int | None
    payload: bytes

    @property
    def header(self) -> tuple[str, bytes]:
        return ("demo-kind", self.kind.encode())


@dataclass
class Received:
    """A received message, and its lateness (ms after due)."""

    message: Message
    due: int
    lateness: int
    intact: bool


@dataclass
class Report:
    """Deliveries by message id."""

    messages: dict[str, Message]
    deliveries: list[Received] = field(default_factory=list)
    strangers: int = 0
    complete: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, delivery: Received) -> None:
        self.deliveries.append(delivery)
        arrived = {delivery.message.id for delivery in self.deliveries}
        if all(message.id in arrived for message in self.messages.values() if message.due is not None):
            self.complete.set()


def planned(now: int) -> list[Message]:
    """Return the messages to schedule, relative to an instant."""

    def message(kind: str, number: int, first_at: int, due: int | None) -> Message:
        return Message(kind, f"{kind.replace(' ', '-')}-{number}", now + first_at, due, os.urandom(64))

    soon = [message("near future", n, 1_500 + 1_000 * n, now + 1_500 + 1_000 * n) for n in range(14)]
    past = [message("past", n, -60_000 - n, now - 60_000 - n) for n in range(4)]
    later = [message("moved later", n, 4_000, now + 13_000 + 100 * n) for n in range(5)]
    earlier = [message("moved earlier", n, 17_000, now + 5_000 + 100 * n) for n in range(5)]
    cancelled = [message("cancelled", n, 6_000 + 2_000 * n, None) for n in range(5)]
    burst = [message("burst", n, KILL_AFTER_MS, now + KILL_AFTER_MS) for n in range(BURST)]
    return [*soon, *past, *later, *earlier, *cancelled, *burst]


async def main() -> int:
    """Run the demonstration. Return the exit code."""
    with tempfile.TemporaryDirectory(prefix="light-scheduler-demo-") as name, EmbeddedBroker() as broker:
        console.print(f"[bold]Kafka[/] answers on {broker.bootstrap_servers}")
        folder = Path(name)
        settings = load_settings(
            {
                "app_id": "demo",
                "broker": broker.bootstrap_servers,
                "data_dir": folder / "state",
                "web_port": free_port(),
                "partitions": PARTITIONS,
                "instance_id": "demo-worker",
            },
            environment={},
            file=_no_settings_file(folder),
        )
        worker = WorkerProcess(settings, folder / "worker.log", remove_when_orphaned=folder)
        try:
            return await demonstrate(settings, worker)
        finally:
            worker.stop()


async def demonstrate(settings: Settings, worker: WorkerProcess) -> int:
    await asyncio.to_thread(make_topics, settings)
    worker.start()
    with console.status("Starting the worker"):
        await asyncio.to_thread(worker.wait_ready)
    console.print(f"[bold]Worker[/] {worker.pid} is ready: faust -A light_scheduler worker")
    messages = planned(clock.now())
    tally = Report({message.id: message for message in messages})
    async with (
        SchedulerClient(settings.bootstrap_servers, app_id=settings.app_id) as client,
        reading(settings.bootstrap_servers) as consumer,
    ):
        begun = min(message.due for message in messages if message.kind == "burst" and message.due) - KILL_AFTER_MS
        watching = asyncio.create_task(watch(consumer, tally))
        try:
            answers = await schedule_all(client, messages)
            console.print(f"[bold]Scheduled[/] {len(messages)} messages: {', '.join(answers)}")
            await until(begun + KILL_AFTER_MS)
            await asyncio.to_thread(worker.kill)
            console.print(f"[bold red]Killed the worker[/] with SIGKILL, at the instant of {BURST} messages")
            waiting = await schedule_without_worker(client, tally)
            console.print(f"[bold]Scheduled[/] {waiting} more while no worker runs")
            worker.start()
            await asyncio.to_thread(worker.wait_ready)
            console.print(f"[bold green]Restarted the worker[/]: it is {worker.pid}")
            quiet_from = max(max(message.first_at, message.due or 0) for message in tally.messages.values()) + SETTLE_MS
            await until(quiet_from)
            await everything(tally, watching, quiet_from + PATIENCE_MS)
        finally:
            watching.cancel()
            await asyncio.wait([watching])
    return report(tally)


def make_topics(settings: Settings) -> None:
    create_topics(settings)
    create_topic(settings.bootstrap_servers, TARGET, PARTITIONS)


async def schedule_all(client: SchedulerClient, messages: Iterable[Message]) -> list[str]:
    """Schedule, update and cancel. Return the scheduler's answers with their numbers."""

    async def one(message: Message) -> list[str]:
        answers = [await schedule(client, message, message.first_at)]
        if message.due is None:
            answers.append(str((await client.cancel(message.id)).outcome))
        elif message.due != message.first_at:
            answers.append(await schedule(client, message, message.due))
        return answers

    counts = Counter(answer for answers in await asyncio.gather(*map(one, messages)) for answer in answers)
    return [f"{count} {answer}" for answer, count in counts.items()]


async def schedule(client: SchedulerClient, message: Message, at: int) -> str:
    result = await client.schedule(message.id, message.payload, at=at, topic=TARGET, headers=[message.header])
    return str(result.outcome)


async def schedule_without_worker(client: SchedulerClient, tally: Report) -> int:
    """Send commands while no worker runs, waiting only for the broker's acknowledgement."""
    now = clock.now()
    messages = [
        Message("worker down", f"worker-down-{number}", now + 500, now + 500, os.urandom(64)) for number in range(5)
    ]
    for message in messages:
        tally.messages[message.id] = message
        await client.schedule(
            message.id,
            message.payload,
            at=message.first_at,
            topic=TARGET,
            headers=[message.header],
            wait=False,
        )
    return len(messages)


@asynccontextmanager
async def reading(bootstrap_servers: str) -> AsyncIterator[AIOKafkaConsumer]:
    """Yield a read_committed consumer of the target topic, from its beginning."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    consumer.assign([TopicPartition(TARGET, partition) for partition in range(PARTITIONS)])
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def watch(consumer: AIOKafkaConsumer, tally: Report) -> None:
    """Print and count each delivery as it arrives."""
    async for record in consumer:
        now = clock.now()
        firing = parse_firing(record)
        message = tally.messages.get(firing.id)
        if message is None:
            tally.strangers += 1
            continue
        intact = firing.payload == message.payload and firing.headers == [message.header]
        delivery = Received(message, firing.due, now - firing.due, intact)
        tally.add(delivery)
        console.print(f"  {message.kind:<14} {message.id:<18} [dim]{delivery.lateness:>7,} ms after due[/]")


async def until(instant: int) -> None:
    await asyncio.sleep(max(0, instant - clock.now()) / 1_000)


async def everything(tally: Report, watching: asyncio.Task[None], give_up_at: int) -> None:
    """Wait until everything expected has arrived, or clearly will not."""
    complete = asyncio.create_task(tally.complete.wait())
    patience = max(0, give_up_at - clock.now()) / 1_000
    await asyncio.wait([complete, watching], timeout=patience, return_when=asyncio.FIRST_COMPLETED)
    complete.cancel()
    if watching.done():
        watching.result()  # it never ends by itself: this raises its error


def report(tally: Report) -> int:
    """Print expected and delivered messages. Return the exit code."""
    table = Table(title="\nExpected against delivered, lateness in ms", title_justify="left", padding=0)
    table.add_column("Messages", no_wrap=True)
    for name in ("expected", "delivered", "missing", "duplicate", "early", "wrong", "median", "worst"):
        table.add_column(name, justify="right", no_wrap=True)
    faults = tally.strangers
    for kind in dict.fromkeys(message.kind for message in tally.messages.values()):
        figures, lateness = count(kind, tally)
        faults += sum(figures[2:])
        times = [f"{statistics.median(lateness):,.0f}", f"{max(lateness):,}"] if lateness else ["", ""]
        table.add_row(kind, *map(str, figures), *times)
    console.print(table)
    console.print(
        "[dim]Past messages were due a minute before they were scheduled; those of the burst and those sent while no "
        "worker ran waited for the restart.[/]"
    )
    if faults:
        console.print(f"[bold red]{faults} faults[/]")
        return 1
    console.print("[bold green]Missing 0, duplicate 0, early 0:[/] each message was delivered exactly once.")
    return 0


def count(kind: str, tally: Report) -> tuple[list[int], list[int]]:
    """Return (expected, delivered, missing, duplicate, early, wrong) and the lateness of each delivery of a kind."""
    messages = [message for message in tally.messages.values() if message.kind == kind]
    deliveries = [delivery for delivery in tally.deliveries if delivery.message.kind == kind]
    arrivals = Counter(delivery.message.id for delivery in deliveries)
    expected = [message for message in messages if message.due is not None]
    missing = sum(1 for message in expected if not arrivals[message.id])
    duplicate = sum(arrivals.values()) - len(arrivals)
    early = sum(1 for delivery in deliveries if delivery.lateness < 0)
    wrong = sum(1 for delivery in deliveries if not delivery.intact or delivery.due != delivery.message.due)
    figures = [len(expected), len(deliveries), missing, duplicate, early, wrong]
    return figures, [delivery.lateness for delivery in deliveries]


def _no_settings_file(folder: Path) -> Path:
    """Return an empty settings file, so that the demonstration does not depend on the current folder."""
    file = folder / "light-scheduler.toml"
    file.touch()
    return file


if __name__ == "__main__":
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        sys.exit(asyncio.run(main()))
    except SchedulerError as error:
        console.print("[bold red]Failed:[/]", escape(str(error)))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
