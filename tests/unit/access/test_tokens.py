"""A token: its text, who it is, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.access import Identity, Right, Role, TokenError, Verdict
from light_scheduler.access.accepted_tokens import access_book
from light_scheduler.access.records import Revocation, Use, revoked_record, rotation_record, token_record, used_record
from light_scheduler.access.tokens import new_token, parts_of, rotated
from light_scheduler.model import LATEST_INSTANT

NOW = 1_800_000_000_000
DAY = 86_400_000


def made(**options: Any) -> Any:
    """Return a token and its text as plain text."""
    given = {"name": "shop", "role": Role.WRITE, "tenants": ["shop"], "by": "ops", "now": NOW, **options}
    token, text = new_token(given.pop("name"), given.pop("role"), given.pop("tenants"), **given)
    return token, text.reveal()


def book_of(*records: Any) -> Any:
    return access_book(dict(records))


def test_a_text_stands_for_its_token() -> None:
    token, text = made()
    book = book_of(token_record(token))
    assert book.holder(text, NOW) == token
    assert book.holder(text, NOW).identity == Identity("shop", Role.WRITE, frozenset({"shop"}))


def test_what_is_stored_does_not_have_the_text_in_it() -> None:
    token, text = made()
    secret = text.split("_", 2)[2]  # it may have further ones
    assert secret not in repr(token) + repr(token_record(token))


def test_texts_are_never_the_same() -> None:
    assert len({made()[1] for _ in range(50)}) == 50


@given(st.text())
def test_no_other_text_stands_for_a_token(text: str) -> None:
    token, right = made()
    assert text != right
    with pytest.raises(TokenError, match="is not a token of this application"):
        book_of(token_record(token)).holder(text, NOW)


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"), lambda text: text + "A"]
)
def test_a_text_with_the_right_id_and_another_secret_is_refused(change: Any) -> None:
    token, text = made()
    with pytest.raises(TokenError, match="is not a token of this application"):
        book_of(token_record(token)).holder(change(text), NOW)
    assert parts_of(text)[0] == token.id


def test_a_token_ends_at_its_expiry() -> None:
    token, text = made(lifetime=DAY)
    book = book_of(token_record(token))
    assert book.holder(text, NOW + DAY - 1) == token
    with pytest.raises(TokenError, match="has expired"):
        book.holder(text, NOW + DAY)


def test_after_a_rotation_both_texts_stand_for_the_token_for_a_time() -> None:
    token, old = made()
    again, new = rotated(token, now=NOW, keep=DAY)
    book = book_of(token_record(again))
    assert book.holder(old, NOW + DAY - 1) == book.holder(new.reveal(), NOW + DAY - 1) == again
    assert book.holder(new.reveal(), NOW + DAY) == again
    with pytest.raises(TokenError, match="is not a token"):
        book.holder(old, NOW + DAY)


def test_a_second_rotation_ends_the_oldest_text_and_prolongs_none() -> None:
    token, first = made()
    once, second = rotated(token, now=NOW, keep=DAY)
    twice, third = rotated(once, now=NOW + 1, keep=10 * DAY)
    book = book_of(token_record(twice))
    assert book.holder(second.reveal(), NOW + 1) == book.holder(third.reveal(), NOW + 1) == twice
    with pytest.raises(TokenError):
        book.holder(first, NOW + 1)


def test_a_rotation_that_keeps_nothing_ends_the_old_text_at_once() -> None:
    token, old = made()
    again, _ = rotated(token, now=NOW, keep=0)
    with pytest.raises(TokenError):
        book_of(token_record(again)).holder(old, NOW)


def test_of_two_rotations_of_one_text_the_first_in_the_topic_counts() -> None:
    token, _ = made()
    first, right = rotated(token, now=NOW, keep=DAY)
    second, wrong = rotated(token, now=NOW, keep=0)
    third, newest = rotated(first, now=NOW, keep=DAY)
    base, *rotations = token_record(token), rotation_record(token, first), rotation_record(token, second)
    book = book_of(base, *rotations)
    assert book.tokens == {token.id: first}
    assert book.holder(right.reveal(), NOW) == first
    with pytest.raises(TokenError):
        book.holder(wrong.reveal(), NOW)
    after = book_of(base, *rotations, rotation_record(first, third))
    assert after.holder(newest.reveal(), NOW) == after.holder(right.reveal(), NOW) == third
    assert book_of(rotation_record(token, first)).tokens == {}


def test_a_rotation_that_cannot_be_read_ends_all_texts_that_are_known() -> None:
    token, text = made()
    key, _ = rotation_record(token, rotated(token, now=NOW, keep=DAY)[0])
    book = book_of(token_record(token), (key, b'{"before": "x", "secrets": []}'))
    assert book.unreadable == 1
    with pytest.raises(TokenError, match="is not a token"):
        book.holder(text, NOW)


def test_an_expired_token_is_not_rotated() -> None:
    token, _ = made(lifetime=1)
    with pytest.raises(TokenError, match="has expired"):
        rotated(token, now=NOW + 1, keep=0)


def test_a_revocation_holds_whatever_is_written_to_the_token_after_it() -> None:
    token, text = made()
    again, new = rotated(token, now=NOW, keep=DAY)
    book = book_of(revoked_record(token.id, Revocation(NOW, "ops")), token_record(again))
    for each in (text, new.reveal()):
        with pytest.raises(TokenError, match="was revoked"):
            book.holder(each, NOW)


@pytest.mark.parametrize(
    ("options", "field", "reason"),
    [
        ({"name": ""}, "name", "1 to 100"),
        ({"name": "a\nb"}, "name", "printable"),
        ({"name": " a"}, "name", "spaces"),
        ({"name": "a" * 101}, "name", "1 to 100"),
        ({"tenants": []}, "tenants", "must name a tenant"),
        ({"tenants": ["a b"]}, "tenants", "'a b' is not a tenant name"),
        ({"role": Role.METRICS}, "tenants", "for all tenants"),
        ({"lifetime": 0}, "expires_in", "more than 0"),
        ({"lifetime": LATEST_INSTANT - NOW + 1}, "expires_in", r"must end by 9999-12-31T23:59:59\.999Z"),
        ({"lifetime": 9_999_999 * DAY}, "expires_in", r"must end by 9999-12-31T23:59:59\.999Z"),
    ],
)
def test_what_is_wrong_with_a_token_is_named(options: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(TokenError, match=reason) as caught:
        made(**options)
    assert caught.value.field == field


def test_a_token_may_end_with_the_year_9999() -> None:
    token, _ = made(lifetime=LATEST_INSTANT - NOW)
    assert token.expires_at == LATEST_INSTANT


class TestTheBook:
    def test_access_is_set_up_with_the_first_token_and_stays_so_when_the_last_is_revoked(self) -> None:
        token, _ = made()
        assert not book_of().is_set_up
        assert book_of(token_record(token)).is_set_up
        assert book_of(revoked_record(token.id, Revocation(NOW, "ops"))).is_set_up

    def test_access_stays_set_up_when_the_records_of_all_tokens_are_lost(self) -> None:
        token, text = made()
        lost = book_of().after(book_of(token_record(token)))
        assert lost.is_set_up
        assert book_of().after(lost).is_set_up
        with pytest.raises(TokenError, match="is not a token"):
            lost.holder(text, NOW)
        assert not book_of().after(book_of()).is_set_up

    def test_records_of_others_and_of_uses_do_not_set_it_up(self) -> None:
        book = book_of((b"tenant/token", b"{}"), (b"\xff", b""), (b"peer-secret", b"{}"), used_record("0" * 12, Use(5)))
        assert not book.is_set_up
        assert book.used == {"0" * 12: 5}

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            (b"token/1", b"{}"),
            (b"token/000000000000", b'{"role": "owner"}'),
            (b"token/000000000000", b"\xff"),
            (b"token/000000000000/other", b"{}"),
        ],
    )
    def test_a_token_that_cannot_be_read_lets_nobody_in_and_opens_nothing(self, key: bytes, value: bytes) -> None:
        book = book_of((key, value))
        assert book.is_set_up
        assert not book.tokens

    @pytest.mark.parametrize("value", [b"", b"\xff", b'{"revoked_at": "2030-01-01"}'])
    def test_a_revocation_that_cannot_be_read_holds_and_is_counted(self, value: bytes) -> None:
        token, text = made()
        other, others_text = made()
        key, _ = revoked_record(token.id, Revocation(NOW, "ops"))
        book = book_of(token_record(token), token_record(other), (key, value))
        with pytest.raises(TokenError, match="was revoked"):
            book.holder(text, NOW)
        assert book.state(token.id, NOW) == "revoked"
        assert book.unreadable == 1
        assert book.holder(others_text, NOW) == other

    def test_what_is_written_is_read_back(self) -> None:
        token, _ = made(lifetime=DAY, tenants=["b", "a"])
        again, _ = rotated(token, now=NOW, keep=DAY)
        everything, _ = made(tenants=None)
        assert book_of(token_record(again), token_record(everything)).tokens == {
            token.id: again,
            everything.id: everything,
        }


ALL = None
READ, WRITE, ADMIN_ALL = Right(Role.READ), Right(Role.WRITE), Right(Role.ADMIN, all_tenants=True)


@pytest.mark.parametrize(
    ("role", "tenants", "right", "tenant", "verdict"),
    [
        (Role.READ, {"a"}, READ, "a", Verdict.ALLOWED),
        (Role.READ, {"a"}, READ, "b", Verdict.HIDDEN),
        (Role.READ, {"a"}, WRITE, "b", Verdict.HIDDEN),
        (Role.READ, {"a"}, WRITE, "a", Verdict.FORBIDDEN),
        (Role.METRICS, ALL, READ, "a", Verdict.FORBIDDEN),
        (Role.WRITE, {"a"}, READ, "a", Verdict.ALLOWED),
        (Role.ADMIN, {"a"}, WRITE, "a", Verdict.ALLOWED),
        (Role.ADMIN, {"a"}, ADMIN_ALL, None, Verdict.FORBIDDEN),
        (Role.ADMIN, ALL, ADMIN_ALL, None, Verdict.ALLOWED),
        (Role.WRITE, ALL, ADMIN_ALL, None, Verdict.FORBIDDEN),
        (Role.METRICS, {"a"}, Right(None), "b", Verdict.ALLOWED),
    ],
)
def test_what_an_identity_may_do(
    role: Role, tenants: set[str] | None, right: Right, tenant: str | None, verdict: Verdict
) -> None:
    bound = None if tenants is None else frozenset(tenants)
    assert Identity("who", role, bound).verdict(right, tenant) is verdict
