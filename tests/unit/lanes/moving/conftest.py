"""Two partitions of a commands topic that has grown: that which had a key, and that to which it belongs."""

from __future__ import annotations

from typing import Any

import pytest
from support.moving import AFTER, BEFORE, GROWN, SECRET, Known
from support.partition import Partition

from light_scheduler.model.partitioning import Partitioning


@pytest.fixture
def former(producer: Any) -> Partition:
    """Partition 1, which had the key."""
    partition = Partition(producer, number=1, of=AFTER)
    partition.partitionings = Known(Partitioning(BEFORE, secret=SECRET))
    return partition


@pytest.fixture
def home(producer: Any) -> Partition:
    """Partition 5, to which it belongs."""
    partition = Partition(producer, number=5, of=AFTER)
    partition.partitionings = Known(GROWN)
    return partition
