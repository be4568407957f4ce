"""Tenants: their names, and their shares of the workers' capacity."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

TENANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Pattern of a whole tenant name."""

MAX_WEIGHT = 1_000

OTHERS = "*"
"""Stands for every tenant that is not named."""


class Shares(msgspec.Struct, frozen=True):
    """Shares of tenants in the firings, and caps. Rates are firings a second of a whole commands topic.

    `weights` (1 to MAX_WEIGHT; default 1): while several tenants have more due than can be delivered at once, each gets
    a share in proportion to its weight. `rate` caps the firings of all tenants together, `rates` those of each tenant,
    or of each of the OTHERS. None: no cap.
    """

    weights: Mapping[str, int] = {}
    rate: float | None = None
    rates: Mapping[str, float | None] = {}

    @property
    def has_caps(self) -> bool:
        """Whether anything is capped."""
        return self.rate is not None or any(rate is not None for rate in self.rates.values())

    def rate_of(self, tenant: str) -> float | None:
        """Return the cap of one tenant."""
        return self.rates[tenant] if tenant in self.rates else self.rates.get(OTHERS)


EQUAL_SHARES = Shares()
