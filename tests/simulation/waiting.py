"""Commands that are delayed, as commits tell of them: each joins a queue of its tenant, and leaves it in its turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from light_scheduler.wire.delayed_state import DELAYED_KIND, decode_delayed
from light_scheduler.wire.waiting_state import is_of_partition

from .log import Record, Transaction
from .ruled import Change
from .violation import Violation


class Step(NamedTuple):
    """A delayed command joins its tenant's queue, or leaves it; `key` is its changelog key.

    `joins` is the offset of one that joins.
    """

    key: bytes
    tenant: str
    joins: int | None


@dataclass
class Waiting:
    """The queues of a partition."""

    queues: dict[str, list[tuple[bytes, Record]]] = field(default_factory=dict)

    def leave(self, step: Step) -> Record:
        """Take the first command of a tenant out: the one with this changelog key, or something is wrong."""
        queue = self.queues.get(step.tenant, [])
        if not queue or queue[0][0] != step.key:
            raise Violation(f"{step.key!r} left the queue of {step.tenant}, which is {queue}")
        if len(queue) == 1:
            del self.queues[step.tenant]
        return queue.pop(0)[1]

    def join(self, step: Step, command: Record, rule: Change | None, *, is_added: bool) -> None:
        """Put a command behind those of its tenant. In a partition that `is_added`, those above any rate wait."""
        limits = (
            () if rule is None else (rule.delayed_above, rule.max_pending, rule.rejected_above if is_added else None)
        )
        if step.tenant not in self.queues and not any(limit is not None for limit in limits):
            raise Violation(f"a command at {command.offset} was delayed; the rule is {rule}")
        self.queues.setdefault(step.tenant, []).append((step.key, command))


def steps_of(commit: Transaction, changelog: str) -> list[Step]:
    """Return what a commit does to the queues, in order."""
    return [
        Step(key, key[1:].partition(b"\0")[0].decode(), None if value is None else decode_delayed(value).offset)
        for key, value in ((each.key or b"", each.value) for each in commit.records if each.topic == changelog)
        if key.startswith(DELAYED_KIND) and not is_of_partition(key)
    ]
