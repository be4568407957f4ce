from __future__ import annotations

import json
import zlib

from light_scheduler.model.topics import karafka_states_topic
from light_scheduler.wire.dialects.karafka_state import DAY_MS, PartitionState, encode_state

NEW_YEAR = 1_767_225_600_000
DAY = NEW_YEAR // DAY_MS


def test_a_state_is_compressed_json_with_today_among_its_days() -> None:
    told = PartitionState("loaded", NEW_YEAR + 1_500, NEW_YEAR, 3, 42, {DAY + 31: 7}, 1)
    assert json.loads(zlib.decompress(encode_state(told))) == {
        "schema_version": "1.0.0",
        "dispatched_at": 1_767_225_601.5,
        "state": "loaded",
        "offsets": {"low": 3, "high": 42},
        "daily": {"2026-01-01": 0, "2026-02-01": 7},
        "started_at": 1_767_225_600,
        "reloads": 1,
    }


def test_a_states_topic_is_named_after_its_commands_topic() -> None:
    assert karafka_states_topic("scheduled_messages") == "scheduled_messages_states"
