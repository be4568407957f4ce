"""Room for pending schedules that lanes lend to each other: a quota is used up, and never passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from random import Random

import pytest
from aiokafka.structs import ConsumerRecord
from support.partition import ANSWER, AT, HOUR, NAMES, SECRET, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.engine.room_lending import ANSWER_MS, SEARCH_MS
from light_scheduler.errors import LaneError
from light_scheduler.lanes.context.tenancy import FixedTenancy
from light_scheduler.model import Headers
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.room_lending import QuotaVersion, RoomAsk, RoomGrant
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.room_lending import room_headers, room_in

LATER = due_at(AT + HOUR)
FULL = "quota.max_pending"


class Known:
    """What lanes know of their topic."""

    def __init__(self, partitions: int) -> None:
        self.partitioning = Partitioning(partitions, secret=SECRET)

    def of(self, topic: str) -> Partitioning:
        return self.partitioning


class Lanes:
    """All partitions of a topic. What one writes for another is read by that in its next cycle."""

    def __init__(self, partitions: int, **rules: object) -> None:
        self.all = [Partition(FakeProducer(), number=number, of=partitions) for number in range(partitions)]
        self.waiting: list[list[ConsumerRecord]] = [[] for _ in self.all]
        self.offsets = [0] * partitions
        self.outcomes: list[tuple[str, str | None]] = []
        self.asked = 0
        self.now = AT
        self.down: set[int] = set()
        self.goes_on_at: int | None = None
        self.tenants = FixedTenancy()
        self.rule(0, **rules)
        for partition in self.all:
            partition.partitionings, partition.tenants = Known(partitions), self.tenants

    def rule(self, since: int, /, **rules: object) -> None:
        tenant = Tenant(name="default", rules=TenantRules(**rules))  # type: ignore[arg-type]
        self.tenants.book = TenantBook([tenant], {"default": since})

    def send(self, key: bytes, *headers: tuple[str, bytes | None]) -> None:
        self.write(partition_for(key, len(self.all)), key, b"payload", [*(headers or (LATER, *TO_REMINDERS)), *ANSWER])

    def write(self, partition: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        offset = self.offsets[partition]
        self.offsets[partition] += 1
        record = command(*headers, key=key, value=value, partition=partition, offset=offset, timestamp=self.now)
        self.waiting[partition].append(record)

    async def cycle(self, number: int, most: int = 1_000, *, applies: bool = True) -> bool:
        """Run a cycle of a lane; tell whether it did anything."""
        partition, waiting = self.all[number], self.waiting[number]
        taken, self.waiting[number] = waiting[:most], waiting[most:]
        cycle = await partition.run(*taken, now=self.now, applies=applies)
        if not applies:
            partition.restart(partition.table.store, now=self.now)
        self.goes_on_at = cycle.delaying.goes_on_at
        self.outcomes += [(result.outcome.value, result.field) for result in partition.results]
        written = list(partition.sent(NAMES.commands))
        self.asked += len(written)
        for record in written:
            self.write(record.partition, record.key, record.value, record.headers)
        return bool(taken or partition.producer.records)

    async def settle(self, random: Random, most: int = 1_000, *, applies: bool = True) -> None:
        """Run the lanes in any order, until nothing is left to do; time passes only while nothing happens."""
        while True:
            numbers = [number for number in range(len(self.all)) if number not in self.down]
            random.shuffle(numbers)
            wakes = []
            acted = False
            for number in numbers:
                acted = await self.cycle(number, most, applies=applies) or acted
                wakes.append(self.goes_on_at)
            if not acted:
                soon = min(filter(None, wakes), default=None)
                if soon is None:
                    return
                self.now = max(self.now, soon)

    @property
    def pending(self) -> int:
        return sum(partition.table.counts.pending_of("default") for partition in self.all)


@pytest.mark.parametrize("partitions", [2, 4, 12])
@pytest.mark.parametrize("most", [1, 3, 1_000])
@pytest.mark.parametrize("quota", [5, 40, 100])
async def test_a_quota_is_used_up_whatever_the_ids(partitions: int, most: int, quota: int) -> None:
    lanes, random = Lanes(partitions, max_pending=quota), Random(quota)
    for number, kept in ((quota, ("scheduled", None)), (30, ("rejected", FULL))):
        for _ in range(number):
            lanes.send(b"%032x" % random.getrandbits(128))
        lanes.outcomes.clear()
        await lanes.settle(random, most)
        assert Counter(lanes.outcomes) == {kept: number}
    assert lanes.pending == quota


@pytest.mark.parametrize("most", [1, 1_000])
async def test_a_quota_is_used_up_by_commands_that_come_all_at_once(most: int) -> None:
    lanes, random = Lanes(12, max_pending=100), Random(most)
    for _ in range(130):
        lanes.send(b"%032x" % random.getrandbits(128))
    await lanes.settle(random, most)
    assert Counter(lanes.outcomes) == {("scheduled", None): 100, ("rejected", FULL): 30}


async def test_a_quota_of_nothing_and_one_of_a_single_partition_ask_nobody() -> None:
    for lanes, share in ((Lanes(3, max_pending=0), 0), (Lanes(1, max_pending=2), 2)):
        for key in islice(homes(len(lanes.all), 0), 3):
            lanes.send(key)
        await lanes.settle(Random(1))
        assert Counter(lanes.outcomes)["rejected", FULL] == 3 - share
        assert (lanes.asked, rooms(lanes)) == (0, 0)


@pytest.mark.parametrize("partitions", [2, 6])
async def test_a_crash_after_every_commit_changes_nothing(partitions: int) -> None:
    lanes, random = Lanes(partitions, max_pending=20), Random(partitions)
    for number in range(25):
        lanes.send(b"%d" % number)
    await lanes.settle(random, 2, applies=False)
    assert Counter(lanes.outcomes) == {("scheduled", None): 20, ("rejected", FULL): 5}
    for partition in lanes.all:
        partition.compact()
        partition.restart(partition.table.store, now=lanes.now)
    lanes.send(b"more")
    await lanes.settle(random)
    assert (lanes.outcomes[-1], lanes.pending) == (("rejected", FULL), 20)


async def test_a_tenant_whose_ids_all_belong_to_one_partition_has_all_of_its_quota() -> None:
    lanes = Lanes(12, max_pending=50)
    for key in islice(homes(12, 7), 51):
        lanes.send(key)
    await lanes.settle(Random(1))
    assert Counter(lanes.outcomes) == {("scheduled", None): 50, ("rejected", FULL): 1}


async def test_what_ends_anywhere_makes_room_everywhere() -> None:
    lanes = Lanes(4, max_pending=12)
    for key in islice(homes(4, 0), 12):
        lanes.send(key, due_at(AT + 5_000), *TO_REMINDERS)
    await lanes.settle(Random(1))
    assert lanes.pending == 12
    lanes.now = AT + 5_000
    for number in range(4):
        await lanes.cycle(number)
    assert lanes.pending == 0
    for key in islice(homes(4, 3), 13):
        lanes.send(key)
    lanes.outcomes.clear()
    await lanes.settle(Random(1))
    assert Counter(lanes.outcomes) == {("scheduled", None): 12, ("rejected", FULL): 1}


async def test_commands_of_a_tenant_wait_in_their_order_while_room_is_asked_for_and_others_do_not() -> None:
    lanes = Lanes(2, max_pending=2)
    first, second, third = islice(homes(2, 0), 3)
    for key in (first, second):
        lanes.send(key)
    for key in (second, third):
        lanes.send(key, ("schedule-command", b"cancel"))
    lanes.send(third, ("schedule-command", b"cancel"), ("schedule-tenant", b"other"))
    await lanes.cycle(0)
    assert [outcome for outcome, _ in lanes.outcomes] == ["scheduled", "not_found"]
    await lanes.cycle(0)
    assert len(lanes.outcomes) == 2
    assert lanes.goes_on_at is not None
    await lanes.settle(Random(1))
    assert [outcome for outcome, _ in lanes.outcomes[2:]] == ["scheduled", "cancelled", "not_found"]


async def test_a_flood_over_the_quota_is_rejected_at_once_and_asks_next_to_nothing() -> None:
    lanes = Lanes(4, max_pending=4)
    keys = islice(homes(4, 0), 400)
    for key in islice(keys, 5):
        lanes.send(key)
    await lanes.settle(Random(1))
    before, begun = lanes.asked, lanes.now
    for key in keys:
        lanes.send(key)
        lanes.now += 1
        await lanes.cycle(0)
    assert Counter(lanes.outcomes)["rejected", FULL] == 396
    assert (lanes.asked, lanes.now) == (before, begun + 395)


async def test_a_partition_that_does_not_answer_delays_a_rejection_once_by_fifteen_seconds() -> None:
    lanes = Lanes(3, max_pending=3)
    lanes.down = {2}
    for key in islice(homes(3, 0), 3):
        lanes.send(key)
    await lanes.settle(Random(1))
    assert Counter(lanes.outcomes) == {("scheduled", None): 2, ("rejected", FULL): 1}
    begun = lanes.now - SEARCH_MS
    assert AT <= begun <= AT + 1_000
    lanes.now += 1_000
    lanes.send(next(islice(homes(3, 0), 3, None)))
    await lanes.settle(Random(1))
    assert (lanes.outcomes[-1], lanes.now) == (("rejected", FULL), begun + SEARCH_MS + 1_000)
    lanes.down = set()
    await lanes.settle(Random(1))
    lanes.send(next(islice(homes(3, 0), 4, None)))
    await lanes.settle(Random(1))
    assert lanes.outcomes[-1] == ("scheduled", None), "what it gave in the end is not lost"


async def test_a_new_quota_starts_from_equal_shares_and_what_is_pending_beyond_one_is_covered_by_the_others() -> None:
    lanes = Lanes(4, max_pending=100)
    for key in islice(homes(4, 0), 60):
        lanes.send(key)
    await lanes.settle(Random(1))
    lanes.rule(1, max_pending=80)
    for partition in lanes.all:
        partition.follows_rules = True
    await lanes.settle(Random(1))
    for number in range(1, 4):
        for key in islice(homes(4, number), 21):
            lanes.send(key)
    await lanes.settle(Random(1))
    assert lanes.pending == 80


async def test_without_the_rule_nothing_is_asked_and_what_was_lent_is_forgotten() -> None:
    lanes = Lanes(3, max_pending=6)
    for key in islice(homes(3, 0), 6):
        lanes.send(key)
    await lanes.settle(Random(1))
    assert rooms(lanes) == 3
    lanes.rule(1)
    for partition in lanes.all:
        partition.follows_rules = True
    await lanes.settle(Random(1))
    before = lanes.asked
    for key in islice(homes(3, 0), 6, 30):
        lanes.send(key)
    await lanes.settle(Random(1))
    assert (rooms(lanes), lanes.asked, lanes.pending) == (0, before, 30)


async def test_what_was_lent_is_kept_while_rules_cannot_be_read() -> None:
    lanes = Lanes(3, max_pending=6)
    for key in islice(homes(3, 0), 6):
        lanes.send(key)
    await lanes.settle(Random(1))
    unreadable = TenantBook([Tenant(name="default", is_readable=False)])
    for book, down in ((unreadable, {0}), (lanes.tenants.book, set())):
        lanes.tenants.book, lanes.down = book, down
        for partition in lanes.all:
            partition.follows_rules = True
        await lanes.settle(Random(1))
    for number in range(3):
        lanes.send(next(islice(homes(3, number), 6, None)))
    await lanes.settle(Random(1))
    assert (rooms(lanes), lanes.pending) == (3, 6)


@pytest.mark.parametrize("older", [{"max_pending": 2}, {}], ids=["another quota", "no quota"])
async def test_a_worker_that_has_not_read_the_latest_rules_keeps_what_was_lent_under_them(
    older: dict[str, object],
) -> None:
    lanes = Lanes(2)
    lanes.rule(5, max_pending=20)
    for key in islice(homes(2, 0), 15):
        lanes.send(key)
    await lanes.settle(Random(1))
    lender = lanes.all[1]
    for tenants in (FixedTenancy(), lanes.tenants):
        if tenants is not lanes.tenants:
            old = Tenant(name="default", rules=TenantRules(**older))  # type: ignore[arg-type]
            tenants.book = TenantBook([old], {"default": 1})
            for key in islice(homes(2, 1), 2):
                lanes.send(key)
        lender.tenants, lender.follows_rules = tenants, True
        await lanes.settle(Random(1))
    for number in range(2):
        for key in islice(homes(2, number), 20, 40):
            lanes.send(key)
    await lanes.settle(Random(1))
    assert lanes.pending == 20


async def test_for_an_ask_that_its_sender_may_have_forgotten_no_room_is_given() -> None:
    lanes = Lanes(2, max_pending=4)
    lanes.down = {1}
    for key in islice(homes(2, 0), 3):
        lanes.send(key)
    await lanes.settle(Random(1))
    lanes.down, lanes.now = set(), lanes.now + ANSWER_MS
    await lanes.settle(Random(1))
    assert [room.balance for each in lanes.all for room in Overlay(each.table).others.rooms().values()] == [0]


@pytest.mark.parametrize("damage", ["signature", "another partition", "another topic"])
async def test_room_that_no_worker_has_given_to_this_partition_is_refused(damage: str) -> None:
    lanes = Lanes(2, max_pending=4)
    for key in islice(homes(2, 0), 3):
        lanes.send(key)
    await lanes.cycle(0)
    _, asked = lanes.waiting[1]  # the first was asked ahead
    ask = room_in(*asked.headers[0])
    assert isinstance(ask, RoomAsk)
    topic, to, secret = NAMES.commands, 0, SECRET
    match damage:
        case "signature":
            secret = b"somebody else's"
        case "another partition":
            to = 1
        case _:
            topic = "another"
    grant = RoomGrant("default", 1, ask.number, ask.version, 2, may_have_more=False)
    lanes.write(0, None, None, room_headers(grant, topic, to, secret))
    await lanes.cycle(0)
    assert [letter.field for letter in lanes.all[0].dead_letters] == ["schedule-room-given"]
    assert (len(lanes.outcomes), lanes.pending) == (2, 2)


async def test_an_answer_that_comes_again_gives_no_room() -> None:
    lanes = Lanes(2, max_pending=4)
    keys = list(islice(homes(2, 0), 6))
    for key in keys[:3]:
        lanes.send(key)
    await lanes.cycle(0)
    await lanes.cycle(1)
    _, grant = lanes.waiting[0]
    for _ in range(3):
        lanes.write(0, None, None, grant.headers)
    for key in keys[3:]:
        lanes.send(key)
    await lanes.settle(Random(1))
    assert lanes.pending == 4


async def test_a_question_from_one_who_knows_of_more_partitions_makes_a_lane_start_again() -> None:
    lanes = Lanes(2, max_pending=4)
    ask = RoomAsk("default", 2, 5, QuotaVersion(0, 4, 3), 0, 1)
    lanes.write(0, None, None, room_headers(ask, NAMES.commands, 0, SECRET))
    with pytest.raises(LaneError, match="knows 3 partitions"):
        await lanes.cycle(0)


async def test_lanes_that_have_no_secret_yet_keep_to_their_shares() -> None:
    lanes = Lanes(2, max_pending=4)
    for partition in lanes.all:
        partition.partitionings = None
    for key in islice(homes(2, 0), 3):
        lanes.send(key)
    await lanes.settle(Random(1))
    assert Counter(lanes.outcomes) == {("scheduled", None): 2, ("rejected", FULL): 1}
    assert lanes.asked == 0


async def test_a_lane_that_may_ask_nobody_rejects_at_once_keeps_what_it_has_and_answers_nobody() -> None:
    lanes = Lanes(2, max_pending=6)
    for key in islice(homes(2, 0), 5):
        lanes.send(key)
    await lanes.settle(Random(1))
    lanes.all[0].left_alone = frozenset({1})
    before, begun = lanes.asked, lanes.now
    lanes.outcomes.clear()
    for key in islice(homes(2, 0), 5, 7):
        lanes.send(key)
    await lanes.settle(Random(1))
    assert (lanes.outcomes, lanes.asked, lanes.now) == (2 * [("rejected", FULL)], before, begun)
    for key in islice(homes(2, 1), 2):
        lanes.send(key)
    await lanes.settle(Random(1))
    assert (lanes.pending, lanes.outcomes[2:]) == (6, [("scheduled", None), ("rejected", FULL)])
    assert lanes.now >= begun + SEARCH_MS


async def test_what_waits_for_room_still_waits_for_the_rate() -> None:
    lanes = Lanes(2, max_pending=8, commands_per_second=4, over_rate=OverRate.DELAY)
    for key in islice(homes(2, 0), 9):
        lanes.send(key)
    await lanes.settle(Random(1))
    assert Counter(lanes.outcomes) == {("scheduled", None): 8, ("rejected", FULL): 1}
    assert lanes.now >= AT + 1_000, "at four a second, after the four that may come at once"


def homes(partitions: int, number: int) -> Iterator[bytes]:
    """Yield keys that belong to a partition."""
    return (key for key in (b"%d" % each for each in count()) if partition_for(key, partitions) == number)


def rooms(lanes: Lanes) -> int:
    """Return how many lanes have kept what they lent and borrowed."""
    return sum(bool(Overlay(partition.table).others.rooms()) for partition in lanes.all)
