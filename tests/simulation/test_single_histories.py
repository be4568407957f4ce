"""Histories that are written out, each for one case: a record that is refused, an absence, a cap."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, islice, pairwise
from unittest.mock import patch

import pytest

from light_scheduler.kafka.coordinator import KnownLog
from light_scheduler.kafka.fencing import SPARES
from light_scheduler.kafka.supervision import FIRST_RETRY_S
from light_scheduler.lanes.lane import Lane
from light_scheduler.model import OTHERS, Shares
from light_scheduler.wire import partition_for
from simulation import loop as simulated
from simulation.clients import Clients, Reader
from simulation.drawing import draw_frozen_standby
from simulation.faults import Fault
from simulation.history import History, Send
from simulation.log import POISON
from simulation.names import COMMANDS, TARGET, TARGET_PARTITIONS
from simulation.node import Node
from simulation.playing import play
from simulation.world import World


def test_a_schedule_is_not_refused_for_what_another_version_with_the_same_due_time_held() -> None:
    sends = [Send(1.0, 0, "schedule", "d", -500, payload, None) for payload in (b"fine", POISON, b"fine")]
    for seed in range(50):
        verdict = play(History(seed, 1, 1, tuple(sends), (), ()))
        assert verdict.violation is None


def test_a_lane_that_fences_again_tells_up_to_where_its_changelog_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    told, fence = list[tuple[int, int]](), Clients.fence

    async def noted(self: Clients, transactional_id: str, changelog: KnownLog) -> bool:
        told.append((changelog.committed_end, self.node.world.kafka.log(changelog.place).end))
        return await fence(self, transactional_id, changelog)

    monkeypatch.setattr(Clients, "fence", noted)
    sends = tuple(Send(1.0 + number, 0, "schedule", "abc"[number], 20_000, b"x", None) for number in range(3))
    assert play(History(1, 1, 1, sends, (), (), dropped_markers=1.0)).violation is None
    assert told[0] == (0, 0)
    first = told[:: 1 + SPARES]  # of each takeover: before it has written the marker
    assert len(first) > 3
    assert all(known == end for known, end in first), "each transaction was committed, and lacks its marker"


def test_nobody_is_refused_for_the_records_of_others_and_all_come_soon() -> None:
    sends = [Send(1.0 + 0.01 * n, 0, "schedule", f"bad-{n}", 50, POISON, None) for n in range(8)]
    sends += [Send(1.2 + 0.01 * n, 0, "schedule", f"good-{n}", 50 * n, b"fine", None) for n in range(8)]
    for seed in range(20):
        verdict = play(History(seed, 1, 1, tuple(sends), (), ()))
        assert verdict.violation is None
        assert verdict.fired == 8


@pytest.mark.parametrize("due_s", [3, 21], ids=["among refusals", "while the partition is left alone"])
def test_a_tenant_whose_records_are_refused_holds_up_no_other_tenant_at_the_same_partition(due_s: int) -> None:
    place = partition_for(b"c", TARGET_PARTITIONS)
    names = (f"bad-{number}" for number in count())
    bad = islice((name for name in names if partition_for(name.encode(), TARGET_PARTITIONS) == place), 30)
    sends = [Send(1.0, 0, "schedule", name, 1_000 + number, POISON, None) for number, name in enumerate(bad)]
    sends.append(Send(1.0, 0, "schedule", "c", 1_000 * (due_s - 1), b"fine", None))

    async def delivered(seed: int) -> tuple[str | None, list[tuple[bytes | None, float]]]:
        world = World(History(seed, 1, 1, tuple(sends), (), ()), settle_s=1_000.0)
        violation = (await world.play()).violation
        records = [(record, commit.decided_at) for commit in world.kafka.commits for record in commit.records]
        return violation, [(record.value, at) for record, at in records if record.topic == TARGET]

    logging.disable(logging.CRITICAL)
    try:
        for seed in range(20):
            violation, ((value, at),) = simulated.run(delivered(seed))
            assert (violation, value) == (None, b"fine")
            assert at < due_s + 7
    finally:
        logging.disable(logging.NOTSET)


def test_a_machine_that_was_away_for_longer_than_tombstones_are_kept_does_not_fire_again() -> None:
    sends = (Send(0.5, 0, "schedule", "a", 3_000, b"x", None), Send(20.0, 0, "cancel", "a", 0, None, None))
    for step in range(20, 60):
        verdict = play(History(step, 2, 1, sends, ((step, Fault("freeze", 60.0)),), (22.0, 55.0)))
        assert verdict.violation is None


def test_a_standby_that_was_away_for_longer_than_tombstones_are_kept_does_not_fire_again() -> None:
    for history in map(draw_frozen_standby, range(200)):
        assert play(history).violation is None


def test_a_copy_with_nothing_to_do_for_longer_than_tombstones_are_kept_is_used_again() -> None:
    calm = History(0, 1, 1, (Send(0.5, 0, "schedule", "a", 100_000, b"x", None),), (), ())
    trace: list[str] = []
    play(calm, trace=trace.append)
    late = next(int(line.split()[1]) for line in trace if float(line[:8]) > 70.0)

    trace.clear()
    verdict = play(replace(calm, faults=((late, Fault("kill", 1.0)),)), trace=trace.append)

    assert (verdict.violation, verdict.fired) == (None, 1)
    assert any("0.fence" in line for line in trace if float(line[:8]) > 70.0)
    assert not any("0.load" in line for line in trace), "it was not filled anew"


def test_a_lane_asks_whether_its_partition_is_still_its_own_after_the_pause_and_not_before_it() -> None:
    sends = (Send(1.0, 0, "schedule", "a", 0, b"x", None),)
    trace: list[str] = []
    play(History(1, 1, 1, sends, tuple((step, Fault("lose", 0.0)) for step in range(2, 90, 6)), ()), trace=trace.append)

    steps = [(float(line[:8]), "5.confirm" in line) for line in trace if "5.confirm" in line or "0.fence sent" in line]
    waits = [at - asked for (asked, is_question), (at, again) in pairwise(steps) if is_question and not again]

    assert len(waits) > 3
    assert max(waits) < FIRST_RETRY_S, "the shortest pause"


STAGED = Send(1.0, 0, "schedule", "a", 3_000, b"x", None)
"""Due at 4.0 and, in histories that stage 800 ms ahead, prepared from 3.2 on."""


def staged(seed: int, later: Send) -> tuple[bool, int]:
    """Send a command after another was prepared; return whether that was dropped, and what was delivered in all."""
    trace: list[str] = []
    verdict = play(History(seed, 1, 1, (STAGED, later), (), (), stage_ahead_ms=800), trace=trace.append)
    assert verdict.violation is None
    return any("5.abort" in line for line in trace), verdict.fired


@pytest.mark.parametrize(("kind", "fired"), [("cancel", 0), ("schedule", 1)])
def test_a_command_that_comes_while_its_schedule_is_prepared_goes_first(kind: str, fired: int) -> None:
    found = {staged(seed, Send(3.4, 0, kind, "a", 3_000, None, None)) for seed in range(100)}

    assert (True, fired) in found
    assert found <= {(True, fired), (False, fired + 1)}, "it came in time and went first, or came too late"


def test_a_command_about_another_schedule_leaves_what_is_prepared_alone() -> None:
    found = {staged(seed, Send(3.4, 0, "schedule", "b", 3_000, b"y", None)) for seed in range(100)}

    assert found == {(False, 2)}


def test_a_lane_that_cannot_recover_ends_its_worker_instead_of_dying_quietly() -> None:
    @contextmanager
    def unanswerable() -> Iterator[type[Lane]]:
        async def confirm(_node: Node, _tp: object) -> bool:
            raise ValueError("who is asking?")

        with patch.object(Node, "_confirm", confirm):
            yield Lane

    sends = (Send(1.0, 0, "schedule", "a", 0, b"x", None),)
    verdict = play(History(0, 1, 1, sends, ((15, Fault("lose", 0.0)),), ()), unanswerable)

    assert verdict.violation == "a lane gave up: ValueError('who is asking?')"


def test_a_lane_whose_client_lets_a_cancellation_out_starts_again() -> None:
    @contextmanager
    def letting_out() -> Iterator[type[Lane]]:
        stop, stops = Reader.stop, count()

        async def let_out(self: Reader) -> None:
            await stop(self)
            if next(stops) == 0:
                raise asyncio.CancelledError

        with patch.object(Reader, "stop", let_out):
            yield Lane

    verdict = play(History(0, 1, 1, (Send(1.0, 0, "schedule", "a", 0, b"x", None),), (), ()), letting_out)

    assert (verdict.violation, verdict.fired) == (None, 1)


def test_a_tenant_at_its_cap_goes_on_when_there_is_a_token_and_nothing_happens_until_then() -> None:
    sends = tuple(Send(1.0, 0, "schedule", id, 1_000, b"x", None) for id in ("a", "b"))
    trace: list[str] = []
    verdict = play(History(0, 1, 1, sends, (), (), shares=Shares(rates={OTHERS: 0.5})), trace=trace.append)

    assert (verdict.violation, verdict.fired) == (None, 2)
    at = [float(line[:8]) for line in trace if "3.commit sent" in line and float(line[:8]) < 12.0]
    first, second = at[-2:]
    assert 2.0 <= first < 2.5
    assert 1.9 <= second - first < 2.5
    assert not [line for line in trace if first + 0.5 < float(line[:8]) < second - 0.5]


def test_the_firings_of_all_tenants_together_have_a_cap() -> None:
    sends = tuple(Send(1.0, 0, "schedule", id, 1_000, b"x", None) for id in ("a", "c", "d"))
    trace: list[str] = []
    verdict = play(History(0, 1, 1, sends, (), (), shares=Shares(rate=0.5)), trace=trace.append)

    assert (verdict.violation, verdict.fired) == (None, 3)
    at = [float(line[:8]) for line in trace if "3.commit sent" in line and float(line[:8]) < 12.0]
    assert [round(later - earlier) for earlier, later in zip(at[-3:], at[-2:], strict=False)] == [2, 2]
    assert len(trace) < 200


@pytest.mark.parametrize("shares", [Shares(rate=5), Shares(rates={OTHERS: 5})], ids=["all together", "each tenant"])
def test_what_a_series_catches_up_with_counts_for_a_cap(shares: Shares) -> None:
    class Series:
        key, value = b"often", b"x"
        headers = (
            ("kind", b"schedule"),
            ("due", b"0"),
            ("schedule-every", b"10"),
            ("schedule-max-firings", b"40"),
            ("schedule-misfire", b"all"),
            ("schedule-target-topic", TARGET.encode()),
        )

    async def commits() -> list[tuple[float, int]]:
        world = World(History(0, 1, 1, (), (), (), shares=shares))
        world.loop.call_at(1.0, world.kafka.send, (COMMANDS, 0), [Series()])
        await world.play()
        return [
            (each.decided_at, sum(record.topic == TARGET for record in each.records)) for each in world.kafka.commits
        ]

    fired = [commit for commit in simulated.run(commits()) if commit[1]]

    assert [count for _, count in fired] == [1] * 40
    assert 7.5 <= fired[-1][0] - fired[0][0] <= 8.5
