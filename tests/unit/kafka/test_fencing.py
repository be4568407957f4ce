"""Which of its transactional ids a lane works under, and which ids a probe uses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Any

import pytest
from aiokafka.errors import NotCoordinatorError

from light_scheduler.errors import LaneError
from light_scheduler.kafka import fencing as module
from light_scheduler.kafka.fencing import SPARES, Fencing, ids_of
from light_scheduler.kafka.target_probe import SLOTS, Prober
from light_scheduler.model.place import Place

IDS = ids_of("app-lane-0")


class Ids:
    """Transactional ids, some of which are stuck; `fenced` are those that were fenced, or tried."""

    def __init__(self, stuck: Collection[str] = ()) -> None:
        self.stuck = stuck
        self.fenced: list[str] = []

    async def fence(self, transactional_id: str) -> bool:
        self.fenced.append(transactional_id)
        return transactional_id not in self.stuck


def test_a_lane_has_an_id_of_its_name_and_spares_that_no_other_lane_has() -> None:
    assert IDS[0] == "app-lane-0"
    assert len(IDS) == 1 + SPARES
    assert len({*ids_of("app-lane-1"), *ids_of("app-lane-11"), *IDS}) == 3 * len(IDS)


@pytest.mark.parametrize(
    ("stuck", "chosen"),
    [
        (set(), IDS[0]),
        ({IDS[0]}, IDS[1]),
        ({IDS[1]}, IDS[0]),
        ({IDS[0], IDS[1]}, IDS[2]),
        (set(IDS[:-1]), IDS[-1]),
    ],
)
async def test_a_lane_works_under_the_first_id_that_is_not_stuck_and_fences_them_all(
    stuck: set[str], chosen: str
) -> None:
    ids = Ids(stuck)
    assert await Fencing(IDS[0], ids.fence).take_over() == chosen
    assert sorted(ids.fenced) == sorted(IDS), "an owner before may work under any of them"


async def test_the_ids_that_are_stuck_are_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        await Fencing(IDS[0], Ids().fence).take_over()
        assert not caplog.records
        await Fencing(IDS[0], Ids({IDS[1]}).fence).take_over()
    assert IDS[1] in caplog.text
    assert f"{IDS[2]}" not in caplog.text


async def test_a_lane_whose_ids_are_all_stuck_fails() -> None:
    with pytest.raises(LaneError, match="app-lane-0"):
        await Fencing(IDS[0], Ids(IDS).fence).take_over()


@pytest.mark.parametrize("failing", IDS)
async def test_an_id_whose_coordinator_fails_is_no_better_than_one_that_is_stuck(
    failing: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fence(transactional_id: str) -> bool:
        if transactional_id == failing:
            raise NotCoordinatorError
        return True

    fencing = Fencing(IDS[0], fence)
    assert await fencing.take_over() == (IDS[1] if failing == IDS[0] else IDS[0])
    assert fencing.found_stuck
    assert f"{failing} ({NotCoordinatorError()!r})" in caplog.text
    await fencing.close()


async def test_an_id_whose_coordinator_does_not_answer_is_given_up_once_another_one_is_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "OTHERS_S", 0.01)
    given_up = asyncio.Event()

    async def fence(transactional_id: str) -> bool:
        if transactional_id == IDS[0]:
            try:
                await asyncio.Event().wait()
            finally:
                given_up.set()
        return True

    fencing = Fencing(IDS[0], fence)
    assert await fencing.take_over() == IDS[1]
    assert given_up.is_set(), "an answer that comes later fences nobody"
    await fencing.close()


async def test_a_lane_of_whose_ids_none_can_be_fenced_fails_with_the_reason() -> None:
    async def fence(transactional_id: str) -> bool:
        if transactional_id == IDS[2]:
            raise NotCoordinatorError
        return False

    with pytest.raises(NotCoordinatorError):
        await Fencing(IDS[0], fence).take_over()


async def test_an_id_that_gets_free_is_fenced_though_another_one_stays_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_REFENCE_S", 0.001)
    ids = Ids({IDS[0], IDS[1]})
    freed = asyncio.Event()

    async def fence(transactional_id: str) -> bool:
        if transactional_id == IDS[0] and len(ids.fenced) > len(IDS):
            await asyncio.Event().wait()  # it stays stuck, and its coordinator is in no hurry to say so
        if await ids.fence(transactional_id) and transactional_id == IDS[1]:
            freed.set()
        return transactional_id not in ids.stuck

    fencing = Fencing(IDS[0], fence)
    assert await fencing.take_over() == IDS[2]
    ids.stuck = {IDS[0]}
    async with asyncio.timeout(60):
        await freed.wait()
    await fencing.close()


# -- probes -----------------------------------------------------------------------------------------------------------


class Marks:
    """Takes the place of a coordinator: a probe ends when `go` is set, with `error` if there is one."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.error: Exception | None = None
        self.at_work: list[tuple[str, Place]] = []
        self.most = 0

    async def mark(self, transactional_id: str, place: Place) -> None:
        assert transactional_id not in [used for used, _ in self.at_work], "an id has one transaction at a time"
        self.at_work.append((transactional_id, place))
        self.most = max(self.most, len(self.at_work))
        await self.go.wait()
        self.at_work.remove((transactional_id, place))
        if self.error is not None:
            raise self.error


def prober(marks: Any, prefix: str = "app") -> Prober:
    return Prober(prefix, marks)


async def everything_else() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_probes_share_a_few_ids_and_each_has_one_to_itself() -> None:
    marks = Marks()
    probe = prober(marks)
    places = [("t", partition) for partition in range(3 * SLOTS)]
    tasks = [asyncio.create_task(probe(place)) for place in places]
    await everything_else()
    assert [place for _, place in marks.at_work] == places[:SLOTS]
    marks.go.set()
    await asyncio.gather(*tasks)
    assert marks.most == SLOTS


@pytest.mark.parametrize("ends", ["error", "cancel"])
async def test_an_id_is_free_again_however_its_probe_ends(ends: str) -> None:
    marks = Marks()
    probe = prober(marks)
    marks.error = LaneError("no marker")
    tasks = [asyncio.create_task(probe(("t", partition))) for partition in range(SLOTS)]
    await everything_else()
    if ends == "cancel":
        for task in tasks:
            task.cancel()
    else:
        marks.go.set()
    assert {type(error) for error in await asyncio.gather(*tasks, return_exceptions=True)} == {
        asyncio.CancelledError if ends == "cancel" else LaneError
    }
    marks.at_work.clear()
    marks.error = None
    marks.go.set()
    async with asyncio.timeout(60):
        await probe(("t", 0))


async def test_workers_of_an_application_do_not_fence_each_others_probes() -> None:
    one, other = Marks(), Marks()
    probes = [asyncio.create_task(prober(marks)(("t", 0))) for marks in (one, other)]
    await everything_else()
    ((first, _),), ((second, _),) = one.at_work, other.at_work
    assert first != second
    assert first.startswith("app-")
    for marks in (one, other):
        marks.go.set()
    await asyncio.gather(*probes)
