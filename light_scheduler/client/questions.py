"""Queries to a worker over HTTP: requests as values, and decoding of the answers. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypedDict, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from light_scheduler.errors import ClientError, InvalidCommand
from light_scheduler.model import DeadLetterCause, EventType
from light_scheduler.wire import decode_events
from light_scheduler.wire.fields import CONTROL_PREFIX, RULES

from .commands import refuse_unknown, time_rule_headers
from .options import Instant, TimeRule
from .views import DeadLetterDetail, DeadLetterPage, HistoryPage, Page, PendingScheduleDetail, Preview, Redriven, Why

T = TypeVar("T", bound=msgspec.Struct)

PAGE_SIZE = 1_000
"""Maximum number of rows in a page."""


class ListOptions(TypedDict, total=False):
    """Which pending schedules to list, and in which order.

    - `id_prefix`: schedules whose id begins with this text.
    - `id_contains`: schedules whose id has this text somewhere.
    - `target_topic`: schedules that deliver to this topic.
    - `partition`: schedules in this partition of a commands topic, such as "light-scheduler-commands[3]".
    - `state`: "pending", "paused" or "awaiting" (its last firing waits for the completion).
    - `labels`: schedules with all these labels.
    - `label_contains`: schedules with this text somewhere in a label, written as `name=value`.
    - `due_from`, `due_to`: due at or after, due before.
    - `sort`: "id" (default) or "due".
    """

    id_prefix: str
    id_contains: str
    target_topic: str | None
    partition: str | None
    state: Literal["pending", "paused", "awaiting"] | None
    labels: Mapping[str, str] | str | None
    label_contains: str
    due_from: Instant | None
    due_to: Instant | None
    sort: Literal["id", "due"]


@dataclass(frozen=True)
class Question(Generic[T]):
    """A request to a worker; `answer` is the type of its JSON."""

    kind: Literal["get", "list", "preview", "history", "why", "dead-letters", "dead-letter", "redrive"]
    answer: type[T]
    tenant: str
    id: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"

    @property
    def path(self) -> str:
        """The path and the query."""
        path = f"/api/v1/{self.kind}"
        if self.kind in ("dead-letter", "redrive"):
            path = f"/api/v1/dead-letters/{quote(self.id, safe='')}"
        if self.kind == "redrive":
            path += "/redrive"
        if self.kind in ("get", "list", "history", "why"):
            path = f"/api/v1/tenants/{quote(self.tenant, safe='')}/schedules"
        if self.kind in ("get", "history", "why"):
            path += f"/{quote(self.id, safe='')}"
        if self.kind in ("history", "why"):
            path += f"/{self.kind}"
        return f"{path}?{urlencode(self.parameters)}" if self.parameters else path

    def read(self, body: bytes) -> T:
        """Decode an answer. Raises ClientError if it is invalid."""
        try:
            return decode_events(body, self.answer)
        except msgspec.MsgspecError as error:
            raise ClientError(f"the answer is not from a worker, or from one of another version: {error}") from error


def get_question(tenant: str, id: str) -> Question[PendingScheduleDetail]:
    return Question("get", PendingScheduleDetail, tenant, id)


def list_question(tenant: str, options: ListOptions, cursor: str | None) -> Question[Page]:
    """Ask for the page at a cursor. Raises InvalidCommand for an unknown or invalid option."""
    refuse_unknown(options, ListOptions)
    parameters = {"limit": str(PAGE_SIZE)}
    for name, value in {**options, **_instants(options, "due_from", "due_to")}.items():
        if value is not None:
            parameters[name] = _text(name, value)
    if "labels" in parameters:
        parameters["label"] = parameters.pop("labels")
    if cursor is not None:
        parameters["cursor"] = cursor
    return Question("list", Page, tenant, parameters=parameters)


def preview_question(
    tenant: str, id: str | None, count: int, accepted: Instant | None, rule: TimeRule
) -> Question[Preview]:
    """Ask when a schedule would fire. Raises InvalidCommand for an unknown or invalid argument."""
    refuse_unknown(rule, TimeRule)
    command: dict[str, Any] = {"tenant": tenant}
    if id is not None:
        command["id"] = id
    for name, value in time_rule_headers(rule):
        place = command
        *outer, last = RULES[name.removeprefix(CONTROL_PREFIX)].json_path.split(".")
        for each in outer:
            place = place.setdefault(each, {})
        place[last] = (value or b"").decode()
    parameters = {"count": str(count)}
    if start := _instants({"accepted": accepted}, "accepted"):
        parameters["from"] = start["accepted"]
    return Question("preview", Preview, tenant, parameters=parameters, body=msgspec.json.encode(command))


def history_question(
    tenant: str, id: str, since: Instant | None, events: Collection[EventType], cursor: str | None
) -> Question[HistoryPage]:
    """Ask for a page of an id's history. Raises InvalidCommand for an invalid instant or an unknown event."""
    parameters = {"limit": str(PAGE_SIZE), **_since(since)}
    if events:
        parameters["event"] = ",".join(sorted(_event(event) for event in events))
    if cursor is not None:
        parameters["cursor"] = cursor
    return Question("history", HistoryPage, tenant, id, parameters)


def why_question(tenant: str, id: str, since: Instant | None) -> Question[Why]:
    """Ask why a schedule fired, fires or does not fire. Raises InvalidCommand for an invalid instant."""
    return Question("why", Why, tenant, id, _since(since))


def dead_letters_question(
    tenant: str, id: str | None, cause: DeadLetterCause | str | None, since: Instant | None, cursor: str | None
) -> Question[DeadLetterPage]:
    """Ask for a page of dead letters. Raises InvalidCommand for an invalid instant."""
    parameters = {"limit": str(PAGE_SIZE), "tenant": tenant, **_since(since)}
    given = {"id": id, "cause": cause, "cursor": cursor}
    parameters |= {name: str(value) for name, value in given.items() if value is not None}
    return Question("dead-letters", DeadLetterPage, tenant, parameters=parameters)


def dead_letter_question(tenant: str, letter: str) -> Question[DeadLetterDetail]:
    return Question("dead-letter", DeadLetterDetail, tenant, letter)


def redrive_question(tenant: str, letter: str) -> Question[Redriven]:
    return Question("redrive", Redriven, tenant, letter, body=b"")


def _since(since: Instant | None) -> dict[str, str]:
    return _instants({"since": since}, "since")


def _instants(given: Mapping[str, Any], *names: str) -> dict[str, str]:
    """Return some arguments as text, without those that are None. Raises InvalidCommand naming the argument."""
    written: dict[str, str] = {}
    for name in names:
        try:
            for _, instant in time_rule_headers({"at": given.get(name)}):
                written[name] = (instant or b"").decode()
        except InvalidCommand as error:
            raise InvalidCommand(name, error.reason) from None
    return written


def _event(given: EventType | str) -> str:
    try:
        return EventType(given).value
    except ValueError:
        known = ", ".join(sorted(event.value for event in EventType))
        raise InvalidCommand("events", f"{given!r} is not an event; use {known}") from None


def _text(name: str, value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{label}={text}" for label, text in value.items())
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise InvalidCommand(name, f"must be text, not {type(value).__name__}")
    return value
