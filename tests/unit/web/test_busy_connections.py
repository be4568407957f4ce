"""Whose requests are refused when most of a worker's connections are busy."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import pytest
from support.waiting import eventually

from light_scheduler.access import Identity, Role
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.limits import busy_connections
from light_scheduler.web.limits.busy_connections import BusyConnections
from light_scheduler.web.limits.shares import holder_for
from light_scheduler.web.server import listener

MOST = 1_000


def of(*tenants: str, name: str = "token") -> Identity:
    return Identity(name, Role.WRITE, frozenset(tenants) if tenants else None)


ADMIN, OTHER_ADMIN = of(name="ops"), of(name="deploy")


def fill(busy: BusyConnections, identity: Identity, most: int = MOST) -> int:
    """Take as many connections as there is room for; return how many."""
    request: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    holder, taken = holder_for(identity, None), 0
    while taken < most and busy.has_room(holder):
        busy.hold(identity, request)
        taken += 1
    return taken


@pytest.mark.parametrize(
    ("takers", "taken"),
    [
        ([of("a")], [750]),
        # Each has half of what the one before has left.
        ([of("a"), of("b"), of("c"), of("d")], [750, 94, 47, 24]),
        ([of("a"), of("a"), of("a", name="another token")], [750, 0, 0]),
        ([of("a"), of("a", "b")], [750, 94]),
        ([ADMIN, OTHER_ADMIN, ADMIN], [750, 94, 0]),
        ([of("a"), *[of(f"t{number}") for number in range(7)]], [750, 94, 47, 24, 12, 6, 3, 1]),
    ],
)
async def test_whoever_takes_all_he_can_leaves_room_for_the_next(takers: list[Identity], taken: list[int]) -> None:
    busy = BusyConnections(MOST)
    assert [fill(busy, taker) for taker in takers] == taken
    assert busy.count < MOST


@pytest.mark.parametrize(
    ("others", "taken"), [([], 750), ([100], 650), ([400], 350), ([250, 250, 249], 95), ([187, 187, 187], 189)]
)
async def test_a_tenant_is_refused_only_beyond_three_quarters_and_what_is_left(others: list[int], taken: int) -> None:
    busy = BusyConnections(MOST)
    for number, most in enumerate(others):
        assert fill(busy, of(f"t{number}"), most) == most
    assert fill(busy, of("a")) == taken


@pytest.mark.parametrize("most", [2, 3, 8, 16, 256])
async def test_however_few_connections_there_are_two_tenants_cannot_take_all(most: int) -> None:
    busy = BusyConnections(most)
    assert 0 < fill(busy, of("a")) + fill(busy, of("b")) < most


@pytest.mark.parametrize("ends", ["done", "cancelled", "failed"])
async def test_a_connection_is_counted_until_its_request_is_done_however_it_ends(ends: str) -> None:
    busy, let_go = BusyConnections(MOST), asyncio.Event()

    async def work() -> None:
        current: Any = asyncio.current_task()
        busy.hold(of("a"), current)
        await let_go.wait()
        if ends == "failed":
            raise ValueError

    request = asyncio.create_task(work())
    await eventually(lambda: busy.count == 1)
    if ends == "cancelled":
        request.cancel()
    let_go.set()
    await asyncio.gather(request, return_exceptions=True)
    await eventually(lambda: busy.count == 0)


async def test_refusals_are_counted_for_the_first_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy_connections, "MOST_TENANTS", 3)
    busy = BusyConnections(4)
    assert fill(busy, of("full")) == 3
    for identity in (of("a"), of("c", "b"), ADMIN, of("a"), of("d"), OTHER_ADMIN):
        with pytest.raises(ProblemError, match="busy") as refused:
            busy.hold(identity, asyncio.get_running_loop().create_future())
        assert refused.value.problem.status == HTTPStatus.TOO_MANY_REQUESTS
        assert refused.value.headers == {"Retry-After": "1"}
    assert (busy.refused, busy.others_refused) == ({"a": 2, "b,c": 1, "*": 2}, 1)


async def test_workers_and_metrics_are_answered_when_a_tenant_is_refused(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST_CONNECTIONS", 8)
    here, elsewhere = await cluster.start([0], [1])
    ops, greedy, other = [await cluster.token(role, *of) for role, *of in (["admin"], ["write", "a"], ["write", "b"])]
    unfinished = [asyncio.Event() for _ in range(6)]

    async def body(ends: asyncio.Event) -> Any:
        yield b"{"
        await ends.wait()
        yield b"}"

    def headers(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    async def send(ends: asyncio.Event) -> int:
        status = 429
        while status == 429:  # as long as a question for metrics has the last place
            path = "/api/v1/tenants/a/schedules"
            async with here.client.post(path, data=body(ends), headers=headers(greedy)) as response:
                status = response.status
        return status

    async def busy() -> float:
        async with here.client.get("/metrics", headers=headers(ops)) as response:
            assert response.status == 200
            lines = (await response.text()).splitlines()
        (value,) = (line.split()[1] for line in lines if line.startswith("light_scheduler_busy_connections "))
        return float(value)

    async def has(count: int) -> bool:
        return await busy() == count + 1  # with that of the question

    slow = [asyncio.create_task(send(ends)) for ends in unfinished]
    await eventually(lambda: has(6))
    refused = await here.ask("GET", "/api/v1/tenants/a/schedules", 429, headers=headers(greedy))
    assert refused["type"] == "urn:light-scheduler:problem:too-many-requests"
    await here.ask("GET", "/api/v1/tenants/b/schedules", 200, headers=headers(other))
    await elsewhere.ask("GET", "/api/v1/tenants/a/schedules", 200, headers=headers(greedy))
    slow[0].cancel()
    await eventually(lambda: has(5))
    for ends in unfinished:
        ends.set()
    assert await asyncio.gather(*slow[1:]) == [400] * 5
    await eventually(lambda: has(0))
