"""Histories drawn from a seed in which there is more to do than a rate allows."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random

from light_scheduler.model import EQUAL_SHARES, OTHERS, Shares
from light_scheduler.wire import partition_for

from .faults import KINDS, Fault
from .history import SCHEDULES, Growth, History, Send
from .ruled import Change

LOADED_S = 16.0
"""How long there is more to do than a rate allows."""


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
