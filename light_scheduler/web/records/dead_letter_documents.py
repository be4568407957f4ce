"""Dead letters as JSON."""

from __future__ import annotations

from collections.abc import Container
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta

from light_scheduler.engine import Limits
from light_scheduler.model import DeadLetter, DeadLetterCause, firing_id
from light_scheduler.model.place import Place
from light_scheduler.web.forms.documents import Content, Decoding, HeaderView, SourceView
from light_scheduler.wire import CommandRecord, decode_dead_letter
from light_scheduler.wire.events import Lacking, lacking_in


class DeadLetterSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter in a list."""

    letter: Annotated[str, Meta(description="Names the dead letter: its partition and offset, such as 2-15.")]
    kind: Annotated[
        Literal["command", "firing"],
        Meta(description="A command that was rejected, or a firing that could not be delivered."),
    ]
    cause: DeadLetterCause
    reason: str
    field: Annotated[str | None, Meta(description="Header or JSON path at fault, of a command.")]
    tenant: str
    id: Annotated[str | None, Meta(description="Id of the schedule, if it is known.")]
    at: Annotated[int, Meta(description="When it became a dead letter, UTC epoch ms.")]
    due: Annotated[int | None, Meta(description="When the firing was due, UTC epoch ms.")]
    firing_id: str | None
    target_topic: str | None
    source: SourceView
    key: Annotated[Content | None, Meta(description="Key of the record that is sent again.")]
    payload_bytes: Annotated[int | None, Meta(description="Size of its value; null if the value is null.")]
    dropped: Annotated[
        bool,
        Meta(
            description="Its bytes were too large for this topic, or cannot be read: they are at the source, and it "
            "cannot be redriven."
        ),
    ]
    lacks: Annotated[
        str | None,
        Meta(
            description="What was left out of it, because it was too large for this topic or cannot be read: `key, "
            "value and headers` (then it is `dropped`), or `key of the schedule`. It cannot be redriven. null: nothing."
        ),
    ]


class DeadLetterDetail(DeadLetterSummary, frozen=True, kw_only=True):
    """A dead letter with its bytes."""

    headers: Annotated[list[HeaderView], Meta(description="Headers of the record that is sent again.")]
    payload: Annotated[Content | None, Meta(description="Its value.")]
    decoded: Decoding = UNSET


class DeadLetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of dead letters."""

    dead_letters: Annotated[list[DeadLetterSummary], Meta(description="The newest first.")]
    searched_from: Annotated[
        int,
        Meta(description="All records since this instant, UTC epoch ms, have been looked at, back from the cursor."),
    ]
    next_cursor: Annotated[
        str | None, Meta(description="Look further back with it; null: the search has reached `since`.")
    ]


class RedriveDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Where a dead letter was sent again."""

    letter: str
    kind: Literal["command", "firing"]
    tenant: str
    id: str | None
    topic: str
    partition: int
    offset: int


class FoundLetter(msgspec.Struct, frozen=True):
    """A dead letter, the topic of its source, and its own record."""

    letter: DeadLetter
    source_topic: str
    record: CommandRecord

    @classmethod
    def of(cls, record: CommandRecord) -> FoundLetter:
        """Raises FormatError."""
        return cls(*decode_dead_letter(record), record)

    @property
    def name(self) -> str:
        return f"{self.record.partition}-{self.record.offset}"

    @property
    def kind(self) -> Literal["command", "firing"]:
        return "command" if self.letter.cause is DeadLetterCause.REJECTED else "firing"

    @property
    def lacks(self) -> Lacking | None:
        return lacking_in(self.record)

    def refusal(self, commands_topics: Container[str], limits: Limits) -> str | None:
        """Return why the letter cannot be sent again by any identity; None if it can."""
        letter, target = self.letter, self.letter.target_topic or ""
        source = f"{self.source_topic}, partition {letter.source_partition}, offset {letter.source_offset}"
        if self.source_topic not in commands_topics:
            return (
                f"Dead letter {self.name} came from {source}: that is not a commands topic of this worker. "
                "Letters of delay rules cannot be redriven."
            )
        if (lacks := self.lacks) is not None and lacks.is_content:
            return f"Dead letter {self.name} was too large for its topic. Its record is in {source}."
        if lacks is not None:
            return (
                f"Dead letter {self.name} lacks the {lacks.what}, which was too large for its topic: without it, the "
                f"consumer of the message could not report its completion. The command of the schedule is in {source}."
            )
        if self.kind == "firing" and not limits.may_aim_at(target):  # writers of that topic can make one up
            return (
                f"Dead letter {self.name} is for {target}, an internal topic: only the scheduler and Kafka write to it."
            )
        return None

    def redriven_to(self, place: Place, offset: int) -> RedriveDocument:
        """Show where it was sent."""
        topic, partition = place
        return RedriveDocument(
            letter=self.name,
            kind=self.kind,
            tenant=self.letter.tenant,
            id=self.letter.id,
            topic=topic,
            partition=partition,
            offset=offset,
        )

    def summary(self) -> DeadLetterSummary:
        """Show it as a row of a list."""
        letter, lacks = self.letter, self.lacks
        return DeadLetterSummary(
            letter=self.name,
            kind=self.kind,
            cause=letter.cause,
            reason=letter.reason,
            field=letter.field,
            tenant=letter.tenant,
            id=letter.id,
            at=letter.at,
            due=letter.due,
            firing_id=None if letter.id is None or letter.due is None else firing_id(letter.id, letter.due),
            target_topic=letter.target_topic,
            source=SourceView(topic=self.source_topic, partition=letter.source_partition, offset=letter.source_offset),
            key=None if letter.key is None else Content.of(letter.key),
            payload_bytes=None if letter.value is None else len(letter.value),
            dropped=lacks is not None and lacks.is_content,
            lacks=None if lacks is None else lacks.what,
        )

    def detail(self) -> DeadLetterDetail:
        """Show it with its bytes."""
        letter = self.letter
        return DeadLetterDetail(
            **msgspec.structs.asdict(self.summary()),
            headers=[HeaderView(name, None if value is None else Content.of(value)) for name, value in letter.headers],
            payload=None if letter.value is None else Content.of(letter.value),
        )
