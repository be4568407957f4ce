"""What the audit makes of schedules that moved since a topic has grown: nothing, and it says so."""

from __future__ import annotations

import dataclasses

import pytest
from aiokafka.structs import ConsumerRecord

from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.model import Entry, Headers, Once, Progress, Schedule, Target
from light_scheduler.model.adoption import Emptied
from light_scheduler.model.probe import ProbeMark
from light_scheduler.pipeline.audit.cases import cases
from light_scheduler.pipeline.audit.commands_topics import CommandsTopics
from light_scheduler.pipeline.audit.evidence import COMMAND, MOVED, Row, asked_of, encode_asked
from light_scheduler.pipeline.audit.promises import Refused
from light_scheduler.wire import dialect_named
from light_scheduler.wire.handover import adoption_headers, emptied_headers
from light_scheduler.wire.lane_marks import Grown, Origin, relayed
from light_scheduler.wire.probe import NO_VALUE, probe_headers
from light_scheduler.wire.state import encode_entry

AT = 1_767_225_600_000
GROWN = Grown("commands", 12, b"s")
NATIVE = dialect_named("native")
ENTRY = Entry(Schedule("acme", "a", 1, Once(AT), Target("t"), b"x", [], 1, 7, AT), Progress(AT, 7))
CANCEL: Headers = [("schedule-command", b"cancel"), ("schedule-tenant", b"acme")]


def record(headers: Headers, value: bytes | None = None) -> ConsumerRecord:
    return ConsumerRecord("commands", 5, 42, AT, 0, b"a", value, None, -1, -1, tuple(headers))


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(record(adoption_headers(1, encode_entry(ENTRY), b"s"), encode_entry(ENTRY)), id="a schedule"),
        pytest.param(record(relayed(record(CANCEL), None, GROWN, asks=True)), id="a question"),
        pytest.param(
            record(relayed(record(CANCEL), Origin(5, 41, AT), GROWN, asks=False)), id="a command that is back"
        ),
        pytest.param(
            record(relayed(record(CANCEL), Origin(5, 41, AT), GROWN, is_elsewhere=True)),
            id="a command that is elsewhere",
        ),
    ],
)
def test_a_schedule_that_moved_is_not_judged_in_any_lane(given: ConsumerRecord) -> None:
    tenant, id, asked, origin = asked_of(given, NATIVE, NO_LIMITS)
    moved = Row(tenant, id, 5, COMMAND, "commands", 5, 42, AT, origin, encode_asked(asked), [])
    before = moved._replace(lane=1, partition=1, key=None)

    assert (tenant, id, origin) == ("acme", "a", MOVED)
    assert dict(cases([before, moved], CommandsTopics("commands"))) == {1: "moved", 5: "moved"}
    assert dict(cases([before], CommandsTopics("commands"))).keys() == {1}


def test_a_partition_that_says_that_it_has_handed_over_everything_is_no_command() -> None:
    *_, asked, origin = asked_of(record(emptied_headers(Emptied(1, 12), b"s")), NATIVE, NO_LIMITS)
    assert (asked, origin) == (Refused(5, 42, AT, may_be_report=True), None)


def test_a_probe_is_no_command() -> None:
    given = record(probe_headers(ProbeMark("fired", "0" * 32), "commands", 5, b"s"), NO_VALUE)
    *_, asked, origin = asked_of(dataclasses.replace(given, key=None), NATIVE, NO_LIMITS)
    assert (asked, origin) == (Refused(5, 42, AT, may_be_report=True), None)
