"""A commands topic of three partitions, empty or with schedules."""

from __future__ import annotations

from typing import Any

import pytest
from support.bulk import COUNT, Topic


@pytest.fixture
async def commands(producer: Any) -> Topic:
    return Topic(producer)


@pytest.fixture
async def filled(commands: Topic) -> Topic:
    """Ten schedules `order-0` to `order-9` in each partition, named after it as `0/order-0`, and one `other`."""
    for number in range(COUNT):
        commands.put(
            number, *(f"{number}/order-{each}" for each in range(10)), labels=f"partition=p{number},kind=order"
        )
        commands.put(number, f"{number}/other", labels="kind=other")
    await commands.settle()
    commands.history.clear()
    return commands
