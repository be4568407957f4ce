"""Why a schedule fired, fires or does not, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.engine.why import Facts, Sentence, State, outlook, sentences
from light_scheduler.model import HistoryEvent


class WhyDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of a schedule in sentences: past events with their reasons, and the next one."""

    tenant: str
    id: str
    state: Annotated[
        State,
        Meta(
            description="pending, paused and awaiting: as in a list. moving: on its way to another partition. gone: "
            "not pending, and the history does not say why. unreachable: its partition does not answer. unknown: "
            "nothing is known of this id. Others: how it ended."
        ),
    ]
    next_due: Annotated[int | None, Meta(description="When the next firing is due, UTC epoch ms; null: not known.")]
    summary: Annotated[
        str, Meta(description="The next firing and what it waits for, or why there is none. Read `state` in programs.")
    ]
    events: Annotated[list[Sentence], Meta(description="What happened, the oldest first.")]
    searched_from: Annotated[int, Meta(description="The history was looked at back to this instant, UTC epoch ms.")]
    complete: Annotated[
        bool, Meta(description="Whether that is back to `since`. If not, `history` reads on, page by page.")
    ]


def why_document(tenant: str, id: str, events: Sequence[HistoryEvent], facts: Facts, *, complete: bool) -> WhyDocument:
    """Explain everything that is known of a schedule; `events` are its history in order."""
    state, next_due, summary = outlook(events, facts)
    return WhyDocument(
        tenant=tenant,
        id=id,
        state=state,
        next_due=next_due,
        summary=summary,
        events=sentences(events, None if facts.standing is None else facts.standing.entry),
        searched_from=facts.searched_from,
        complete=complete,
    )
