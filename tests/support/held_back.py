"""A worker whose first transaction that writes to a partition waits for its test: `faust -A support.held_back worker`.

The partition has taken the records by then. The test lets it go on with the commit, or fail.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from light_scheduler.application import build
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.settings import load_settings

from .waiting import eventually

TOPIC_VARIABLE, PARTITION_VARIABLE, FOLDER_VARIABLE = "HELD_BACK_TOPIC", "HELD_BACK_PARTITION", "HELD_BACK_FOLDER"
"""The partition, and where the worker and its test tell each other how far they are."""
HELD, COMMITS, FAILS = "held", "commits", "fails"
"""Files in that folder: the transaction waits; it may commit; it has to fail."""


def hold_back(place: tuple[str, int], folder: Path) -> None:
    """Have the first transaction of this process wait that writes to a place."""
    send = TransactionalProducer._send

    async def send_and_wait(self: TransactionalProducer, batches: Any, patience_s: float) -> dict[tuple[str, int], int]:
        ends = await send(self, batches, patience_s)
        if place in ends and not (folder / HELD).exists():
            (folder / HELD).touch()
            await eventually(lambda: (folder / COMMITS).exists() or (folder / FAILS).exists())
            if (folder / FAILS).exists():
                raise BrokerError("the test has it fail")
        return ends

    TransactionalProducer._send = send_and_wait  # type: ignore[method-assign]


if FOLDER_VARIABLE in os.environ:
    hold_back(
        (os.environ[TOPIC_VARIABLE], int(os.environ[PARTITION_VARIABLE])),
        Path(os.environ[FOLDER_VARIABLE]),
    )
    app = build(load_settings())
