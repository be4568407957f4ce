"""A forecast counts of what was missed what lanes deliver: as by misfire policies, intervals and times to live."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger import Ledger
from support.tries import tries

from light_scheduler.engine import deliveries
from light_scheduler.engine.recurrence import next_of
from light_scheduler.model import Bounds, Cron, Entry, FixedRate, Progress, Schedule, Target, Trigger
from light_scheduler.pipeline import cron_times, expansion, overdue
from light_scheduler.pipeline.expansion import MINUTE_MS, Expansion, expand

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
HOUR = 3_600_000
BACK, END = M + 3 * HOUR, M + 6 * HOUR
"""When lanes work again, and where the forecast ends."""

RULES: dict[str, tuple[tuple[str, Any], ...]] = {
    "coalesce": (("every", "10m"),),
    "skip": (("every", "7m"), ("misfire", "skip")),
    "all": (("every", "10m"), ("misfire", "all")),
    "some within their grace": (("every", "1m"), ("misfire", "skip"), ("misfire-grace", "150s")),
    "cron": (("cron", "*/15 * * * *"), ("max-firings", 5)),
    "jitter": (("every", "20m"), ("jitter", "5m")),
    "backoff": (("backoff", "initial=1m factor=2 max=30m"),),
    "one-shot": (("at", M + HOUR),),
    "nobody wants it any more": (("at", M + HOUR), ("ttl", "30m")),
    "some are wanted": (("every", "10m"), ("misfire", "all"), ("ttl", "25m")),
    "some of a number are wanted": (("every", "10m"), ("misfire", "all"), ("ttl", "25m"), ("max-firings", 18)),
    "none of a number is left": (("every", "10m"), ("misfire", "all"), ("ttl", "25m"), ("max-firings", 14)),
    "none is left before the end": (("every", "10m"), ("misfire", "all"), ("ttl", "25m"), ("end", M + 2 * HOUR)),
    "the first is not at the rate": (("every", "7m"), ("start", M + 60_000), ("misfire", "all"), ("ttl", "25m")),
    "some of a cron expression are wanted": (("cron", "*/7 * * * *"), ("misfire", "all"), ("ttl", "30m")),
    "some of its number are": (("cron", "*/7 * * * *"), ("misfire", "all"), ("ttl", "30m"), ("max-firings", 25)),
    "some are wanted, with jitter": (("every", "7m"), ("misfire", "all"), ("jitter", "5m"), ("ttl", "20m")),
    "with more jitter than interval": (("every", "1m"), ("misfire", "all"), ("jitter", "5m"), ("ttl", "20m")),
    "window": (("every", "20m"), ("window", "10m")),
    "windows that are longer than the interval": (("every", "3m"), ("window", "20m"), ("misfire", "all")),
    "windows and times to live": (("every", "7m"), ("window", "30m"), ("ttl", "10m"), ("misfire", "all")),
    "windows that are skipped": (("cron", "*/7 * * * *"), ("window", "25m"), ("misfire", "skip")),
    "windows of a number": (("cron", "*/7 * * * *"), ("window", "25m"), ("max-firings", 30), ("misfire", "all")),
    "windows before an end": (("every", "10m"), ("window", "9m"), ("end", BACK + HOUR)),
    "windows after jitter": (("every", "7m"), ("jitter", "10m"), ("window", "10m"), ("misfire", "all")),
    "windows of a backoff": (("backoff", "initial=1m factor=2 max=30m"), ("window", "10m")),
    "window past the end of the forecast": (("at", END - 1), ("window", "1h")),
    "window of a one-shot": (("at", BACK - 1), ("window", "1h")),
    "paused": (("every", "10m"), ("paused", "true")),
}


def forecast(ledger: Ledger, start: int, cut: int = 0) -> Counter[int]:
    counting, found = Expansion(start, END), Counter[int]()
    for entry in ledger.pending():
        counting.add(entry)
    assert counting.cut == cut
    for part in counting.firings():
        found.update(dict(zip(part.minutes.tolist(), part.numbers.tolist(), strict=True)))
    return found


def delivered(ledger: Ledger, start: int) -> Counter[int]:
    ledger.run(start)
    ledger.run_until(END - 1)
    return Counter(record.timestamp // MINUTE_MS * MINUTE_MS for record in ledger.of(ledger.target))


@pytest.mark.parametrize("rule", RULES)
def test_what_was_missed_is_counted_as_it_is_delivered(rule: str) -> None:
    ledger = Ledger()
    ledger.send("a", M, *RULES[rule])
    ledger.run(M)
    expected = forecast(ledger, BACK)
    assert expected == delivered(ledger, BACK)


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param((("every", "10s"), ("ttl", "25m")), id="rate"),
        pytest.param((("every", "1m"), ("jitter", "30s"), ("ttl", "10m"), ("end", BACK + HOUR // 2)), id="jitter"),
        pytest.param((("cron", "* * * * *"), ("ttl", "10m"), ("end", BACK + HOUR // 2)), id="cron"),
    ],
)
def test_those_that_nobody_wants_any_more_are_none_of_the_first_that_are_counted(
    rules: tuple[tuple[str, Any], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "MOST_FIRINGS", 50)
    ledger = Ledger()
    ledger.send("a", M, *rules, ("misfire", "all"))
    ledger.run(M)
    expected = forecast(ledger, BACK)
    assert expected == delivered(ledger, BACK)


def test_a_series_of_which_only_the_first_are_counted_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MOST_FIRINGS", 50)
    ledger = Ledger()
    ledger.send("a", M, ("every", "1m"), ("jitter", "30s"), ("ttl", "10m"), ("misfire", "all"))
    ledger.run(M)
    assert sum(forecast(ledger, BACK, cut=1).values()) == 50


@pytest.mark.parametrize(
    ("days", "rules", "number"),
    [
        (1_000, (("every", "1s"), ("jitter", "1s")), range(1_560, 1_562)),
        (30, (("cron", "* * * * *"), ("max-firings", 1_000_000)), range(26, 27)),
        (30, (("cron", "* * * * *"), ("max-firings", 30 * 1_440 - 10)), range(16, 17)),
    ],
    ids=["rate with jitter", "cron with a number", "cron whose number ends"],
)
def test_a_long_outage_takes_no_longer(
    days: int, rules: tuple[tuple[str, Any], ...], number: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    ledger.send("a", M, *rules, ("ttl", "25m"), ("misfire", "all"))
    ledger.run(M)
    back, walked = M + days * 24 * HOUR, list[int]()

    def noted(entry: Entry, since: int) -> Iterator[tuple[int, int]]:
        for due, at in deliveries(entry, since):
            walked.append(due)
            yield due, at

    monkeypatch.setattr(expansion, "deliveries", noted)
    (entry,) = ledger.pending()
    assert len(expand(entry, back, back + 60_000)) in number
    assert len(walked) < number[-1] + 40


def test_times_of_an_expression_are_listed_once_for_all_series(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, asked = Ledger(), list[int]()
    for number in range(50):
        rules = ("cron", "*/5 * * * *"), ("max-firings", 5_000 + number), ("ttl", f"{number + 1}m"), ("misfire", "all")
        ledger.send(f"a{number}", M + number * MINUTE_MS, *rules)
        ledger.run(M + number * MINUTE_MS)

    def noted(trigger: FixedRate | Cron, after: int) -> int | None:
        asked.append(after)
        return next_of(trigger, after)

    for module in (cron_times, overdue):
        monkeypatch.setattr(module, "next_of", noted)
    back = M + 10 * 24 * HOUR
    assert sum(len(expand(entry, back, back + 1)) for entry in ledger.pending()) > 0
    assert len(asked) < 11 * 288 + 3 * 50


@pytest.mark.parametrize(("missed", "most"), [(20 * MINUTE_MS, 200), (3 * 24 * HOUR, 100 * 100)])
def test_times_of_many_expressions_in_any_order_are_listed_once(
    monkeypatch: pytest.MonkeyPatch, missed: int, most: int
) -> None:
    ledger, asked = Ledger(), list[int]()
    for number in range(300):
        ledger.send(f"a{number}", M, ("cron", f"{number % 100 // 2} */{1 + number % 2} * * *"), ("misfire", "all"))
    ledger.run(M)

    def noted(trigger: FixedRate | Cron, after: int) -> int | None:
        asked.append(after)
        return next_of(trigger, after)

    monkeypatch.setattr(cron_times, "next_of", noted)
    expansion = Expansion(M + missed, M + missed + 1)
    for entry in ledger.pending():
        expansion.add(entry)
    assert 0 < len(asked) <= most


TRIGGERS: st.SearchStrategy[Trigger] = st.one_of(
    st.builds(FixedRate, st.sampled_from([7_000, 60_000, 420_000, HOUR]), st.just(M - HOUR + 17)),
    st.builds(
        Cron,
        st.sampled_from(["* * * * *", "*/7 * * * *", "30 1 * * *", "0 0 1 1 *"]),
        st.just("unix"),
        st.sampled_from(["UTC", "Europe/Berlin"]),
    ),
)
BOUNDS = st.builds(
    Bounds,
    end=st.one_of(st.none(), st.integers(M, END)),
    max_firings=st.one_of(st.none(), st.integers(1, 400)),
    jitter=st.sampled_from([0, 0, 1_000, 90_000, HOUR // 2]),
    window=st.sampled_from([0, 0, 90_000, HOUR // 2]),
    misfire=st.just("all"),
)


@settings(max_examples=tries(400))
@given(
    TRIGGERS,
    BOUNDS,
    st.integers(M - 6 * HOUR, BACK).map(lambda due: due // 1_000 * 1_000),
    st.integers(1, 3 * HOUR // 1_000).map(lambda seconds: seconds * 1_000),
    st.integers(1, 50),
    st.sampled_from([(), (), (M + HOUR,), (M, M + 2 * HOUR)]),
)
def test_firings_that_are_passed_over_are_those_that_the_engine_would_go_through(
    trigger: Trigger, bounds: Bounds, due: int, ttl: int, sequence: int, triggered: tuple[int, ...]
) -> None:
    schedule = Schedule("default", "a", 1, trigger, Target("t"), None, [], 0, 0, M, ttl=ttl, bounds=bounds)
    entry = Entry(schedule, Progress(due, 0, sequence=sequence, triggered=triggered))
    planned = takewhile(lambda each: each[1] < END, deliveries(entry, BACK))
    wanted = [(due, at) for due, at in (*((due, BACK) for due in triggered), *planned) if due >= BACK - ttl]
    assert expand(entry, BACK, END) == [at for _, at in wanted]


def test_a_trigger_of_a_paused_schedule_counts_unless_its_time_to_live_has_passed() -> None:
    ledger = Ledger()
    target = Target(ledger.target)
    schedule = Schedule("default", "a", 1, FixedRate(HOUR, M), target, None, [], 0, 0, M, ttl=HOUR)
    entry = Entry(schedule, Progress(M + HOUR, 0, paused=True, triggered=(BACK - 2 * HOUR, BACK - HOUR, BACK - 1)))
    ledger.adopt([entry])
    expected = Counter({BACK: 2})
    assert Counter(expand(entry, BACK, END)) == expected == delivered(ledger, BACK)


def test_a_run_that_waits_for_its_completion_is_taken_to_be_completed_at_once() -> None:
    ledger = Ledger()
    ledger.send("a", M, ("every", "1h"), ("mode", "fixed-delay"))
    ledger.run(M)
    ledger.run(M + HOUR)
    assert len(ledger.of(ledger.target)) == 1
    assert forecast(ledger, M + HOUR) == Counter({M + number * HOUR: 1 for number in (2, 3, 4, 5)})
