"""What one tenant does over HTTP leaves room for the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.holders import request_of
from support.waiting import eventually

from light_scheduler.access import ANYONE, Identity, Role
from light_scheduler.model import Outcome, Result
from light_scheduler.settings import Settings
from light_scheduler.web import events, request_limits
from light_scheduler.web.commands import channel as command_channel
from light_scheduler.web.commands.channel import CommandChannel
from light_scheduler.web.commands.errors import TooManyWaitingError
from light_scheduler.web.commands.idempotency import claims as idempotency_claims
from light_scheduler.web.commands.idempotency import requests as idempotency
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.limits import bodies
from light_scheduler.web.limits.shares import HOLDER, Holder, Shares, holder_for
from light_scheduler.web.limits.turns import Turns
from light_scheduler.web.looking_back import look_back
from light_scheduler.wire.idempotency import ClaimMade

from .test_dead_letters import add_letter

NOW = 1_800_000_000_000
ONCE = {"trigger": {"at": NOW + 3_600_000}, "target": {"topic": "out"}}


def schedules(tenant: str) -> str:
    return f"/api/v1/tenants/{tenant}/schedules"


@pytest.mark.parametrize(
    ("identity", "tenant", "holder"),
    [
        (ANYONE, "acme", frozenset({"acme"})),
        (Identity("one", Role.READ, frozenset({"acme", "shop"})), "acme", frozenset({"acme"})),
        (Identity("one", Role.READ, frozenset({"acme"})), None, frozenset({"acme"})),
        (Identity("one", Role.READ), None, "one"),
    ],
)
def test_a_request_is_for_its_tenant_or_else_for_those_of_its_token(
    identity: Identity, tenant: str | None, holder: Holder
) -> None:
    assert holder_for(identity, tenant) == holder


def test_one_holder_has_half_and_each_of_two_a_third() -> None:
    shares = Shares(12)
    for holder, most in (("a", 6), ("b", 3), ("c", 2)):
        taken = 0
        while shares.has_room(holder):
            shares.take(holder)
            taken += 1
        assert taken == most


def test_of_three_of_the_largest_bodies_one_holder_has_two_and_another_then_one() -> None:
    largest = 100
    shares = Shares(3 * largest)
    for holder, most in (("a", 2), ("b", 1), ("c", 0)):
        taken = 0
        while shares.has_room(holder, largest):
            shares.take(holder, largest)
            taken += 1
        assert taken == most


@given(st.integers(1, 64), st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.booleans()), max_size=60))
def test_nobody_comes_to_hold_more_than_was_left_and_one_with_nothing_finds_what_is_left(
    total: int, steps: list[tuple[str, int, bool]]
) -> None:
    shares, held = Shares(total), dict.fromkeys("abc", 0)
    for holder, amount, is_taken in steps:
        left = total - sum(held.values())
        if is_taken and shares.has_room(holder, amount):
            shares.take(holder, amount)
            held[holder] += amount
            assert held[holder] <= left
        elif not is_taken and held[holder] >= amount:
            shares.give_back(holder, amount)
            held[holder] -= amount
        assert sum(held.values()) <= total
        assert shares.has_room("new") == (sum(held.values()) < total)


async def test_a_turn_goes_to_the_holder_that_had_one_longest_ago() -> None:
    turns, order = Turns("requests", at_work=1, waiting=16, patience_s=60), []

    async def work(holder: str) -> None:
        with request_of(holder):
            async with turns.turn():
                order.append(holder)
                await asyncio.sleep(0)

    asked = [asyncio.create_task(work(holder)) for holder in "aaaabc"]
    await asyncio.gather(*asked)
    assert order == ["a", "b", "c", "a", "a", "a"]


async def test_a_holder_leaves_turns_and_places_to_others_whatever_it_does() -> None:
    turns = Turns("requests", at_work=4, waiting=4, patience_s=60)
    at_work: list[str] = []

    async def hold(holder: str) -> None:
        with request_of(holder):
            async with turns.turn():
                at_work.append(holder)
                await asyncio.Event().wait()

    held = [asyncio.create_task(hold("a")) for _ in range(4)]
    await asyncio.sleep(0)
    assert at_work == ["a", "a"]
    held.append(asyncio.create_task(hold("b")))
    await asyncio.sleep(0)
    assert at_work == ["a", "a", "b"]
    for task in held:
        task.cancel()
    await asyncio.wait(held)
    with request_of("c"):
        async with turns.turn(), turns.turn():
            pass


async def test_one_that_leaves_as_its_turn_comes_gives_it_to_the_next() -> None:
    turns = Turns("requests", at_work=1, waiting=16, patience_s=60)
    first = turns.turn()
    await first.__aenter__()
    waiting = [asyncio.create_task(turns.turn().__aenter__()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await first.__aexit__(None, None, None)  # the turn is that of the first who waits, who leaves now
    waiting[0].cancel()
    await asyncio.wait(waiting[:2])
    assert all(task.cancelled() for task in waiting[:2])
    async with asyncio.timeout(60):
        await waiting[2]


async def test_commands_of_one_tenant_that_wait_leave_room_for_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_channel, "MOST_WAITING", 8)

    class Waiting:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        async def __aenter__(self) -> Any:
            return self

        async def __aexit__(self, *_: object) -> None: ...

        async def ask(self, make: Any, timeout: float) -> Any:
            await asyncio.Event().wait()

        async def send(self, command: Any, timeout: float) -> Any:
            return command

    monkeypatch.setattr(command_channel, "Channel", Waiting)
    channel = CommandChannel(Settings())

    sent: Any = object()

    def make(reply_to: Any) -> Any:
        return sent

    with request_of("a"):
        asked = [asyncio.create_task(channel.ask(make, 60)) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyWaitingError):
            await channel.send(make, 60)
    with request_of("b"):
        assert await channel.send(make, 60) is sent
    for task in asked:
        task.cancel()
    await asyncio.wait(asked)
    await channel.close()


@pytest.fixture
def asking() -> Iterator[list[asyncio.Task[Any]]]:
    """Requests that go on until the test ends."""
    tasks: list[asyncio.Task[Any]] = []
    yield tasks
    for task in tasks:
        task.cancel()


async def test_batches_of_one_tenant_that_do_not_end_leave_room_for_those_of_others(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, asking: list[asyncio.Task[Any]]
) -> None:
    monkeypatch.setattr(request_limits, "BATCHES", 4)
    monkeypatch.setattr(request_limits, "BATCHES_WAITING", 4)
    (worker,) = await cluster.start([0, 1])
    ask, waiting = worker.commands.ask, []

    async def wait(make: Any, timeout: float) -> Any:
        if make(None).tenant == "a":
            waiting.append(make)
            await asyncio.Event().wait()
        return await ask(make, timeout)

    worker.commands.ask = wait
    asking += [asyncio.create_task(worker.client.post(f"{schedules('a')}:batch", json=ONCE)) for _ in range(20)]
    await eventually(lambda: len(waiting) == 2)
    for _ in range(2):
        async with worker.client.post(f"{schedules('b')}:batch", json=ONCE) as response:
            assert (await response.json(content_type=None))["status"] == 201
    assert len(waiting) == 2


async def test_searches_of_one_tenant_that_last_leave_room_for_those_of_others(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, asking: list[asyncio.Task[Any]]
) -> None:
    monkeypatch.setattr(request_limits, "SEARCHES", 4)
    monkeypatch.setattr(request_limits, "SEARCHES_WAITING", 4)
    (worker,) = await cluster.start([0, 1])
    waiting = []

    async def wait(*arguments: Any, **options: Any) -> Any:
        if HOLDER.get() == frozenset({"a"}):
            waiting.append(arguments)
            await asyncio.Event().wait()
        return await look_back(*arguments, **options)

    monkeypatch.setattr("light_scheduler.web.records.history.look_back", wait)
    asking += [asyncio.create_task(worker.client.get(f"{schedules('a')}/x/history")) for _ in range(20)]
    await eventually(lambda: len(waiting) == 2)
    assert (await worker.json(f"{schedules('b')}/x/history"))["events"] == []


async def test_streams_of_one_token_leave_room_for_those_of_others(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST_STREAMS", 4)
    (worker,) = await cluster.start([0, 1])
    tokens = {tenant: await cluster.token("read", tenant) for tenant in "ab"}

    async def opened(tenant: str) -> Any:
        return await worker.client.get("/api/v1/events", headers={"Authorization": f"Bearer {tokens[tenant]}"})

    of_a = [await opened("a") for _ in range(4)]
    assert [response.status for response in of_a] == [200, 200, 429, 429]
    of_b = await opened("b")
    assert of_b.status == 200
    for response in (*of_a, of_b):
        response.close()


async def test_idempotency_keys_of_one_tenant_leave_room_for_those_of_others(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency_claims, "MOST_KEYS", 4)
    workers = await cluster.start([0, 1], [2, 3])

    async def post(tenant: str, number: int) -> int:
        key = {"Idempotency-Key": f"k-{number}"}
        async with workers[number % 2].client.post(schedules(tenant), json=ONCE, headers=key) as response:
            return int(response.status)

    assert [await post("a", number) for number in range(4)] == [201, 201, 429, 429]
    assert await post("b", 0) == 201
    cluster.clock.advance(3_600_000)
    assert await post("b", 1) == 201
    assert [await post("a", number) for number in range(2)] == [201, 201], "what has expired counts no more"


@pytest.mark.parametrize(("expired", "has_room"), [("a", True), ("b", False)])
def test_with_its_share_of_idempotency_keys_a_tenant_has_room_only_for_those_of_its_own_that_expired(
    monkeypatch: pytest.MonkeyPatch, expired: str, has_room: bool
) -> None:
    monkeypatch.setattr(idempotency_claims, "MOST_KEYS", 10)
    claims = idempotency_claims.Claims()
    for number, tenant in enumerate([expired, *"aaaa", *"a"[expired == "a" :]]):
        claims.apply(f"{number}:0", ClaimMade("", "id", tenant), NOW if number else NOW - 1)
    assert not claims.has_room("a", NOW + idempotency_claims.KEPT_MS - 1 - idempotency_claims.COUNTED_FOR_MS)
    assert claims.has_room("a", NOW + idempotency_claims.KEPT_MS - 1) == has_room
    assert claims.has_room("c", NOW + idempotency_claims.KEPT_MS - 1)


async def test_dead_letters_that_one_tenant_redrives_leave_room_for_those_of_others(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, asking: list[asyncio.Task[Any]]
) -> None:
    monkeypatch.setattr(request_limits, "PATIENCE_S", 60.0)
    monkeypatch.setattr(request_limits, "WORK_PATIENCE_S", 60.0)
    turns = request_limits.request_turns()
    monkeypatch.setattr("light_scheduler.web.handlers.request_turns", lambda: turns)
    (worker,) = await cluster.start([0, 1])
    served: list[Holder] = []
    gate = asyncio.Semaphore(0)

    async def firing(*_: Any) -> Any:
        served.append(HOLDER.get())
        await gate.acquire()
        raise ProblemError(HTTPStatus.CONFLICT, "It is not sent in this test.")

    monkeypatch.setattr("light_scheduler.web.records.redrive.Redrive._firing", firing)
    letters = {tenant: add_letter(cluster, "missed", tenant=tenant) for tenant in "ab"}
    tokens = {tenant: await cluster.token("write", tenant) for tenant in "ab"}

    def redrive(tenant: str) -> asyncio.Task[Any]:
        headers = {"Authorization": f"Bearer {tokens[tenant]}"}
        path = f"/api/v1/dead-letters/{letters[tenant]}/redrive"
        return asyncio.create_task(worker.client.post(path, headers=headers))

    of_a = [redrive("a") for _ in range(request_limits.REDRIVES_WAITING + 2)]
    asking += of_a
    await eventually(lambda: any(each.done() and each.result().status == 429 for each in of_a))
    asking.append(of_b := redrive("b"))
    a, b = (frozenset({tenant}) for tenant in "ab")
    await eventually(lambda: b in turns.redrives._waiting)
    gate.release()
    gate.release()
    assert (await of_b).status == 409
    assert served[:2] == [a, b]


async def test_requests_of_one_tenant_that_wait_for_earlier_ones_leave_room_for_those_of_others(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, asking: list[asyncio.Task[Any]]
) -> None:
    monkeypatch.setattr(idempotency, "MOST_WAITING", 4)
    (worker,) = await cluster.start([0, 1])
    worker.commands.is_held = True
    paths = [(schedules("a"), {"Idempotency-Key": f"k-{number}"}) for number in range(2)]
    asking += [asyncio.create_task(worker.client.post(path, json=ONCE, headers=key)) for path, key in paths]
    await eventually(lambda: len(cluster.idempotency.records) == 4)
    for tenant, status in (("a", 429), ("b", 202)):
        path = f"{schedules(tenant)}?wait=false"
        await worker.ask("POST", path, status, ONCE, headers={"Idempotency-Key": "k"})


async def test_bodies_of_one_tenant_that_do_not_end_leave_room_for_those_of_others(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, asking: list[asyncio.Task[Any]]
) -> None:
    monkeypatch.setattr(bodies, "MOST_BYTES", 0)  # so it is three times the largest
    (worker,) = await cluster.start([0, 1])
    ended = asyncio.Event()

    async def body(is_ended: asyncio.Event) -> AsyncIterator[bytes]:
        """Without a size, so it counts as the largest."""
        yield json.dumps(ONCE).encode()
        await is_ended.wait()

    asking += [asyncio.create_task(worker.client.post(schedules("a"), data=body(ended))) for _ in range(20)]
    await eventually(lambda: any(task.done() for task in asking))
    assert {task.result().status for task in asking if task.done()} == {429}
    at_once = asyncio.Event()
    at_once.set()
    async with worker.client.post(schedules("b"), data=body(at_once)) as response:
        assert response.status == 201


def test_a_renewal_that_comes_after_a_rejection_claims_nothing() -> None:
    claims = idempotency_claims.Claims()
    made = ClaimMade("f", "id", "a")
    claims.apply("key:1", made, NOW)
    claims.apply("key:1", Result("schedule", "a", "id", Outcome.REJECTED), NOW + 1)
    claims.apply("key:1", made, NOW + 2)
    assert claims.get("key", NOW + 3) is None
    claims.apply("key:2", made, NOW + 4)
    assert (found := claims.get("key", NOW + 5)) is not None
    assert found.owner == "key:2"


def test_a_renewal_of_a_claim_that_was_taken_over_and_rejected_claims_nothing_either() -> None:
    claims, made = idempotency_claims.Claims(), ClaimMade("f", "id", "a")
    claims.apply("key:1", made, NOW)
    claims.apply("key:2", made, later := NOW + idempotency_claims.ABANDONED_MS + 1)
    claims.apply("key:1", Result("schedule", "a", "id", Outcome.REJECTED), later)
    for owner in ("key:1", "key:2"):
        claims.apply(owner, made, later + 1)
        assert claims.get("key", later + 1) is None
