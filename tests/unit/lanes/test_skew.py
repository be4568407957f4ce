from __future__ import annotations

import logging

import pytest

from light_scheduler.lanes.skew import ClockSkew, skew_ms

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("sent", "appended", "answered", "skew"),
    [
        (1_000, 1_020, 1_050, 0),
        (1_000, 1_000, 1_000, 0),
        (1_000, 999, 1_050, 1),
        (1_000, 1_051, 1_050, -1),
        (1_000, 1_020 - HOUR, 1_050, HOUR - 20),
        (1_000, 1_020 + HOUR, 1_050, 30 - HOUR),
    ],
)
def test_skew_is_what_the_way_to_the_broker_and_back_does_not_explain(
    sent: int, appended: int, answered: int, skew: int
) -> None:
    assert skew_ms(sent, appended, answered) == skew


def test_a_skew_beyond_the_limit_is_warned_of_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    seconds = [0.0]
    skew = ClockSkew("commands-3", 500, lambda: seconds[0])
    with caplog.at_level(logging.WARNING):
        skew.observe(1_000, 500, 1_050)
        assert caplog.messages == []
        for _ in range(130):
            skew.observe(1_000, 499, 1_050)
            seconds[0] += 1
        skew.observe(1_000, 3_000, 1_050)
    assert skew.ms == -1_950
    assert [message.split(": ")[1].split(";")[0] for message in caplog.messages] == [
        "this worker's clock is 501 ms ahead of the broker's",
        "this worker's clock is 501 ms ahead of the broker's",
        "this worker's clock is 501 ms ahead of the broker's",
        "this worker's clock is 1950 ms behind the broker's",
    ]
