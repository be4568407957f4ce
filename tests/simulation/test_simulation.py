"""Histories made for one thing each: what the scheduler promises holds, and a bug in any step is caught."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count, islice

import pytest

from light_scheduler.kafka.targets import Targets
from light_scheduler.wire import partition_for
from light_scheduler.wire.room_state import ROOM_KIND, decode_room
from simulation import loop as simulated
from simulation.campaign import POINTS
from simulation.drawing import draw, draw_doubt, draw_nameless, draw_probes, draw_tenants, draw_trouble
from simulation.drawing_anew import draw_anew
from simulation.drawing_away import draw_away, draw_away_and_more, draw_leaderless
from simulation.drawing_growth import draw_bulk_growth, draw_growth
from simulation.drawing_lending import draw_lending, draw_lending_growth
from simulation.drawing_rates import (
    draw_loaded_growth,
    draw_rates,
    draw_rates_growth,
    draw_rates_in_doubt,
    draw_rates_of_topics,
)
from simulation.faults import Fault
from simulation.history import History, Send
from simulation.known_topics import KnownTopics
from simulation.mutants import MUTANTS
from simulation.playing import play
from simulation.ruled import Change
from simulation.world import World


def test_a_process_is_killed_between_any_two_steps_and_no_harm_is_done() -> None:
    left = set(POINTS)
    for history in map(draw, range(300)):
        for point, step in steps_of(history).items():
            if point in left:
                faults = tuple(sorted([*history.faults, (step, Fault("kill", 1.0))]))
                verdict = play(replace(history, faults=faults))
                assert verdict.violation is None
                assert ("kill", point) in verdict.struck
                left.discard(point)
    assert left == set()


def steps_of(history: History) -> dict[str, int]:
    """Return at which step each point is reached first."""
    trace: list[str] = []
    play(history, trace=trace.append)
    steps: dict[str, int] = {}
    for line in trace:
        reached = re.fullmatch(r" *[\d.]+ +(\d+) machine \d (.+?) (Fault.*)?", line)
        assert reached is not None
        if reached[3] is None:
            steps.setdefault(reached[2], int(reached[1]))
    return steps


@pytest.mark.timeout(1_800)
def test_answers_are_lost_and_markers_are_late_and_no_harm_is_done(pytestconfig: pytest.Config) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    violations = {seed: violation for seed in seeds if (violation := play(draw_doubt(seed)).violation)}

    assert violations == {}


@pytest.mark.timeout(1_800)
def test_the_topic_gets_more_partitions_and_every_command_finds_its_schedule(pytestconfig: pytest.Config) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    violations = {seed: violation for seed in seeds if (violation := play(draw_growth(seed)).violation)}

    assert violations == {}


@pytest.mark.timeout(1_800)
@pytest.mark.soak
def test_bulk_commands_meet_each_schedule_once_while_the_topic_gets_more_partitions(
    pytestconfig: pytest.Config,
) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 10)
    violations = {seed: violation for seed in seeds if (violation := play(draw_bulk_growth(seed)).violation)}

    assert violations == {}


@pytest.mark.timeout(1_800)
def test_probes_come_back_and_change_nothing_whatever_happens(pytestconfig: pytest.Config) -> None:
    seeds = range(max(4, pytestconfig.getoption("--histories") // 100))
    violations = {seed: violation for seed in seeds if (violation := play(draw_probes(seed)).violation)}

    assert violations == {}


def test_what_lanes_ask_of_topics_is_there_in_the_simulation_too() -> None:
    asked = {name for name in vars(Targets) if not name.startswith("_")}
    assert asked <= vars(KnownTopics).keys()


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("kind", ["silent", "slow", "refuses"])
def test_a_target_in_trouble_holds_up_neither_other_firings_nor_commands_and_loses_nothing(
    kind: str, pytestconfig: pytest.Config
) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    histories = (history for history in map(draw_trouble, seeds) if history.trouble and history.trouble.kind == kind)
    violations = {history.seed: violation for history in histories if (violation := play(history).violation)}

    assert violations == {}


@pytest.mark.timeout(1_800)
def test_a_partition_of_the_commands_topic_that_takes_nothing_holds_up_nothing_that_does_not_need_it(
    pytestconfig: pytest.Config,
) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    violations = {seed: violation for seed in seeds if (violation := play(draw_away(seed)).violation)}

    assert violations == {}


@pytest.mark.timeout(1_800)
def test_what_is_passed_on_to_a_partition_that_loses_its_leader_before_the_markers_are_written_arrives_once(
    pytestconfig: pytest.Config,
) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    violations = {seed: violation for seed in seeds if (violation := play(draw_leaderless(seed)).violation)}

    assert violations == {}


@pytest.mark.timeout(1_800)
def test_what_waits_for_a_partition_of_the_commands_topic_arrives_once_and_in_order_whatever_else_happens(
    pytestconfig: pytest.Config,
) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    violations = {seed: violation for seed in seeds if (violation := play(draw_away_and_more(seed)).violation)}

    assert violations == {}


@pytest.mark.timeout(1_800)
def test_what_waits_for_a_partition_ends_once_when_the_topic_is_created_again_or_takes_only_smaller_records(
    pytestconfig: pytest.Config,
) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    violations = {seed: violation for seed in seeds if (violation := play(draw_anew(seed)).violation)}

    assert violations == {}


@pytest.mark.timeout(1_800)
@pytest.mark.soak
def test_firings_that_fail_whole_transactions_hold_up_neither_others_nor_commands_that_come_all_the_time(
    pytestconfig: pytest.Config,
) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    violations = {seed: violation for seed in seeds if (violation := play(draw_nameless(seed)).violation)}

    assert violations == {}


def test_rules_of_tenants_change_and_hold_in_every_commit(pytestconfig: pytest.Config) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    violations = {seed: violation for seed in seeds if (violation := play(draw_tenants(seed)).violation)}

    assert violations == {}


def test_a_command_counts_for_its_rate_though_the_table_could_not_be_written_after_the_commit() -> None:
    assert play(draw_tenants(189)).violation is None


def test_commands_of_a_commit_that_counts_without_an_answer_count_for_their_rate() -> None:
    assert play(draw_rates_in_doubt(5021)).violation is None


@pytest.mark.parametrize("history", [draw_bulk_growth(5310), draw_loaded_growth(5080)], ids=["few", "many"])
def test_commands_that_took_a_long_way_count_when_those_do_that_were_read_before_them(history: History) -> None:
    assert play(history).violation is None


@pytest.mark.parametrize(
    "history",
    [draw_rates(8), draw_rates(1192), draw_growth(5073), draw_loaded_growth(224), draw_rates_of_topics(20)],
    ids=["killed", "frozen", "growing", "loaded", "several"],
)
def test_delayed_commands_that_catch_up_after_a_backlog_count_at_their_turn(history: History) -> None:
    assert play(history).violation is None


def test_a_lane_that_gets_its_partition_back_does_not_catch_up_with_the_time_in_which_another_had_it() -> None:
    assert play(draw_bulk_growth(4827)).violation is None


def test_a_lane_that_is_fenced_while_it_is_restored_decides_nothing_on_half_of_a_transaction() -> None:
    assert play(draw_loaded_growth(304)).violation is None


@pytest.mark.timeout(1_800)
def test_a_quota_of_pending_schedules_is_never_passed_and_used_up_over_all_partitions(
    pytestconfig: pytest.Config,
) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    violations = {seed: violation for seed in seeds if (violation := play(draw_lending(seed)).violation)}

    assert violations == {}


@pytest.mark.timeout(1_800)
def test_room_is_lent_while_the_topic_gets_more_partitions_and_every_command_finds_its_schedule(
    pytestconfig: pytest.Config,
) -> None:
    seeds = range(pytestconfig.getoption("--histories") // 20)
    violations = {seed: violation for seed in seeds if (violation := play(draw_lending_growth(seed)).violation)}

    assert violations == {}


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    "draw", [draw_rates, draw_rates_in_doubt, draw_rates_growth, draw_loaded_growth, draw_rates_of_topics]
)
def test_no_rate_is_passed_over_all_partitions_whatever_they_lend_to_each_other(
    draw: Callable[[int], History], pytestconfig: pytest.Config
) -> None:
    seeds = range(max(4, pytestconfig.getoption("--histories") // 60))
    violations = {seed: violation for seed in seeds if (violation := play(draw(seed)).violation)}

    assert violations == {}


@pytest.mark.parametrize(("quota", "balances"), [(5, [1, -1]), (None, [])])
def test_a_lane_follows_a_quota_that_changes_though_no_command_comes(quota: int | None, balances: list[int]) -> None:
    home = (f"s{number}" for number in count() if partition_for(f"s{number}".encode(), 2) == 0)
    sends = tuple(Send(0.5, 0, "schedule", id, 60_000, b"x", None) for id in islice(home, 4))
    changes = (Change(0, "default", max_pending=4), Change(9_000, "default", max_pending=quota))

    async def kept() -> list[int]:
        world = World(History(0, 1, 2, sends, (), (), changes=changes, lends=True))
        assert (await world.play()).violation is None
        rooms: dict[tuple[int, bytes | None], bytes | None] = {}
        for record in (record for commit in world.kafka.commits for record in commit.records):
            if (record.key or b"").startswith(ROOM_KIND):
                rooms[record.partition, record.key] = record.value
        return [decode_room(room).balance for _, room in sorted(rooms.items()) if room is not None]

    assert simulated.run(kept()) == balances


@pytest.mark.soak
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_caught(name: str, record_property: Callable[[str, object], None]) -> None:
    mutant = MUTANTS[name]

    caught = next((n for n in range(mutant.within) if play(mutant.draw(n), mutant.plant).violation is not None), None)

    assert caught is not None, f"step {mutant.step}: {mutant.what}"
    record_property("histories", caught + 1)


def test_a_history_is_the_same_each_time() -> None:
    history = next(history for history in map(draw, range(100)) if len(history.faults) > 2 and len(history.sends) > 5)
    traces: list[list[str]] = [[], []]
    for trace in traces:
        play(history, trace=trace.append)

    assert traces[0] == traces[1]
    assert len(traces[0]) > 50
