"""The JSON documents of delay rules."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.delays import DelayLaneStatus, DelayView

from .forms.text_forms import TOPIC, described


class DelayBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A delay rule to add."""

    source: Annotated[str, described("Topic to forward from.", TOPIC)]
    delay: Annotated[
        str | int, Meta(description="Delay after the timestamp of each record: ms, or 250ms, 90s, 15m, 2h, 7d, PT15M.")
    ]
    target: Annotated[str, described("Topic to forward to.", TOPIC)]


class DelayList(msgspec.Struct, frozen=True, kw_only=True):
    """All delay rules with their state and progress."""

    delays: list[DelayView]
    lanes: Annotated[
        list[DelayLaneStatus], Meta(description="State of each rule in each partition, from all workers that answered.")
    ]
    unanswered: Annotated[list[str], Meta(description="Workers that did not answer. Their lanes are missing.")]
