"""Large bodies of commands are read one at a time, and nobody else waits until all of one holder are read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from support.holders import request_of

from light_scheduler.web.commands import large_bodies
from light_scheduler.web.commands.channel import MOST_WAITING
from light_scheduler.web.commands.idempotency.posts import Submission
from light_scheduler.web.commands.large_bodies import LARGE_BYTES, LargeBodies, LinesOfBatch
from light_scheduler.web.limits import slices
from light_scheduler.web.limits.slices import SHORT_REST, SLICE_S, Credit, LoopTime
from light_scheduler.web.limits.turns import Turns
from light_scheduler.web.request_limits import request_turns

NOW = 1_800_000_000_000
SCHEDULES = "/api/v1/tenants/default/schedules"
ONCE = {"trigger": {"at": NOW + 3_600_000}, "target": {"topic": "out"}}
SMALL, LARGE = b"x" * (LARGE_BYTES - 1), b"x" * LARGE_BYTES


class Reading:
    """Bodies that are read; `begun` has those that are. Others have the loop after each until it is told to end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, bodies: LargeBodies) -> None:
        self._bodies = bodies
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

        async def rest(_: LoopTime) -> None:
            await self._ends[self.begun[-1]].wait()

        monkeypatch.setattr(large_bodies, "SLICE_S", 0.0)  # all of them take long

        monkeypatch.setattr(LoopTime, "rest", rest)

    def begin(self, name: str, body: bytes) -> None:
        """Begin to read a body; its holder is the first letter of its name."""
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._read(name, body))

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await asyncio.sleep(0)

    async def _read(self, name: str, body: bytes) -> None:
        with request_of(name[0]):
            await self._bodies.read(body, lambda: self.begun.append(name))


async def test_large_bodies_are_read_one_at_a_time_by_holders_in_turn_and_small_ones_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading = Reading(monkeypatch, LargeBodies(Turns("large bodies", at_work=1, waiting=16, patience_s=60)))
    reading.begin("c0", SMALL)
    for name in ("a0", "a1", "a2", "b0"):
        reading.begin(name, LARGE)
    await asyncio.sleep(0)
    assert reading.begun == ["c0", "a0"]
    for name in ("a0", "b0", "a1", "a2"):
        assert name in reading.begun
        await reading.end(name)
    assert reading.begun == ["c0", "a0", "b0", "a1", "a2"]


@pytest.mark.parametrize(
    ("method", "path", "members"),
    [
        ("POST", SCHEDULES, ONCE),
        ("PUT", f"{SCHEDULES}/x", ONCE),
        ("POST", f"{SCHEDULES}/x/pause", {}),
        ("POST", f"{SCHEDULES}/x/reschedule", {"trigger": ONCE["trigger"]}),
        ("POST", f"{SCHEDULES}/x/complete", {"firing_id": "x@1"}),
        ("POST", f"{SCHEDULES}:cancel", {"id": "*"}),
        ("POST", f"{SCHEDULES}:batch", ONCE),
    ],
)
async def test_every_body_that_is_a_command_is_read_in_its_turn(
    workers: Any, monkeypatch: pytest.MonkeyPatch, method: str, path: str, members: dict[str, Any]
) -> None:
    read: list[bytes] = []

    async def noted(self: LargeBodies, body: bytes, reading: Callable[[], Any]) -> Any:
        read.append(body.strip())
        return reading()

    monkeypatch.setattr(LargeBodies, "read", noted)
    body = json.dumps(members).encode()
    async with workers[0].client.request(method, path, data=body.ljust(LARGE_BYTES)) as response:
        await response.read()
        assert response.status < 500
    assert read == [body]


async def test_a_line_of_a_batch_is_not_overtaken_by_a_later_one_while_it_waits_to_be_read(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(self: LargeBodies, body: bytes, read: Callable[[], Any]) -> Any:
        for _ in range(100 if len(body) > 200 else 0):
            await asyncio.sleep(0)
        return read()

    monkeypatch.setattr(LargeBodies, "read", slow)
    lines = [{**ONCE, "id": "x", "payload": {"text": "x" * 200}}, {**ONCE, "id": "x"}, {**ONCE, "id": "y"}]
    body = b"\n".join(json.dumps(line).encode() for line in lines)
    async with workers[0].client.post(f"{SCHEDULES}:batch", data=body) as response:
        found = [json.loads(line)["result"] for line in (await response.read()).splitlines()]
    assert [(each["id"], each["outcome"]) for each in found] == [
        ("x", "scheduled"),
        ("x", "updated"),
        ("y", "scheduled"),
    ]
    shown = await workers[0].json(f"{SCHEDULES}/x")
    assert shown["payload"] == {"text": ""}


@pytest.fixture
async def read_in(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with each line of a batch that is read, by the number of the loop's round."""
    loop, rounds, read_in = asyncio.get_running_loop(), 0, list[int]()

    def count() -> None:
        nonlocal rounds
        rounds += 1
        loop.call_soon(count)

    read = Submission.of

    def noted(*arguments: Any) -> Submission:
        read_in.append(rounds)
        return read(*arguments)

    monkeypatch.setattr(Submission, "of", noted)
    count()
    return read_in


async def test_small_lines_after_a_large_one_are_read_without_a_round_of_the_loop_for_each(
    workers: Any, monkeypatch: pytest.MonkeyPatch, read_in: list[int]
) -> None:
    """Lanes may take milliseconds in every round."""
    monkeypatch.setattr(large_bodies, "SLICE_S", 60.0)  # however busy the machine is, they take little time
    lines = [json.dumps({**ONCE, "id": f"x{number}"}).encode() for number in range(80)]
    lines[2] += b" " * LARGE_BYTES
    body = b"\n".join(lines)
    async with workers[0].client.post(f"{SCHEDULES}:batch", data=body) as response:
        answers = [json.loads(line) for line in (await response.read()).splitlines()]
    assert [(each["line"], each["status"]) for each in answers] == [(n, 201) for n in range(1, 81)]
    assert len(read_in) == len(lines)
    assert read_in[-1] - read_in[3] == 0


async def test_others_have_the_loop_after_each_small_line_that_takes_long(
    workers: Any, monkeypatch: pytest.MonkeyPatch, read_in: list[int]
) -> None:
    monkeypatch.setattr(large_bodies, "SLICE_S", 0.0)  # all of them take long
    body = b"\n".join(json.dumps({**ONCE, "id": f"x{number}"}).encode() for number in range(80))
    async with workers[0].client.post(f"{SCHEDULES}:batch", data=body) as response:
        assert len((await response.read()).splitlines()) == 80
    assert len(read_in) == len(set(read_in)) == 80


class Clock:
    """The clocks of this thread, which only reading moves, and the rests (s) after it. No short ones are to be had."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rests: list[float] = []
        self._now = 0.0
        self.bodies = LargeBodies(Turns("large bodies", at_work=1, waiting=16, patience_s=60))
        sleep = asyncio.sleep

        async def rest(seconds: float) -> None:
            if seconds:
                self.rests.append(round(seconds, 6))
            await sleep(0)

        monkeypatch.setattr(slices, "perf_counter", lambda: self._now)
        monkeypatch.setattr(slices, "thread_time", lambda: self._now)
        monkeypatch.setattr(slices, "waits", lambda: 0)
        monkeypatch.setattr(Credit, "covers", lambda *_: False)
        monkeypatch.setattr(asyncio, "sleep", rest)

    async def read(self, body: bytes, seconds: float, bodies: LargeBodies | LinesOfBatch | None = None) -> None:
        def work() -> None:
            self._now += seconds

        await (bodies or self.bodies).read(body, work)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def test_others_have_the_loop_after_a_large_body_that_takes_long(clock: Clock) -> None:
    await clock.read(SMALL, 1.0)
    assert clock.rests == []
    await clock.read(LARGE, SLICE_S)
    assert clock.rests == [SHORT_REST * SLICE_S]


async def test_large_bodies_that_take_little_time_wait_for_nobody(clock: Clock) -> None:
    for _ in range(100):
        await clock.read(LARGE, SLICE_S / 10)
        await asyncio.sleep(0)
    assert clock.rests == []


async def test_many_of_them_in_one_round_of_the_loop_take_no_longer_than_one(clock: Clock) -> None:
    reading = [asyncio.create_task(clock.read(LARGE, 1.01 * SLICE_S / 4)) for _ in range(8)]
    await asyncio.sleep(0)
    assert [task.done() for task in reading] == [True] * 3 + [False] * 5
    assert clock.rests == [pytest.approx(SHORT_REST * 1.01 * SLICE_S)], "for all that was read in the round"
    await asyncio.gather(*reading)


async def test_others_have_the_loop_after_the_lines_of_a_batch_that_together_take_a_slice(clock: Clock) -> None:
    lines, others = LinesOfBatch(clock.bodies), LinesOfBatch(clock.bodies)
    for _ in range(80):
        await clock.read(SMALL, SLICE_S / 100, others)
    assert clock.rests == []
    for taken in (0.4, 0.4, 0.3, 0.6, 0.6, 1.5):
        await clock.read(SMALL, taken * SLICE_S, lines)
    assert clock.rests == [pytest.approx(SHORT_REST * part * SLICE_S) for part in (1.1, 1.2, 1.5)]
    await clock.read(LARGE, SLICE_S, lines)
    assert clock.rests[3:] == [SHORT_REST * SLICE_S]


async def test_as_many_large_bodies_wait_as_commands_do(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(monkeypatch, request_turns().bodies)
    names = [f"a{number}" for number in range(MOST_WAITING // 2)]
    for name in names:
        reading.begin(name, LARGE)
    for name in names:
        await reading.end(name)
    assert reading.begun == names
