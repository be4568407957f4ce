"""What a worker writes of access by itself: the workers' secret, and when tokens were used."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable

import pytest
from support.waiting import eventually

from light_scheduler.access import Role, service
from light_scheduler.access.jwks import KeySet
from light_scheduler.access.oidc import Oidc
from light_scheduler.access.records import token_record
from light_scheduler.access.service import AccessService
from light_scheduler.access.store import TokenStore
from light_scheduler.access.tokens import RotationConflict, new_token, parts_of
from light_scheduler.clock import SettableClock
from light_scheduler.connection.identity_provider import IdentityProvider
from light_scheduler.errors import BrokerError, ChangeUnconfirmed
from light_scheduler.kafka import compacted
from light_scheduler.kafka.compacted import Change
from light_scheduler.model import LATEST_INSTANT, HistoryEvent, Requester, TopicNames
from light_scheduler.wire import decode_history

NOW = 1_800_000_000_000
TESTER = Requester("test", "192.0.2.7")


class Topic:
    """The tenants topic, whose first writes fail."""

    def __init__(self, failures: int = 0) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.is_loaded = True
        self.failures = failures
        self.writes: list[list[bytes]] = []
        self.told: list[HistoryEvent] = []
        self._changed: Callable[[], None] = lambda: None

    async def follow(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        changed()
        await asyncio.Event().wait()

    async def write_all(self, records: Iterable[compacted.Record]) -> None:
        if self.failures:
            self.failures -= 1
            raise BrokerError("the broker is away")
        records = list(records)
        self.writes.append([key for key, _ in records])
        self.entries |= {key: value for key, value in records if value is not None}  # stores remove nothing
        self._changed()

    async def change(self, make: Callable[[], Change]) -> None:
        entries, told = make()
        await self.write_all(entries)
        assert told is not None
        self.told.append(decode_history(told[1]))


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(NOW)


@pytest.fixture
async def access(clock: SettableClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AccessService]:
    monkeypatch.setattr(service, "RETRY_S", 0.005)
    monkeypatch.setattr(service, "LONGEST_RETRY_S", 0.02)
    access = AccessService("127.0.0.1:1", TopicNames("app"), clock)
    yield access
    await access.stop()


async def test_a_service_that_is_stopped_in_a_pause_writes_nothing_any_more(
    clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would read what it writes, and a write waits for that."""
    monkeypatch.setattr(service, "RETRY_S", 120.0)
    topic = Topic()
    access = AccessService("127.0.0.1:1", TopicNames("app"), clock)
    access.store = TokenStore(topic, clock)
    await access.start()
    await asyncio.sleep(0)  # the pause begins
    async with asyncio.timeout(service.RETRY_S / 2):
        await access.stop()
    assert topic.writes == []


async def test_a_write_that_fails_is_tried_again_soon_and_told_once(
    access: AccessService, clock: SettableClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    topic = Topic(failures=5)
    access.store = TokenStore(topic, clock)
    await access.start()
    await eventually(lambda: access.book.peer_secret)
    assert topic.failures == 0
    assert caplog.text.count("the broker is away") == 1


async def test_a_use_is_not_lost_by_a_write_that_fails_and_is_written_once(
    access: AccessService, clock: SettableClock
) -> None:
    topic = Topic()
    access.store = TokenStore(topic, clock)
    await access.start()
    await eventually(lambda: access.book.peer_secret)
    token, _ = await access.store.create("shop", Role.READ, ["shop"], by=TESTER, lifetime=None)
    topic.failures = 3
    access.used(token)
    await eventually(lambda: access.book.used.get(token.id) == NOW)
    assert topic.failures == 0
    access.used(token)
    clock.advance(service.NOTE_EVERY_MS)
    access.used(token)
    await eventually(lambda: access.book.used[token.id] == NOW + service.NOTE_EVERY_MS)
    assert len([keys for keys in topic.writes if keys[0].endswith(b"/used")]) == 2


class Apart:
    """A topic as a worker sees it who has not read the newest records, until it makes a change itself."""

    def __init__(self, topic: Topic) -> None:
        self.is_loaded = True
        self.entries = dict(topic.entries)
        self._topic = topic
        self._changed: Callable[[], None] = lambda: None

    async def follow(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        changed()

    async def write_all(self, records: Iterable[compacted.Record]) -> None:
        await self._topic.write_all(records)
        self._catch_up()

    async def change(self, make: Callable[[], Change]) -> None:
        self._catch_up()
        await self._topic.change(make)
        self._catch_up()

    def _catch_up(self) -> None:
        self.entries = dict(self._topic.entries)
        self._changed()


async def test_of_two_workers_that_rotate_a_token_at_once_one_is_refused(clock: SettableClock) -> None:
    topic = Topic()
    token, old = new_token("shop", Role.READ, None, by="test", now=NOW)
    await topic.write_all([token_record(token)])
    stores = [TokenStore(Apart(topic), clock) for _ in range(2)]
    for store in stores:
        await store.follow(lambda: None)
    rotation, text = await stores[0].rotate(token.id, keep=0, by=TESTER)
    with pytest.raises(RotationConflict, match="this rotation changed nothing"):
        await stores[1].rotate(token.id, keep=0, by=TESTER)
    assert all(store.book.holder(text.reveal(), NOW) == rotation for store in stores)
    again, newest = await stores[1].rotate(token.id, keep=1, by=TESTER)
    assert stores[1].book.holder(newest.reveal(), NOW) == stores[1].book.holder(text.reveal(), NOW) == again
    assert len(topic.told) == 2, "the history tells nothing of the rotation that changed nothing"
    assert parts_of(old.reveal())[1] not in {secret.sha256 for secret in again.secrets}


async def test_a_rotation_that_fails_leaves_the_text_in_use_valid_whatever_is_tried_after_it(
    clock: SettableClock,
) -> None:
    topic = Topic()
    token, text = new_token("shop", Role.READ, None, by="test", now=NOW)
    await topic.write_all([token_record(token)])
    store = TokenStore(topic, clock)
    following = asyncio.create_task(store.follow(lambda: None))
    await eventually(lambda: store.book.tokens)
    topic.failures = 1
    with pytest.raises(BrokerError, match="the broker is away"):
        await store.rotate(token.id, keep=0, by=TESTER)
    again, newest = await store.rotate(token.id, keep=1_000, by=TESTER)
    assert store.book.holder(text.reveal(), NOW) == store.book.holder(newest.reveal(), NOW) == again
    following.cancel()


class Unconfirmed(Topic):
    """A topic that stores changes or does not, and never answers."""

    def __init__(self, *, stores: bool, says: bool) -> None:
        super().__init__()
        self._stores, self._says = stores, says

    async def change(self, make: Callable[[], Change]) -> None:
        if self._stores:
            await super().change(make)
        raise ChangeUnconfirmed("the broker did not answer", is_stored=self._says)


async def test_the_text_of_a_token_is_returned_once_it_is_stored_whatever_the_broker_answers(
    clock: SettableClock,
) -> None:
    topic = Unconfirmed(stores=True, says=True)
    store = TokenStore(topic, clock)
    following = asyncio.create_task(store.follow(lambda: None))
    await asyncio.sleep(0)
    token, text = await store.create("shop", Role.READ, None, by=TESTER, lifetime=None)
    assert store.book.holder(text.reveal(), NOW) == token
    rotation, newest = await store.rotate(token.id, keep=0, by=TESTER)
    assert store.book.holder(newest.reveal(), NOW) == rotation
    following.cancel()


@pytest.mark.parametrize("stores", [True, False])
async def test_a_token_that_may_exist_unseen_is_named_by_the_error(clock: SettableClock, stores: bool) -> None:
    topic = Unconfirmed(stores=stores, says=False)
    store = TokenStore(topic, clock)
    following = asyncio.create_task(store.follow(lambda: None))
    await asyncio.sleep(0)
    with pytest.raises(ChangeUnconfirmed, match=r"Token \w+ \(shop\) may exist.* tokens revoke \w+") as raised:
        await store.create("shop", Role.READ, None, by=TESTER, lifetime=None)
    for id in store.book.tokens:
        assert f"tokens revoke {id}" in str(raised.value)
    token, _ = new_token("ci", Role.READ, None, by="test", now=NOW)
    await topic.write_all([token_record(token)])
    with pytest.raises(BrokerError, match=rf"Token {token.id} \(ci\) may have a new text.*Rotate it again"):
        await store.rotate(token.id, keep=0, by=TESTER)
    following.cancel()


async def test_a_topic_that_lost_all_tokens_leaves_the_door_closed_and_is_told_once(
    clock: SettableClock, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topic()
    store = TokenStore(topic, clock)
    following = asyncio.create_task(store.follow(lambda: None))
    await asyncio.sleep(0)
    try:
        await store.create("shop", Role.READ, ["shop"], by=TESTER, lifetime=None)
        topic.entries.clear()
        await store.make_peer_secret()
        await store.note_used({"0" * 12: NOW})
        assert store.book.is_set_up
        assert caplog.text.count("all tokens are gone from their topic") == 1
        token, text = await store.create("again", Role.READ, ["shop"], by=TESTER, lifetime=None)
        assert store.book.holder(text.reveal(), NOW) == token
    finally:
        following.cancel()


async def test_a_worker_that_stops_reads_no_keys_of_an_identity_provider_any_more(clock: SettableClock) -> None:
    keys = KeySet("https://login.example", None)
    provider = IdentityProvider("https://login.example", "a", None, "roles", {}, "tenants")
    service = AccessService("127.0.0.1:1", TopicNames("app"), clock, Oidc(provider, keys))
    keys._reading = asyncio.create_task(asyncio.sleep(3_600))
    reading = keys._reading
    await service.on_stop()
    assert reading.cancelled()


async def test_the_history_tells_of_each_change_of_a_token_and_never_a_secret(clock: SettableClock) -> None:
    topic = Topic()
    store = TokenStore(topic, clock)
    following = asyncio.create_task(store.follow(lambda: None))
    await asyncio.sleep(0)
    token, first = await store.create("ci", Role.WRITE, ["shop"], by=TESTER, lifetime=86_400_000)
    _, second = await store.rotate(token.id, keep=3_600_000, by=TESTER)
    _, third = await store.rotate(token.id, keep=0, by=TESTER)
    await store.revoke(token.id, by=TESTER)
    many, fourth = await store.create("mail", Role.READ, ["b", "a"], by=TESTER, lifetime=LATEST_INSTANT - NOW)
    _, fifth = await store.rotate(many.id, keep=1 << 60, by=TESTER)
    ops, sixth = await store.create("ops", Role.ADMIN, None, by=TESTER, lifetime=None)
    following.cancel()
    name = f"token {token.id} (ci)"
    assert [(event.tenant, event.reason) for event in topic.told] == [
        ("shop", f"{name} created: write for shop, expires 2027-01-16T08:00:00.000Z"),
        ("shop", f"{name} rotated: the secret before is valid until 2027-01-15T09:00:00.000Z"),
        ("shop", f"{name} rotated: the secret before is not valid any more"),
        ("shop", f"{name} revoked: it was write for shop"),
        ("", f"token {many.id} (mail) created: read for a, b, expires 9999-12-31T23:59:59.999Z"),
        ("", f"token {many.id} (mail) rotated: the secret before is valid until 9999-12-31T23:59:59.999Z"),
        ("", f"token {ops.id} (ops) created: admin for all tenants, does not expire"),
    ]
    assert {(event.event, event.by, event.address) for event in topic.told} == {("changed", "test", "192.0.2.7")}
    told = "".join(str(event) for event in topic.told)
    for text in (first, second, third, fourth, fifth, sixth):
        _, _, secret = text.reveal().split("_", 2)
        assert secret not in told
        assert parts_of(text.reveal())[1] not in told


async def test_uses_and_the_secret_of_workers_are_no_changes(clock: SettableClock) -> None:
    topic = Topic()
    store = TokenStore(topic, clock)
    await store.make_peer_secret()
    await store.note_used({"0" * 12: NOW})
    assert topic.told == []
