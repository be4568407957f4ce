"""One user's day: the same calls for a real scheduler and for its double, and what they come to, to be compared."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from light_scheduler.client import CommandRefused, SchedulerClient
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import HistoryEvent, Result
from light_scheduler.wire import parse_firing

MINUTE, HOUR = 60_000, 3_600_000

LATENESS = re.compile(r"^\d+ ms(?= after due)")

APART = 30_000
"""Calls are made so long (ms) after the last due time: what they cause is not taken for what was due."""

TRIGGERED = "paused"
"""The schedule that is triggered by hand: it is due when the command comes, which is not the same in two runs."""

NEVER_ALIKE = {"schedule-fired-at", "schedule-source-offset", "schedule-delivery-id"}

Advance = Callable[[int], Awaitable[list[Any]]]
"""Moves the clock on to an instant (UTC epoch ms), and returns all that was delivered up to then."""


class Day:
    """The calls, from `start` (UTC epoch ms, a full hour) on; `answers` is what each came to."""

    def __init__(self, client: SchedulerClient, topic: str, start: int, advance: Advance) -> None:
        self._client = client
        self._topic = topic
        self._start = start
        self._advance = advance
        self.answers: list[Any] = []

    async def run(self) -> list[Any]:
        """Make all calls; return what was delivered."""
        await self._book()
        await self._advance(self._start + 10 * MINUTE + APART)
        await self._change()
        delivered = await self._advance(self._start + 20 * MINUTE + APART)
        await self._complete(delivered)
        await self._control_many()
        return await self._advance(self._start + 3 * HOUR + APART)

    async def _book(self) -> None:
        at = self._start
        await self._schedule("once", b"one", at=at + 5 * MINUTE, headers={"kind": "reminder", "none": None})
        await self._schedule("once", b"two", at=at + 6 * MINUTE)
        await self._schedule("once", b"three", at=at, on_conflict="fail")
        await self._schedule("null", None, at=at + 5 * MINUTE, key="other", target_key=None)
        await self._schedule("series", b"s", every="2m", start=at + 2 * MINUTE, max_firings=6, priority=1)
        await self._schedule("cron", b"c", cron="30 * * * *", timezone="Asia/Kolkata", start=at, max_firings=2)
        await self._schedule("late", b"l", at=at + HOUR, labels={"team": "a"})
        await self._schedule("later", b"l", at=at + 2 * HOUR, labels={"team": "a"})
        await self._schedule("acked", b"a", at=at + 15 * MINUTE, ack_timeout="1h", max_attempts=2)
        await self._schedule("retried", b"r", at=at + 15 * MINUTE, ack_timeout="1h", max_attempts=2)
        await self._schedule("backoff", b"b", backoff="10m,20m", start=at + 30 * MINUTE, end=at + 2 * HOUR)
        await self._schedule("paused", b"p", at=at + 5 * MINUTE, paused=True)
        await self._schedule("missing", b"m", at=at + 5 * MINUTE, topic="no-such-topic")
        await self._schedule("wrong", b"", cron="61 * * * *")
        await self._schedule("own", b"", at=at, topic="__consumer_offsets")

    async def _change(self) -> None:
        client, at = self._client, self._start
        await self._note(client.cancel("nobody"))
        await self._note(client.cancel("late", expected_version=7))
        await self._note(client.reschedule("late", at=at + HOUR + MINUTE))
        await self._note(client.reschedule("late", every="10s", cron="* * * * *"))
        await self._note(client.pause("later"))
        await self._note(client.trigger(TRIGGERED))

    async def _complete(self, delivered: list[Any]) -> None:
        firings = {firing.id: firing for firing in map(parse_firing, delivered)}
        await self._note(self._client.complete(firings["acked"]))
        await self._note(self._client.complete(firings["retried"], succeeded=False))
        await self._note(self._client.complete(firings["acked"]))

    async def _control_many(self) -> None:
        client, at = self._client, self._start
        await self._note(client.resume_many(labels={"team": "a"}))
        await self._note(client.reschedule_many(labels={"team": "a"}, at=at + 2 * HOUR + MINUTE))
        await self._note(client.cancel_many(id_prefix="nothing-"))
        requests = [{"id": f"many-{number}", "topic": self._topic, "at": at + 2 * HOUR} for number in range(4)]
        for result in await client.schedule_many(requests, wait=True):  # type: ignore[call-overload]
            self.answers.append(_comparable(result))

    async def _schedule(self, id: str, payload: bytes | None, **request: Any) -> None:
        await self._note(self._client.schedule(id, payload, **{"topic": self._topic, **request}))

    async def _note(self, call: Awaitable[Result]) -> None:
        try:
            self.answers.append(_comparable(await call))
        except CommandRefused as error:
            self.answers.append(("refused", _comparable(error.result)))
        except InvalidCommand as error:
            self.answers.append(("invalid", error.field, error.reason))


def _comparable(result: Result) -> Result:
    """Leave out an offset: in a real log transactions have markers between records."""
    result = msgspec.structs.replace(result, offset=None)
    return msgspec.structs.replace(result, next_due=None) if result.command == "trigger" else result


def deliveries(records: Iterable[Any]) -> list[Any]:
    """Return messages without what no two runs have in common, in one order."""
    found = []
    for record in records:
        left_out = NEVER_ALIKE
        if parse_firing(record).id == TRIGGERED:
            left_out = left_out | {"schedule-due", "schedule-firing-id"}
        headers = [(name, value) for name, value in record.headers if name not in left_out]
        found.append((record.partition, record.key, record.value, headers))
    return sorted(found, key=repr)


def events(history: Iterable[HistoryEvent]) -> dict[str | None, list[HistoryEvent]]:
    """Return what happened to each id, in order, without when."""
    found: dict[str | None, list[HistoryEvent]] = {}
    for event in history:
        due = None if event.id == TRIGGERED else event.due
        reason = None if event.reason is None else LATENESS.sub("some time", event.reason)
        found.setdefault(event.id, []).append(msgspec.structs.replace(event, at=0, due=due, reason=reason))
    return found
