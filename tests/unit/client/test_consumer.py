"""What a FiringConsumer says when it cannot begin."""

from __future__ import annotations

from typing import Any, cast

import pytest

from light_scheduler.client import Firing, FiringConsumer
from light_scheduler.errors import BrokerError
from light_scheduler.host.ports import free_port


async def _nothing(_: Firing) -> None:
    return


async def test_an_error_names_the_topics_that_cannot_be_consumed() -> None:
    consumer = FiringConsumer(cast("Any", None), f"127.0.0.1:{free_port()}", group_id="g")
    consumer.on_firing("reminders")(_nothing)
    consumer.on_firing("invoices")(_nothing)
    with pytest.raises(BrokerError, match="cannot consume invoices, reminders: "):
        await consumer.run()
