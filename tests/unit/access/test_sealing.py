"""Bytes that only workers can read."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.tries import tries

from light_scheduler.access.sealing import seal, unseal

SECRET = b"secret"


@given(st.binary(max_size=200))
@example(b"ends in\0\0")
@example(b"ends in\x80")
@example(b"\x80" * 64)
@settings(max_examples=tries(50))
def test_what_is_sealed_is_opened_as_it_was(raw: bytes) -> None:
    assert unseal(SECRET, "history", seal(SECRET, "history", raw)) == raw


def test_what_is_sealed_is_safe_in_a_url_and_never_the_same() -> None:
    texts = {seal(SECRET, "history", b"a") for _ in range(100)}
    assert len(texts) == 100
    assert all(text.replace("-", "").replace("_", "").isalnum() for text in texts)


@pytest.mark.parametrize("raw", [b"", b"a", bytes(63), b"\xff" * 63])
def test_the_length_tells_nothing_of_a_few_bytes(raw: bytes) -> None:
    assert len(seal(SECRET, "history", raw)) == len(seal(SECRET, "history", b"a" * 40))


def test_what_is_sealed_is_a_third_longer_and_no_more() -> None:
    assert len(seal(SECRET, "history", bytes(12_000))) < 12_000 * 4 / 3 + 200


@pytest.mark.parametrize(("secret", "purpose"), [(b"another", "history"), (SECRET, "changes"), (b"", "history")])
def test_only_who_has_the_secret_can_open_it_and_for_its_purpose(secret: bytes, purpose: str) -> None:
    assert unseal(secret, purpose, seal(SECRET, "history", b"a")) is None


@pytest.mark.parametrize("place", [0, 15, 16, 40, -1])
def test_what_was_changed_is_not_opened(place: int) -> None:
    sealed = seal(SECRET, "history", b"a" * 32)
    changed = list(sealed)
    changed[place] = "A" if changed[place] != "A" else "B"
    assert unseal(SECRET, "history", "".join(changed)) is None


@pytest.mark.parametrize("text", ["", "x", "é", "!!", "AAAA", "A" * 43, "A" * 200])
def test_what_was_never_sealed_is_not_opened(text: str) -> None:
    assert unseal(SECRET, "history", text) is None
