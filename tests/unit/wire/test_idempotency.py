"""Records of the idempotency topic."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.model import Outcome, Result
from light_scheduler.wire import UnsentRecord, encode_result, result_headers
from light_scheduler.wire.idempotency import (
    CLAIM,
    SENT,
    ClaimMade,
    CommandSent,
    claim_event_of,
    claim_record,
    fingerprint_of,
    key_hash,
    key_hash_of,
)

REQUEST = f"{key_hash('default', 'k')}:1f"


def test_records_are_read_as_they_were_written() -> None:
    for told in (ClaimMade(fingerprint_of(b"{}"), "a"), CommandSent(3, 17)):
        key, value, headers = claim_record(REQUEST, told)
        assert key == key_hash_of(REQUEST).encode()
        assert claim_event_of(UnsentRecord(key, value, headers)) == (REQUEST, told)
    result = Result("schedule", "default", "a", Outcome.SCHEDULED, 1)
    record = UnsentRecord(b"a", encode_result(result), result_headers(REQUEST.encode()))
    assert claim_event_of(record) == (REQUEST, result)


def test_a_claim_golden() -> None:
    key, value, headers = claim_record(REQUEST, ClaimMade(fingerprint_of(b"{}"), "a", "default"))
    assert key == b"1dbf258a61ff0b15a3f5c4f14acab55b"
    assert value == b'{"fingerprint":"2afb9b83f9314e5d029766197f539792","id":"a","tenant":"default"}'
    assert headers == [(CLAIM, REQUEST.encode())]


def test_a_claim_without_a_tenant_is_read() -> None:
    record = UnsentRecord(b"k", b'{"fingerprint":"f","id":"a"}', [(CLAIM, REQUEST.encode())])
    assert claim_event_of(record) == (REQUEST, ClaimMade("f", "a"))


def test_keys_of_different_tenants_differ() -> None:
    assert key_hash("a", "b") != key_hash("b", "a")
    assert key_hash("a", "bc") != key_hash("ab", "c")


_NAMES = st.sampled_from([CLAIM, SENT, "schedule-correlation-id", "other"])
_BYTES = st.none() | st.binary(max_size=40) | st.sampled_from([b"[" * 100_000, b'{"fingerprint": 5}', b'{"id": "a"}'])


@given(key=_BYTES, value=_BYTES, headers=st.lists(st.tuples(_NAMES, _BYTES), max_size=3))
def test_records_of_others_are_passed_over(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    assert claim_event_of(UnsentRecord(key, value, headers)) is None
