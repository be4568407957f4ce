"""The preview over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

NOW = 1_800_000_000_000
"""2027-01-15T08:00:00Z"""

MINUTE, HOUR = 60_000, 3_600_000
PREVIEW = "/api/v1/preview"


@pytest.mark.parametrize(
    ("parameters", "trigger", "due"),
    [
        ({}, {}, [0]),
        ({"at": str(NOW + 5)}, {"at": NOW + 5}, [5]),
        ({"after": "15m"}, {"after": "15m"}, [15 * MINUTE]),
        ({"every": "1m"}, {"every": "1m"}, [MINUTE, 2 * MINUTE]),
        ({"every": "1m", "mode": "fixed-delay"}, {"every": 60_000, "mode": "fixed-delay"}, [MINUTE, 2 * MINUTE]),
        ({"every": "1m", "max_firings": "1"}, {"every": "1m", "max_firings": 1}, [MINUTE]),
        ({"every": "1m", "max-firings": "1"}, {"every": "1m", "max_firings": 1}, [MINUTE]),
        ({"cron": "0 9 * * *"}, {"cron": "0 9 * * *"}, [HOUR, 25 * HOUR]),
        (
            {"cron": "0 0 9 * * ?", "cron_dialect": "quartz", "timezone": "Asia/Tokyo"},
            {"cron": "0 0 9 * * ?", "cron_dialect": "quartz", "timezone": "Asia/Tokyo"},
            [16 * HOUR, 40 * HOUR],
        ),
        ({"backoff": "1s,2s"}, {"backoff": ["1s", 2_000]}, [1_000, 3_000]),
        ({"backoff": "initial=1s factor=2 max=1h attempts=5"}, {"backoff": "initial=1s factor=2"}, [1_000, 3_000]),
        ({"every": "1m", "jitter": "0"}, {"every": 60_000, "jitter": 0}, [MINUTE, 2 * MINUTE]),
    ],
)
async def test_parameters_and_a_command_are_previewed_alike(
    workers: Any, parameters: dict[str, str], trigger: dict[str, Any], due: list[int]
) -> None:
    expected = {"next": [NOW + each for each in due]}
    assert await workers[0].json(PREVIEW, count="2", **parameters) == expected
    assert await workers[0].ask("POST", f"{PREVIEW}?count=2", 200, {"trigger": trigger}) == expected


async def test_headers_that_change_no_time_are_taken(workers: Any) -> None:
    of_target = {"target_topic": "out", "target-key": "k", "target_partition": "3"}
    of_delivery = {"ttl": "5m", "labels": "team=a", "priority": "7", "paused": "true", "overlap": "skip"}
    of_attempts = {"ack_timeout": "1m", "max_attempts": "3", "on_conflict": "keep", "expected_version": "2"}
    asked = {"every": "1m", "count": "2", **of_target, **of_delivery, **of_attempts}
    assert await workers[0].json(PREVIEW, **asked) == {"next": [NOW + MINUTE, NOW + 2 * MINUTE]}
    others = {"target_key_base64": "/w==", "target_partition_key": "k"}
    assert await workers[0].json(PREVIEW, **others) == {"next": [NOW]}
    body = {"trigger": {"every": "1m"}, "expected_version": 2}
    assert (await workers[0].ask("POST", f"{PREVIEW}?count=1", 200, body))["next"] == [NOW + MINUTE]


@pytest.mark.parametrize("target", [None, {}, {"key": "k"}, {"topic": None}])
async def test_no_topic_is_needed(workers: Any, target: Any) -> None:
    body = {"trigger": {"at": "2030-01-01T00:00:00Z"}, "target": target}
    assert await workers[0].ask("POST", PREVIEW, 200, body) == {"next": [1_893_456_000_000]}


async def test_it_may_begin_with_1970(workers: Any) -> None:
    assert await workers[0].json(PREVIEW, **{"from": "0", "every": "1h", "count": "2"}) == {"next": [HOUR, 2 * HOUR]}
    body = {"trigger": {"after": "1h"}}
    assert await workers[0].ask("POST", f"{PREVIEW}?from=0", 200, body) == {"next": [HOUR]}
    assert (await workers[0].json(PREVIEW, status=400, at="0"))["parameter"] == "at"


async def test_the_jitter_of_a_command_with_a_key_and_no_id_is_that_of_the_key(workers: Any) -> None:
    rule = {"trigger": {"every": "1h", "jitter": "10m"}}
    by_key, by_id, other = [
        await workers[0].ask("POST", PREVIEW, 200, {**rule, **names})
        for names in ({"key": "a"}, {"id": "a"}, {"key": "b"})
    ]
    assert by_key == by_id != other
    assert await workers[0].json(PREVIEW, every="1h", jitter="10m", key="a") == by_key
    assert await workers[0].json(PREVIEW, every="1h", jitter="10m", key="b", id="a") == by_key


async def test_it_begins_where_it_is_told_to(workers: Any) -> None:
    begun = {"from": "2030-01-01T00:00:00Z", "every": "1h"}
    found = await workers[0].json(PREVIEW, **begun)
    assert found["next"] == [1_893_456_000_000 + number * HOUR for number in range(1, 11)]
    body = {"trigger": {"every": "1h"}, "target": {"topic": "out"}, "id": "preview"}
    assert await workers[0].ask("POST", f"{PREVIEW}?from=2030-01-01T00:00:00Z", 200, body) == found
    for flat in ({"target_topic": "out"}, {"target_key": "k"}):
        body = {"every": "1h", "id": "preview", **flat}
        assert await workers[0].ask("POST", f"{PREVIEW}?from=2030-01-01T00:00:00Z", 200, body) == found


@pytest.mark.parametrize(
    ("parameters", "parameter"),
    [
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "@daily", "timezone": "Mars"}, "timezone"),
        ({"cron_dialect": "quartz"}, "cron_dialect"),
        ({"every": "1m", "cron": "@daily"}, "cron"),
        ({"every": "soon"}, "every"),
        ({"every": "300000"}, "every"),
        ({"after": "5"}, "after"),
        ({"every": "1m", "jitter": "5"}, "jitter"),
        ({"at": str(NOW), "on_past": "5000"}, "on_past"),
        ({"backoff": "1000,2s"}, "backoff"),
        ({"backoff": "initial=5 factor=2"}, "backoff"),
        ({"from": "soon"}, "from"),
        ({"from": "1"}, "from"),
        ({"count": "1001"}, "count"),
        ({"corn": "@daily"}, "corn"),
        ({"ttl": "5"}, "ttl"),
        ({"every": "1m", "ack_timeout": "5"}, "ack_timeout"),
        ({"target_topic": "a b"}, "target_topic"),
        ({"overlap": "skip"}, "overlap"),
        ({"key": ""}, "id"),
        ({"reply_topic": "out"}, "reply_topic"),
    ],
)
async def test_a_parameter_that_is_wrong_is_named(workers: Any, parameters: dict[str, str], parameter: str) -> None:
    assert (await workers[0].json(PREVIEW, status=400, **parameters))["parameter"] == parameter


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"trigger": {"cron": "61 * * * *"}}, "trigger.cron"),
        ({"trigger": {"cron": "@daily", "timezone": "Mars"}}, "trigger.timezone"),
        ({"trigger": {"every": "1m", "end": NOW}}, "trigger.end"),
        ({"command": "cancel"}, "command"),
        ({"target": {"partition": "first"}}, "target.partition"),
        (b"nonsense", "body"),
    ],
)
async def test_a_member_that_is_wrong_is_named(workers: Any, body: Any, parameter: str) -> None:
    assert (await workers[0].ask("POST", PREVIEW, 400, body))["parameter"] == parameter
