"""The certificate authority of the devkit, for tests."""

from __future__ import annotations

from light_scheduler.devkit.authority import DAY, Authority, Pair

__all__ = ["DAY", "Authority", "Pair"]
