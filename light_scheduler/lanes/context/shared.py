"""What the lanes of a worker share besides clients: counts, turns, and the traces of what they do."""

from __future__ import annotations

from dataclasses import dataclass, field

from .tenant_firings import TenantFirings
from .topic_totals import TopicTotals
from .tracing import Tracing
from .turns import Turns


@dataclass(frozen=True)
class SharedByLanes:
    """Shared by all lanes of a worker; `topic_totals` by those of one commands topic."""

    tenant_firings: TenantFirings = field(default_factory=TenantFirings)
    """The number of firings that this worker has delivered per tenant."""

    topic_totals: TopicTotals = field(default_factory=TopicTotals)
    """Totals of this worker for the commands topic."""

    turns: Turns = field(default_factory=Turns)
    """Round-robin turns of partitions for tenants that use them."""

    tracing: Tracing | None = None
    """Receives the commands and firings that belong to traces. None if tracing is off."""
