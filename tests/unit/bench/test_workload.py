"""The commands of a run, the records that follow from them, and the count of what was delivered."""

from __future__ import annotations

import pytest

from light_scheduler.bench.deliveries import MINUTE_MS, Delivery, MinuteTally, Tally
from light_scheduler.bench.dialects import AVRO, WRITERS, framed, registered
from light_scheduler.bench.records import RecordMaker, Shape
from light_scheduler.bench.registry import SCENARIOS, scenario_named
from light_scheduler.bench.scenario import Scenario
from light_scheduler.bench.workload import DueTimes, MinutelyWorkload, Namespace, Payloads, Workload, WorkloadCommand
from light_scheduler.engine.timing import begin
from light_scheduler.model import ScheduleCommand
from light_scheduler.settings.values import DIALECTS
from light_scheduler.wire import UnsentRecord, dialect_named, parse_firing
from light_scheduler.wire.schemas import Schemas
from light_scheduler.wire.state import SCHEDULE_KIND, decode_entry, identity

DUE = 1_800_000_000_000


def workload(messages: int = 5, seed: int = 1, payload_bytes: int = 200) -> Workload:
    return Workload(messages=messages, payloads=Payloads(payload_bytes, seed), target="target", due=DueTimes(DUE))


class TestWorkload:
    def test_keys_are_distinct_and_name_their_number(self) -> None:
        made = workload(messages=2_000)
        keys = [command.key for command in made.commands()]
        assert len(set(keys)) == 2_000
        assert [made.number_of(key) for key in keys] == list(range(2_000))

    @pytest.mark.parametrize("key", [None, b"", b"bench-5", b"bench-000000005", b"bench-00000000x", b"other-000000001"])
    def test_a_key_of_none_of_its_schedules_has_no_number(self, key: bytes | None) -> None:
        assert workload(messages=5).number_of(key) is None

    def test_payloads_have_the_size_asked_for_and_differ(self) -> None:
        payloads = [command.value for command in workload(messages=1_000).commands()]
        assert {len(payload) for payload in payloads} == {200}
        assert len(set(payloads)) == 1_000

    def test_a_seed_decides_the_payloads(self) -> None:
        first, again, other = (list(workload(seed=seed).commands()) for seed in (1, 1, 2))
        assert first == again
        assert [command.value for command in first] != [command.value for command in other]

    def test_two_headers_are_the_users(self) -> None:
        (command, *_) = workload().commands()
        assert [name for name, _ in command.headers if not name.startswith("schedule-")] == ["content-type", "trace-id"]

    def test_all_are_due_at_one_instant(self) -> None:
        assert {workload().due_of(number) for number in range(5)} == {DUE}

    @pytest.mark.parametrize(("grid_ms", "after"), [(1, [0, 250, 500, 750, 1_000]), (500, [0, 0, 500, 500, 1_000])])
    def test_at_a_rate_they_are_due_one_after_the_other_on_the_grid(self, grid_ms: int, after: list[int]) -> None:
        steady = Workload(messages=5, payloads=Payloads(0, 1), target="target", due=DueTimes(DUE, 4, grid_ms))
        assert [steady.due_of(number) - DUE for number in range(5)] == after
        triggers = [dict(command.headers)["schedule-at"] for command in steady.commands()]
        assert triggers == [b"%d" % (DUE + each) for each in after]

    def test_they_can_be_a_tenants(self) -> None:
        (command,) = Workload(
            messages=1, payloads=Payloads(0, 1), target="t", due=DueTimes(DUE), namespace=Namespace("acme")
        ).commands()
        assert dict(command.headers)["schedule-tenant"] == b"acme"
        assert "schedule-tenant" not in dict(next(workload().commands()).headers)

    def test_minutely_ones_fire_by_cron(self) -> None:
        (command,) = MinutelyWorkload(
            messages=1, payloads=Payloads(0, 1), target="target", due=DueTimes(DUE)
        ).commands()
        assert dict(command.headers)["schedule-cron"] == b"* * * * *"


class TestRecords:
    @staticmethod
    def made(shape: Shape) -> tuple[list[WorkloadCommand], list[tuple[object, ...]]]:
        commands = list(workload().commands(1, 3))
        maker = RecordMaker(workload(), "commands")
        return commands, [
            tuple(record) for record in maker.records(shape, 1, 3, changelog=("changelog", 2), target=("target", 3))
        ]

    def test_an_acceptance_writes_the_state_of_its_schedule(self) -> None:
        commands, records = self.made(Shape.ACCEPTANCE)
        assert len(records) == 3
        for command, (partition, key, value, headers) in zip(commands, records, strict=True):
            assert partition == ("changelog", 2)
            assert key == SCHEDULE_KIND + identity("default", command.key.decode())
            assert isinstance(value, bytes)
            entry = decode_entry(value)
            assert (entry.schedule.payload, entry.progress.due) == (command.value, DUE)
            assert headers == []

    def test_a_firing_writes_itself_and_the_end_of_its_state(self) -> None:
        commands, records = self.made(Shape.FIRING)
        assert len(records) == 6
        for command, firing, end in zip(commands, records[::2], records[1::2], strict=True):
            assert firing[0] == ("target", 3)
            assert (firing[1], firing[2]) == (command.key, command.value)
            assert ("schedule-due", b"%d" % DUE) in firing[3]  # type: ignore[operator]
            assert end == (("changelog", 2), SCHEDULE_KIND + identity("default", command.key.decode()), None, [])


class TestTally:
    @staticmethod
    def counted(made: Workload, deliveries: dict[int, list[tuple[int, int]]]) -> dict[str, float]:
        """Count deliveries: number -> (record timestamp, fired at) of each, both ms after due."""
        tally = Tally(made)
        commands = list(made.commands())
        for number, times in deliveries.items():
            for timestamp, fired_at in times:
                tally.add(Delivery(commands[number].key, commands[number].value, DUE + timestamp, DUE, DUE + fired_at))
        return {**tally.lateness.figures(), **tally.faults()}

    def test_each_once_and_in_time_is_no_fault(self) -> None:
        figures = self.counted(workload(messages=3), {0: [(0, 0)], 1: [(5, 5)], 2: [(9, 9)]})
        assert figures == {
            "lateness_p50_ms": 5,
            "lateness_p99_ms": 9,
            "lateness_max_ms": 9,
            "missing": 0,
            "duplicate": 0,
            "early": 0,
        }

    def test_what_did_not_come_is_missing(self) -> None:
        figures = self.counted(workload(messages=4), {1: [(1, 1)]})
        assert (figures["missing"], figures["duplicate"]) == (3, 0)

    def test_every_delivery_after_the_first_is_a_duplicate(self) -> None:
        figures = self.counted(workload(messages=2), {0: [(1, 1)] * 3, 1: [(1, 1)]})
        assert (figures["missing"], figures["duplicate"]) == (0, 2)

    @pytest.mark.parametrize("times", [(-1, 0), (0, -1)], ids=["by its timestamp", "by its header"])
    def test_a_delivery_before_its_time_is_early(self, times: tuple[int, int]) -> None:
        assert self.counted(workload(messages=1), {0: [times]})["early"] == 1

    def test_a_delivery_with_another_payload_is_none(self) -> None:
        made = workload(messages=1)
        tally = Tally(made)
        tally.add(Delivery(b"bench-000000000", b"something else", DUE, DUE, DUE))
        assert tally.faults() == {"missing": 1, "duplicate": 0, "early": 0}

    def test_what_was_seen_live_is_as_late_as_it_was_seen(self) -> None:
        tally = Tally(workload(messages=1))
        (command,) = workload(messages=1).commands()
        tally.add(Delivery(command.key, command.value, DUE + 1, DUE, DUE + 1, seen_at=DUE + 20))
        assert tally.lateness.figures()["lateness_max_ms"] == 20


class TestMinuteTally:
    FIRST = DUE - DUE % MINUTE_MS

    def made(self) -> tuple[MinuteTally, list[WorkloadCommand]]:
        schedules = MinutelyWorkload(messages=2, payloads=Payloads(10, 1), target="target", due=DueTimes(DUE))
        return MinuteTally(schedules, self.FIRST, minutes=2), list(schedules.commands())

    def test_each_schedule_is_expected_at_each_minute(self) -> None:
        tally, commands = self.made()
        assert tally.missing == 4
        for command in commands:
            for due in (self.FIRST, self.FIRST + MINUTE_MS):
                tally.add(Delivery(command.key, command.value, due + 5, due, due + 5))
        assert tally.faults() == {"missing": 0, "duplicate": 0, "early": 0}
        assert tally.lateness.figures()["lateness_max_ms"] == 5

    def test_a_minute_that_is_not_counted_and_an_instant_that_is_no_minute_count_for_nothing(self) -> None:
        tally, (command, _) = self.made()
        for due in (self.FIRST - MINUTE_MS, self.FIRST + 2 * MINUTE_MS, self.FIRST + 1):
            tally.add(Delivery(command.key, command.value, due, due, due))
        assert tally.faults() == {"missing": 4, "duplicate": 0, "early": 0}

    def test_a_firing_that_comes_again_is_a_duplicate_and_one_before_its_minute_is_early(self) -> None:
        tally, (command, _) = self.made()
        for fired_at in (self.FIRST, self.FIRST - 1):
            tally.add(Delivery(command.key, command.value, self.FIRST, self.FIRST, fired_at))
        assert tally.faults() == {"missing": 3, "duplicate": 1, "early": 1}


def test_every_scenario_can_be_loaded_and_says_what_it_measures() -> None:
    for name, (_, summary) in SCENARIOS.items():
        assert isinstance(scenario_named(name), Scenario)
        assert summary.endswith(".")


def test_records_of_the_ceiling_are_what_consumers_understand() -> None:
    (firing, _) = RecordMaker(workload(), "commands").records(
        Shape.FIRING, 0, 1, changelog=("changelog", 0), target=("target", 0)
    )

    class Received:
        key, value, headers = firing.key, firing.value, firing.headers
        partition, offset, timestamp = 0, 0, DUE

    assert parse_firing(Received()).id == "bench-000000000"


@pytest.mark.parametrize(
    ("dialect", "is_framed"), [*((dialect, False) for dialect in DIALECTS), *((dialect, True) for dialect in AVRO)]
)
def test_every_dialect_has_the_same_schedules(dialect: str, is_framed: bool) -> None:
    due = 1_767_225_600_000
    schemas = Schemas() if is_framed else None
    if schemas is not None:
        for id, schema in registered(dialect).items():
            schemas.note(id, schema)
    write = framed(dialect) if is_framed else WRITERS[dialect]
    workload = Workload(messages=2, payloads=Payloads(10, 1), target="target", due=DueTimes(due), write=write)
    for number, (key, value, headers) in enumerate(workload.commands()):
        command = dialect_named(dialect, schemas).decode(UnsentRecord(key, value, headers, timestamp=due - 1_000))
        assert isinstance(command, ScheduleCommand)
        assert (command.id, command.target.topic) == (f"bench-{number:09d}", "target")
        assert begin(command, due - 1_000).planned == due
