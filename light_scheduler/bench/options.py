"""What a run is asked for."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `light-scheduler bench`, as they stand under `settings` in its document."""

    messages: Annotated[int, Meta(description="Schedules in each round.")]
    partitions: Annotated[int, Meta(description="Partitions of the commands topic and of the target topic.")]
    payload_bytes: Annotated[int, Meta(description="Bytes of each payload; no two are alike.")]
    repeat: Annotated[int, Meta(description="Rounds.")]
    seed: Annotated[int, Meta(description="What payloads are drawn from.")]
