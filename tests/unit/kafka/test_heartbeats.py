"""What a member of a group does about a coordinator that answers no heartbeats."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import ConnectionGroup
from aiokafka.errors import GroupAuthorizationFailedError

from light_scheduler.kafka import broker_silence, heartbeats
from light_scheduler.kafka.heartbeats import bound_heartbeats, check_coordination

NODE = 1


class Conn:
    """Takes the place of a connection."""

    is_closed = False

    def connected(self) -> bool:
        return not self.is_closed

    def close(self) -> None:
        self.is_closed = True


class Coordinator:
    """Takes the place of a member's view of its group."""

    coordinator_id, group_id = NODE, "group"

    def __init__(self, *, answers: bool) -> None:
        self._answers = answers
        self.is_dead = False

    async def _do_heartbeat(self) -> bool:
        if not self._answers:
            await asyncio.Event().wait()
        return True

    def coordinator_dead(self) -> None:
        self.is_dead = True


@pytest.mark.parametrize("answers", [True, False])
async def test_a_coordinator_that_answers_no_heartbeat_is_given_up(
    monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr(heartbeats, "HEARTBEAT_S", 0.05)
    monkeypatch.setattr(broker_silence, "STEP_S", 0.01)
    conn, coordinator = Conn(), Coordinator(answers=answers)
    client = SimpleNamespace(_conns={(NODE, ConnectionGroup.COORDINATION): conn})
    consumer: Any = SimpleNamespace(_coordinator=coordinator, _client=client)
    bound_heartbeats(consumer)
    assert await coordinator._do_heartbeat() is answers
    assert (coordinator.is_dead, conn.is_closed) == (not answers, not answers)


@pytest.mark.parametrize("former", [None, Conn])
async def test_the_connection_that_a_heartbeat_went_over_is_closed_and_not_one_that_has_taken_its_place(
    monkeypatch: pytest.MonkeyPatch, former: type[Conn] | None
) -> None:
    monkeypatch.setattr(heartbeats, "HEARTBEAT_S", 0.05)
    monkeypatch.setattr(broker_silence, "STEP_S", 0.01)
    place, coordinator, new = (NODE, ConnectionGroup.COORDINATION), Coordinator(answers=False), Conn()
    old = former and former()
    conns = {place: old} if old else {}
    consumer: Any = SimpleNamespace(_coordinator=coordinator, _client=SimpleNamespace(_conns=conns))
    bound_heartbeats(consumer)
    beating = asyncio.create_task(coordinator._do_heartbeat())
    await asyncio.sleep(0)
    conns[place] = new
    assert not await beating
    assert coordinator.is_dead
    assert (old and old.is_closed, new.is_closed) == ((True, False) if old else (None, True))


async def test_a_member_whose_part_in_the_group_has_failed_says_so() -> None:
    async def routine(error: Exception | None) -> None:
        if error is not None:
            raise error

    def consumer_of(task: asyncio.Task[None], pending: Exception | None = None) -> Any:
        return SimpleNamespace(_coordinator=SimpleNamespace(_coordination_task=task, _pending_exception=pending))

    failed, ended = (asyncio.create_task(routine(error)) for error in (AssertionError("a bug"), None))
    check_coordination(consumer_of(failed))  # it is at work
    with pytest.raises(GroupAuthorizationFailedError):
        check_coordination(consumer_of(failed, GroupAuthorizationFailedError("group")))
    await asyncio.wait([failed, ended])
    check_coordination(consumer_of(ended))
    with pytest.raises(AssertionError, match="a bug"):
        check_coordination(consumer_of(failed))
