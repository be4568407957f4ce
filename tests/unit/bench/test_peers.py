"""Schedulers side by side: what is counted of their deliveries, and what stands in a result."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from benchmarks.contestants.arrivals import Arrival, WrittenArrivals
from benchmarks.contestants.figures import UNITS, Count, summed
from benchmarks.contestants.topics import topic_bytes
from light_scheduler.bench.figures import Figure, summarised
from light_scheduler.bench.workload import DueTimes, Namespace, Payloads, Workload

DUE = 1_900_000_000_000


def workload(messages: int, rate: int | None = None) -> Workload:
    return Workload(
        messages=messages,
        payloads=Payloads(20, 1),
        target="",
        due=DueTimes(DUE, rate),
        namespace=Namespace(prefix="work1"),
    )


def arrival(work: Workload, number: int, late_ms: int) -> Arrival:
    key = b"work1-%09d" % number
    return Arrival(key, work.due_of(number) + late_ms, zlib.crc32(work.payload(number)))


class TestCount:
    def test_what_comes_once_and_in_time_is_no_fault(self) -> None:
        work = workload(2)
        count = Count(work)
        count.add([arrival(work, 0, 0), arrival(work, 1, 5)])
        assert count.faults() == {"missing": 0, "duplicate": 0, "early": 0, "wrong": 0}

    def test_every_kind_of_fault_is_counted_by_itself(self) -> None:
        work = workload(4)
        count = Count(work)
        of_another_payload = arrival(work, 2, 0)._replace(checksum=1)
        count.add([arrival(work, 0, 1), arrival(work, 1, -1), of_another_payload, arrival(work, 0, 2)])
        count.add([arrival(work, 0, 3)])
        assert count.faults() == {"missing": 2, "duplicate": 2, "early": 1, "wrong": 1}
        assert count.came == 2

    def test_deliveries_of_other_work_are_passed_over(self) -> None:
        work = workload(1)
        count = Count(work)
        count.add([arrival(work, 0, 1)._replace(key=b"work2-000000000"), Arrival(b"", DUE, 0)])
        assert count.faults() == {"missing": 1, "duplicate": 0, "early": 0, "wrong": 0}

    def test_a_burst_lasts_from_the_instant_to_its_last_delivery(self) -> None:
        work = workload(2)
        count = Count(work)
        count.add([arrival(work, 0, 400), arrival(work, 1, 250)])
        assert count.seconds == 0.4

    def test_lateness_is_that_of_each_ones_own_due_time(self) -> None:
        work = workload(100, rate=10)
        count = Count(work)
        count.add(arrival(work, number, number) for number in range(100))
        assert count.lateness() == {"lateness_p50_ms": 49, "lateness_p99_ms": 98, "lateness_max_ms": 99}

    def test_of_nothing_there_is_no_lateness(self) -> None:
        assert Count(workload(1)).lateness() == {}


class TestRounds:
    def test_faults_of_several_steps_add_up(self) -> None:
        assert summed([{"missing": 1, "early": 0}, {"missing": 2, "early": 3}]) == {"missing": 3, "early": 3}

    def test_a_figure_of_some_rounds_only_is_made_of_those(self) -> None:
        rounds = [{"killed_missing": 3.0, "burst_per_s": 10.0}, {"burst_per_s": 30.0}, {"burst_per_s": 20.0}]
        found = summarised(rounds, UNITS)
        assert found == {
            "burst_per_s": Figure(20.0, 10.0, 30.0, "1/s"),
            "killed_missing": Figure(3.0, 3.0, 3.0, "count"),
        }
        assert list(found) == sorted(found, key=list(UNITS).index)

    def test_a_figure_that_nobody_declared_is_refused(self) -> None:
        with pytest.raises(KeyError, match="burst_rate"):
            summarised([{"burst_rate": 1.0}], UNITS)


class TestWrittenArrivals:
    def test_a_line_counts_when_it_is_whole(self, tmp_path: Path) -> None:
        arrivals = WrittenArrivals(tmp_path / "arrivals")
        with (tmp_path / "arrivals").open("ab", buffering=0) as file:
            file.write(b"a 10 1\nb 2")
            assert arrivals.seen() == [Arrival(b"a", 10, 1)]
            file.write(b"0 2\n")
            assert arrivals.seen() == [Arrival(b"a", 10, 1), Arrival(b"b", 20, 2)]


class TestTopicBytes:
    def test_topics_of_others_and_those_being_deleted_do_not_count(self, tmp_path: Path) -> None:
        for name, size in (("mine-commands-0", 10), ("mine-target-3", 5), ("other-0", 100), ("mine-x-0.1f-delete", 7)):
            (tmp_path / "kafka" / name).mkdir(parents=True)
            (tmp_path / "kafka" / name / "0.log").write_bytes(bytes(size))
        assert topic_bytes(tmp_path, "mine-") == 15
