"""What must have been delivered: the commands of a partition, the commits in their order, and ten lines in between.

It knows nothing of lanes, tables or recovery. A commit is what its transaction made visible at once; whatever happened
around it, the commits of a partition must be those of a scheduler that nothing ever happens to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from light_scheduler.wire import partition_for
from light_scheduler.wire.relay import FORWARDED_FROM

from .kafka import POISON, Record, Transaction

TOLD = {"scheduled", "updated", "cancelled", "rejected", "fired", "dead_lettered"}
"""Events that history must have, each as often as it happened."""


class Violation(Exception):
    """The world is not as it must be."""


class Pending(NamedTuple):
    """A schedule as the model has it. `accepted` is the number of the commit that accepted it."""

    version: int
    due: int
    payload: bytes | None
    offset: int
    accepted: int


@dataclass
class Partition:
    """The commands of one partition of so many, in order, as read_committed readers see them."""

    number: int
    partitions: int
    commands: Sequence[Record]
    pending: dict[str, Pending] = field(default_factory=dict)
    taken: int = 0
    fired: int = 0
    _last: dict[tuple[int, str], tuple[tuple[int, int], int]] = field(default_factory=dict)
    """(target partition, tenant, or "" for any) -> what was delivered last, by which commit."""

    def follow(self, number: int, commit: Transaction, now: int) -> None:
        """Take one commit, made at `now` (ms); raise Violation if it is not what must follow."""
        happened: Counter[tuple[str, str]] = Counter()
        said = [((r["partition"], r["offset"]), str(r["outcome"])) for r in map(json, to(commit, "replies"))]
        said += [(sent(record), "forwarded") for record in to(commit, "app-commands")]
        for command in self.commands[self.taken : self.taken + len(said)]:
            self.taken += 1
            answer = sent(command), self._outcome(command, number, now)
            if answer not in said:
                raise Violation(f"{answer} has to come next, and is not among {said}")
            said.remove(answer)
            if answer[1] in TOLD:
                happened[answer[1], text(command.key)] += 1
        if said:
            raise Violation(f"{said} were said of commands that there are not")
        for firing in commit.records:
            if firing.topic == "targets":
                self._fire(firing, number, now)
                happened["fired", header(firing, "schedule-id")] += 1
            if firing.topic == "app-dead-letters" and self._bury(firing):
                happened["dead_lettered", header(firing, "dead-letter-id")] += 1
        if any(event == "fired" for event, _ in happened):
            self._check_backlog(commit.backlog_end["app-commands", self.number])
        events = [json(record) for record in commit.records if record.topic == "app-history"]
        history = Counter((event["event"], event["id"]) for event in events if event["event"] in TOLD)
        if history != happened:
            raise Violation(f"history says {dict(history)}; what happened is {dict(happened)}")

    def _outcome(self, command: Record, number: int, now: int) -> str:
        id, kind = text(command.key), header(command, "kind")
        current = self.pending.get(id)
        if kind == "invalid":
            return "rejected"
        if kind == "cancel":
            if self.pending.pop(id, None):
                return "cancelled"
            is_home = partition_for(command.key or b"", self.partitions) == self.number
            return "not_found" if is_home or sent(command) != place(command) else "forwarded"
        if current and kind in ("keep", "fail"):
            return "kept" if kind == "keep" else "conflict"
        version = current.version + 1 if current else 1
        self.pending[id] = Pending(version, int(header(command, "due")), command.value, command.offset, number)
        return "updated" if current else "scheduled"

    def _fire(self, firing: Record, number: int, now: int) -> None:
        id = header(firing, "schedule-id")
        due = self.pending.pop(id, None)
        said = int(header(firing, "schedule-version")), int(header(firing, "schedule-due"))
        if due is None or said != (due.version, due.due) or firing.value != due.payload:
            raise Violation(f"{id} was delivered as {said} with {firing.value!r}; pending was {due}")
        if now < due.due or firing.timestamp < due.due or int(header(firing, "schedule-fired-at")) < due.due:
            raise Violation(f"{id} was delivered early")
        order = due.due, due.offset
        for tenant in ("", header(firing, "schedule-tenant")):
            last, last_number = self._last.get((firing.partition, tenant), ((0, 0), 0))
            late = order < last and due.accepted <= last_number and due.payload != POISON
            if late and (tenant or last_number == number):  # one tenant may be ahead of another, but not in one commit
                raise Violation(f"{id}, due {order}, was delivered after what was due {last}")
            self._last[firing.partition, tenant] = order, number
        self.fired += 1

    def _bury(self, letter: Record) -> bool:
        if header(letter, "dead-letter-cause") == "rejected":
            return False
        buried = self.pending.pop(header(letter, "dead-letter-id"), None)
        if buried is None or buried.payload != POISON:
            raise Violation(f"a dead letter of {buried}, which nobody refused")
        return True

    def _check_backlog(self, end: int) -> None:
        waiting = self.commands[self.taken].offset if self.taken < len(self.commands) else end
        if waiting < end:
            raise Violation(f"something was fired before command {waiting}, which waited since the lane took over")

    def finish(self, now: int) -> None:
        """At the end everything has been carried out, and nothing that was due is left."""
        if self.taken < len(self.commands):
            raise Violation(f"{len(self.commands) - self.taken} commands were never carried out")
        missing = {id: p for id, p in self.pending.items() if p.due <= now and p.payload != POISON}
        if missing:
            raise Violation(f"never delivered: {missing}")


def to(commit: Transaction, topic: str) -> list[Record]:
    return [record for record in commit.records if record.topic == topic]


def place(record: Record) -> tuple[int, int]:
    return record.partition, record.offset


def sent(command: Record) -> tuple[int, int]:
    """Return where a command was sent to, and its offset there, if it was passed on."""
    origin = header(command, FORWARDED_FROM)
    return (int(origin.split(":")[0]), int(origin.split(":")[1])) if origin else place(command)


def text(value: bytes | None) -> str:
    return (value or b"").decode()


def header(record: Record, name: str) -> str:
    return text(next((value for key, value in record.headers if key == name), b""))


def json(record: Record) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.json.decode(record.value or b"null")
    return value
