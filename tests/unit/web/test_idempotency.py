"""Requests that are sent again with their idempotency key, to whichever worker."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from aiokafka.errors import KafkaError
from support.waiting import eventually

from light_scheduler.client import Receipt
from light_scheduler.client.channel import CONNECT_TIMEOUT_S
from light_scheduler.client.errors import NotAcknowledged
from light_scheduler.errors import BrokerError
from light_scheduler.model import Outcome, Result
from light_scheduler.web.commands.channel import MOST_WAITING
from light_scheduler.web.commands.idempotency import claims as idempotency_claims
from light_scheduler.web.commands.idempotency import late_commands
from light_scheduler.web.commands.idempotency import requests as idempotency
from light_scheduler.web.commands.send_parameters import LONGEST_WAIT_S
from light_scheduler.wire import encode_result, result_headers
from light_scheduler.wire.idempotency import CLAIM, SENT

NOW = 1_800_000_000_000
HOUR = 3_600_000
SCHEDULES = "/api/v1/tenants/default/schedules"
ONCE = {"trigger": {"at": NOW + 5 * HOUR}, "target": {"topic": "out"}}
IN_USE = "urn:light-scheduler:problem:idempotency-key-in-use"


async def send(worker: Any, body: Any, status: int, key: str = "k-1", query: str = "") -> Any:
    return await worker.ask("POST", SCHEDULES + query, status, body, headers={"Idempotency-Key": key})


def sent(workers: Any) -> int:
    return sum(len(worker.commands.seen) for worker in workers)


async def test_every_worker_gives_the_first_answer(cluster: Any, workers: Any) -> None:
    first = await send(workers[0], ONCE, 201)
    await workers[0].ask("DELETE", f"{SCHEDULES}/{first['id']}", 200)
    late = (await cluster.start([]))[-1]  # all it knows is what the topic has
    for worker in (*workers[:2], late):
        assert await send(worker, ONCE, 201) == first
    assert sent(workers) == 2, "one schedule and one cancel"
    assert (await send(workers[1], ONCE, 201, "k-2"))["id"] != first["id"]


async def test_the_key_does_not_change_what_a_command_means(workers: Any) -> None:
    made_up = await send(workers[0], ONCE, 201)
    assert UUID(made_up["id"]).version == 7
    for version, status in ((1, 201), (2, 200)):
        answer = await send(workers[0], {**ONCE, "id": "a"}, status, f"put-{version}")
        assert answer["version"] == version
    assert (await send(workers[0], {**ONCE, "id": "a", "on_conflict": "keep"}, 200, "keep"))["outcome"] == "kept"


async def test_a_key_without_an_id_is_the_id(workers: Any) -> None:
    body = {**ONCE, "key": "entity"}
    first = await send(workers[0], body, 201)
    assert (first["id"], first["version"]) == ("entity", 1)
    assert await send(workers[1], body, 201) == first
    assert (await send(workers[1], body, 200, "k-2"))["version"] == 2


def die_before_a_command(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a worker claim an id, and write no command with it."""
    write = worker.commands.write

    async def dies(make: Any, timeout: float) -> Any:
        if make(None).topic is None:
            raise BrokerError("the worker is killed here")
        return await write(make, timeout)

    monkeypatch.setattr(worker.commands, "write", dies)


async def test_a_claimed_id_stays_that_of_a_schedule_with_a_key(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {**ONCE, "key": "entity"}
    die_before_a_command(workers[0], monkeypatch)
    await send(workers[0], body, 503)
    (claim,) = cluster.idempotency.records
    cluster.idempotency.records[0] = claim._replace(value=claim.value.replace(b"entity", b"made-up"))
    cluster.clock.advance(120_001)
    assert (await send(workers[1], body, 201))["id"] == "made-up"


async def test_a_given_id_is_found_wherever_it_is(cluster: Any, workers: Any) -> None:
    cluster.put("a", partition=3)
    assert (await send(workers[0], {**ONCE, "id": "a"}, 200))["partition"] == 3


async def test_only_one_of_many_requests_at_one_time_is_carried_out(workers: Any) -> None:
    async def request(worker: Any) -> int:
        async with worker.client.post(SCHEDULES, json=ONCE, headers={"Idempotency-Key": "k"}) as response:
            await response.read()
            return response.status  # type: ignore[no-any-return]

    statuses = await asyncio.gather(*(request(worker) for worker in [*workers] * 5))
    assert sent(workers) == 1
    assert 201 in statuses
    assert set(statuses) <= {201, 409}
    assert await request(workers[1]) == 201


async def test_a_key_is_for_one_request_on_every_worker(workers: Any) -> None:
    await send(workers[0], {**ONCE, "id": "a"}, 201)
    for worker in workers:
        problem = await send(worker, {**ONCE, "id": "b"}, 422)
        assert problem["parameter"] == "Idempotency-Key"
        assert problem["type"].endswith("idempotency-key-reused")
    await workers[0].ask(
        "POST", "/api/v1/tenants/other/schedules", 201, ONCE, headers={"Idempotency-Key": "k-1"}
    )  # another tenant's key is another key


@pytest.mark.parametrize("again", [b'{"target": {"topic": "out"}, "id": "a"}', b'{"id":"a","target":{"topic":"out"}}'])
async def test_a_body_with_another_order_or_other_spaces_is_another_body(workers: Any, again: bytes) -> None:
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    for body, status in ((b'{"id": "a", "target": {"topic": "out"}}', 201), (again, 422)):
        async with workers[0].client.post(SCHEDULES, data=body, headers=headers) as response:
            assert response.status == status, await response.text()


@pytest.mark.parametrize(
    ("body", "status"),
    [({**ONCE, "payload": {"text": "x" * 1_001}}, 400), ({**ONCE, "id": "a", "expected_version": 7}, 409)],
)
async def test_what_the_scheduler_refuses_may_be_tried_again(workers: Any, body: Any, status: int) -> None:
    for worker in workers:
        assert (await send(worker, body, status))["result"]["outcome"] in ("rejected", "conflict")
    assert sent(workers) == 2


async def test_what_cannot_be_right_claims_nothing(workers: Any) -> None:
    await send(workers[0], {"trigger": {"cron": "x"}, "target": {"topic": "out"}, "payload": 5}, 400)
    await send(workers[0], ONCE, 201)


async def test_a_command_without_an_answer_yet_is_not_sent_twice(cluster: Any, workers: Any) -> None:
    workers[0].commands.is_held = True
    problem = await send(workers[0], ONCE, 504, query="?timeout=50ms")
    id = problem["sent"]["id"]
    cluster.clock.advance(HOUR // 2)
    for worker in workers:
        assert (await send(worker, ONCE, 409, query="?timeout=50ms"))["type"] == IN_USE
        assert (await send(worker, ONCE, 202, query="?wait=false"))["id"] == id
    assert sent(workers) == 0

    # Its result comes although nobody waits for it any more.
    request_id = dict(cluster.idempotency.records[0].headers)[CLAIM]
    result = Result("schedule", "default", id, Outcome.SCHEDULED, 1)
    cluster.idempotency.add(b"k", encode_result(result), result_headers(request_id))
    for worker in workers:
        await worker.json("/live")  # a turn of the loop: it is read beside requests
        assert (await send(worker, ONCE, 201))["id"] == id


async def test_a_worker_that_has_not_read_the_answer_of_another_yet_waits_for_it(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "BEHIND_S", 60.0)
    workers[0].commands.is_held = True
    id = (await send(workers[0], ONCE, 504, query="?timeout=50ms"))["sent"]["id"]
    asked = asyncio.create_task(send(workers[1], ONCE, 201))
    assert await asyncio.wait([asked], timeout=0.1) == (set(), {asked})
    request_id = dict(cluster.idempotency.records[0].headers)[CLAIM]
    result = Result("schedule", "default", id, Outcome.SCHEDULED, 1)
    cluster.idempotency.add(b"k", encode_result(result), result_headers(request_id))
    assert (await asked)["id"] == id


async def test_who_does_not_wait_gets_the_same_receipt(workers: Any) -> None:
    receipt = await send(workers[0], ONCE, 202, query="?wait=false")
    assert await send(workers[1], ONCE, 202, query="?wait=false") == receipt
    assert (await send(workers[1], ONCE, 201))["id"] == receipt["id"]
    assert sent(workers) == 1


async def test_a_request_whose_worker_is_gone_is_carried_out_by_the_next_under_the_same_id(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_before_a_command(workers[0], monkeypatch)
    await send(workers[0], ONCE, 503)
    claimed = cluster.idempotency.records[0].value.decode()
    cluster.clock.advance(120_000)
    assert (await send(workers[1], ONCE, 409, query="?timeout=50ms"))["type"] == IN_USE
    cluster.clock.advance(1)
    answer = await send(workers[1], ONCE, 201)
    assert answer["id"] in claimed
    monkeypatch.undo()
    assert await send(workers[0], ONCE, 201) == answer
    assert sent(workers) == 1


def acknowledge_late(worker: Any, monkeypatch: pytest.MonkeyPatch) -> asyncio.Future[Any]:
    """Have a worker's requests give up a command that is acknowledged, or fails, as the future says."""
    write, acknowledged = worker.commands.write, asyncio.get_running_loop().create_future()

    async def gives_up(make: Any, timeout: float) -> Any:
        if make(None).topic is None:
            raise NotAcknowledged("the broker did not answer in time", acknowledged)
        return await write(make, timeout)

    monkeypatch.setattr(worker.commands, "write", gives_up)
    return acknowledged


async def test_a_command_that_may_still_be_sent_keeps_its_key_and_is_recorded_once_it_was(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_commands, "RENEW_S", 0.01)
    monkeypatch.setattr(idempotency, "BEHIND_S", 60.0)
    acknowledged = acknowledge_late(workers[0], monkeypatch)
    await send(workers[0], ONCE, 503)
    records = cluster.idempotency.records
    for _ in range(3):
        cluster.clock.advance(100_000)
        await eventually(lambda: records[-1].timestamp == cluster.clock.now(), what="a claim that is renewed")
        assert (await send(workers[1], ONCE, 409, query="?timeout=50ms"))["type"] == IN_USE
    acknowledged.set_result(Receipt("default", "x", 3, 41))
    receipt = await send(workers[1], ONCE, 202, query="?wait=false")
    assert (receipt["partition"], receipt["offset"]) == (3, 41)
    cluster.clock.advance(120_001)
    assert await send(workers[0], ONCE, 202, query="?wait=false") == receipt
    assert sent(workers) == 0


async def test_a_command_that_the_producer_gives_up_frees_its_key(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    acknowledged = acknowledge_late(workers[0], monkeypatch)
    await send(workers[0], ONCE, 503)
    acknowledged.set_exception(KafkaError("the record is too old"))
    await eventually(lambda: "was not sent: KafkaError: the record is too old" in caplog.text)
    cluster.clock.advance(120_000)
    assert (await send(workers[1], ONCE, 409, query="?timeout=50ms"))["type"] == IN_USE
    cluster.clock.advance(1)
    await send(workers[1], ONCE, 201)
    assert sent(workers) == 1


async def test_a_key_and_its_command_have_the_time_of_one_request_together(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, given = workers[0].commands.write, list[float]()

    async def noted(make: Any, timeout: float) -> Any:
        given.append(timeout)
        return await write(make, timeout)

    monkeypatch.setattr(workers[0].commands, "write", noted)
    await send(workers[0], ONCE, 201, query="?timeout=40s")
    claim_s, command_s, _ = given
    assert claim_s == 40
    assert 0 < command_s < 40


def test_a_request_and_its_claims_renewal_are_over_before_the_claim_is_taken_for_abandoned() -> None:
    look_ups_s = 4 * CONNECT_TIMEOUT_S  # of the topic, and of a partition that it may have got since
    longest_s = LONGEST_WAIT_S + look_ups_s + late_commands.RENEW_S
    assert longest_s * 1_000 < idempotency_claims.ABANDONED_MS


async def test_a_mark_that_cannot_be_written_costs_nobody_the_answer(
    workers: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write, commands = workers[0].commands.write, workers[0].commands

    async def loses_marks(make: Any, timeout: float) -> Any:
        if any(name == SENT for name, _ in make(None).headers):
            raise BrokerError("gone for a moment")
        return await write(make, timeout)

    monkeypatch.setattr(commands, "write", loses_marks)
    answer = await send(workers[0], ONCE, 201)
    assert "gone for a moment" in caplog.text
    caplog.clear()
    assert await send(workers[1], ONCE, 201) == answer


@pytest.mark.parametrize("writes", [1, 2], ids=["claim", "command"])
async def test_a_request_is_not_refused_once_it_has_begun_to_send(
    workers: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, writes: int
) -> None:
    write, commands, written = workers[0].commands.write, workers[0].commands, list[str]()

    async def others_come(make: Any, timeout: float) -> Any:
        receipt = await write(make, timeout)
        written.append(receipt.id)
        if len(written) == writes:
            commands.under_way.take(frozenset(("other",)), MOST_WAITING)
        return receipt

    monkeypatch.setattr(commands, "write", others_come)
    await send(workers[0], ONCE, 201)
    assert len(written) == 3, "the claim, the command, and that it was sent"
    problem = await send(workers[0], ONCE, 429, "k-2")
    assert "was not sent" in problem["detail"]
    assert len(written) == 3
    assert not caplog.records


async def test_a_worker_that_has_not_read_that_a_command_was_sent_waits_for_it(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "BEHIND_S", 60.0)
    commands = workers[0].commands
    write, commands.is_held, lost = commands.write, True, list[Any]()

    async def loses_marks(make: Any, timeout: float) -> Any:
        if any(name == SENT for name, _ in make(None).headers):
            lost.append(make(None))
            raise BrokerError("gone for a moment")
        return await write(make, timeout)

    monkeypatch.setattr(commands, "write", loses_marks)
    receipt = await send(workers[0], ONCE, 202, query="?wait=false")
    asked = asyncio.create_task(send(workers[1], ONCE, 202, query="?wait=false"))
    assert await asyncio.wait([asked], timeout=0.1) == (set(), {asked})
    (mark,) = lost
    cluster.idempotency.add(mark.key, mark.value, mark.headers)
    assert await asked == receipt


async def test_a_key_is_kept_for_an_hour(cluster: Any, workers: Any) -> None:
    first = await send(workers[0], ONCE, 201)
    cluster.clock.advance(HOUR - 1)
    assert await send(workers[1], ONCE, 201) == first
    cluster.clock.advance(1)
    assert (await send(workers[1], ONCE, 201))["id"] != first["id"]


async def test_more_keys_than_are_kept_are_refused_and_none_is_forgotten(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency_claims, "MOST_KEYS", 4)
    workers = await cluster.start([0, 2], [1, 3])
    first = [await send(workers[0], ONCE, 201, f"k-{number}") for number in range(2)]
    problem = await send(workers[0], ONCE, 429, "one more")
    assert problem["type"].endswith("too-many-requests")
    assert [await send(workers[0], ONCE, 201, f"k-{number}") for number in range(2)] == first


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_key_that_is_none_is_refused(workers: Any, key: str) -> None:
    assert (await send(workers[0], ONCE, 400, key))["parameter"] == "Idempotency-Key"


async def test_a_topic_that_cannot_be_read_any_more_is_read_from_the_beginning(cluster: Any, workers: Any) -> None:
    first = await send(workers[0], ONCE, 201)
    for number in range(2):
        cluster.idempotency.failure = BrokerError("gone")
        cluster.idempotency.add(None, None, [])
        await workers[0].json("/live")
        cluster.idempotency.failure = None
        assert await send(workers[0], ONCE, 201) == first, number
