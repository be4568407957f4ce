"""The JSON documents of etf1's API, with its names. Instants are in seconds since 1970."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.model import Entry, Once
from light_scheduler.web.worker_documents import InfoDocument
from light_scheduler.wire.dialects.etf1 import SOURCE_TIMESTAMP
from light_scheduler.wire.dialects.reading import SECOND_MS


class Planned(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A pending schedule."""

    epoch: Annotated[int, Meta(description="When it is due.")]
    id: str
    target_key: Annotated[str, Meta(description="Empty if there is none.")]
    target_topic: str
    timestamp: Annotated[int, Meta(description="When its record was written.")]
    topic: Annotated[str, Meta(description="The topic of its record.")]
    value: Annotated[bytes | None, Meta(description="The payload, base64.")]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule with the name of the scheduler that has it."""

    scheduler: str
    schedule: Planned


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The first of the schedules that a search finds."""

    found: Annotated[int, Meta(description="Total number. `schedules` can hold fewer.")]
    schedules: list[Found]


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """How many schedules a scheduler has."""

    scheduler: str
    total_live: Annotated[int, Meta(description="Due until the end of the day, UTC.")]
    total_history: Annotated[int, Meta(description="0: what was delivered is in the history topic.")]
    total: Annotated[int, Meta(description="Pending.")]


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A worker."""

    ip: Annotated[str, Meta(description="Empty if workers know each other by names.")]
    hostname: list[str]
    topics: Annotated[list[str], Meta(description="The commands topics of the dialect etf1.")]
    history_topic: str
    bootstrap_servers: str


class Scheduler(msgspec.Struct, frozen=True, kw_only=True):
    """The application."""

    name: Annotated[str, Meta(description="The setting app_id.")]
    http_port: str
    instances: list[Instance]


class Kafka(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster and topics that a scheduler reads."""

    bootstrap_servers: str
    topics: Annotated[list[str], Meta(description="The commands topics of the dialect etf1.")]
    history_topic: Annotated[str, Meta(description="Empty: no topic has copies of the messages.")]


class Etf1Info(InfoDocument, frozen=True, kw_only=True):
    """Facts about a worker, with the fields that etf1's admin reads."""

    hostname: str
    address: Annotated[list[str], Meta(description="Of the worker, if its url has an address.")]
    server_address: Annotated[str, Meta(description="Where the worker listens.")]
    kafka: Kafka


def planned(entry: Entry, topic: str) -> Planned:
    """Show a schedule of the commands topic `topic`."""
    schedule, trigger = entry.schedule, entry.schedule.trigger
    due = trigger.at if isinstance(trigger, Once) else entry.progress.next_due or 0
    return Planned(
        epoch=due // SECOND_MS,
        id=schedule.id,
        target_key=(schedule.target.key or b"").decode(errors="replace"),
        target_topic=schedule.target.topic,
        timestamp=_timestamp(entry),
        topic=topic,
        value=schedule.payload,
    )


def _timestamp(entry: Entry) -> int:
    """Return when a record was written, as its dialect noted it. For a record in the JSON form: when it was
    accepted."""
    for name, value in reversed(entry.schedule.headers):
        if name == SOURCE_TIMESTAMP and value is not None:
            with suppress(ValueError):
                return int(value)
            break
    return entry.schedule.accepted_at // SECOND_MS
