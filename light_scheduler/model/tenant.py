"""Names of tenants, and their shares of the workers' capacity."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

TENANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Pattern that must match a whole tenant name."""

MAX_WEIGHT = 1_000

OTHERS = "*"
"""Stands for all tenants without an entry of their own."""


class Shares(msgspec.Struct, frozen=True):
    """Shares of tenants in firings, and caps. Rates are firings per second for a whole commands topic.

    `weights` (1 to MAX_WEIGHT; default 1): while several tenants have more due than can be delivered at once, each gets
    a share in proportion to its weight. `rate` caps the firings of all tenants together, `rates` those of each tenant,
    with OTHERS for tenants that are not listed. None means no cap.
    """

    weights: Mapping[str, int] = {}
    rate: float | None = None
    rates: Mapping[str, float | None] = {}

    @property
    def has_caps(self) -> bool:
        """Whether there is any cap."""
        return self.rate is not None or any(rate is not None for rate in self.rates.values())

    def rate_of(self, tenant: str) -> float | None:
        """Return the cap of a tenant; None if it has none."""
        return self.rates[tenant] if tenant in self.rates else self.rates.get(OTHERS)


EQUAL_SHARES = Shares()
