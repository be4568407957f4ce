"""What is taken again and again while a service runs."""

from __future__ import annotations

import logging

import pytest

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.retrying import RETRY_S, Backoff, repeat

log = logging.getLogger(__name__)


class Service:
    """Is to end after so many steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.slept: list[float] = []

    @property
    def should_stop(self) -> bool:
        return not self.left

    async def sleep(self, n: float) -> None:
        self.slept.append(n)


async def test_a_step_that_fails_is_taken_again_after_a_pause(caplog: pytest.LogCaptureFixture) -> None:
    service = Service(3)

    async def step() -> None:
        service.left -= 1
        if service.left:
            raise BrokerError("away")

    await repeat(step, "following", service, log)
    assert caplog.messages == ["following: BrokerError('away'); trying again"] * 2
    assert service.slept == [RETRY_S] * 2


async def test_an_error_that_is_no_outage_ends_it() -> None:
    async def step() -> None:
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        await repeat(step, "following", Service(2), log)


def test_pauses_double_up_to_the_last_and_begin_anew() -> None:
    backoff = Backoff(0.1, 0.5)
    assert [backoff.next_s() for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    backoff.reset()
    assert [backoff.next_s(0.3), backoff.next_s(), backoff.next_s()] == [0.1, 0.2, 0.4]
