"""Histories drawn from a seed."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random

from light_scheduler.lanes.pace import MOST
from light_scheduler.model import EQUAL_SHARES, OTHERS, Shares
from light_scheduler.wire import partition_for

from .faults import KINDS, Fault
from .group import SESSION_TIMEOUT_S
from .history import SCHEDULES, TENANTS, Growth, History, Send
from .log import POISON
from .names import FRAIL, TARGET
from .node import TOMBSTONES_KEPT_MS
from .ruled import TENANTS as RULED_TENANTS
from .ruled import Change, draw_changes
from .trouble import draw_trouble_of

IDS = tuple(TENANTS)

SHARES = (
    EQUAL_SHARES,
    EQUAL_SHARES,
    Shares({"acme": 5}, rate=2),
    Shares(rates={"default": 0.5, "zeta": 40}),
    Shares(rate=1, rates={OTHERS: 1}),
)
GROWN_IDS = tuple("abcdefghij")
"""Of schedules in histories in which the commands topic grows."""

LOADED_S = 16.0
"""How long there is more to do than a rate allows."""

COMMAND_KINDS = (*SCHEDULES, "cancel", "pause", "resume", "cancel-many", "pause-many", "resume-many")


def draw(seed: int) -> History:
    """Make a history up."""
    random = Random(seed)
    partitions = 1 if random.random() < 0.6 else 2
    sends = []
    at = 0.0
    for _ in range(random.randint(1, 9)):
        at += random.choice((0.0, 0.0, 0.1, 1.0, 3.0)) * random.random()
        kind = random.choices(COMMAND_KINDS, (14, 3, 1, 1, 1, 1, 1, 2, 1, 1))[0]
        id = random.choice(("*", "*", "a*", "c*")) if kind.endswith("-many") else random.choice(IDS)
        partition = partition_for(id.encode(), partitions)
        if random.random() < 0.2:  # a producer with another partitioner
            partition = random.randrange(partitions)
        payload = POISON if random.random() < 0.06 else random.choice((b"", b"x", b"\x00\xff" * 20, None))
        if kind not in SCHEDULES:
            payload = None
        sends.append(
            Send(
                at,
                partition,
                kind,
                id,
                random.choice((-500, 0, 50, 300, 1_000, 3_000, 8_000)),
                payload,
                random.choice((None, None, None, None, False, True)),
            )
        )
    faults = []
    for _ in range(random.choices((0, 1, 2, 3, 4), (1, 6, 5, 3, 1))[0]):
        kind = random.choices(KINDS, (8, 3, 2, 5, 6, 4, 2, 3, 2))[0]
        longest = {"stall": 12.0, "outage": 12.0}.get(kind, random.choice((1.0, 9.0, 9.0, 20.0, 60.0)))
        faults.append((random.randint(1, random.choice((30, 80, 160))), Fault(kind, random.random() * longest)))
    cleanings = [random.random() * 60 for _ in range(random.choice((0, 0, 1, 3)))]
    compactions = tuple(at + later for at in cleanings for later in (0.0, TOMBSTONES_KEPT_MS / 1_000 + 1.0))
    machines, most, shares = random.choice((1, 2, 2)), random.choice((MOST, MOST, 1, 2)), random.choice(SHARES)
    stage_ahead_ms = random.choice((0, 40, 400))
    faults.sort()
    return History(
        seed,
        machines,
        partitions,
        tuple(sends),
        tuple(faults),
        compactions,
        most,
        shares,
        stage_ahead_ms,
        late_markers=0.2 if seed % 4 == 1 else 0.0,
    )


def draw_frozen_standby(seed: int) -> History:
    """Make a history up in which one that stands by, or is about to, is away for longer than tombstones are kept."""
    random = Random(seed)
    fires_at = random.choice((4.0, 8.0, 12.0))
    sends = (Send(0.5, 0, "schedule", "a", int(1_000 * fires_at) - 500, b"x", None),)
    freeze = Fault("freeze", TOMBSTONES_KEPT_MS / 1_000 + fires_at + random.random() * 10)
    frozen_at = random.randint(25, 60)
    compactions = (fires_at + 0.5, fires_at + TOMBSTONES_KEPT_MS / 1_000 + 1)
    return History(3 * seed, 2, 1, sends, ((frozen_at, freeze),), compactions)


def draw_frozen_owner(seed: int) -> History:
    """Make a history up in which an owner is away for longer than tombstones are kept, and then gets its lane back."""
    random = Random(seed)
    fires_at = random.choice((4.0, 8.0, 12.0))
    kept_s = TOMBSTONES_KEPT_MS / 1_000
    sends = (Send(0.5, 0, "schedule", "a", int(1_000 * fires_at) - 500, b"x", None),)
    frozen_at = random.randint(20, 50)
    freeze = (frozen_at, Fault("freeze", kept_s + fires_at + SESSION_TIMEOUT_S + random.random() * 10))
    kill = (frozen_at + random.randint(60, 250), Fault("kill", 60.0))  # of whoever has the lane then
    taken_over_at = fires_at + 1.5 * SESSION_TIMEOUT_S
    compactions = (taken_over_at, taken_over_at + kept_s + 1)
    # Only seeds that are multiples of 3 have standbys.
    return History(3 * seed + 1, 2, 1, sends, (freeze, kill), compactions)


def draw_doubt(seed: int) -> History:
    """Make a history up in which commits and owners are in doubt: answers are lost, lanes move, markers are late."""
    random = Random(seed)
    sends = tuple(
        Send(0.3 * number, 0, "schedule", random.choice(IDS), random.choice((0, 300, 1_000)), b"x", None)
        for number in range(random.randint(6, 12))
    )
    kinds = random.choice((("lose",), ("lose", "rebalance", "stop"), ("rebalance", "stop", "kill", "stall")))
    faults = tuple(
        (step, Fault(random.choice(kinds), 3 * random.random())) for step in sorted(random.sample(range(30, 300), 12))
    )
    return History(seed, random.choice((1, 2, 2)), 1, sends, faults, (), late_markers=0.6)


def draw_probes(seed: int) -> History:
    """Make a history up in which partitions are probed, whatever else happens."""
    drawn = (draw, draw, draw_doubt, draw_growth)[seed % 4](seed)
    return replace(drawn, probes=1.0)


def draw_trouble(seed: int) -> History:
    """Make a history up in which nothing goes wrong but a target."""
    random = Random(seed)
    partitions, sends, at = random.choice((1, 1, 2)), [], 0.5
    for number in range(random.randint(4, 14)):
        at += random.choice((0.0, 0.1, 1.0, 3.0)) * random.random()
        target = random.choice((TARGET, FRAIL))
        id = f"{target}-{number}"
        home = partition_for(id.encode(), partitions)
        wait = random.choice((0, 50, 300, 1_000, 3_000, 8_000))
        sends.append(Send(at, home, "schedule", id, wait, random.choice((b"", b"x", None)), None, target))
        if random.random() < 0.15:
            sends.append(Send(at + 5 * random.random(), home, "cancel", id, 0, None, None, target))
    return History(
        seed,
        1,
        partitions,
        tuple(sorted(sends, key=lambda send: send.at)),
        (),
        (),
        random.choice((MOST, MOST, 2)),
        stage_ahead_ms=random.choice((0, 40)),
        trouble=draw_trouble_of(random),
    )


def draw_tenants(seed: int) -> History:
    """Make a history up in which the rules of tenants change."""
    random = Random(seed)
    partitions, sends, at = random.choice((1, 1, 2)), [], 0.0
    for _ in range(random.randint(3, 14)):
        at += random.choice((0.0, 0.1, 1.0, 3.0)) * random.random()
        kind = random.choices(("schedule", "keep", "cancel", "pause", "resume", "pause-many"), (14, 2, 2, 1, 1, 1))[0]
        id = "*" if kind.endswith("-many") else random.choice((*IDS, *RULED_TENANTS))
        payload = random.choice((b"", b"x", b"xyz", None)) if kind in SCHEDULES else None
        wait = random.choice((0, 50, 300, 1_000, 3_000, 8_000))
        target = random.choice((TARGET, TARGET, TARGET, ""))
        sends.append(Send(at, partition_for(id.encode(), partitions), kind, id, wait, payload, None, target))
    kinds = ("kill", "lose", "rebalance", "stop")
    struck = sorted(random.sample(range(20, 200), random.choice((0, 1, 3))))
    faults = tuple((step, Fault(random.choice(kinds), 3 * random.random())) for step in struck)
    return History(
        seed,
        random.choice((1, 2)),
        partitions,
        tuple(sends),
        faults,
        (),
        random.choice((MOST, 1, 2)),
        stage_ahead_ms=random.choice((0, 40, 400)),
        changes=draw_changes(random, TARGET),
    )


def draw_growth(seed: int) -> History:
    """Make a history up in which the commands topic gets more partitions, while commands come and much goes wrong.

    In every third the commands are delayed besides.
    """
    random = Random(seed)
    partitions, grown = random.choice(((1, 2), (1, 3), (2, 4), (2, 3), (2, 6)))
    growth = Growth(1.0 + 5 * random.random(), grown)
    sends, at = [], 0.0
    for _ in range(random.randint(8, 28)):
        at += random.choice((0.0, 0.05, 0.3, 1.0, 3.0)) * random.random()
        kind = random.choices(("schedule", "cancel", "pause", "resume", "keep", "fail"), (12, 6, 1, 2, 1, 1))[0]
        id = random.choice(GROWN_IDS)
        now = grown if at > growth.at else partitions
        known = partitions if random.random() < 0.2 else now  # a producer that has not heard of it
        partition = random.randrange(now) if random.random() < 0.1 else partition_for(id.encode(), known)
        wait = random.choice((0, 300, 1_000, 8_000, 15_000, 20_000))
        payload = random.choice((b"", b"x")) if kind in SCHEDULES else None
        sends.append(Send(at, partition, kind, id, wait, payload, random.choice((None, None, None, False, True))))
    faults = []
    for _ in range(random.choices((0, 1, 2, 3, 5), (2, 4, 4, 3, 2))[0]):
        kind = random.choices(KINDS, (8, 2, 2, 4, 6, 4, 1, 4, 2))[0]
        faults.append((random.randint(20, random.choice((150, 300, 600))), Fault(kind, random.random() * 9.0)))
    most, stage_ahead_ms = random.choice((MOST, 1, 2)), random.choice((0, 0, 400))
    machines, late_markers = random.choice((1, 2, 2)), 0.2 if seed % 4 == 1 else 0.0
    changes: tuple[Change, ...] = ()
    if seed % 3 == 0:
        changes = (Change(random.choice((0, 3_000)), "default", delayed_above=random.choice((2.0, 6.0, 20.0))),)
    return History(
        seed,
        machines,
        partitions,
        tuple(sends),
        tuple(sorted(faults)),
        (),
        most,
        stage_ahead_ms=stage_ahead_ms,
        late_markers=late_markers,
        changes=changes,
        growth=growth,
    )


def draw_bulk_growth(seed: int) -> History:
    """Make a history up as `draw_growth` does, in which bulk commands come while schedules move."""
    random, others, history = Random(-1 - seed), Random(f"others {seed}"), draw_growth(seed)
    assert history.growth is not None
    begin, sends = history.growth.at, list(history.sends)
    for _ in range(random.randint(1, 4)):
        at = begin + random.choice((-1.0, 0.0, 0.0, 0.5, 2.0)) + 3 * random.random()
        kind, id = (
            random.choice(("cancel-many", "pause-many", "resume-many")),
            random.choice(("*", "*", GROWN_IDS[0][0] + "*")),
        )
        partition = random.randrange(history.growth.partitions if at > begin else history.partitions)
        sends.append(Send(max(0.0, at), partition, kind, id, 0, None, random.choice((None, None, False))))
        if random.random() < 0.5:  # right behind it, in the same partition
            homes = [each for each in GROWN_IDS if partition_for(each.encode(), history.growth.partitions) == partition]
            kind = random.choice(("schedule", "resume", "cancel"))
            payload = b"x" if kind == "schedule" else None
            named = others.sample(GROWN_IDS, 3) if others.random() < 0.5 else homes[:1]  # a sender may choose any
            sends += [Send(max(0.0, at), partition, kind, each, 15_000, payload, None) for each in named]
    return replace(history, sends=tuple(sorted(sends, key=lambda send: send.at)))


def draw_lending(seed: int) -> History:
    """Make a history up in which a tenant sends about as many schedules as it may have, with any ids.

    In a third nothing goes wrong; in another third the quota changes.
    """
    random = Random(seed)
    partitions, quota = random.choice((2, 3, 3, 4)), random.choice((1, 2, 3, 5, 8, 20))
    sends, at = [], 0.5
    for _ in range(random.randint(quota, 2 * quota + 6)):
        at += random.choice((0.0, 0.0, 0.05, 0.3, 1.0)) * random.random()
        kind = random.choices(("schedule", "keep", "cancel", "cancel-many"), (20, 1, 4, 0.2))[0]
        id = "*" if kind.endswith("-many") else f"s{random.randrange(3 * quota + 3)}"
        partition = partition_for(id.encode(), partitions)
        if random.random() < 0.1:
            partition = random.randrange(partitions)
        wait = random.choice((0, 1_000, 20_000, 30_000, 30_000))
        payload = b"x" if kind in SCHEDULES else None
        sends.append(Send(at, partition, kind, id, wait, payload, random.choice((None, None, None, False))))
    faults: list[tuple[int, Fault]] = []
    for _ in range(0 if seed % 3 == 0 else random.choice((1, 2, 3, 5))):
        kind = random.choices(KINDS, (8, 2, 2, 4, 6, 4, 1, 4, 2))[0]
        faults.append((random.randint(20, random.choice((150, 300, 600))), Fault(kind, random.random() * 9.0)))
    changes = [Change(0, "default", max_pending=quota)]
    if seed % 3 == 2:
        changes.append(Change(random.randint(500, 4_000), "default", max_pending=random.choice((None, 1, 4, 9))))
    if seed % 6 == 1:
        rate = random.choice((4.0, 20.0))
        changes = [each._replace(delayed_above=rate) for each in changes]
    return History(
        seed,
        random.choice((1, 2, 2)),
        partitions,
        tuple(sends),
        tuple(sorted(faults)),
        (),
        random.choice((MOST, 1, 2)),
        stage_ahead_ms=random.choice((0, 0, 400)),
        late_markers=0.2 if seed % 4 == 1 else 0.0,
        changes=tuple(changes),
        lends=True,
    )


def draw_lending_growth(seed: int) -> History:
    """Make a history up in which the commands topic grows while a tenant sends more schedules than it may have."""
    random, history = Random(seed), draw_growth(seed)
    rate = history.changes[0].delayed_above if history.changes else None
    quota = random.choice((1, 2, 3, 5))
    later = Change(random.randint(1_000, 9_000), "default", max_pending=quota + random.choice((-1, 1, 2)))
    changes = (Change(0, "default", max_pending=quota), later)
    return replace(history, changes=tuple(each._replace(delayed_above=rate) for each in changes), lends=True)


def draw_rates(seed: int) -> History:
    """Make a history up in which more is sent, or due, than a rate allows, and at any moment mostly in one partition.

    By turns the rate is of commands that are delayed, of commands that are rejected, of firings of a tenant, and of all
    firings. In a third nothing goes wrong; in a fifth clocks differ.
    """
    return _rates(seed, (2.0, 4.0, 4.0, 8.0))


def draw_rates_of_topics(seed: int) -> History:
    """Make a history up as `draw_rates` does, with several commands topics, or with one of another scheduler."""
    topics = ((True, False), (False,), (True, True), (False, False), (True, False, False))[seed % 5]
    history = _rates(seed, (4.0, 8.0, 8.0), topics)
    return replace(history, clocks=() if seed % 3 else history.clocks)


def _rates(seed: int, rates: tuple[float, ...], topics: tuple[bool, ...] = (True,)) -> History:
    random = Random(seed)
    each_has, rate = random.choice((2, 3, 3, 4)), random.choice(rates)
    if len(topics) > 1:
        each_has = max(1, each_has - 1)
    partitions = each_has * len(topics)
    rule, is_of_firings = seed % 4, seed % 4 > 1
    number, seconds = random.randint(int(3 * rate), int(6 * rate)), random.choice((1.5, 3.0, 6.0))
    begun, sends = random.choice((0.5, 2.5)), []
    for each in range(number):
        at = begun + seconds * each / number
        busy = int(2 * each / number) % partitions if random.random() < 0.8 else random.randrange(partitions)
        ids = (f"r{random.randrange(10_000)}" for _ in count())
        id = next(id for id in ids if partition_for(id.encode(), each_has) == busy % each_has)
        if is_of_firings:
            due = begun + 3.0 * (1 + int(2 * each / number)) + random.choice((0.0, 0.0, random.random()))
            sends.append(Send(random.random() * begun, busy, "schedule", id, 100 * int(10 * due), b"x", None))
            continue
        kind, partition = random.choices(("cancel", "schedule"), (6, 1))[0], busy
        if random.random() < 0.05:
            partition = random.randrange(partitions)
        sends.append(Send(at, partition, kind, id, 20_000, b"x" if kind in SCHEDULES else None, None))
    faults: list[tuple[int, Fault]] = []
    for _ in range(0 if seed % 3 == 0 else random.choice((1, 2, 3, 5))):
        kind = random.choices(KINDS, (8, 2, 2, 4, 6, 4, 1, 4, 2))[0]
        faults.append((random.randint(20, random.choice((150, 300, 600))), Fault(kind, random.random() * 9.0)))
    machines = random.choice((1, 2, 2))
    clocks = tuple(random.choice((-3_000, -300, 0, 300, 5_000)) for _ in range(machines)) if seed % 5 == 4 else ()
    rules = {0: Change(-10_000, "default", delayed_above=rate), 1: Change(-10_000, "default", rejected_above=rate)}
    shares = {2: Shares(rates={OTHERS: rate}), 3: Shares(rate=rate)}
    return History(
        seed,
        machines,
        each_has,
        tuple(sorted(sends, key=lambda send: send.at)),
        tuple(sorted(faults)),
        (),
        topics=topics,
        shares=shares.get(rule, EQUAL_SHARES),
        changes=(rules[rule],) if rule in rules else (),
        lends=True,
        clocks=clocks,
    )


def draw_rates_growth(seed: int) -> History:
    """Make a history up as `draw_rates` does, in which the commands topic gets more partitions meanwhile."""
    random, history = Random(-1 - seed), _rates(seed, (8.0, 16.0))
    growth = Growth(0.5 + 5 * random.random(), history.partitions * random.choice((2, 3)) + random.choice((0, 0, 1)))
    return replace(history, growth=growth)


def draw_loaded_growth(seed: int) -> History:
    """Make a history up as `draw_rates_growth` does, in which all partitions have twice as much to do as a rate allows.

    In half of them processes hear late of the partitions, and of each other's.
    """
    random = Random(seed)
    partitions, grown = random.choice(((1, 2), (1, 2), (1, 3), (2, 4), (2, 5), (3, 7)))
    rate, growth = random.choice((6.0, 8.0)), Growth(2.5 + 2 * random.random(), grown)
    history, news_s = _rates(seed, (rate,)), random.choice((3.0, 30.0))
    is_of_firings, sends = seed % 4 > 1, []
    for number in range(int(2 * rate * LOADED_S)):
        id, at = f"g{number}", 1.0 + number / (2 * rate)
        if is_of_firings:
            home = partition_for(id.encode(), partitions)
            sends.append(Send(random.random(), home, "schedule", id, 100 * int(10 * at + 10), b"x", None))
        else:
            home = partition_for(id.encode(), partitions if at < growth.at else growth.partitions)
            sends.append(Send(at, home, "cancel", id, 0, None, None))
    return replace(
        history,
        partitions=partitions,
        sends=tuple(sorted(sends, key=lambda send: send.at)),
        growth=growth,
        news_s=news_s,
    )


def draw_rates_in_doubt(seed: int) -> History:
    """Make a history up as `draw_rates` does, in which answers are lost again and again."""
    lost = sorted(Random(seed).sample(range(30, 900), 25))
    return replace(draw_rates(seed), faults=tuple((step, Fault("lose", 0.0)) for step in lost), clocks=())
