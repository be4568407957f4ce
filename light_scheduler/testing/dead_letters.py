"""Answers of a worker's HTTP API about the dead letters of a scheduler in memory, including redriving."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET
from multidict import MultiDict

from light_scheduler.access import ANYONE
from light_scheduler.client.questions import Question
from light_scheduler.errors import ClientError, InvalidCommand
from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.kafka.atomic_writer import NewRecord
from light_scheduler.model import HistoryEvent, Requester
from light_scheduler.model.place import Place
from light_scheduler.tables.views import QueryError
from light_scheduler.web.forms.parameters import checked, read_parameters
from light_scheduler.web.records.dead_letter_documents import DeadLetterPage, FoundLetter
from light_scheduler.web.records.dead_letters import DeadLetterParameters
from light_scheduler.wire import change_record, decode_history, encode_history, history_key
from light_scheduler.wire.events import CHANGES_PARTITION
from light_scheduler.wire.instants import parse_lower_bound
from light_scheduler.wire.redrive import (
    deciding_key,
    redriven_command,
    redriven_event,
    redriven_firing,
    refused_command_headers,
)

_ANYONE = Requester(ANYONE.name, "")


def page_of(question: Question[Any], scheduler: MemoryScheduler) -> bytes:
    """Return the JSON of all matching dead letters. Raises InvalidCommand."""
    try:
        parameters = read_parameters(DeadLetterParameters, MultiDict(question.parameters))
        since = 0 if parameters.since is UNSET else checked("since", parse_lower_bound, parameters.since)
    except QueryError as error:
        raise InvalidCommand(error.field, error.reason) from None
    found = [each for each in _letters(scheduler) if each.record.timestamp >= since and parameters.select(each)]
    letters = [each.summary() for each in reversed(found)]
    return msgspec.json.encode(DeadLetterPage(dead_letters=letters, searched_from=since, next_cursor=None))


def detail_of(question: Question[Any], scheduler: MemoryScheduler) -> bytes | None:
    """Return the JSON of one dead letter; None if there is no such letter."""
    found = _named(question.id, scheduler)
    return None if found is None else msgspec.json.encode(found.detail())


def redriven(question: Question[Any], scheduler: MemoryScheduler) -> bytes | None:
    """Send a dead letter again. Return the JSON with its new place. Raises ClientError and InvalidCommand."""
    found = _named(question.id, scheduler)
    if found is None:
        return None
    if (refusal := found.refusal((scheduler.commands_topic,), scheduler.limits)) is not None:
        raise ClientError(refusal)
    place, offset = _command(found, scheduler) if found.kind == "command" else _firing(found, scheduler)
    scheduler.settle()
    return msgspec.json.encode(found.redriven_to(place, offset))


def _command(found: FoundLetter, scheduler: MemoryScheduler) -> tuple[Place, int]:
    letter, now = found.letter, scheduler.clock.now()
    headers = refused_command_headers(letter)
    partition, offset = scheduler.send(letter.key, letter.value, headers, letter.source_partition)
    key, event = change_record(letter.tenant, redriven_command(letter, found.source_topic, found.name), _ANYONE, now)
    scheduler.broker.append((scheduler.names.history, CHANGES_PARTITION), key, event, [], now)
    return (found.source_topic, partition), offset


def _firing(found: FoundLetter, scheduler: MemoryScheduler) -> tuple[Place, int]:
    letter, broker, now = found.letter, scheduler.broker, scheduler.clock.now()
    topic, last_event = letter.target_topic or "", _last_event(found, scheduler)
    value, headers = redriven_firing(letter, found.source_topic, scheduler.dialect, found.name, last_event, now)
    if (refusal := broker[topic].refusal) is not None:
        raise ClientError(refusal)
    sent = NewRecord(topic, letter.key, value, headers, deciding_key(letter), letter.target_partition, is_exact=True)
    place = topic, sent.partition_of(broker[topic].partitions)
    offset = broker.append(place, letter.key, value, headers, now)
    partition = found.record.partition
    event = redriven_event(letter, found.name, partition, last_event, _ANYONE, now)
    key = history_key(letter.tenant, letter.id)
    broker.append((scheduler.names.history, partition), key, encode_history(event), [], now)
    return place, offset


def _letters(scheduler: MemoryScheduler) -> list[FoundLetter]:
    topic = scheduler.names.dead_letters
    return [FoundLetter.of(record) for record in scheduler.broker.records if record.topic == topic]


def _named(name: str, scheduler: MemoryScheduler) -> FoundLetter | None:
    return next((each for each in _letters(scheduler) if each.name == name), None)


def _last_event(found: FoundLetter, scheduler: MemoryScheduler) -> HistoryEvent | None:
    letter = found.letter
    key = history_key(letter.tenant, letter.id)
    events = [
        decode_history(record.value)
        for record in scheduler.broker.records
        if record.topic == scheduler.names.history and record.key == key
    ]
    return next((event for event in reversed(events) if (event.due, event.at) == (letter.due, letter.at)), None)
