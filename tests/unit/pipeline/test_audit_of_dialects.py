"""Audits of commands topics in the dialects of other schedulers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.foreign import (
    LIGHT4J_CLASS_VALUE,
    LIGHT4J_KEY,
    LIGHT4J_VALUE,
    SENDERS,
    Sender,
    task,
    task_key,
)
from support.ledger import Ledger, Record
from support.tries import tries

from light_scheduler.engine import decide
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.model import EventType, ScheduleCommand
from light_scheduler.pipeline.audit.bounds import Bounds, Horizon
from light_scheduler.pipeline.audit.cases import cases
from light_scheduler.pipeline.audit.evidence import ANY_LANE, TRACED, Row, decode_asked
from light_scheduler.pipeline.audit.owners import OtherDialects, Owner, native_owner
from light_scheduler.pipeline.audit.readings import Reading
from light_scheduler.pipeline.audit.verdict import Verdict
from light_scheduler.wire import UnsentRecord, decode_history, dialect_named
from light_scheduler.wire.content_type import CONTENT_TYPE, JSON_COMMAND
from light_scheduler.wire.dialects.light4j import Light4jDialect
from light_scheduler.wire.schemas import Schemas

from .conftest import evidence, judged, judged_in_parts, judged_rows, order_of, topics_of
from .test_audit_records import read, row_of

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000

TRACED_DIALECTS = ("etf1", "karafka", "light4j")


@dataclass(frozen=True)
class Sending:
    """An application whose commands come from another scheduler's sender."""

    ledger: Ledger
    sender: Sender

    @classmethod
    def of(cls, dialect: str, **options: Any) -> Sending:
        return cls(Ledger(dialect=dialect, **options), SENDERS[dialect])

    def schedule(self, name: str, at: int, due: int, payload: bytes = b"payload", partition: int = 0) -> Record:
        key, value, headers = self.sender.schedule(name, due, payload, self.ledger.target)
        return self.ledger.append(self.ledger.commands, partition, at, key, value, headers)

    def cancel(self, name: str, at: int, partition: int = 0) -> None:
        self.ledger.append(self.ledger.commands, partition, at, *self.sender.cancel(name))

    def control(self, name: str, at: int, **members: Any) -> None:
        """Send a command as HTTP does."""
        key, _, _ = self.sender.cancel(name)
        command = {"id": name, "tenant": self.sender.tenant, **members}
        body = json.dumps(command).encode()
        self.ledger.append(self.ledger.commands, 0, at, key, body, [(CONTENT_TYPE, JSON_COMMAND)])

    def firing(self, payload: bytes) -> Record:
        """Return the message of a payload."""
        (found,) = [record for record in self.ledger.of(self.ledger.target) if payload in (record.value or b"")]
        return found


def counts(found: Mapping[str, Verdict]) -> Counter[str]:
    return sum((verdict.counts for verdict in found.values()), Counter())


def faults(found: Mapping[str, Verdict]) -> list[tuple[str, str]]:
    return [(id, fault.kind.value) for id, verdict in found.items() for fault in verdict.faults]


def explained(found: Mapping[str, Verdict]) -> str:
    return "\n".join(f"{id}: {fault}" for id, verdict in found.items() for fault in verdict.faults)


@pytest.fixture
def busy(dialect: str) -> Sending:
    """An application that has delivered nine schedules, one of them updated before, and cancelled one."""
    sending = Sending.of(dialect)
    for number in range(8):
        sending.schedule(f"s-{number}", M, M + HOUR, b"payload-%d" % number)
    for name in ("moved", "gone"):
        sending.schedule(name, M, M + HOUR, b"first-" + name.encode())
    sending.ledger.run(M)
    sending.schedule("moved", M + MINUTE, M + 2 * HOUR, b"second-moved")
    sending.cancel("gone", M + MINUTE)
    sending.ledger.run_until(M + 3 * HOUR)
    assert len(sending.ledger.of(sending.ledger.target)) == 9
    return sending


@pytest.mark.parametrize("dialect", SENDERS)
def test_an_application_that_does_what_it_is_asked_to_has_no_faults(busy: Sending) -> None:
    found = judged(busy.ledger, end=M + 3 * HOUR)
    assert not explained(found)
    assert sum(verdict.deliveries.number for verdict in found.values()) == 9
    is_traced = busy.sender.dialect in TRACED_DIALECTS
    assert +counts(found) == ({} if is_traced else {"untraced": 9})
    assert sum(len(verdict.sought) for verdict in found.values()) == (0 if is_traced else 9)


def altered(sending: Sending) -> None:
    """Have s-0 delivered with another payload, and s-1 with another header."""
    first, second = sending.firing(b"payload-0"), sending.firing(b"payload-1")
    sending.ledger.change(first, replace(first, value=(first.value or b"").replace(b"payload-0", b"payload-x")))
    sending.ledger.change(second, second.with_header("x", b"other"))


PLANTED: dict[str, tuple[Callable[[Sending], Any], list[tuple[str, str]]]] = {
    "missing": (lambda sending: sending.ledger.remove(sending.firing(b"payload-3")), [("s-3", "missing")]),
    "altered": (altered, [("s-0", "altered"), ("s-1", "altered")]),
    "duplicate": (lambda sending: again(sending, sending.firing(b"payload-4")), [("s-4", "duplicate")]),
    "early": (
        lambda sending: sending.ledger.change(
            sending.firing(b"payload-5"), replace(sending.firing(b"payload-5"), timestamp=M + HOUR - 7)
        ),
        [("s-5", "early")],
    ),
    "elsewhere": (
        lambda sending: elsewhere(sending, sending.firing(b"payload-6")),
        [("s-6", "altered")],
    ),
}


def again(sending: Sending, record: Record, **changed: Any) -> None:
    copy = replace(record, **changed)
    sending.ledger.append(copy.topic, 3, copy.timestamp + 1, copy.key, copy.value, copy.headers)


def elsewhere(sending: Sending, record: Record) -> None:
    """Have a message delivered to another topic."""
    sending.ledger.remove(record)
    sending.ledger.append("elsewhere", 0, record.timestamp, record.key, record.value, record.headers)


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
def test_a_planted_fault_is_found_and_nothing_else(busy: Sending, kind: str) -> None:
    plant, expected = PLANTED[kind]
    plant(busy)
    found = judged(busy.ledger, end=M + 3 * HOUR, targets=("elsewhere",))
    assert faults(found) == expected, explained(found)
    assert not +counts(found)


@pytest.mark.parametrize(("payload", "kind"), [(b"first-gone", "after_cancel"), (b"first-moved", "superseded")])
@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
def test_a_message_of_what_was_cancelled_or_replaced_is_a_fault(busy: Sending, payload: bytes, kind: str) -> None:
    """It is what the same application would have delivered without the later command."""
    other = Sending.of(busy.sender.dialect)
    for record in busy.ledger.of(busy.ledger.commands):
        if record.timestamp == M:
            other.ledger.append(*_parts(record))
    other.ledger.run(M)
    other.ledger.run_until(M + HOUR)
    again(busy, other.firing(payload))
    found = judged(busy.ledger, end=M + 3 * HOUR)
    assert faults(found) == [(payload.decode().removeprefix("first-"), kind)]


def _parts(record: Record) -> tuple[Any, ...]:
    return record.topic, record.partition, record.timestamp, record.key, record.value, record.headers


@pytest.mark.parametrize("dialect", SENDERS)
def test_a_late_firing_and_a_command_without_effect_are_found(dialect: str) -> None:
    sending = Sending.of(dialect)
    sending.schedule("late", M, M + HOUR)
    sending.ledger.run(M)
    sending.ledger.run(M + HOUR + 5 * MINUTE)
    sending.schedule("forgotten", M + 2 * HOUR, M + 3 * HOUR)
    sending.ledger.forget()
    sending.schedule("last", M + 2 * HOUR + 1, M + 3 * HOUR)
    sending.ledger.run(M + 2 * HOUR + 1)
    found = judged(sending.ledger, end=M + 2 * HOUR + MINUTE)
    assert faults(found) == [("late", "late"), ("forgotten", "ignored")]


@pytest.mark.parametrize("dialect", SENDERS)
def test_what_another_scheduler_delivered_before_is_no_fault(dialect: str) -> None:
    """Its messages look the same, and the schedules may have the names of later ones."""
    before, sending = Sending.of(dialect), Sending.of(dialect)
    for name in ("old", "both"):
        before.schedule(name, M, M + HOUR, b"before-" + name.encode())
    before.ledger.run(M)
    before.ledger.run_until(M + HOUR)
    for record in before.ledger.of(before.ledger.target):
        sending.ledger.append(*_parts(record))
    sending.schedule("both", M + 2 * HOUR, M + 3 * HOUR, b"now")
    sending.ledger.run(M + 2 * HOUR)
    sending.ledger.run_until(M + 3 * HOUR)
    found = judged(sending.ledger, end=M + 4 * HOUR) if dialect in TRACED_DIALECTS else {}
    assert not explained(found)
    assert counts(found)["unclaimed"] == 2 * bool(found)
    assert counts(found)["unjudged"] == 0


@pytest.mark.parametrize(("dialect", "expected"), [("karafka", None), ("etf1", "ambiguous"), ("light4j", "ambiguous")])
def test_an_id_in_two_partitions_is_judged_if_messages_tell_which(dialect: str, expected: str | None) -> None:
    sending = Sending.of(dialect)
    for partition in (0, 1):
        sending.schedule("a", M, M + HOUR, b"of partition %d" % partition, partition=partition)
    sending.ledger.run(M)
    sending.ledger.run_until(M + HOUR)
    if expected is None:
        found = judged(sending.ledger, end=M + 2 * HOUR)
        assert (len(found), explained(found), +counts(found)) == (2, "", {})
    else:
        rows = sorted(evidence(sending.ledger), key=order_of)
        assert dict(cases(rows, topics_of(sending.ledger))) == {0: expected, 1: expected}


STEPS = st.lists(
    st.tuples(
        st.integers(0, 20 * MINUTE),
        st.booleans(),
        st.sampled_from(["a", "b", "é", "\xff" * 3]),
        st.sampled_from(
            [
                "schedule",
                "schedule",
                "far",
                "past",
                "cancel",
                *("pause", "resume", "trigger"),
                "reschedule",
                *("series", "task", "task without a start"),
                "of shop",
                "garbage",
                "many",
            ]
        ),
    ),
    min_size=1,
    max_size=12,
)


OF_SENDERS = STEPS.map(lambda steps: [step for step in steps if step[-1] != "of shop"])
"""Without commands in the JSON form for a tenant that no message of their topic can name."""


def send(sending: Sending, step: str, name: str, at: int) -> None:
    soon = (at // SECOND + 600) * SECOND
    target = {"target": {"topic": sending.ledger.target}}
    match step:
        case "schedule":
            sending.schedule(name, at, soon, b"at-%d" % at)
        case "far":
            sending.schedule(name, at, soon + HOUR)
        case "past":
            sending.schedule(name, at, soon - HOUR)
        case "cancel":
            sending.cancel(name, at)
        case "reschedule":
            sending.control(name, at, command=step, trigger={"at": soon + MINUTE})
        case "series":
            sending.control(name, at, command="schedule", trigger={"every": "5m"}, **target)
        case "of shop":
            of_shop = {"id": f"shop-{name}", "tenant": "shop"}
            sending.control(name, at, command="schedule", **of_shop, trigger={"after": "5m"}, **target)
        case "task" | "task without a start" if sending.sender.dialect == "light4j":
            frequency = {"timeUnit": "MINUTES", "time": 7}
            start = at - 2 * MINUTE if step == "task" else None
            value = task(at, name=name, topic=sending.ledger.target, frequency=frequency, start=start)
            sending.ledger.append(sending.ledger.commands, 0, at, task_key(name), value, [])
        case "task" | "task without a start":
            sending.schedule(name, at, soon + MINUTE)
        case "garbage":
            sending.ledger.append(sending.ledger.commands, 0, at, name.encode(), b"\x01garbage", [])
        case "many":
            sending.control("*", at, command="cancel")
        case _:
            sending.control(name, at, command=step)


@settings(max_examples=tries(300))
@given(STEPS, st.sampled_from(sorted(SENDERS)))
def test_an_audit_of_what_lanes_did_finds_nothing(steps: list[Any], dialect: str) -> None:
    sending, now = Sending.of(dialect), M
    for pause, is_down, name, step in steps:
        if not is_down:
            sending.ledger.run_until(now + pause)
        now += pause
        send(sending, step, name, now)
    sending.ledger.run(now)
    sending.ledger.run_until(now + HOUR)
    found = judged(sending.ledger, end=now + HOUR, patience=24 * HOUR)
    assert not explained(found)
    # Their messages do not name a tenant, so they look as if they were of the tenant default.
    of_shop = len([record for record in sending.ledger.of(sending.ledger.names.history) if is_of_shop(record)])
    expected = {"untraced": of_shop, "unclaimed": of_shop}
    if dialect == "light4j":
        expected = {"untraced": counts(found)["untraced"]}
    elif dialect == "skyuk":
        expected = {"untraced": len(sending.ledger.of(sending.ledger.target))}
    assert +counts(found) == +Counter(expected)
    assert sum(verdict.deliveries.number for verdict in found.values()) == len(sending.ledger.of(sending.ledger.target))


def is_of_shop(record: Record) -> bool:
    event = decode_history(record.value)
    return (event.tenant, event.event) == ("shop", EventType.FIRED)


def traced_rows(ledger: Ledger) -> list[Row]:
    return [row for row in evidence(ledger) if row.kind == TRACED]


@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
def test_messages_are_of_any_lane_until_their_commands_are_known(busy: Sending) -> None:
    assert {row.lane for row in traced_rows(busy.ledger)} == {ANY_LANE}
    assert {row.tenant for row in traced_rows(busy.ledger)} == {busy.sender.tenant}


@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
@pytest.mark.parametrize("cut", range(0, 180, 30))
def test_audits_in_parts_find_what_is_wrong_and_nothing_twice(busy: Sending, cut: int) -> None:
    copied = busy.firing(b"payload-4")
    again(busy, copied, timestamp=M + 170 * MINUTE)
    busy.ledger.remove(busy.firing(b"payload-3"))
    found = judged_in_parts(busy.ledger, [M + cut * MINUTE, M + 160 * MINUTE + cut * SECOND, M + 4 * HOUR])
    assert sorted((id, fault.kind.value) for id, fault in found) == [("s-3", "missing"), ("s-4", "duplicate")]


@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
def test_what_was_missing_and_is_lost_when_it_comes_late_is_told_once(dialect: str) -> None:
    sending = Sending.of(dialect)
    sending.schedule("once", M, M + HOUR)
    sending.ledger.run(M)
    sending.ledger.run(M + 2 * HOUR)
    sending.ledger.remove(sending.firing(b"payload"))
    found = judged_in_parts(sending.ledger, [M + 90 * MINUTE, M + 3 * HOUR])
    assert [(fault.kind.value, fault.due, fault.is_told) for _, fault in found] == [("missing", M + HOUR, False)]


@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
def test_a_copy_that_became_visible_after_an_audit_is_a_fault_whatever_its_timestamp(busy: Sending) -> None:
    """The schedule has ended, so there is nothing but the copy. A transaction can take longer than an audit waits."""
    (copy,) = [row for row in traced_rows(busy.ledger) if row.offset == busy.firing(b"payload-4").offset][:1]
    ((_, verdict),) = judged_rows(busy.ledger, [copy], second_audit(busy, copy.offset), Horizon({copy.topic: 0}, 0))
    assert [fault.kind for fault in verdict.faults] == ["unexpected"], "what it is a copy of is looked up then"
    ((_, verdict),) = judged_rows(busy.ledger, [copy], Bounds(0, M + 3 * HOUR, MINUTE), Horizon({copy.topic: 0}, 0))
    assert (verdict.faults[:], verdict.counts["unclaimed"]) == ([], 1), "it may be of the scheduler before"


def second_audit(sending: Sending, reached: int, topic: str | None = None) -> Bounds:
    """Return the bounds of a second audit; the first one has read a topic up to an offset, if any."""
    read = {sending.ledger.target if topic is None else topic: dict.fromkeys(range(10), reached)}
    return Bounds(0, M + 4 * HOUR, MINUTE, M + 3 * HOUR, read)


@pytest.mark.parametrize("timestamp", [M + HOUR, M + 3 * HOUR + MINUTE])
@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
def test_a_topic_that_is_read_for_the_first_time_may_have_messages_of_the_scheduler_before(
    busy: Sending, timestamp: int
) -> None:
    (old,) = [row for row in traced_rows(busy.ledger) if row.offset == busy.firing(b"payload-4").offset][:1]
    old = old._replace(timestamp=timestamp)
    horizon = Horizon({old.topic: 0}, 0)
    ((_, verdict),) = judged_rows(busy.ledger, [old], second_audit(busy, 0, "another"), horizon)
    assert (verdict.faults[:], verdict.counts["unclaimed"]) == ([], 1)


@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
def test_messages_that_an_audit_took_for_those_of_the_scheduler_before_stay_that_beside_a_fault(busy: Sending) -> None:
    (old,) = [row for row in traced_rows(busy.ledger) if row.offset == busy.firing(b"payload-4").offset][:1]
    new = old._replace(offset=old.offset + 1, timestamp=M + 3 * HOUR + MINUTE)
    bounds, horizon = second_audit(busy, new.offset), Horizon({old.topic: 0}, 0)
    ((_, verdict),) = judged_rows(busy.ledger, [old, new], bounds, horizon)
    assert [(fault.kind, fault.place.offset) for fault in verdict.faults] == [("unexpected", new.offset)]
    assert verdict.counts["unclaimed"] == 0, "the audit before has counted it"


# -- whose a message is ------------------------------------------------------------------------------------------------


def test_headers_that_come_last_say_whose_a_message_is() -> None:
    """A command may have been made from a message with all of its headers, in either direction."""
    native, other = Ledger(), Sending.of("karafka")
    other.schedule("a", M, M + HOUR)
    other.ledger.run(M)
    other.ledger.run_until(M + HOUR)
    (of_karafka,) = other.ledger.of(other.ledger.target)
    record = native.send("b", M, ("at", M + HOUR))
    native.change(record, replace(record, headers=[*of_karafka.headers, *record.headers]))
    native.run(M)
    native.run_until(M + HOUR)
    (of_native,) = native.of(native.target)
    others = OtherDialects.among({other.ledger.commands: "karafka"})

    assert others.owner(None, None, of_native.headers) is None
    assert native_owner(of_native.headers) == ("default", "b", native.lane_of("b"))
    owner = others.owner(None, None, [*of_native.headers, *of_karafka.headers])
    assert owner == Owner("default", "a", frozenset({other.ledger.commands}), 0)


def test_a_task_in_a_native_message_is_not_taken_for_that_of_light_4j() -> None:
    native = Ledger()
    native.send("b", M, ("at", M + HOUR))
    native.run(M)
    native.run_until(M + HOUR)
    (firing,) = native.of(native.target)
    others = OtherDialects.among({"tasks": "light4j"})
    assert others.owner(task_key("a"), task(M), []) == Owner("networknt.com", "a", frozenset({"tasks"}), None)
    assert others.owner(task_key("a"), task(M), firing.headers) is None
    assert others.owner(task_key("another"), task(M), []) is None


def test_a_message_of_a_topic_that_is_not_audited_is_nobodys() -> None:
    sending = Sending.of("etf1")
    sending.schedule("a", M, M + HOUR)
    sending.ledger.run(M)
    sending.ledger.run_until(M + HOUR)
    (firing,) = sending.ledger.of(sending.ledger.target)
    assert OtherDialects.among({"others": "etf1"}).owner(firing.key, firing.value, firing.headers) is None


@pytest.mark.parametrize("dialect", SENDERS)
def test_messages_are_read_alike_from_the_columns_of_kafka(busy: Sending) -> None:
    messages = busy.ledger.of(busy.ledger.target)
    rows = read(Reading("messages", {busy.ledger.commands: busy.sender.dialect}), messages)
    place = attrgetter("topic", "partition", "offset")
    assert [row_of(row) for row in rows] == sorted(traced_rows(busy.ledger), key=place)
    assert read(Reading("messages"), messages) == []


def test_commands_are_as_they_were_sent_and_claim_nothing(ledger: Ledger) -> None:
    sending = Sending(Ledger(dialect="karafka", beside=ledger), SENDERS["karafka"])
    sent = sending.schedule("a", M, M + HOUR, b"whole")
    (row,) = read(Reading("commands", {sent.topic: "karafka"}, ledger.limits), [sent])
    asked = decode_asked(row["value"])
    assert isinstance(asked, ScheduleCommand)
    assert (asked.payload, asked.headers) == (b"whole", sent.headers)
    assert (row["claim"], row["due"], row["at"]) == (None, None, None)


# -- what cannot be judged ---------------------------------------------------------------------------------------------


def compact(ledger: Ledger, until: int) -> None:
    """Leave of what was sent by an instant only the last command of each key."""
    for (topic, _), log in ledger.records.items():
        if topic == ledger.commands:
            last = {record.key: record.offset for record in log}
            log[:] = [record for record in log if record.timestamp > until or last[record.key] == record.offset]


@settings(max_examples=tries(300))
@given(OF_SENDERS, st.sampled_from(sorted(SENDERS)), st.integers(0, 4))
def test_commands_that_were_compacted_away_are_no_faults(steps: list[Any], dialect: str, share: int) -> None:
    sending, now = Sending.of(dialect), M
    for pause, _, name, step in steps:
        sending.ledger.run_until(now + pause)
        now += pause
        send(sending, step, name, now)
    sending.ledger.run(now)
    sending.ledger.run_until(now + HOUR)
    compact(sending.ledger, M + (now - M) * share // 4)
    end = now + HOUR
    found = judged(sending.ledger, end=end, patience=24 * HOUR, whole_since=end, compacted=True)
    assert not explained(found)


@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
def test_faults_are_found_in_a_compacted_topic_where_commands_are_left(busy: Sending) -> None:
    for kind in ("altered", "missing", "duplicate"):
        PLANTED[kind][0](busy)
    compact(busy.ledger, M + HOUR)
    end = M + 3 * HOUR
    found = judged(busy.ledger, end=end, whole_since=end, compacted=True)
    expected = [("s-0", "altered"), ("s-1", "altered"), ("s-3", "missing"), ("s-4", "duplicate")]
    assert faults(found) == expected, explained(found)
    assert counts(found)["unjudged"] > 0, "what history tells of the schedule that was cancelled"


def framed(sending: Sending, at: int) -> Record:
    """Send a task in a schema of a registry that nothing here knows."""
    return sending.ledger.append(sending.ledger.commands, 0, at, task_key("a"), b"\0\0\0\0\7another", [])


def test_a_schedule_whose_command_needs_a_registry_is_not_judged_unless_workers_rejected_it() -> None:
    sending = Sending.of("light4j")
    framed(sending, M)
    rows = sorted(evidence(sending.ledger), key=order_of)
    assert dict(cases(rows, topics_of(sending.ledger))) == {0: "unread"}
    sending.ledger.run(M)
    found = judged(sending.ledger, end=M + HOUR)
    assert ("a" in found, explained(found)) == (True, "")


@pytest.mark.parametrize(("dialect", "expected"), [("karafka", ["missing"]), ("skyuk", [])])
def test_a_native_message_that_is_missing_is_found_without_its_command_if_it_can_only_be_native(
    ledger: Ledger, dialect: str, expected: list[str]
) -> None:
    Ledger(dialect=dialect, beside=ledger)
    ledger.send("a", M, ("at", M + HOUR))
    ledger.run(M)
    ledger.run_until(M + HOUR)
    ledger.remove(ledger.of(ledger.target)[0])
    ledger.remove(ledger.of(ledger.names.commands)[0])
    found = judged(ledger, end=M + 2 * HOUR, whole_since=M + 2)
    assert [kind for _, kind in faults(found)] == expected
    assert counts(found)["unjudged"] == 2 + (not expected)


@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
def test_messages_of_schedules_without_commands_are_not_judged(busy: Sending) -> None:
    for log in [log for (topic, _), log in busy.ledger.records.items() if topic == busy.ledger.commands]:
        log.clear()
    found = judged(busy.ledger, end=M + 3 * HOUR, whole_since=M + 2 * HOUR)
    assert not explained(found)
    assert counts(found)["unjudged"] > 9


REGISTERED = Schemas()
for id, schema in {1: LIGHT4J_KEY, 2: LIGHT4J_VALUE, 3: LIGHT4J_CLASS_VALUE}.items():
    REGISTERED.note(id, schema)


@pytest.mark.parametrize("unit", ["MILLISECONDS", "MINUTES", "HOURS"])
@pytest.mark.parametrize(("id", "start"), [(2, None), (2, M - 10), (2, M + HOUR + 5), (2, 5), (3, M - 10), (3, 5)])
def test_tasks_of_published_schemas_are_read_as_workers_with_a_registry_read_them(
    unit: str, id: int, start: int | None
) -> None:
    schema = LIGHT4J_VALUE if id == 2 else LIGHT4J_CLASS_VALUE
    value = task(M, id=id, schema=schema, frequency={"timeUnit": unit, "time": 7_000}, start=start)
    record = UnsentRecord(task_key(id=1), value, (), M)
    made = []
    for dialect in (Light4jDialect(REGISTERED), dialect_named("light4j")):
        entry = decide(dialect.decode(record), None, M, NO_LIMITS).entry
        assert entry is not None
        made.append((entry.progress, entry.schedule.trigger, dialect.delivered(entry, M, b"tasks")))
    assert made[0] == made[1]


@pytest.mark.parametrize("is_altered", [False, True])
def test_a_task_that_was_stored_again_is_judged_from_then_on_in_a_compacted_topic(is_altered: bool) -> None:
    sending = Sending.of("light4j")
    for at, data in ((M, "first"), (M + 30 * MINUTE, "second")):
        sending.ledger.run_until(at)
        frequency = {"timeUnit": "MINUTES", "time": 7}
        value = task(M, data, name="a", topic=sending.ledger.target, frequency=frequency, start=M)
        sending.ledger.append(sending.ledger.commands, 0, at, task_key("a"), value, [])
    sending.ledger.run_until(M + HOUR)
    compact(sending.ledger, M + HOUR)
    firings = sending.ledger.of(sending.ledger.target)
    assert [b"first" in (record.value or b"") for record in firings] == [True] * 4 + [False] * 4
    if is_altered:
        sending.ledger.change(firings[-1], replace(firings[-1], value=firings[-2].value))
    end = M + HOUR
    found = judged(sending.ledger, end=end, whole_since=end, compacted=True)
    assert faults(found) == ([("a", "missing")] if is_altered else []), explained(found)
    assert found["a"].counts["unjudged"] == 1 + 4 + is_altered, "that it was scheduled, and its first firings"


@pytest.mark.parametrize("dialect", TRACED_DIALECTS)
def test_a_schedule_that_was_cancelled_leaves_nothing_to_the_next_audit_of_a_compacted_topic(busy: Sending) -> None:
    compact(busy.ledger, M + HOUR)
    end = M + 3 * HOUR
    found = judged(busy.ledger, end=end, whole_since=end, compacted=True)
    assert found["gone"].standing == (None, None)
    assert found["moved"].standing is not None, "it was replaced by a command that is there"
