"""The checker of chaos runs: it accepts what keeps every promise, and finds every kind of planted fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from light_scheduler.bench.chaos.checker import Record, Verdict, check, early, wilson_upper
from light_scheduler.bench.chaos.checker.records import kafka_partition
from light_scheduler.wire import partition_for

AT = 1_767_225_600_000
TARGET = "chaos-plain"
Told = dict[str, Any]


@dataclass
class Log:
    """What a run left behind, written as by a scheduler that keeps its promises. Times are ms after AT."""

    commands: list[Record] = field(default_factory=list)
    results: list[Record] = field(default_factory=list)
    deliveries: list[Record] = field(default_factory=list)
    letters: list[Record] = field(default_factory=list)

    def send(
        self,
        control: Told,
        answer: str | None,
        *,
        at: int = 0,
        version: int | None = 1,
        key: str = "a",
        value: bytes | None = b"x",
    ) -> int:
        """Send a command and have it answered at once; return its offset."""
        offset = len(self.commands)
        texts = [(name, str(value).encode()) for name, value in control.items()]
        given = [(name if name.startswith("chaos-") else f"schedule-{name}", value) for name, value in texts]
        headers = [*given, ("schedule-reply-topic", b"answers"), ("h", b"\xff"), ("h", None)]
        self.commands.append(Record("commands", 0, offset, AT + at, key.encode(), value, headers))
        if answer is not None:
            self.answer(offset, answer, at=at, version=version)
        return offset

    def schedule(self, control: Told, answer: str = "scheduled", **rest: Any) -> int:
        return self.send({"target-topic": TARGET, "target-partition": 0, **control}, answer, **rest)

    def answer(self, offset: int, outcome: str, *, at: int, version: int | None = 1) -> None:
        told = {"partition": 0, "offset": offset, "outcome": outcome, "version": version}
        self.results.append(Record("answers", 0, len(self.results), AT + at, b"a", json.dumps(told).encode(), []))

    def fire(self, source: int, due: int, *, at: int | None = None, **told: Any) -> None:
        """Deliver a message of a command; `at`: when it fired, a little before it was in the log."""
        command = self.commands[source]
        id = (command.key or b"").decode()
        fired_at = AT + (due if at is None else at)
        ours = {
            **{"id": id, "tenant": "default", "firing-id": f"{id}@{AT + due}", "due": AT + due, "fired-at": fired_at},
            **{"sequence": 1, "attempt": 1, "version": 1},
            **{"source-topic": "commands", "source-partition": 0, "source-offset": source},
            **{name.replace("_", "-"): value for name, value in told.items()},
        }
        ours["delivery-id"] = f"commands:0:{source}:{ours['version']}:{ours['sequence']}:{AT + due}:{ours['attempt']}"
        user = [(name, value) for name, value in command.headers if not name.startswith("schedule-")]
        headers = [*user, *((f"schedule-{name}", str(value).encode()) for name, value in ours.items())]
        self.deliveries.append(
            Record(TARGET, 0, len(self.deliveries), fired_at + 3, command.key, command.value, headers)
        )

    def dead_letter(self, source: int, cause: str, due: int = 100) -> None:
        told = {"cause": cause, "source-partition": 0, "source-offset": source, "due": AT + due}
        headers: list[tuple[str, bytes | None]] = [
            (f"dead-letter-{name}", str(value).encode()) for name, value in told.items()
        ]
        self.letters.append(Record("dead", 0, len(self.letters), AT, b"a", b"x", headers))

    def verdict(self) -> Verdict:
        return check(
            commands=self.commands,
            results=self.results,
            deliveries=self.deliveries,
            dead_letters=self.letters,
            partitions={TARGET: 4},
        )


def one_shot(log: Log) -> None:
    log.fire(log.schedule({"at": AT + 100}), 100)


def update_and_cancel(log: Log) -> None:
    log.schedule({"at": AT + 500})
    second = log.schedule({"at": AT + 200}, "updated", at=10, version=2)
    log.fire(second, 200, version=2)
    log.schedule({"at": AT + 900}, at=300)
    log.send({}, "cancelled", at=400, value=None)
    log.send({"command": "cancel"}, "not_found", at=410, version=None)


def pause_trigger_reschedule(log: Log) -> None:
    first = log.schedule({"at": AT + 100})
    log.send({"command": "pause"}, "paused", at=10)
    log.send({"command": "resume"}, "resumed", at=150)
    log.fire(first, 100, at=151)
    second = log.schedule({"at": AT + 9_000}, at=200)
    log.send({"command": "reschedule", "at": AT + 8_000}, "rescheduled", at=210, version=2)
    log.send({"command": "trigger"}, "triggered", at=220, version=2)
    log.fire(second, 221, version=2)


def triggered_twice(log: Log) -> None:
    first = log.schedule({"at": AT + 9_000})
    log.send({"command": "trigger"}, "triggered", at=10)
    log.send({"command": "trigger"}, "triggered", at=10)
    log.fire(first, 10)
    log.send({"command": "trigger"}, "not_found", at=20, version=None)


def triggered_twice_and_replaced(log: Log) -> None:
    log.schedule({"at": AT + 9_000})
    log.send({"command": "trigger"}, "triggered", at=10)
    log.send({"command": "trigger"}, "triggered", at=10)
    log.fire(log.schedule({"at": AT + 500}, "updated", at=20, version=2), 500, version=2)


def triggered_twice_and_rescheduled(log: Log) -> None:
    first = log.schedule({"at": AT + 9_000})
    log.send({"command": "trigger"}, "triggered", at=10)
    log.send({"command": "trigger"}, "triggered", at=10)
    log.send({"command": "reschedule", "at": AT + 500}, "rescheduled", at=20, version=2)
    log.fire(first, 500, version=2)


def fixed_rate(log: Log) -> None:
    source = log.schedule({"every": 100, "max-firings": 3, "misfire": "all"})
    for sequence in (1, 2, 3):
        log.fire(source, 100 * sequence, sequence=sequence)


def coalesced_rate(log: Log) -> None:
    source = log.schedule({"every": 100, "max-firings": 2, "misfire-grace": 1_000})
    log.fire(source, 100)
    log.fire(source, 5_100, at=6_050, sequence=2)


def sent_again_after_times_that_nobody_delivered(log: Log) -> None:
    first = log.schedule({"every": 100, "misfire": "all"})
    log.fire(first, 100)
    second = log.schedule({"every": 100, "max-firings": 1}, "updated", at=550, version=2)
    log.fire(second, 650, version=2)


def cron(log: Log) -> None:
    source = log.schedule({"cron": "*/2 * * * * *", "cron-dialect": "spring", "max-firings": 2}, at=1)
    log.fire(source, 2_000)
    log.fire(source, 4_000, sequence=2)


def fixed_delay(log: Log) -> None:
    source = log.schedule({"every": 100, "mode": "fixed-delay", "max-firings": 3, "ack-timeout": 1_000})
    log.fire(source, 100)
    log.send({"command": "complete", "firing-id": f"a@{AT + 100}", "attempt": 1}, "completed", at=150)
    log.fire(source, 250, at=260, sequence=2)
    log.dead_letter(source, "unacknowledged", 250)
    log.fire(source, 1_360, sequence=3)


def backoff(log: Log) -> None:
    source = log.schedule({"backoff": "100,200,400"})
    log.fire(source, 100)
    log.fire(source, 300, sequence=2, attempt=2)
    log.send({"command": "complete", "firing-id": f"a@{AT + 300}", "attempt": 2}, "completed", at=310)


def acknowledged(log: Log) -> None:
    source = log.schedule({"at": AT + 100, "ack-timeout": 1_000, "max-attempts": 2})
    log.fire(source, 100)
    log.fire(source, 100, at=1_100, attempt=2)
    log.dead_letter(source, "unacknowledged")


def poison(log: Log) -> None:
    log.dead_letter(log.send({"chaos-promise": "rejected", "att": 1}, "rejected"), "rejected")
    log.dead_letter(log.schedule({"chaos-promise": "refused", "at": AT + 5}, key="b"), "refused")


KEPT = [
    one_shot,
    update_and_cancel,
    pause_trigger_reschedule,
    triggered_twice,
    triggered_twice_and_replaced,
    triggered_twice_and_rescheduled,
    fixed_rate,
    coalesced_rate,
    sent_again_after_times_that_nobody_delivered,
    cron,
    fixed_delay,
    backoff,
    acknowledged,
    poison,
]


@pytest.mark.parametrize("history", KEPT, ids=lambda history: history.__name__)
def test_a_run_that_keeps_every_promise_has_no_faults(history: Callable[[Log], None]) -> None:
    log = Log()
    history(log)
    assert log.verdict().faults == []


def altered(number: int, **parts: Any) -> Callable[[Log], None]:
    """Change a delivered message."""

    def plant(log: Log) -> None:
        log.deliveries[number] = log.deliveries[number]._replace(**parts)

    return plant


def told(number: int, name: str, value: object) -> Callable[[Log], None]:
    """Change a header of a delivered message."""

    def plant(log: Log) -> None:
        record = log.deliveries[number]
        headers = [(each, str(value).encode() if each == name else was) for each, was in record.headers]
        log.deliveries[number] = record._replace(headers=headers)

    return plant


def lost(number: int) -> Callable[[Log], None]:
    return lambda log: log.deliveries.pop(number) and None


def doubled(number: int) -> Callable[[Log], None]:
    return lambda log: log.deliveries.append(log.deliveries[number])


def answered(number: int, outcome: str, version: int | None = 1) -> Callable[[Log], None]:
    """Answer a command otherwise."""

    def plant(log: Log) -> None:
        at = log.results[number].timestamp - AT
        log.results[number : number + 1] = []
        log.answer(number, outcome, at=at, version=version)

    return plant


def _gone_before(log: Log) -> None:
    log.send({"command": "cancel"}, "not_found", at=50, version=None)


def _instead(log: Log, source: int, due: int) -> None:
    log.deliveries.clear()
    log.fire(source, due)


def _late(log: Log, number: int, at: int) -> None:
    told(number, "schedule-fired-at", AT + at)(log)
    altered(number, timestamp=AT + 6_000)(log)


def _forget(log: Log, number: int) -> None:
    del log.commands[number], log.results[number]


def _completed(log: Log) -> None:
    log.send({"command": "complete", "firing-id": f"a@{AT + 100}", "attempt": 1}, "completed", at=500)


def _same_instant(log: Log) -> None:
    sources = [log.schedule({"at": AT + 100}, key=key) for key in ("a", "b")]
    for source in sources:
        log.fire(source, 100)


PLANTED: list[tuple[str, Callable[[Log], None], Callable[[Log], None], str]] = [
    ("a one-shot is lost", one_shot, lost(0), "missing"),
    ("a one-shot comes twice", one_shot, doubled(0), "duplicate"),
    ("it fired early", one_shot, told(0, "schedule-fired-at", AT + 99), "early"),
    ("another due time", one_shot, told(0, "schedule-due", AT + 101), "wrong"),
    ("another payload", one_shot, altered(0, value=b"y"), "wrong"),
    ("a null payload", one_shot, altered(0, value=None), "wrong"),
    ("another key", one_shot, altered(0, key=None), "wrong"),
    ("another partition", one_shot, altered(0, partition=1), "wrong"),
    ("another user header", one_shot, told(0, "h", "other"), "wrong"),
    ("another version", one_shot, told(0, "schedule-version", 2), "wrong"),
    ("another id", one_shot, told(0, "schedule-id", "b"), "wrong"),
    ("another tenant", one_shot, told(0, "schedule-tenant", "acme"), "wrong"),
    ("another firing id", one_shot, told(0, "schedule-firing-id", "a@1"), "wrong"),
    ("no delivery id", one_shot, told(0, "schedule-delivery-id", ""), "wrong"),
    (
        "two messages of one delivery id",
        fixed_rate,
        told(1, "schedule-delivery-id", f"commands:0:0:1:1:{AT + 100}:1"),
        "wrong",
    ),
    ("another sequence", one_shot, told(0, "schedule-sequence", 2), "wrong"),
    ("nobody asked for it", one_shot, told(0, "schedule-source-offset", 99), "wrong"),
    ("no source", one_shot, told(0, "schedule-source-offset", ""), "wrong"),
    ("no answer", one_shot, lambda log: log.results.clear(), "missing"),
    ("two answers", one_shot, lambda log: log.results.append(log.results[0]), "duplicate"),
    ("a good command is rejected", one_shot, answered(0, "rejected"), "wrong"),
    ("an update of nothing", one_shot, answered(0, "updated", 2), "wrong"),
    ("a new one begins with version 2", one_shot, answered(0, "scheduled", 2), "wrong"),
    ("it was said to be gone, and fired later", one_shot, _gone_before, "wrong"),
    ("fired at its old time too", update_and_cancel, lambda log: log.fire(0, 500), "wrong"),
    ("fired at its old time instead", update_and_cancel, lambda log: _instead(log, 0, 500), "missing"),
    ("a version is left out", update_and_cancel, answered(1, "updated", 3), "wrong"),
    ("fired after its cancel", update_and_cancel, lambda log: log.fire(2, 900), "after_cancel"),
    ("fired before its cancel was accepted", update_and_cancel, lambda log: log.fire(2, 350), "after_cancel"),
    (
        "fired as often as triggered",
        triggered_twice,
        lambda log: log.fire(0, 11, sequence=2),
        "duplicate",
    ),
    ("triggered and never fired", triggered_twice, lost(0), "missing"),
    (
        "fired when triggered, then said to be replaced",
        triggered_twice_and_replaced,
        lambda log: log.fire(0, 10),
        "wrong",
    ),
    (
        "fired when triggered, then said to be rescheduled",
        triggered_twice_and_rescheduled,
        lambda log: log.fire(0, 10),
        "wrong",
    ),
    (
        "fired at its old time after a reschedule",
        triggered_twice_and_rescheduled,
        lambda log: log.fire(0, 9_000),
        "wrong",
    ),
    ("not fired at its new time", triggered_twice_and_rescheduled, lost(0), "missing"),
    ("fired twice at its new time", triggered_twice_and_rescheduled, doubled(0), "duplicate"),
    ("fired while paused", pause_trigger_reschedule, altered(0, timestamp=AT + 100), "wrong"),
    ("fired at the time before a reschedule", pause_trigger_reschedule, told(1, "schedule-version", 1), "wrong"),
    ("due before it was triggered", pause_trigger_reschedule, told(1, "schedule-due", AT + 219), "wrong"),
    ("the first of a series is lost", fixed_rate, lost(0), "missing"),
    ("one of a series is lost", fixed_rate, lost(1), "missing"),
    ("the last of a series is lost", fixed_rate, lost(2), "missing"),
    ("one of a series comes twice", fixed_rate, doubled(1), "duplicate"),
    ("the same time under two numbers", fixed_rate, told(2, "schedule-due", AT + 200), "duplicate"),
    ("one too many", fixed_rate, lambda log: log.fire(0, 400, sequence=4), "wrong"),
    ("off the grid", fixed_rate, told(1, "schedule-due", AT + 201), "wrong"),
    ("a missed one is left out of all", fixed_rate, told(2, "schedule-due", AT + 400), "missing"),
    ("out of order", fixed_rate, lambda log: log.deliveries.reverse(), "out_of_order"),
    ("coalesced within the grace", coalesced_rate, told(1, "schedule-fired-at", AT + 1_100), "early"),
    ("left out although in time", coalesced_rate, lambda log: _late(log, 1, 5_900), "missing"),
    ("left out within the grace", coalesced_rate, told(1, "schedule-due", AT + 6_000), "missing"),
    ("cron at another second", cron, told(1, "schedule-due", AT + 4_001), "wrong"),
    ("cron leaves one out", cron, told(1, "schedule-due", AT + 6_000), "missing"),
    ("delay not counted from the completion", fixed_delay, told(1, "schedule-due", AT + 210), "wrong"),
    ("delay not counted from the time-out", fixed_delay, told(2, "schedule-due", AT + 1_300), "wrong"),
    ("a run that nobody completed leaves no dead letter", fixed_delay, lambda log: log.letters.clear(), "missing"),
    ("a dead letter of a completed run", fixed_delay, lambda log: log.dead_letter(0, "unacknowledged", 100), "wrong"),
    ("a run is lost", fixed_delay, lost(2), "missing"),
    ("an attempt after the completion", backoff, lambda log: log.fire(0, 700, sequence=3, attempt=3), "wrong"),
    ("an attempt at another interval", backoff, told(1, "schedule-due", AT + 301), "wrong"),
    ("an attempt is lost", backoff, lost(0), "missing"),
    ("attempts end without a completion", backoff, lambda log: _forget(log, 1), "missing"),
    ("delivered again too soon", acknowledged, lambda log: _late(log, 1, 900), "early"),
    ("not delivered again", acknowledged, lost(1), "missing"),
    ("delivered again after its completion", acknowledged, _completed, "wrong"),
    ("an attempt comes twice", acknowledged, doubled(1), "duplicate"),
    ("poison is accepted", poison, answered(0, "scheduled"), "wrong"),
    ("poison leaves no dead letter", poison, lambda log: log.letters.clear(), "missing"),
    ("poison leaves two", poison, lambda log: log.letters.append(log.letters[0]), "duplicate"),
    ("a dead letter of a good command", one_shot, lambda log: log.dead_letter(0, "refused"), "wrong"),
    ("what is refused is delivered", poison, lambda log: log.fire(1, 5), "wrong"),
    ("order of commands broken", _same_instant, lambda log: log.deliveries.reverse(), "out_of_order"),
]


@pytest.mark.parametrize("case", PLANTED, ids=lambda case: case[0])
def test_a_planted_fault_is_found(case: tuple[str, Callable[[Log], None], Callable[[Log], None], str]) -> None:
    _, history, plant, kind = case
    log = Log()
    history(log)
    assert log.verdict().faults == []
    plant(log)
    assert log.verdict().counts()[kind] > 0


def test_a_message_that_can_be_read_before_it_is_due_is_early() -> None:
    log = Log()
    one_shot(log)
    (message,) = log.deliveries
    assert early(message, AT + 100) is None
    fault = early(message, AT + 99)
    assert fault is not None
    assert fault.kind == "early"


def test_the_partitioner_of_the_checker_is_kafkas() -> None:
    for key in (b"", b"a", b"ab", b"abc", b"abcd", b"order-1", bytes(range(256))):
        assert kafka_partition(key, 1_000) == partition_for(key, 1_000)


@pytest.mark.parametrize(
    ("faults", "promises", "upper"), [(0, 0, 1.0), (0, 2_000_000, 1.92e-6), (0, 100, 0.037), (5, 100, 0.1118)]
)
def test_the_upper_bound_is_wilsons(faults: int, promises: int, upper: float) -> None:
    assert wilson_upper(faults, promises) == pytest.approx(upper, rel=0.01)
