"""A page of the list of changes, as JSON."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.model import HistoryEvent


class ChangePage(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of tenants, tokens and delay rules: what, by whom and from which address."""

    changes: Annotated[
        list[HistoryEvent], Meta(description="The newest first; `reason` says what changed from what to what.")
    ]
    searched_from: Annotated[
        int,
        Meta(description="All changes since this instant, UTC epoch ms, have been looked at, back from the cursor."),
    ]
    next_cursor: Annotated[
        str | None, Meta(description="Look further back with it; null: the search has reached `since`.")
    ]
