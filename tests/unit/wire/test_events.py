from __future__ import annotations

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord

from light_scheduler.errors import FormatError, FormatTooNew
from light_scheduler.model import DeadLetter, DeadLetterCause, EventType, HistoryEvent, Outcome, Requester, Result
from light_scheduler.wire import (
    change_record,
    correlation_id_of,
    decode_dead_letter,
    decode_events,
    decode_history,
    decode_result,
    encode_dead_letter,
    encode_history,
    encode_result,
    history_key,
    history_key_of,
    result_headers,
)
from light_scheduler.wire.state import identity

AT = 1_767_225_600_000
RESULT = Result("schedule", "acme", "pöst", Outcome.SCHEDULED, 1, AT, None, None, 3, 42)
EVENT = HistoryEvent(EventType.FIRED, "acme", "a", 1, AT, AT + 7, 1, 1, "t", None, 3)


def test_a_result_is_json_golden() -> None:
    assert (
        encode_result(RESULT)
        == (
            '{"command":"schedule","tenant":"acme","id":"pöst","outcome":"scheduled","version":1,'
            '"next_due":1767225600000,"reason":null,"field":null,"partition":3,"offset":42}'
        ).encode()
    )


def test_a_history_event_is_json_golden() -> None:
    assert encode_history(EVENT) == (
        b'{"event":"fired","tenant":"acme","id":"a","version":1,"due":1767225600000,"at":1767225600007,'
        b'"sequence":1,"attempt":1,"target_topic":"t","reason":null,"partition":3}'
    )


def test_a_change_is_json_golden() -> None:
    assert change_record("shop", "tenant shop: active -> paused", Requester("ops", "192.0.2.7"), AT) == (
        b"shop/",
        b'{"event":"changed","tenant":"shop","id":null,"version":null,"due":null,"at":1767225600000,"sequence":null,'
        b'"attempt":null,"target_topic":null,"reason":"tenant shop: active -> paused","partition":0,"by":"ops",'
        b'"address":"192.0.2.7"}',
    )
    key, _ = change_record("", "several", Requester("ops", ""), AT)
    assert key == b"/"


def test_an_event_of_an_unknown_type_is_told_from_bytes_that_are_no_event() -> None:
    newer = msgspec.json.encode({**msgspec.json.decode(encode_history(EVENT)), "event": "teleported"})
    with pytest.raises(FormatTooNew, match="not a history event that this version knows: 'teleported'"):
        decode_history(newer)
    with pytest.raises(FormatError) as caught:
        decode_history(b'{"event":"fired"}')
    assert not isinstance(caught.value, FormatTooNew)


class Page(msgspec.Struct):
    """A document with events."""

    events: list[HistoryEvent]
    searched_from: int


def test_of_a_page_of_a_newer_version_the_events_that_are_known_are_read() -> None:
    known = msgspec.json.decode(encode_history(EVENT))
    page = {"events": [known, {**known, "event": "teleported"}, {"event": "of another form"}], "searched_from": AT}
    assert decode_events(msgspec.json.encode(page), Page) == Page([EVENT], AT)
    assert decode_events(msgspec.json.encode({**page, "events": [known]}), Page) == Page([EVENT], AT)


@pytest.mark.parametrize(
    "document", [b"[]", b"{}", b'{"events": 1}', b'{"events": [{"event": "fired"}], "searched_from": 1}']
)
def test_a_page_that_is_none_is_refused_for_what_is_wrong_with_it(document: bytes) -> None:
    with pytest.raises(msgspec.ValidationError) as expected:
        msgspec.json.decode(document, type=Page)
    with pytest.raises(msgspec.ValidationError) as caught:
        decode_events(document, Page)
    assert str(caught.value) == str(expected.value)


def test_results_and_history_read_back_also_with_fields_of_later_versions() -> None:
    assert decode_result(encode_result(RESULT)) == RESULT
    assert decode_history(encode_history(EVENT)) == EVENT
    later = {**msgspec.json.decode(encode_result(RESULT)), "new": 1}
    assert decode_result(msgspec.json.encode(later)) == RESULT


@pytest.mark.parametrize("value", [None, b"", b"{}", b"\xff", b"[1]", b"[" * 100_000])
def test_other_values_are_refused(value: bytes | None) -> None:
    with pytest.raises(FormatError, match="not a result"):
        decode_result(value)
    with pytest.raises(FormatError, match="not a history event"):
        decode_history(value)


def test_history_is_keyed_by_tenant_and_id() -> None:
    assert history_key("acme", "pöst") == "acme/pöst".encode()
    assert history_key("acme", None) == b"acme/"


def test_a_history_key_follows_from_the_bytes_that_name_a_schedule() -> None:
    assert history_key_of(identity("acme", "a/pöst")) == history_key("acme", "a/pöst")


def test_a_result_carries_the_correlation_id_byte_for_byte() -> None:
    assert correlation_id_of([("x", b"1"), *result_headers(b"\xff")]) == b"\xff"
    assert result_headers(None) == []
    assert correlation_id_of([]) is None


REFUSED = DeadLetter(
    cause=DeadLetterCause.REFUSED,
    reason="unknown topic ž",
    field=None,
    tenant="acme",
    id="a",
    at=AT + 7,
    due=AT,
    target_topic="t",
    source_partition=3,
    source_offset=42,
    key=None,
    value=b"\xff",
    headers=[("x", b"\xff"), ("n", None)],
)
REJECTED = msgspec.structs.replace(
    REFUSED, cause=DeadLetterCause.REJECTED, field="schedule-at", id=None, due=None, target_topic=None, headers=[]
)


def message(parts: tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]) -> ConsumerRecord:
    key, value, headers = parts
    return ConsumerRecord("dead", 0, 1, AT, 0, key, value, None, -1, -1, headers)


def test_a_dead_letter_is_the_original_record_and_what_became_of_it_golden() -> None:
    assert encode_dead_letter(REFUSED, "commands") == (
        None,
        b"\xff",
        [
            ("x", b"\xff"),
            ("n", None),
            ("dead-letter-cause", b"refused"),
            ("dead-letter-reason", "unknown topic ž".encode()),
            ("dead-letter-tenant", b"acme"),
            ("dead-letter-id", b"a"),
            ("dead-letter-at", b"1767225600007"),
            ("dead-letter-due", b"1767225600000"),
            ("dead-letter-target-topic", b"t"),
            ("dead-letter-source-topic", b"commands"),
            ("dead-letter-source-partition", b"3"),
            ("dead-letter-source-offset", b"42"),
            ("dead-letter-firing-id", b"a@1767225600000"),
        ],
    )


PLACED = msgspec.structs.replace(REFUSED, target_partition=0)
KEYED = msgspec.structs.replace(REFUSED, target_partition_key=b"\xff")


ATTEMPT = msgspec.structs.replace(REFUSED, original_due=AT - 5, schedule_key=b"\xff")
UNKNOWN = msgspec.structs.replace(REJECTED, tenant="default", is_tenant_known=False)


@pytest.mark.parametrize("letter", [REFUSED, REJECTED, PLACED, KEYED, ATTEMPT, UNKNOWN])
def test_a_dead_letter_reads_back(letter: DeadLetter) -> None:
    assert decode_dead_letter(message(encode_dead_letter(letter, "commands"))) == (letter, "commands")


def test_the_key_of_a_schedule_in_a_dead_letter_is_text_which_older_versions_can_read() -> None:
    _, _, headers = encode_dead_letter(ATTEMPT, "commands")
    assert headers[-2:] == [
        ("dead-letter-original-due", b"1767225599995"),
        ("dead-letter-schedule-key-base64", b"/w=="),
    ]


@pytest.mark.parametrize(
    ("name", "value"), [("dead-letter-original-due", b"soon"), ("dead-letter-schedule-key-base64", b"/w=")]
)
def test_a_dead_letter_with_a_damaged_header_is_none(name: str, value: bytes) -> None:
    key, payload, headers = encode_dead_letter(ATTEMPT, "commands")
    damaged = [(each, value if each == name else text) for each, text in headers]
    with pytest.raises(FormatError, match="not a dead letter"):
        decode_dead_letter(message((key, payload, damaged)))


def test_a_message_that_is_a_dead_letter_again_keeps_its_older_headers() -> None:
    _, _, headers = encode_dead_letter(REFUSED, "commands")
    again = msgspec.structs.replace(REJECTED, headers=headers)
    assert decode_dead_letter(message(encode_dead_letter(again, "other"))) == (again, "other")


def test_other_records_are_no_dead_letters() -> None:
    with pytest.raises(FormatError, match="not a dead letter"):
        decode_dead_letter(message((None, None, [("x", None)])))
    with pytest.raises(FormatError, match="not a dead letter"):
        decode_dead_letter(message((None, None, [("dead-letter-cause", b"nonsense")])))
