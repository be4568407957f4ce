"""What a chaos run does is drawn from its seed."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from threading import Lock
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

from light_scheduler.bench.chaos.checker.records import PROMISE
from light_scheduler.bench.chaos.cluster import Cluster
from light_scheduler.bench.chaos.faults import KINDS, Fault, Faults, draw
from light_scheduler.bench.chaos.workload import Topics, Workload
from light_scheduler.bench.figures import FAULT_KINDS


def workload(seed: int) -> Workload:
    return Workload(seed=seed, seconds=60.0, messages=6_000, payload_bytes=200, partitions=4, topics=Topics("chaos"))


def test_the_same_seed_sends_the_same_commands() -> None:
    assert list(workload(3).commands()) == list(workload(3).commands())
    assert list(workload(3).commands()) != list(workload(4).commands())


def test_the_same_seed_does_the_same_faults() -> None:
    first, second = (draw(seed=3, seconds=600.0, workers=3, pause=3.0) for _ in range(2))
    assert first == second
    assert first != draw(seed=4, seconds=600.0, workers=3, pause=3.0)


def test_faults_of_every_kind_hit_every_worker_about_as_often_as_asked_for() -> None:
    faults = draw(seed=1, seconds=3_000.0, workers=3, pause=3.0)
    assert 900 < len(faults) < 1_100
    assert {fault.kind for fault in faults} == KINDS.keys() == set(FAULT_KINDS)
    assert {fault.victim for fault in faults} == {0, 1, 2}
    assert all(earlier.at < later.at for earlier, later in pairwise(faults))
    assert {fault.broker for fault in faults} == {None, 0}


def test_every_kind_of_fault_comes_once_before_any_comes_again() -> None:
    for seed in range(20):
        first = draw(seed=seed, seconds=600.0, workers=3, pause=3.0, brokers=3)[: len(KINDS)]
        assert {fault.kind for fault in first} == KINDS.keys()


def test_of_several_brokers_one_fails_and_the_network_to_one_or_to_all() -> None:
    hit: dict[str, set[int | None]] = {kind: set() for kind in KINDS}
    for fault in draw(seed=1, seconds=3_000.0, workers=3, pause=3.0, brokers=3):
        hit[fault.kind].add(fault.broker)
    for kind, brokers in hit.items():
        one = {0, 1, 2} if kind in ("broker_kill", "broker_freeze", "cut", "stall") else set()
        assert brokers == (one if kind.startswith("broker") else one | {None}), kind


def test_commands_of_every_kind_come_in_order_over_the_whole_time() -> None:
    commands = list(workload(1).commands())
    assert all(earlier.at <= later.at for earlier, later in pairwise(commands))
    assert 5_900 < len([command for command in commands if command.at < 60.0]) < 6_100
    seen = Counter(name for command in commands for name, _ in command.headers)
    for header in ("every", "cron", "backoff", "ack-timeout", "jitter", "after", "command", "on-conflict", "mode"):
        assert seen[f"schedule-{header}"] > 0, header
    assert seen[PROMISE] > 0
    assert max(len(command.value or b"") for command in commands) > 100_000


def test_in_the_second_half_most_is_due_at_full_seconds_and_some_time_is_quiet() -> None:
    plain = [command for command in workload(1).commands() if command.soon is not None and command.wants_answer]
    assert {command.grid_ms for command in plain if command.at < 30.0} == {1}
    grids = Counter(command.grid_ms for command in plain if 30.0 <= command.at < 60.0)
    assert grids[1_000] > 2 * grids[1]
    per_second = Counter(int(command.at) for command in plain)
    assert min(per_second[second] for second in range(30)) > 10 * per_second[31]


class _Worker:
    def __init__(self) -> None:
        self.lock = Lock()
        self.number = 0
        self.process = Mock()
        self.is_running = False
        self.starts = 0

    def start(self) -> None:
        self.starts += 1

    kill = stop = freeze = thaw = starve = feed = start


def test_only_a_fault_of_its_own_starts_a_worker_that_is_down() -> None:
    worker, guest, broker, other = _Worker(), _Worker(), Mock(), Mock()
    cluster = SimpleNamespace(
        wait_in_sync=Mock(),
        brokers=[other, broker],
        broker_lock=Lock(),
        steady=[worker],
        guest=guest,
        workers=[worker, guest],
    )
    Faults(cast(Cluster, cluster), [Fault(0.0, "broker_kill", 0, 0.0, broker=1)], lambda line: None).play()
    assert (broker.kill.call_count, broker.start.call_count, worker.starts) == (1, 1, 0)
    assert (other.kill.call_count, cluster.wait_in_sync.call_count) == (0, 1)
    Faults(cast(Cluster, cluster), [Fault(0.0, "freeze", 0, 0.0)], lambda line: None).play()
    assert worker.starts == 3
