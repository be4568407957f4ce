"""Answers of a worker's HTTP API about a scheduler in memory."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any, assert_never

import msgspec
from msgspec import UNSET
from multidict import MultiDict

from light_scheduler.client.questions import Question
from light_scheduler.engine import first_due_times
from light_scheduler.engine.why import Facts
from light_scheduler.errors import InvalidCommand
from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.model import EventType, HistoryEvent, ScheduleCommand
from light_scheduler.tables.views import QueryError, counted, encode_cursor, scan
from light_scheduler.web.cluster.known_partitions import existing
from light_scheduler.web.forms.documents import PreviewDocument, SchedulePage, detail, summary
from light_scheduler.web.forms.parameters import checked, list_query, read_parameters
from light_scheduler.web.preview import PreviewParameters, command_of
from light_scheduler.web.records.history import DAY_MS
from light_scheduler.web.records.history_page import HistoryPage
from light_scheduler.web.why import standing_of
from light_scheduler.web.why_document import why_document
from light_scheduler.wire import decode_history, history_key
from light_scheduler.wire.instants import parse_lower_bound
from light_scheduler.wire.json_commands import json_name

from .dead_letters import detail_of, page_of, redriven

_ALL = 2**62


def answer_to(question: Question[Any], scheduler: MemoryScheduler) -> bytes | None:
    """Return the JSON of a worker's answer; None if there is no such schedule. Raises InvalidCommand."""
    if question.kind == "get":
        return _detail(question, scheduler)
    if question.kind == "list":
        return _page(question, scheduler)
    if question.kind == "history":
        return _history(question, scheduler)
    if question.kind == "why":
        return _why(question, scheduler)
    if question.kind == "dead-letters":
        return page_of(question, scheduler)
    if question.kind == "dead-letter":
        return detail_of(question, scheduler)
    if question.kind == "redrive":
        return redriven(question, scheduler)
    if question.kind == "preview":
        return _preview(question, scheduler)
    assert_never(question.kind)


def _detail(question: Question[Any], scheduler: MemoryScheduler) -> bytes | None:
    entries = ((lane, table.get(question.tenant, question.id)) for lane, table in scheduler.tables.items())
    found = [detail(entry, *lane) for lane, entry in entries if entry is not None]
    latest = max(found, key=lambda each: each.accepted_at, default=None)
    return None if latest is None else msgspec.json.encode(latest)


def _page(question: Question[Any], scheduler: MemoryScheduler) -> bytes:
    try:
        named = partial(existing, counts={scheduler.commands_topic: len(scheduler.tables)})
        query = list_query(question.tenant, MultiDict(question.parameters), named)
    except QueryError as error:
        raise InvalidCommand(error.field, error.reason) from None
    found = scan(scheduler.tables, query, after=query.start(), limit=query.limit, budget=_ALL)
    total = sum(counted(scheduler.tables, query).values()) if query.is_counted else None
    if found.reached is None and query.cursor is None:
        total = len(found.rows)
    return msgspec.json.encode(
        SchedulePage(
            schedules=[summary(entry, scheduler.commands_topic) for _, entry in found.rows],
            next_cursor=None if found.reached is None else encode_cursor(query.sort, found.reached),
            total=total,
        )
    )


def _history_since(question: Question[Any], scheduler: MemoryScheduler) -> tuple[int, list[HistoryEvent]]:
    """Return the instant to look back to, and the events since then in order. Raises InvalidCommand."""
    try:
        since = parse_lower_bound(question.parameters.get("since", str(scheduler.clock.now() - DAY_MS)))
    except ValueError as error:
        raise InvalidCommand("since", str(error)) from None
    key = history_key(question.tenant, question.id)
    return since, [
        decode_history(record.value)
        for record in scheduler.broker.records
        if record.topic == scheduler.names.history and record.key == key and record.timestamp >= since
    ]


def _why(question: Question[Any], scheduler: MemoryScheduler) -> bytes:
    since, events = _history_since(question, scheduler)
    found = {lane: table.get(question.tenant, question.id) for lane, table in scheduler.tables.items()}
    standing = [standing_of(entry, lane, (), None) for lane, entry in found.items() if entry is not None]
    facts = Facts(
        now=scheduler.clock.now(),
        searched_from=since,
        standing=max(standing, key=lambda each: each.entry.schedule.accepted_at, default=None),
        rules=scheduler.rules,
    )
    return msgspec.json.encode(why_document(question.tenant, question.id, events, facts, complete=True))


def _history(question: Question[Any], scheduler: MemoryScheduler) -> bytes:
    since, events = _history_since(question, scheduler)
    wanted = set(filter(None, question.parameters.get("event", "").split(","))) or set(EventType)
    found = [event for event in reversed(events) if event.event in wanted]
    return msgspec.json.encode(HistoryPage(events=found, searched_from=since, next_cursor=None))


def _preview(question: Question[Any], scheduler: MemoryScheduler) -> bytes:
    try:
        parameters = read_parameters(PreviewParameters, MultiDict(question.parameters))
        accepted = parameters.accepted
        now = scheduler.clock.now() if accepted is UNSET else checked("from", parse_lower_bound, accepted)
        command = command_of(question.body or b"", now)
        assert isinstance(command, ScheduleCommand)
        firings = list(islice(first_due_times(command), parameters.count))
    except QueryError as error:
        raise InvalidCommand(error.field, error.reason) from None
    except InvalidCommand as error:
        raise InvalidCommand(json_name(error.field), error.reason) from None
    return msgspec.json.encode(PreviewDocument(firings))
