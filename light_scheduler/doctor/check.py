"""A line of the doctor's report, and helpers for checks of several kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.wire.instants import format_instant

Status = Literal["ok", "warn", "fail"]

RENEW_MS = 14 * 86_400_000
"""How long before its expiry something should be renewed."""

MOST_NAMED = 5
"""Maximum number of similar things that a report names."""


@dataclass(frozen=True)
class Check:
    """One line of the report. `fix` says what to do, unless the status is ok."""

    name: str
    status: Status
    detail: str
    fix: str | None = None


def check_certificate(setting: str, path: Path, end: int, clock: Clock | None = None) -> Check:
    """Warn if a certificate expires soon; `end` is UTC epoch ms."""
    left = end - (clock or SystemClock()).now()
    detail = f"{setting} {path} is valid until {format_instant(end)}"
    if left > RENEW_MS:
        return Check("certificate", "ok", detail)
    return Check(
        "certificate",
        "warn" if left > 0 else "fail",
        detail,
        f"renew {path}. Workers use the new file without a restart",
    )


def some(many: Sequence[object]) -> str:
    """List the first few, and the number of the others."""
    more = f" and {len(many) - MOST_NAMED} more" if len(many) > MOST_NAMED else ""
    return f"{', '.join(map(str, many[:MOST_NAMED]))}{more}"
