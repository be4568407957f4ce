"""The result of a dry run as JSON, on the command line and over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.dry_run import Answer, Delivery, DryRun

from .forms.documents import Content

Milliseconds = Annotated[int, Meta(description="UTC epoch ms.")]


class DeliveryDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One message that would be delivered."""

    at: Milliseconds
    due: Milliseconds
    tenant: str
    id: str
    topic: str
    key: Content | None
    sequence: int
    attempt: int
    payload: Content | None
    headers: Annotated[list[tuple[str, Content | None]], Meta(description="The sender's own.")]

    @classmethod
    def of(cls, delivery: Delivery) -> DeliveryDocument:
        """Show a delivery."""
        firing = delivery.firing
        return cls(
            at=firing.fired_at,
            due=firing.due,
            tenant=firing.tenant,
            id=firing.id,
            topic=delivery.topic,
            key=_content(firing.key),
            sequence=firing.sequence,
            attempt=firing.attempt,
            payload=_content(firing.payload),
            headers=[(name, _content(value)) for name, value in firing.headers],
        )


class UndeliveredDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One message that would become a dead letter."""

    at: Milliseconds
    due: int | UnsetType
    tenant: str
    id: str | None
    topic: str | None
    cause: str
    reason: str


class DryRunDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A dry run as far as it went."""

    answers: Annotated[list[Answer], Meta(description="What the scheduler would answer, by line.")]
    deliveries: list[DeliveryDocument]
    undelivered: list[UndeliveredDocument]
    complete: Annotated[bool, Meta(description="False: it ended at a limit, before its time.")]

    @classmethod
    def of(cls, run: DryRun, deliveries: Sequence[Delivery], *, complete: bool) -> DryRunDocument:
        """Show a finished or interrupted run."""
        undelivered = [
            UndeliveredDocument(
                at=letter.at,
                due=UNSET if letter.due is None else letter.due,
                tenant=letter.tenant,
                id=letter.id,
                topic=letter.target_topic,
                cause=letter.cause,
                reason=letter.reason,
            )
            for letter in run.undelivered
        ]
        shown = [DeliveryDocument.of(delivery) for delivery in deliveries]
        return cls(answers=run.answers, deliveries=shown, undelivered=undelivered, complete=complete)


def _content(value: bytes | None) -> Content | None:
    return None if value is None else Content.of(value)
