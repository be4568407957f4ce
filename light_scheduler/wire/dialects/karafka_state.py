"""The records of Karafka's states topic, with which its Web UI shows the state of a partition's scheduler.

topic      {commands topic}_states, partition by partition
key        state, so that compaction keeps the last record of each partition
header     zlib: true
value      zlib of JSON {schema_version, dispatched_at, state, offsets {low, high}, daily {date: pending}, started_at,
           reloads}
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from datetime import date
from typing import Literal, NamedTuple

from light_scheduler.model import Headers

STATES_SCHEMA_VERSION = "1.0.0"
STATE_KEY = b"state"
STATE_HEADERS: Headers = [("zlib", b"true")]

State = Literal["fresh", "loading", "loaded", "stopped"]

DAY_MS = 86_400_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()


class PartitionState(NamedTuple):
    """The published state of a partition. Instants are UTC epoch ms; offsets are the first and last one read, or -1.

    `daily` maps days (UTC, counted since 1970) to the number of due messages.
    """

    state: State
    at: int
    started_at: int
    low: int
    high: int
    daily: Mapping[int, int]
    reloads: int


def encode_state(state: PartitionState) -> bytes:
    """Return the value of a state's record. The days always include today."""
    daily = {state.at // DAY_MS: 0, **state.daily}
    document = {
        "schema_version": STATES_SCHEMA_VERSION,
        "dispatched_at": state.at / 1_000,
        "state": state.state,
        "offsets": {"low": state.low, "high": state.high},
        "daily": {date.fromordinal(_EPOCH_DAY + day).isoformat(): daily[day] for day in sorted(daily)},
        "started_at": state.started_at // 1_000,
        "reloads": state.reloads,
    }
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode())
