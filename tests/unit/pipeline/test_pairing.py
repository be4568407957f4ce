"""Firings and messages of the same content are paired by time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from support.tries import tries

from light_scheduler.pipeline.audit.pairing import Group, Pairing, Span, Windows

FURTHEST = 3


class Fired(NamedTuple):
    content: bytes
    at: int
    partition: int = 0


class Sent(NamedTuple):
    content: bytes
    timestamp: int
    by_sender: bool = False
    partition: int = 0


def content_of(item: Fired | Sent) -> Group:
    return (item.content,)


def windows(firing: Fired) -> Windows:
    return Windows(Span(firing.at, firing.at), Span(firing.at - FURTHEST, firing.at + FURTHEST))


def may_be(firing: Fired, message: Sent) -> bool:
    window = windows(firing)[not message.by_sender]
    return firing.content == message.content and window.earliest <= message.timestamp <= window.latest


def paired(
    firings: list[Fired], messages: list[Sent], fits: Callable[[Fired, Sent], bool] = lambda *_: True
) -> list[tuple[Fired | None, Sent | None]]:
    return list(Pairing(content_of, content_of, windows, fits).of(sorted(firings), sorted(messages)))


def most(firings: list[Fired], messages: list[Sent]) -> int:
    """Return how many pairs there can be: the size of a maximum matching."""
    firing_of: dict[int, int] = {}

    def finds(number: int, tried: set[int]) -> bool:
        for place, message in enumerate(messages):
            if place not in tried and may_be(firings[number], message):
                tried.add(place)
                if place not in firing_of or finds(firing_of[place], tried):
                    firing_of[place] = number
                    return True
        return False

    return sum(finds(number, set()) for number in range(len(firings)))


CONTENTS, TIMES = st.sampled_from([b"a", b"b"]), st.integers(0, 20)
FIRINGS = st.lists(st.builds(Fired, CONTENTS, TIMES, st.just(0)), max_size=12)


@settings(max_examples=tries(300))
@given(FIRINGS, st.lists(st.builds(Sent, CONTENTS, TIMES, st.booleans()), max_size=12))
def test_as_many_are_paired_as_can_be_and_everything_comes_once(firings: list[Fired], messages: list[Sent]) -> None:
    found = paired(firings, messages)
    assert sorted(firing for firing, _ in found if firing is not None) == sorted(firings)
    assert sorted(message for _, message in found if message is not None) == sorted(messages)
    pairs = [(firing, message) for firing, message in found if firing is not None and message is not None]
    assert all(may_be(firing, message) for firing, message in pairs)
    assert len(pairs) == most(firings, messages)


def test_a_message_that_does_not_fit_is_passed_over() -> None:
    firings, messages = [Fired(b"a", 1, 2)], [Sent(b"a", 1, partition=1), Sent(b"a", 2, partition=2)]
    found = paired(firings, messages, lambda firing, message: firing.partition == message.partition)
    assert found == [(None, messages[0]), (firings[0], messages[1])]
