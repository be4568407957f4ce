"""Errors of calls that make commands name the arguments, not the headers that they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import MetaData, create_engine

from light_scheduler.client import CommandRecords, record_for
from light_scheduler.errors import InvalidCommand
from light_scheduler.outbox import Outbox


def booked(**request: Any) -> None:
    outbox = Outbox(metadata := MetaData())
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.connect() as connection:
        outbox.schedule(connection, **request)


@pytest.mark.parametrize("make", [booked, CommandRecords().schedule])
@pytest.mark.parametrize(
    ("request_", "field", "reason"),
    [
        ({"topic": "a b"}, "topic", "'a b' is not a topic name"),
        ({"topic": "schedule-at b"}, "topic", "'schedule-at b' is not a topic name"),
        ({"mode": "fixed-rate"}, "mode", "needs every"),
        ({"cron": "@daily", "cron_dialect": "x"}, "cron_dialect", "'x' must be one of"),
        ({"at": 1}, "at", "looks like seconds"),
        ({"at": 1_900_000_000_000, "cron": "@daily"}, "cron", "at"),
        ({"max_attempts": 3}, "max_attempts", "needs ack_timeout: the time to wait for the completion"),
        (
            {"target_partition": 1, "target_partition_key": "k"},
            "target_partition_key",
            "together with target_partition:",
        ),
        ({"every": "1h", "on_past": "reject"}, "on_past", "for a series use misfire"),
        ({"id": "a*"}, "id", "must not end in *"),
        ({"priority": 300}, "priority", "is not a whole number from 0 to 255"),
        (
            {"headers": {"schedule-at": "1"}},
            "headers",
            "schedule-at: header names that begin with schedule- are reserved",
        ),
        ({"headers": {1: "1"}}, "headers", "has the name 1"),
        ({"labels": {"a": 5}}, "labels", "must have a name and a value that are text"),
    ],
)
def test_an_error_names_the_argument_and_others_by_their_names(
    make: Callable[..., Any], request_: dict[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(InvalidCommand) as refused:
        make(**{"id": "order", "topic": "t", **request_})
    assert refused.value.field == field
    assert reason in refused.value.reason


def test_a_wrong_time_of_a_record_for_later_is_its_argument() -> None:
    with pytest.raises(InvalidCommand) as refused:
        record_for("k", b"v", "t", 1_767_225_600)
    assert refused.value.field == "when"


@pytest.mark.parametrize("cancel", [CommandRecords().cancel, lambda id: Outbox(MetaData()).cancel(None, id)])
def test_a_cancel_names_its_argument(cancel: Callable[..., Any]) -> None:
    with pytest.raises(InvalidCommand) as refused:
        cancel("order-*")
    assert refused.value.field == "id"
