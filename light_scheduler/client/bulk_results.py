"""Merges the results of a bulk command that went to several commands topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from light_scheduler.model import FAILURES, Result


def of_all_topics(results: Sequence[Result]) -> Result:
    """Return the first failure, if there is one; otherwise the first result, with the total count and all reasons."""
    failed = next((result for result in results if result.outcome in FAILURES), None)
    if failed is not None:
        return failed
    counts = [result.count for result in results if result.count is not UNSET]
    reasons = dict.fromkeys(result.reason for result in results if result.reason is not None)
    changes: dict[str, Any] = {"count": sum(counts)} if counts else {}
    return msgspec.structs.replace(results[0], reason="; ".join(reasons) or None, **changes)
