"""What an audit finds, and what it does not: verdicts over the topics that real cycles write."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from support.ledger import Ledger, Record
from support.tries import tries

from light_scheduler.engine import FiringRules
from light_scheduler.model import Entry, EventType, HomeKey
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules, TenantState
from light_scheduler.pipeline.audit.cases import cases
from light_scheduler.pipeline.audit.evidence import imported_row
from light_scheduler.pipeline.audit.faults import FaultKind
from light_scheduler.pipeline.audit.gathering import imported_lane
from light_scheduler.pipeline.audit.verdict import Verdict
from light_scheduler.pipeline.import_decisions import adopted
from light_scheduler.wire import decode_history, encode_history, partition_for

from .conftest import Verdicts, evidence, judged, order_of, topics_of

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


def faults(found: dict[str, Verdict]) -> list[tuple[str, str, int | None]]:
    return [(id, fault.kind.value, fault.due) for id, verdict in found.items() for fault in verdict.faults]


def explained(found: dict[str, Verdict]) -> str:
    return "\n".join(f"{id}: {fault}" for id, verdict in found.items() for fault in verdict.faults)


# -- nothing is found where nothing is wrong ---------------------------------------------------------------------------

Headers = list[tuple[str, Any]]

TIMES: st.SearchStrategy[Headers] = st.sampled_from(
    [
        [("at", M + HOUR)],
        [("at", M - HOUR)],
        [("after", "90s")],
        [("every", "10m")],
        [("every", "10m"), ("max-firings", 3)],
        [("every", "7m"), ("jitter", "3m")],
        [("every", "20m"), ("window", "5m")],
        [("every", "1m"), ("misfire", "all"), ("max-firings", 20)],
        [("every", "1m"), ("misfire", "skip"), ("end", M + 2 * HOUR)],
        [("cron", "*/10 * * * *")],
        [("every", "10m"), ("mode", "fixed-delay"), ("ack-timeout", "1m")],
        [("backoff", "1m,2m,4m")],
        [("at", M + HOUR), ("ack-timeout", "5m"), ("max-attempts", 3)],
        [("every", "5m"), ("ack-timeout", "12m"), ("overlap", "queue"), ("max-attempts", 2)],
        [("every", "5m"), ("ack-timeout", "12m"), ("overlap", "skip")],
        [("at", M + HOUR), ("ttl", "1s")],
        [("at", M + HOUR), ("ack-timeout", "5m"), ("max-attempts", 2), ("ttl", "6m")],
        [("at", M + 30 * MINUTE), ("target-topic", "missing")],
        [("at", "soon")],
        [("at", M - HOUR), ("on-past", "reject")],
        [("cron", "* * *")],
    ]
)
COMMANDS: st.SearchStrategy[Headers] = st.one_of(
    TIMES,
    TIMES.map(lambda time: [*time, ("on-conflict", "keep")]),
    TIMES.map(lambda time: [*time, ("on-conflict", "fail")]),
    TIMES.map(lambda time: [*time, ("expected-version", 1)]),
    TIMES.map(lambda time: [*time, ("paused", "true")]),
    st.sampled_from(["cancel", "pause", "resume", "trigger"]).map(lambda name: [("command", name)]),
    st.sampled_from(["success", "failure"]).map(
        lambda word: [("command", "complete"), ("firing-id", f"a@{M + HOUR}"), ("attempt", 1), ("completion", word)]
    ),
    st.sampled_from([[], [("ack-timeout", "40m")]]).map(
        lambda span: [("command", "extend"), ("firing-id", f"a@{M + HOUR}"), ("attempt", 1), *span]
    ),
    st.sampled_from([("every", "15m"), ("at", M + 2 * HOUR)]).map(lambda time: [("command", "reschedule"), time]),
    st.sampled_from(["cancel", "pause", "resume", "trigger"]).map(lambda name: [("command", name), ("id", "*")]),
    st.just([("command", "reschedule"), ("every", "15m"), ("id", "*")]),
    st.just([("command", "reschedule"), ("at", M - HOUR), ("on-past", "reject"), ("id", "*")]),
    st.just([("bulk-count", "0:1:1:" + "0" * 32)]),  # which no lane has written
)
STEPS = st.lists(
    st.tuples(st.integers(0, 20 * MINUTE), st.booleans(), st.sampled_from([None, None, None, 0, 1]), COMMANDS),
    min_size=1,
    max_size=12,
)


@settings(max_examples=tries(300))
@given(STEPS)
def test_nothing_is_late_if_lanes_wake_whenever_something_is_due(steps: list[Any]) -> None:
    ledger, now = Ledger(), M
    for pause, _, _, headers in steps:
        ledger.run_until(now + pause)
        now += pause
        ledger.send("a", now, *headers)
        ledger.run(now)
    ledger.run_until(now + HOUR)
    assert not explained(judged(ledger, end=now + HOUR, patience=1))


def test_a_firing_that_waits_in_the_queue_is_late_only_once_the_run_before_it_is_over(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    queue = [("ack-timeout", "12m"), ("overlap", "queue"), ("max-attempts", 2)]
    ledger.send("a", M, ("every", "5m"), ("max-firings", 2), *queue)
    ledger.run_until(M + 28 * MINUTE)
    ledger.run(M + 29 * MINUTE + 10 * SECOND)  # the second attempt is over at 00:29
    assert not explained(verdicts(ledger, end=M + 30 * MINUTE, patience=10 * SECOND))
    found = verdicts(ledger, end=M + 30 * MINUTE, patience=9 * SECOND)
    assert faults(found) == [("a", "late", M + 10 * MINUTE)]


@settings(max_examples=tries(300))
@given(STEPS, st.sampled_from([FiringRules(), FiringRules(lookback_minutes=30), FiringRules(retries=0)]))
def test_an_audit_of_what_lanes_did_finds_nothing(steps: list[Any], rules: FiringRules) -> None:
    ledger = Ledger(rules=rules)
    now = M
    for pause, is_down, partition, headers in steps:
        if not is_down:  # else everything that comes until then waits, as if every worker were down
            ledger.run_until(now + pause)
        now += pause
        ledger.send("a", now, *headers, partition=partition)
    ledger.run(now)
    ledger.run_until(now + HOUR)
    found = judged(ledger, end=now + HOUR, patience=24 * HOUR)
    assert not explained(found)
    assert sum(verdict.counts["unjudged"] for verdict in found.values()) == 0
    fired = sum(verdict.deliveries.number for verdict in found.values())
    assert fired == len(ledger.of(ledger.target))


@pytest.mark.parametrize("misfire", ["skip", "coalesce"])
def test_an_audit_finds_nothing_wrong_with_a_firing_that_is_refused_after_missed_ones(misfire: str) -> None:
    ledger = Ledger(rules=FiringRules(retries=1))
    ledger.send("a", M, ("every", "10m"), ("misfire", misfire), ("target-topic", "missing"))
    ledger.run(M)
    ledger.run(M + HOUR)
    ledger.run_until(M + HOUR + MINUTE)
    told = [decode_history(record.value or b"").event for record in ledger.of(ledger.names.history)]
    assert told[:4] == [EventType.SCHEDULED, EventType.SKIPPED, EventType.RETRIED, EventType.DEAD_LETTERED]
    assert not explained(judged(ledger, end=M + HOUR + MINUTE))


@pytest.mark.parametrize("attempts", [1, 2])
def test_an_audit_expects_the_dead_letter_of_a_firing_that_was_never_completed_whatever_its_time_to_live(
    attempts: int,
) -> None:
    ledger = Ledger()
    ledger.send("a", M, ("at", M + HOUR), ("ack-timeout", "1m"), ("max-attempts", attempts), ("ttl", "1s"))
    ledger.run_until(M + 2 * HOUR)
    told = [decode_history(record.value or b"").event for record in ledger.of(ledger.names.history)]
    last = EventType.DEAD_LETTERED if attempts == 1 else EventType.EXPIRED
    assert told == [EventType.SCHEDULED, EventType.FIRED, last]
    assert not explained(judged(ledger, end=M + 2 * HOUR))
    for letter in ledger.of(ledger.names.dead_letters):
        ledger.remove(letter)
    missing = [("a", "missing", M + HOUR)] if attempts == 1 else []
    assert faults(judged(ledger, end=M + 2 * HOUR)) == missing


def test_an_audit_takes_missed_firings_and_one_that_may_not_overlap_for_what_they_are() -> None:
    ledger = Ledger()
    ledger.send("a", M, ("every", "10m"), ("ack-timeout", "1d"), ("overlap", "skip"))
    ledger.run_until(M + 10 * MINUTE)
    ledger.run(M + HOUR)
    told = [decode_history(record.value) for record in ledger.of(ledger.names.history)]
    assert [(event.due, event.count) for event in told if event.event is EventType.SKIPPED] == [
        (M + 20 * MINUTE, 4),
        (M + HOUR, 1),
    ]
    assert not explained(judged(ledger, end=M + HOUR))


# -- what a new definition leaves undelivered --------------------------------------------------------------------------


def superseded() -> Ledger:
    """A series whose workers were down from 00:35 to 01:20, and that was sent again at 01:15."""
    ledger = Ledger()
    ledger.send("a", M, ("every", "10m"))
    ledger.run_until(M + 35 * MINUTE)
    ledger.send("a", M + HOUR + 15 * MINUTE, ("every", "10m"))
    ledger.run(M + HOUR + 20 * MINUTE)
    ledger.run_until(M + 2 * HOUR)
    return ledger


def test_an_audit_takes_firings_that_were_skipped_since_their_series_was_sent_again_for_what_they_are() -> None:
    ledger = superseded()
    line = decode_history(told(ledger, "a", EventType.SKIPPED).value)
    assert (line.due, line.count, line.version) == (M + 40 * MINUTE, 4, 1)
    assert not explained(judged(ledger, end=M + 2 * HOUR))


def test_an_audit_finds_that_skipped_firings_are_not_told_of() -> None:
    ledger = superseded()
    ledger.remove(told(ledger, "a", EventType.SKIPPED))
    assert faults(judged(ledger, end=M + 2 * HOUR)) != []


@pytest.mark.parametrize("count", [3, 5])
def test_an_audit_finds_that_another_number_of_firings_was_skipped(count: int) -> None:
    ledger = superseded()
    record = told(ledger, "a", EventType.SKIPPED)
    other = structs.replace(decode_history(record.value), count=count)
    ledger.change(record, replace(record, value=encode_history(other)))
    assert faults(judged(ledger, end=M + 2 * HOUR)) != []


def test_an_audit_finds_firings_that_are_told_to_be_skipped_and_were_not() -> None:
    ledger = superseded()
    record = told(ledger, "a", EventType.SKIPPED)
    ledger.append(record.topic, record.partition, record.timestamp, record.key, record.value, record.headers)
    assert faults(judged(ledger, end=M + 2 * HOUR)) != []


# -- what is planted is found ------------------------------------------------------------------------------------------


@pytest.fixture
def busy(ledger: Ledger) -> Ledger:
    """An application at 02:00 that has had one-shots, a series, an update and a cancel."""
    for number in range(20):
        ledger.send(f"once-{number}", M, ("at", M + HOUR + number))
    ledger.send("series", M, ("every", "10m"))
    ledger.send("moved", M, ("at", M + HOUR))
    ledger.send("moved", M + 1, ("at", M + HOUR + MINUTE))
    ledger.send("gone", M, ("at", M + HOUR))
    ledger.send("gone", M + 2, ("command", "cancel"))
    ledger.run(M + 2)
    ledger.run_until(M + 2 * HOUR)
    return ledger


def firing_of(ledger: Ledger, id: str, number: int = 0) -> Record:
    return [record for record in ledger.of(ledger.target) if record.header("schedule-id") == id.encode()][number]


def told(ledger: Ledger, id: str, event: EventType, number: int = 0) -> Record:
    found = [record for record in ledger.of(ledger.names.history) if record.key == f"default/{id}".encode()]
    return [record for record in found if decode_history(record.value).event is event][number]


def fake(ledger: Ledger, id: str, due: int, at: int, version: int = 1) -> None:
    """Add a firing as if a lane had delivered it."""
    like = firing_of(ledger, "once-3")
    for name, value in {"id": id, "due": due, "fired-at": at, "version": version}.items():
        like = like.with_header(f"schedule-{name}", str(value).encode())
    lane = told(ledger, id, EventType.SCHEDULED)
    partition = decode_history(lane.value).partition
    like = like.with_header("schedule-source-partition", b"%d" % partition)
    ledger.append(ledger.target, 0, at, like.key, like.value, like.headers)


def early(ledger: Ledger) -> None:
    record = firing_of(ledger, "once-3")
    due = int(record.header("schedule-due") or b"")
    ledger.change(record, record.with_header("schedule-fired-at", b"%d" % (due - 1)))


def late(ledger: Ledger) -> None:
    ledger.send("late", M + 2 * HOUR - 10 * MINUTE, ("at", M + 2 * HOUR - 5 * MINUTE))
    ledger.run(M + 2 * HOUR)


def again(ledger: Ledger) -> None:
    record = firing_of(ledger, "once-3")
    ledger.append(ledger.target, 1, record.timestamp, record.key, record.value, record.headers)


def other_header(ledger: Ledger) -> None:
    record = firing_of(ledger, "once-3")
    ledger.change(record, record.with_header("user", b"other"))


def without_firing_id(ledger: Ledger) -> None:
    record = firing_of(ledger, "once-3")
    left = [header for header in record.headers if header[0] != "schedule-firing-id"]
    ledger.change(record, replace(record, headers=left))


def lost(ledger: Ledger) -> None:
    ledger.remove(firing_of(ledger, "once-3"))


def lost_in_series(ledger: Ledger) -> None:
    ledger.remove(firing_of(ledger, "series", 4))


def never_tried(ledger: Ledger) -> None:
    lost(ledger)
    ledger.remove(told(ledger, "once-3", EventType.FIRED))


def never_tried_in_series(ledger: Ledger) -> None:
    lost_in_series(ledger)
    ledger.remove(told(ledger, "series", EventType.FIRED, 4))


def lost_on_its_way(ledger: Ledger) -> None:
    """A schedule is sent to the wrong partition, and never reaches the right one."""
    home = ledger.lane_of("astray")
    ledger.send("astray", M + 2 * HOUR, ("at", M + 3 * HOUR), partition=1 - home)
    ledger.run(M + 2 * HOUR)
    ledger.remove(ledger.records[ledger.names.commands, home][-1])
    ledger.remove(told(ledger, "astray", EventType.SCHEDULED))


def early_in_history(ledger: Ledger) -> None:
    """History and message agree that a firing left early."""
    early(ledger)
    record = told(ledger, "once-3", EventType.FIRED)
    due = decode_history(record.value).due or 0
    value = (record.value or b"").replace(b'"at":%d' % due, b'"at":%d' % (due - 1))
    ledger.change(record, replace(record, value=value))


def while_paused(ledger: Ledger) -> None:
    """A schedule fires although it was paused before."""
    ledger.send("held", M + 2 * HOUR - 20 * MINUTE, ("at", M + 2 * HOUR - 10 * MINUTE))
    ledger.run(M + 2 * HOUR - 20 * MINUTE)
    ledger.run(M + 2 * HOUR - 10 * MINUTE)
    line = told(ledger, "held", EventType.FIRED)
    paused = ledger.send("held", line.timestamp - MINUTE, ("command", "pause"))
    ledger.forget()
    scheduled = decode_history(told(ledger, "held", EventType.SCHEDULED).value)
    event = structs.replace(scheduled, event=EventType.PAUSED, at=paused.timestamp)
    ledger.change(line, replace(line, value=encode_history(event)))
    ledger.append(line.topic, line.partition, line.timestamp, line.key, line.value, line.headers)


PLANTED: dict[str, tuple[Callable[[Ledger], None], list[tuple[str, str, int | None]]]] = {
    "a firing that is not there": (lost, [("once-3", "missing", M + HOUR + 3)]),
    "one firing of a series that is not there": (lost_in_series, [("series", "missing", M + 50 * MINUTE)]),
    "a firing that neither history nor target have": (never_tried, [("once-3", "missing", M + HOUR + 3)]),
    "a firing in a series that neither history nor target have": (
        never_tried_in_series,
        [("series", "missing", M + 50 * MINUTE)],
    ),
    "a firing that is there twice": (again, [("once-3", "duplicate", M + HOUR + 3)]),
    "a firing that left early": (early, [("once-3", "early", M + HOUR + 3)]),
    "a firing that left early by its line, too": (
        early_in_history,
        [("once-3", "early", M + HOUR + 3), ("once-3", "early", M + HOUR + 3)],
    ),
    "a firing of a paused schedule": (while_paused, [("held", "unexpected", M + 2 * HOUR - 10 * MINUTE)]),
    "a firing that is late": (late, [("late", "late", M + 2 * HOUR - 5 * MINUTE)]),
    "another payload": (
        lambda ledger: ledger.change(firing_of(ledger, "once-3"), replace(firing_of(ledger, "once-3"), value=b"x")),
        [("once-3", "altered", M + HOUR + 3)],
    ),
    "another key": (
        lambda ledger: ledger.change(firing_of(ledger, "once-3"), replace(firing_of(ledger, "once-3"), key=b"x")),
        [("once-3", "altered", M + HOUR + 3)],
    ),
    "another delivery id": (
        lambda ledger: ledger.change(
            firing_of(ledger, "once-3"), firing_of(ledger, "once-3").with_header("schedule-delivery-id", b"x")
        ),
        [("once-3", "altered", M + HOUR + 3)],
    ),
    "another firing id": (
        lambda ledger: ledger.change(
            firing_of(ledger, "once-3"), firing_of(ledger, "once-3").with_header("schedule-firing-id", b"x")
        ),
        [("once-3", "altered", M + HOUR + 3)],
    ),
    "no firing id": (without_firing_id, [("once-3", "altered", M + HOUR + 3)]),
    "another header": (other_header, [("once-3", "altered", M + HOUR + 3)]),
    "a firing after its cancel": (
        lambda ledger: fake(ledger, "gone", M + HOUR, M + HOUR),
        [("gone", "after_cancel", M + HOUR)],
    ),
    "the old time of an update": (
        lambda ledger: fake(ledger, "moved", M + HOUR, M + HOUR),
        [("moved", "superseded", M + HOUR)],
    ),
    "a schedule that got lost between two partitions": (lost_on_its_way, [("astray", "ignored", None)]),
    "a firing that nobody asked for": (
        lambda ledger: fake(ledger, "once-5", M + HOUR - 7, M + HOUR),
        [("once-5", "unexpected", M + HOUR - 7)],
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_wrong_is_found_and_nothing_else(name: str, busy: Ledger, verdicts: Verdicts) -> None:
    plant, expected = PLANTED[name]
    plant(busy)
    assert faults(verdicts(busy, end=M + 2 * HOUR)) == expected


@pytest.mark.parametrize(
    ("key", "is_altered"),
    [(b"shop-7", False), (b"shop-8", True), (None, False)],
    ids=["its own", "another", "none, as in an older version"],
)
def test_the_key_that_a_firing_tells_is_that_of_its_schedule(
    key: bytes | None, is_altered: bool, ledger: Ledger, verdicts: Verdicts
) -> None:
    ledger.send("shop-7", M, ("id", "a"), ("at", M + HOUR), ("target-key", "m"), ("ack-timeout", "1h"))
    ledger.run_until(M + HOUR)
    firing = firing_of(ledger, "a")
    assert firing.headers[-1] == ("schedule-key", b"shop-7")
    ledger.change(
        firing, replace(firing, headers=[*firing.headers[:-1], *([] if key is None else [("schedule-key", key)])])
    )
    assert faults(verdicts(ledger, end=M + HOUR)) == ([("a", "altered", M + HOUR)] if is_altered else [])


def test_the_key_of_a_schedule_is_the_one_that_its_command_was_sent_by_whatever_its_value_says(
    verdicts: Verdicts,
) -> None:
    ledger = Ledger(dialect="json")
    asked = {"command": "schedule", "key": "customer-7", "trigger": {"at": M + HOUR}, "ack_timeout": "1h"}
    for id, key in (("a", b"abc"), ("b", None)):
        value = json.dumps({**asked, "id": id, "target": {"topic": ledger.target}}).encode()
        lane = ledger.lane_of("customer-7" if key is None else "abc")
        ledger.append(ledger.names.commands, lane, M, key, value, [])
    ledger.run_until(M + HOUR)
    assert [firing_of(ledger, id).header("schedule-key") for id in "ab"] == [b"abc", b"customer-7"]
    assert faults(verdicts(ledger, end=M + HOUR)) == []


def test_a_key_that_a_firing_has_no_reason_to_tell_is_found(busy: Ledger, verdicts: Verdicts) -> None:
    firing = firing_of(busy, "once-3")
    busy.change(firing, replace(firing, headers=[*firing.headers, ("schedule-key", b"once-3")]))
    assert faults(verdicts(busy, end=M + 2 * HOUR)) == [("once-3", "altered", M + HOUR + 3)]


def test_a_copy_in_another_topic_is_the_duplicate_and_the_genuine_message_is_not_blamed(
    busy: Ledger, verdicts: Verdicts
) -> None:
    record = firing_of(busy, "once-3")
    copy = busy.append("a-topic-before", 0, record.timestamp, record.key, record.value, record.headers)
    (fault,) = verdicts(busy, end=M + 2 * HOUR, targets=("a-topic-before",))["once-3"].faults
    assert (fault.kind, fault.place) == (FaultKind.DUPLICATE, (copy.topic, copy.partition, copy.offset))


@pytest.mark.parametrize("start", [M + 50 * MINUTE, M + 100 * MINUTE], ids=["read as well", "not read"])
def test_a_copy_that_came_after_the_start_of_the_audit_is_a_duplicate_whatever_of_the_genuine_message_is_read(
    start: int, busy: Ledger, verdicts: Verdicts
) -> None:
    record = firing_of(busy, "once-3")
    busy.append(busy.target, 1, M + 110 * MINUTE, record.key, record.value, record.headers)
    (fault,) = verdicts(busy, start=start, end=M + 2 * HOUR)["once-3"].faults
    assert (fault.kind, fault.at, fault.place.partition) == (FaultKind.DUPLICATE, M + 110 * MINUTE, 1)


def test_a_firing_from_before_the_start_that_is_recorded_after_it_is_the_genuine_one(
    busy: Ledger, verdicts: Verdicts
) -> None:
    record = firing_of(busy, "once-3")
    busy.change(record, replace(record, timestamp=record.timestamp + SECOND))
    start = record.timestamp + SECOND // 2
    assert not explained(verdicts(busy, start=start, end=M + 2 * HOUR))


def test_a_premature_message_that_history_does_not_tell_of_is_early(busy: Ledger, verdicts: Verdicts) -> None:
    busy.send("ahead", M + 2 * HOUR, ("at", M + 4 * HOUR))
    busy.run(M + 2 * HOUR)
    fake(busy, "ahead", M + 4 * HOUR, M + 2 * HOUR)
    (fault,) = verdicts(busy, end=M + 2 * HOUR)["ahead"].faults
    assert (fault.kind, fault.due) == (FaultKind.EARLY, M + 4 * HOUR)


def test_what_was_removed_with_its_tenant_is_not_missing(busy: Ledger, verdicts: Verdicts) -> None:
    busy.send("ahead", M + 2 * HOUR, ("at", M + 3 * HOUR))
    busy.run(M + 2 * HOUR)
    busy.tenants.book = TenantBook([Tenant(name="default", state=TenantState.DELETED)])
    busy.run(M + 2 * HOUR + 1)
    busy.send("series", M + 2 * HOUR + 2, ("command", "trigger"))
    busy.run(M + 2 * HOUR + 2)
    assert not explained(verdicts(busy, end=M + 4 * HOUR))


def test_a_command_without_a_target_has_that_of_its_tenant_or_is_rejected(ledger: Ledger, verdicts: Verdicts) -> None:
    ledger.send("early", M, ("at", M + HOUR), ("target-topic", None))
    ledger.run(M)
    ledger.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(default_target=ledger.target))])
    ledger.send("in-time", M + 1, ("at", M + HOUR), ("target-topic", None))
    ledger.run(M + 1)
    ledger.run_until(M + 2 * HOUR)
    assert len(ledger.of(ledger.target)) == 1
    assert not explained(verdicts(ledger, end=M + 2 * HOUR))


def test_a_schedule_whose_id_is_longer_than_a_new_limit_can_be_changed_and_no_other_is_accepted(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    ledger.send("pending", M, ("every", "1h"))
    ledger.run(M)
    ledger.limits = replace(ledger.limits, max_id_bytes=4)
    ledger.send("pending", M + 1, ("command", "pause"))
    ledger.send("pending", M + 2, ("every", "30m"))
    ledger.send("pending", M + 3, ("command", "cancel"))
    ledger.send("pending", M + 4, ("command", "cancel"))
    ledger.send("other-one", M + 5, ("every", "1h"))
    ledger.run(M + 6)
    told = [decode_history(record.value).event for record in ledger.of(ledger.names.history)]
    assert sorted(told) == ["cancelled", "paused", "rejected", "rejected", "scheduled", "updated"]
    assert not explained(verdicts(ledger, end=M + HOUR))


@pytest.mark.parametrize("is_told", [True, False], ids=["rejected", "passed over"])
def test_a_rejected_command_for_many_schedules_is_ignored_by_none_of_them(
    is_told: bool, ledger: Ledger, verdicts: Verdicts
) -> None:
    rules = TenantRules(commands_per_second=1, over_rate=OverRate.REJECT)
    ledger.tenants.book = TenantBook([Tenant(name="shop", rules=rules)])
    lane, of_shop = ledger.lane_of("s-1"), ("tenant", "shop")
    ledger.send("s-1", M, ("every", "1h"), of_shop)
    ledger.run(M)
    for number in range(30):
        ledger.send(f"x-{number}", M + SECOND, ("at", M + HOUR), of_shop, partition=lane)
    ledger.send("s-*", M + SECOND, ("command", "pause"), ("id", "s-*"), of_shop, value=None, partition=lane)
    ledger.run(M + SECOND)
    ledger.send("s-1", M + MINUTE, ("at", M + HOUR), of_shop)
    ledger.run_until(M + 2 * HOUR)
    ledger.run(M + 2 * HOUR)
    letters = ledger.of(ledger.names.dead_letters)
    assert any(letter.header("dead-letter-id") == b"s-*" for letter in letters)
    if not is_told:
        for log in (ledger.names.dead_letters, ledger.names.history):
            ledger.remove(next(each for each in reversed(ledger.of(log)) if b"s-*" in str(each).encode()))
    assert faults(verdicts(ledger, end=M + 2 * HOUR)) == ([] if is_told else [("s-1", "ignored", None)])


def test_a_command_for_many_schedules_that_only_another_partition_has_rejected_had_its_effect(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    lane, of_shop = ledger.lane_of("s-1"), ("tenant", "shop")
    for number in range(4):
        ledger.send(f"s-{number}", M, ("at", M + HOUR), of_shop)
    ledger.run(M)
    ledger.send("s-*", M + SECOND, ("command", "pause"), ("id", "s-*"), of_shop, value=None, partition=lane)
    ledger.cycle(lane, M + SECOND)
    ledger.stop("shop", TenantState.DELETED, M + 2 * SECOND)
    ledger.run(M + 3 * SECOND)
    (letter,) = ledger.of(ledger.names.dead_letters)
    assert letter.header("dead-letter-source-partition") == b"%d" % lane
    events = [decode_history(record.value) for record in ledger.of(ledger.names.history)]
    assert {event.partition for event in events if event.event is EventType.PAUSED} == {lane}
    assert {event.partition for event in events if event.event is EventType.REJECTED} == {1 - lane}
    assert not explained(verdicts(ledger, end=M + 2 * HOUR))


def test_a_command_that_history_tells_was_rejected_is_not_ignored_whatever_else_may_have_been_rejected(
    ledger: Ledger, verdicts: Verdicts
) -> None:
    ledger.tenants.book = TenantBook([Tenant(name="shop", rules=TenantRules(default_target=ledger.target))])
    of_shop = ("tenant", "shop")
    ledger.send("b", M, ("at", M + HOUR), of_shop)
    ledger.send("b", M + 1, ("at", "soon"), of_shop)
    ledger.send("b", M + 2, ("at", M + HOUR), ("on-conflict", "keep"), ("target-topic", None), of_shop)
    ledger.send("c", M + 3, ("at", M + HOUR), of_shop, partition=ledger.lane_of("b"))
    ledger.run(M + 3)
    ledger.run_until(M + 2 * HOUR)
    assert not explained(verdicts(ledger, end=M + 2 * HOUR))


@pytest.mark.parametrize("ends", [True, False], ids=["delivered", "lost"])
def test_schedules_that_were_imported_are_promised_as_they_were_pending(
    ends: bool, verdicts: Verdicts, ledger: Ledger
) -> None:
    ledger.send("once", M, ("at", M + HOUR))
    ledger.send("rate", M, ("every", "10m"), ("end", M + HOUR))
    ledger.run_until(M + 35 * MINUTE)
    pending = [adopted(entry, {}) for entry in ledger.pending()]
    imported = [imported_row(entry, ledger.names.commands, ledger.lane_of(entry.schedule.id)) for entry in pending]
    ledger = Ledger()
    ledger.adopt(pending)
    ledger.run_until(M + 2 * HOUR)
    if not ends:
        ledger.remove(firing_of(ledger, "once"))
    found = verdicts(ledger, end=M + 2 * HOUR, imported=imported)
    assert faults(found) == ([] if ends else [("once", "missing", M + HOUR)])
    assert sum(verdict.deliveries.number for verdict in found.values()) == len(ledger.of(ledger.target)) > 0
    assert {kind for _, kind, _ in faults(verdicts(ledger, end=M + 2 * HOUR))} >= {"unexpected"}


@pytest.mark.parametrize("ends", [True, False], ids=["delivered", "lost"])
def test_schedules_that_were_imported_into_other_partitions_are_promised_there(
    ends: bool, verdicts: Verdicts, ledger: Ledger
) -> None:
    for number in range(8):
        ledger.send(f"once-{number}", M, ("at", M + HOUR))
    ledger.send("refused", M, ("at", M + HOUR), ("target-topic", "missing"))
    ledger.send("rate", M, ("every", "10m"), ("end", M + 2 * HOUR))
    ledger.run_until(M + 35 * MINUTE)
    pending = [adopted(entry, {}) for entry in ledger.pending()]
    ledger = Ledger(partitions=3)
    imported = [imported_row(entry, ledger.names.commands, ledger.lane_of(entry.schedule.id)) for entry in pending]
    assert any(row.lane != entry.schedule.source_partition for row, entry in zip(imported, pending, strict=True))
    ledger.adopt(pending)
    ledger.run_until(M + 90 * MINUTE)
    ledger.send("rate", M + 90 * MINUTE, ("command", "pause"), value=None)
    ledger.send("rate", M + 100 * MINUTE, ("every", "5m"), ("end", M + 2 * HOUR))
    ledger.run_until(M + 3 * HOUR)
    if not ends:
        ledger.remove(firing_of(ledger, "once-3"))
    found = verdicts(ledger, end=M + 3 * HOUR, imported=imported)
    assert faults(found) == ([] if ends else [("once-3", "missing", M + HOUR)])
    assert sum(verdict.deliveries.number for verdict in found.values()) == len(ledger.of(ledger.target))


def test_an_imported_schedule_whose_former_partition_has_another_of_its_id_is_not_judged(ledger: Ledger) -> None:
    ledger.send("a", M, ("at", M + HOUR))
    ledger.run(M)
    (pending,) = ledger.pending()
    elsewhere = 1 - pending.schedule.source_partition
    imported = imported_row(adopted(pending, {}), ledger.names.commands, elsewhere)
    rows = sorted([imported, *evidence(ledger)], key=order_of)
    assert set(dict(cases(rows, topics_of(ledger))).values()) == {"moved"}


@pytest.mark.parametrize(("partitions", "lane"), [(4, 0), (8, 4)], ids=["as many as it came from", "another number"])
def test_a_schedule_that_was_imported_is_looked_for_by_its_key_unless_that_is_unknown(
    partitions: int, lane: int, ledger: Ledger
) -> None:
    key = next(f"k-{number}" for number in range(100) if partition_for(f"k-{number}".encode(), 8) == 4)
    ledger.send(key, M, ("at", M + HOUR))
    ledger.run(M)
    (entry,) = ledger.pending()
    keyless = Entry(structs.replace(entry.schedule, home_key=HomeKey.UNKNOWN), entry.progress)
    assert partition_for(key.encode(), 4) == 0
    assert imported_lane(entry, 0, 4, partitions) == lane
    assert imported_lane(keyless, 0, 4, partitions) == 0


def test_a_fault_names_the_record_to_look_at(busy: Ledger, verdicts: Verdicts) -> None:
    record = firing_of(busy, "once-3")
    again(busy)
    (fault,) = verdicts(busy, end=M + 2 * HOUR)["once-3"].faults
    assert fault.kind is FaultKind.DUPLICATE
    twins = [each for each in busy.of(busy.target) if each.header("schedule-id") == b"once-3"]
    assert fault.place in {(each.topic, each.partition, each.offset) for each in twins}
    assert record in twins
