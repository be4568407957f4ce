"""Workers that are killed while consumers complete, fail, ignore and misname what they were delivered.

No completion is lost, nothing that nobody completed is forgotten, and nothing is delivered more often than it may be.
What is held against the scheduler is what a consumer sees: messages, answers, dead letters and history.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections import Counter, defaultdict
from itertools import pairwise
from typing import NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer
from support.application import Application
from support.reading import header, read_all, read_until
from support.sending import Sender
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.model import EventType, Firing, HistoryEvent, Outcome, Result
from light_scheduler.wire import decode_result, parse_firing
from light_scheduler.wire.events import correlation_id_of

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(400)]

COPIES = 3
FIRINGS = 3
TIMEOUT_MS = 4_000
"""More than a busy machine stands still for: what is said at once is said in time."""
ON_THE_WAY_MS = 500
"""What is said so shortly before a time-out may reach its worker after it."""
DELAY_MS = 1_000
EVERY_MS = 3_000
KILLS = 4

# What a consumer does with a firing; by its schedule's id.
BEHAVIOURS = ("prompt", "twice", "fails first", "at the last", "never", "always late", "misnamed")
NEVER_COMPLETED = ("never", "always late", "misnamed")

Occurrence = tuple[str, int]
"""(schedule id, due): what a firing is the delivery of."""


class Kind(NamedTuple):
    """A schedule: its headers, how often it fires, and how often each firing may be delivered."""

    headers: dict[str, object]
    firings: int = FIRINGS
    attempts: int = 3


def acknowledged(attempts: int) -> dict[str, object]:
    return {"ack_timeout": TIMEOUT_MS, "max_attempts": attempts}


RATE = {"every": EVERY_MS, "max_firings": FIRINGS, **acknowledged(3)}
DELAY = {"every": DELAY_MS, "mode": "fixed-delay", "max_firings": FIRINGS}
KINDS = {
    "once": Kind({"after": 1_000, **acknowledged(3)}, firings=1),
    "allow": Kind({**RATE, "overlap": "allow"}),
    "skip": Kind({**RATE, "overlap": "skip"}),
    "queue": Kind({**RATE, "overlap": "queue"}),
    "delay": Kind({**DELAY, "ack_timeout": TIMEOUT_MS}, attempts=1),
    "delay, twice": Kind({**DELAY, **acknowledged(2)}, attempts=2),
}


def id_of(kind: str, behaviour: str, copy: int) -> str:
    return f"{kind}|{behaviour}|{copy}"


class Said(NamedTuple):
    """A completion that the consumer sent; `at` is its record's timestamp (ms)."""

    occurrence: Occurrence
    attempt: int
    succeeded: bool
    at: int


class Consumer:
    """Reads messages as any service would, and says what its behaviour says."""

    def __init__(self, application: Application, send: Sender) -> None:
        self._application = application
        self._send = send
        self.firings: list[Firing] = []
        self.said: list[Said] = []
        self._task = asyncio.create_task(self._consume())

    async def close(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def has_seen(self, count: int) -> None:
        def so_many() -> bool:
            assert not self._task.done(), self._task.exception()
            return len(self.firings) >= count

        await eventually(so_many, within=120)

    async def _consume(self) -> None:
        consumer = AIOKafkaConsumer(
            self._application.target,
            bootstrap_servers=self._application.bootstrap_servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
        )
        await consumer.start()
        try:
            while True:
                for batch in (await consumer.getmany(timeout_ms=100)).values():
                    for record in batch:
                        firing = parse_firing(record)
                        self.firings.append(firing)
                        await self._react(firing)
        finally:
            await consumer.stop()

    async def _react(self, firing: Firing) -> None:
        kind, behaviour, _ = firing.id.split("|")
        attempt = firing.attempt
        match behaviour:
            case "prompt":
                await self._complete(firing, attempt)
            case "twice":
                await self._complete(firing, attempt)
                await self._complete(firing, attempt)
            case "fails first":
                await self._complete(firing, attempt, succeeded=attempt > 1)
            case "at the last" if attempt == KINDS[kind].attempts:
                await self._complete(firing, attempt)
            case "always late" if attempt > 1:
                await self._complete(firing, attempt - 1)
            case "misnamed":
                await self._complete(firing, attempt + 7)

    async def _complete(self, firing: Firing, attempt: int, *, succeeded: bool = True) -> None:
        sent = await self._send(
            firing.id,
            None,
            command="complete",
            firing_id=f"{firing.id}@{firing.due}",
            attempt=attempt,
            completion="success" if succeeded else "failure",
            reply_topic=self._application.settings.topics.results,
            correlation_id=len(self.said),
        )
        self.said.append(Said((firing.id, firing.due), attempt, succeeded, sent.timestamp))


@pytest.mark.soak
async def test_acknowledged_delivery_survives_sigkills(application: Application) -> None:
    workers = [await application.start_worker(), application.new_worker()]
    workers[1].start()
    await workers[1].ready()
    async with application.sender() as send:
        for kind, (headers, _, _) in KINDS.items():
            for behaviour in BEHAVIOURS:
                for copy in range(COPIES):
                    await send(id_of(kind, behaviour, copy), b"", target_topic=application.target, **headers)
        consumer = Consumer(application, send)
        try:
            for kill in range(KILLS):
                await consumer.has_seen(60 + 100 * kill)
                for worker in workers if kill == KILLS - 1 else [workers[kill % 2]]:
                    worker.kill()
                    if kill >= KILLS - 2 and worker.data_dir.exists():  # it may not have come so far since the last
                        shutil.rmtree(worker.data_dir)  # what is awaited is in the changelog too
                    worker.start()
            for worker in workers:
                await worker.ready()

            async def nothing_is_left() -> bool:
                return not await pending(application)

            await eventually(nothing_is_left, within=150, every=0.2)
        finally:
            await consumer.close()
    answers = await answers_to(application, consumer)
    check_attempts(consumer.firings)
    check_answers(consumer, answers)
    history = await application.whole_history(tells_all_ends)
    check_ends(consumer, history, await unacknowledged(application, history))
    check_overlaps(history)
    check_delays(consumer, history)


async def pending(application: Application) -> int:
    """Return how many schedules are pending, or that there may be some as long as not all lanes run."""
    lanes = [lane for worker in application.workers for lane in (await worker.get("/info"))["lanes"]]
    running = [lane for lane in lanes if lane["state"] == "running"]
    if len(running) < application.settings.partitions:
        return 1
    return sum(lane["pending"] for lane in running)


async def answers_to(application: Application, consumer: Consumer) -> list[Result]:
    """Return the answer to each completion; there is exactly one."""
    records = await read_until(
        application.bootstrap_servers,
        [application.settings.topics.results],
        lambda records: len(records) >= len(consumer.said),
    )
    answers = {int(correlation_id_of(record.headers) or b"-1"): decode_result(record.value) for record in records}
    assert sorted(answers) == list(range(len(consumer.said)))
    assert len(records) == len(consumer.said)
    return [answers[number] for number in range(len(consumer.said))]


def tells_all_ends(history: list[HistoryEvent]) -> bool:
    """Return whether a history tells of the end of each schedule: of a series that it has finished."""
    ended = {event.id for event in history if event.event is EventType.FINISHED}
    ended |= {
        event.id
        for event in history
        if str(event.id).startswith("once")
        and event.event in (EventType.COMPLETED, EventType.DEAD_LETTERED)
        and event.reason != "failure"
    }
    return len(ended) == len(KINDS) * len(BEHAVIOURS) * COPIES


async def unacknowledged(application: Application, history: list[HistoryEvent]) -> Counter[Occurrence]:
    told = sum(event.event is EventType.DEAD_LETTERED for event in history)
    topic = application.settings.topics.dead_letters
    await read_until(application.bootstrap_servers, [topic], lambda records: len(records) >= told)
    records = await read_all(application.bootstrap_servers, topic)
    assert all(header(record, "dead-letter-cause") == "unacknowledged" for record in records)
    return Counter(
        (header(record, "dead-letter-id") or "", int(header(record, "dead-letter-due") or 0)) for record in records
    )


def delivered(firings: list[Firing]) -> dict[Occurrence, list[Firing]]:
    found: dict[Occurrence, list[Firing]] = defaultdict(list)
    for firing in firings:
        found[firing.id, firing.due].append(firing)
    return found


def check_attempts(firings: list[Firing]) -> None:
    """Each attempt of each firing came once, in order, none before its time, and no more than there may be."""
    sequences: dict[str, list[int]] = defaultdict(list)
    for (id, due), attempts in delivered(firings).items():
        kind = KINDS[id.split("|")[0]]
        numbers = [firing.attempt for firing in attempts]
        assert numbers == list(range(1, len(numbers) + 1)), (id, due, numbers)
        assert len(numbers) <= kind.attempts, (id, due)
        assert attempts[0].fired_at >= due
        if "fails" not in id:
            gaps = [after.fired_at - before.fired_at for before, after in pairwise(attempts)]
            assert all(gap >= TIMEOUT_MS for gap in gaps), (id, gaps)
        sequences[id].append(attempts[0].sequence)
    expected = {
        id_of(name, behaviour, copy): list(range(1, kind.firings + 1))
        for name, kind in KINDS.items()
        for behaviour in BEHAVIOURS
        for copy in range(COPIES)
    }
    assert {id: sorted(numbers) for id, numbers in sequences.items()} == expected


def check_answers(consumer: Consumer, answers: list[Result]) -> None:
    """A completion that was accepted ends its firing; one that was not, came too late or named another attempt."""
    attempts = delivered(consumer.firings)
    accepted = Counter(
        said.occurrence
        for said, answer in zip(consumer.said, answers, strict=True)
        if said.succeeded and answer.outcome is Outcome.COMPLETED
    )
    assert set(accepted.values()) <= {1}
    prompt = in_time = 0
    for said, answer in zip(consumer.said, answers, strict=True):
        latest = len(attempts[said.occurrence])
        behaviour = said.occurrence[0].split("|")[1]
        if answer.outcome is Outcome.COMPLETED:
            assert behaviour not in NEVER_COMPLETED
            assert said.attempt == latest or not said.succeeded, f"{said} was accepted and it came again"
        elif answer.outcome is Outcome.CONFLICT:
            assert said.attempt != latest or behaviour == "misnamed", f"{said} named the latest attempt: {answer}"
        else:
            assert answer.outcome is Outcome.NOT_FOUND
            assert said.occurrence in accepted or behaviour in NEVER_COMPLETED or latest == kind_of(said).attempts
        if behaviour == "prompt":
            prompt += 1
            in_time += answer.outcome is Outcome.COMPLETED
    assert in_time >= 0.9 * prompt, f"of {prompt} prompt completions only {in_time} were in time"


def kind_of(said: Said) -> Kind:
    return KINDS[said.occurrence[0].split("|")[0]]


def check_ends(consumer: Consumer, history: list[HistoryEvent], dead: Counter[Occurrence]) -> None:
    """Every firing was completed, or delivered as often as it may be and then given up, visibly."""
    ends: dict[Occurrence, list[HistoryEvent]] = defaultdict(list)
    for event in history:
        if event.event in (EventType.COMPLETED, EventType.DEAD_LETTERED) and event.reason != "failure":
            ends[event.id or "", event.due or 0].append(event)
    failed_runs = {
        (event.id, event.due) for event in history if event.event is EventType.COMPLETED and event.reason == "failure"
    }
    said: dict[Occurrence, list[int]] = defaultdict(list)
    for each in consumer.said:
        said[each.occurrence].append(each.at)
    for occurrence, attempts in delivered(consumer.firings).items():
        name, behaviour, _ = occurrence[0].split("|")
        most = KINDS[name].attempts
        if name == "delay" and behaviour == "fails first":
            in_time = attempts[-1].fired_at + TIMEOUT_MS - ON_THE_WAY_MS
            is_late = bool(said[occurrence]) and min(said[occurrence]) >= in_time
            assert occurrence in failed_runs or is_late, f"{occurrence}: said {said[occurrence]}, in time to {in_time}"
            assert (occurrence in dead) == (occurrence not in failed_runs)
            if occurrence in failed_runs:
                continue
        (end,) = ends[occurrence]
        assert end.attempt == len(attempts), occurrence
        if end.event is EventType.COMPLETED and end.reason is None:
            assert behaviour not in NEVER_COMPLETED
            assert occurrence not in dead
            continue
        assert len(attempts) == most, f"{occurrence} was given up after {len(attempts)} attempts"
        assert dead[occurrence] == 1
    assert sum(dead.values()) == sum(event.event is EventType.DEAD_LETTERED for event in history)
    finished = Counter(event.id for event in history if event.event is EventType.FINISHED)
    series = [id for id in {firing.id for firing in consumer.firings} if not id.startswith("once")]
    assert finished == Counter(dict.fromkeys(series, 1))


def check_overlaps(history: list[HistoryEvent]) -> None:
    """With `skip` and `queue`, no firing comes while one before it is not completed; with `allow`, some do."""
    overlapping: Counter[str] = Counter()
    waiting: dict[str, set[int]] = defaultdict(set)
    for event in history:
        id, sequence = event.id or "", event.sequence or 0
        kind = id.split("|")[0]
        if event.event is EventType.FIRED:
            overlapping[kind] += bool(waiting[id] - {sequence})
            waiting[id].add(sequence)
        elif event.event is EventType.DEAD_LETTERED or (
            event.event is EventType.COMPLETED and (event.reason != "failure" or KINDS[kind].attempts == 1)
        ):
            waiting[id].discard(sequence)
    assert overlapping["allow"] > 0
    assert {kind for kind, count in overlapping.items() if count} == {"allow"}


def check_delays(consumer: Consumer, history: list[HistoryEvent]) -> None:
    """A fixed delay counts from the completion that was sent, or from the end of the time there was for it."""
    said: dict[Occurrence, set[int]] = defaultdict(set)
    for each in consumer.said:
        said[each.occurrence].add(each.at)
    series: dict[str, list[list[Firing]]] = defaultdict(list)
    for (id, _), attempts in delivered(consumer.firings).items():
        if id.startswith("delay"):
            series[id].append(attempts)
    now = SystemClock().now()
    for runs in series.values():
        for before, after in pairwise(sorted(runs, key=lambda run: run[0].due)):
            last = before[-1]
            ended_at = after[0].due - DELAY_MS
            assert ended_at in said[last.id, last.due] | {last.fired_at + TIMEOUT_MS, last.fired_at}, (last, after[0])
            assert last.fired_at <= ended_at <= now
