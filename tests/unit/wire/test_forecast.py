"""The records of the forecast topic."""

from __future__ import annotations

import pytest

from light_scheduler.wire.forecast import Interval, forecast_key, forecast_value, parse_forecast

MINUTE, DAY = Interval("minute", 29_000_000), Interval("day", 20_139 * 1_440)


def test_a_record_names_its_partition_and_its_interval() -> None:
    assert forecast_key("app-commands", 3, MINUTE) == b"app-commands/3/minute/1740000000000"
    assert forecast_value("app-commands", 3, MINUTE, 12, 1_739_999_990_000) == (
        b'{"topic":"app-commands","partition":3,"unit":"minute","from":1740000000000,"pending":12,"at":1739999990000}'
    )
    assert forecast_key("orders", 0, DAY) == b"orders/0/day/1740009600000"


def test_what_has_nothing_due_any_more_is_deleted() -> None:
    assert forecast_value("app-commands", 3, MINUTE, 0, 1) is None


@pytest.mark.parametrize("interval", [MINUTE, DAY])
def test_records_are_read_back(interval: Interval) -> None:
    value = forecast_value("t", 1, interval, 7, 5)
    assert value is not None
    assert parse_forecast(value) == (("t", 1), interval, 7)


@pytest.mark.parametrize("value", [b"", b"{}", b"\xff", b'{"topic":"t"}', b"[1]"])
def test_other_records_are_passed_over(value: bytes) -> None:
    assert parse_forecast(value) is None
