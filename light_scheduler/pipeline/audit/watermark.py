"""How far audits of an application have come: the part of their state that is one document.

    {"format": 4, "run": 7, "app_id": "orders", "inputs": ["orders-commands"], "end": 1793491200000,
     "offsets": {"orders-history": {"0": 12, "1": 7}, "#ids": {"orders-history": "cSV6..."}},
     "whole_since": {"orders-history": 0}, "handled": {"orders-commands": {"0": {"shop": 40}}},
     "stops": {"shop": [[1793404800000, 1793408400000], [1793487600000, null]]},
     "routes": {"retry-soon": [["orders-failed", "orders"]]}}

`run` counts the audits. All up to `end` (UTC epoch ms) has been judged. `offsets` is what has been read, up to and
without that offset. `whole_since` is since when each topic had all that was written to it, `handled` the last command
of a tenant in a lane that was surely carried out, where some of its commands are undecided. `stops` is when tenants
were stopped (UTC epoch ms), `routes` are the sources and targets of delay rules. In format 1, `handled` is of each
lane, which tells nothing, and there are neither `stops` nor `routes`. Since format 3, evidence has messages in dialects
of other schedulers; since format 4, it says whose clock their timestamps are by.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from light_scheduler.errors import JobError
from light_scheduler.pipeline.kafka.options import TopicPart
from light_scheduler.pipeline.kafka.positions import Position
from light_scheduler.wire import format_instant

from .changes import NO_CHANGES, Changes
from .handled import Handled, flat_by_tenant, nested_by_tenant

FORMAT = 4
"""Format of the whole state. Raise it with any change of this document, of the rows of evidence or of their values."""

READABLE = frozenset({1, 2, 3, FORMAT})


@dataclass(frozen=True)
class Watermark:
    """Where the next audit continues."""

    run: int
    app_id: str
    inputs: tuple[str, ...]
    end: int
    position: Position
    whole_since: Mapping[str, int] = field(default_factory=dict)
    handled: Handled = field(default_factory=dict)
    changes: Changes = NO_CHANGES

    @property
    def read(self) -> Mapping[str, Mapping[int, int]]:
        """What has been read of each topic: partitions, each up to and without an offset."""
        by_topic: dict[str, dict[int, int]] = {}
        for (topic, partition), offset in self.position.offsets.items():
            by_topic.setdefault(topic, {})[partition] = offset
        return by_topic

    def encode(self) -> str:
        """Return the document."""
        fields = asdict(self) | {"offsets": self.position.json(), "handled": nested_by_tenant(self.handled)}
        fields |= self.changes._asdict()
        del fields["position"], fields["changes"]
        return json.dumps({"format": FORMAT, **fields})

    @classmethod
    def decode(cls, text: str) -> Watermark:
        """Read a document. Raises JobError if it has a format that is not known."""
        fields: dict[str, Any] = json.loads(text)
        if (format := fields.pop("format", None)) not in READABLE:
            raise JobError(
                f"another version of light-scheduler wrote the state of the audit, in format {format}; this one reads "
                f"formats up to {FORMAT}. Begin a new state: give --since-last another path"
            )
        position, handled = Position.of(fields.pop("offsets")), flat_by_tenant(fields.pop("handled"))
        stops = {tenant: tuple((begin, end) for begin, end in of) for tenant, of in fields.pop("stops", {}).items()}
        routes = {name: tuple((source, to) for source, to in of) for name, of in fields.pop("routes", {}).items()}
        given = {"inputs": tuple(fields["inputs"]), "position": position, "handled": handled}
        return cls(**fields | given, changes=Changes(stops, routes))

    def check(self, app_id: str, inputs: Collection[str], end: int) -> None:
        """Raise JobError if an audit of this application, up to an instant, cannot continue here."""
        if app_id != self.app_id:
            raise JobError(
                f"the state belongs to the application {self.app_id}, and {app_id} is audited: give --since-last a "
                "path of its own for each application"
            )
        if sorted(inputs) != sorted(self.inputs):
            raise JobError(
                f"the state belongs to an audit of the commands topics {', '.join(self.inputs)}, and this one is of "
                f"{', '.join(inputs)}: begin a new state with another path"
            )
        if end <= self.end:
            raise JobError(
                f"the last audit of this state ended at {format_instant(self.end)}, and this one would end at "
                f"{format_instant(end)}: leave out --to, or give a later instant"
            )

    def check_logs(
        self,
        own: Collection[str],
        ids: Mapping[str, str],
        begins: Mapping[TopicPart, int],
        ends: Mapping[TopicPart, int],
    ) -> None:
        """Raise JobError if topics are others than before, or if records are gone that no audit has read.

        Only the application's `own` topics must have kept them: what is gone from a target is counted as not judged.
        """
        begin_anew = "Begin a new state: give --since-last another path"
        if replaced := self.position.replaced(ids):
            raise JobError(
                f"topic {next(iter(replaced))} was deleted and created again since the last audit, so what it had "
                f"until then cannot be audited any more. {begin_anew}"
            )
        for (topic, partition), reached in self.position.offsets.items():
            part = topic, partition
            if ends.get(part, reached) < reached:
                raise JobError(
                    f"topic {topic} ends at offset {ends[part]} in partition {partition}, and the last audit read up "
                    f"to {reached}: records are lost. {begin_anew}"
                )
            if topic in own and begins.get(part, 0) > reached:
                raise JobError(
                    f"retention has deleted records of topic {topic} that no audit has read: in partition {partition}, "
                    f"the last audit read up to offset {reached}, and the topic begins at {begins[part]}. Audit more "
                    f"often than records are deleted. {begin_anew}"
                )
