"""Tenants: what they may be called, and what each may have of what all share."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

TENANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a whole tenant name matches."""

MAX_WEIGHT = 1_000

OTHERS = "*"
"""Stands for every tenant that is not named."""


class Shares(msgspec.Struct, frozen=True):
    """What tenants may have of what workers deliver. Rates are firings a second, of a whole commands topic.

    `weights` (1 to MAX_WEIGHT; 1 if not given): while several tenants have more due than can be delivered at once, each
    has its weight's part of it. `rate` caps the firings of all tenants together, `rates` those of each one, or of each
    of the OTHERS. None: no cap.
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
