"""Who asked for a command over HTTP: what only workers can write into its record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Headers, Requester
from light_scheduler.wire import UnsentRecord
from light_scheduler.wire.content_type import CONTENT_TYPE, JSON_COMMAND
from light_scheduler.wire.native import NATIVE
from light_scheduler.wire.requester import REQUESTED_BY, requester_header, requester_of

SHOP = Requester("shop", "192.0.2.7")
SECRET = b"secret"
VALUE = b'{"id": "a", "trigger": {"at": 1800000000000}, "target": {"topic": "t"}}'


def record(*headers: tuple[str, bytes | None], value: bytes | None = VALUE) -> UnsentRecord:
    return UnsentRecord(b"k", value, [(CONTENT_TYPE, JSON_COMMAND), *headers])


@given(st.text(), st.text(), st.binary())
def test_who_asked_is_read_back(by: str, address: str, value: bytes) -> None:
    header = requester_header(Requester(by, address), value, SECRET)
    assert requester_of(record(header, value=value), SECRET) == Requester(by, address)


SIGNED = requester_header(SHOP, VALUE, SECRET)


@pytest.mark.parametrize(
    ("header", "value", "secret"),
    [
        (SIGNED, VALUE + b" ", SECRET),
        (SIGNED, None, SECRET),
        (SIGNED, VALUE, b"other"),
        (SIGNED, VALUE, None),
        (requester_header(SHOP, VALUE, b""), VALUE, SECRET),
        ((REQUESTED_BY, SIGNED[1].replace(b"shop", b"boss")), VALUE, SECRET),
        ((REQUESTED_BY, SIGNED[1].replace(b"192.0.2.7", b"192.0.2.8")), VALUE, SECRET),
        ((REQUESTED_BY, b'{"by": "shop", "address": "x", "signature": "\\u00ff"}'), VALUE, SECRET),
        ((REQUESTED_BY, b"\xff"), VALUE, SECRET),
        ((REQUESTED_BY, None), VALUE, SECRET),
        (("other", b"x"), VALUE, SECRET),
    ],
)
def test_nobody_else_can_say_who_asked(
    header: tuple[str, bytes | None], value: bytes | None, secret: bytes | None
) -> None:
    assert requester_of(record(header, value=value), secret) is None


def test_the_header_is_no_part_of_the_message() -> None:
    with_header, without = NATIVE.decode(record(SIGNED, ("mine", b"1"))), NATIVE.decode(record(("mine", b"1")))
    assert with_header == without


def test_it_is_for_commands_in_the_json_form_only() -> None:
    headers: Headers = [("schedule-at", b"1800000000000"), ("schedule-target-topic", b"t"), SIGNED]
    with pytest.raises(InvalidCommand, match=REQUESTED_BY):
        NATIVE.decode(UnsentRecord(b"k", b"", headers))
