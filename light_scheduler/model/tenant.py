"""Tenants: what they may be called, and what each may have of what all share."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

TENANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a whole tenant name matches."""

MAX_WEIGHT = 1_000


class Shares(msgspec.Struct, frozen=True):
    """How tenants share what a worker can deliver.

    `weights` (1 to MAX_WEIGHT; 1 if not given): while several tenants have more due than can be delivered at once, each
    has its weight's part of it.
    """

    weights: Mapping[str, int] = {}


EQUAL_SHARES = Shares()
