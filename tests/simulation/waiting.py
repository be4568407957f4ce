"""Commands that are delayed, as commits tell of them: each joins a queue of its tenant, and leaves it in its turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from light_scheduler.wire.delayed_state import DELAYED_KIND, decode_delayed

from .kafka import Record, Transaction
from .ruled import Change
from .violation import Violation


class Joined(NamedTuple):
    """The changelog key of a command that is kept, and whose it is."""

    key: bytes
    tenant: str


@dataclass
class Waiting:
    """The queues of a partition."""

    queues: dict[str, list[tuple[bytes, Record]]] = field(default_factory=dict)

    def leave(self, key: bytes) -> Record:
        """Take the first command of a tenant out: the one with this changelog key, or something is wrong."""
        tenant = _tenant(key)
        queue = self.queues.get(tenant, [])
        if not queue or queue[0][0] != key:
            raise Violation(f"{key!r} left the queue of {tenant}, which is {queue}")
        if len(queue) == 1:
            del self.queues[tenant]
        return queue.pop(0)[1]

    def join(self, joined: Joined, command: Record, rule: Change | None) -> None:
        """Put a command behind those of its tenant."""
        if joined.tenant not in self.queues and (rule is None or rule.delayed_above is None):
            raise Violation(f"a command at {command.offset} was delayed; the rule is {rule}")
        self.queues.setdefault(joined.tenant, []).append((joined.key, command))


def joined(commit: Transaction, changelog: str) -> dict[int, Joined]:
    """Return which commands a commit delays, by offset."""
    return {
        decode_delayed(record.value).offset: Joined(record.key or b"", _tenant(record.key or b""))
        for record in _delayed(commit, changelog)
        if record.value is not None
    }


def left(commit: Transaction, changelog: str) -> list[bytes]:
    """Return which commands a commit carries out that were delayed, in order."""
    return [record.key or b"" for record in _delayed(commit, changelog) if record.value is None]


def _delayed(commit: Transaction, changelog: str) -> list[Record]:
    return [each for each in commit.records if each.topic == changelog and (each.key or b"").startswith(DELAYED_KIND)]


def _tenant(key: bytes) -> str:
    return key[1:].partition(b"\0")[0].decode()
