"""A page of the history of one id, as JSON."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.model import HistoryEvent


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """The history of one schedule."""

    events: Annotated[list[HistoryEvent], Meta(description="The newest first.")]
    searched_from: Annotated[
        int, Meta(description="All events since this instant, UTC epoch ms, have been looked at, back from the cursor.")
    ]
    next_cursor: Annotated[
        str | None, Meta(description="Look further back with it; null: the search has reached `since`.")
    ]
